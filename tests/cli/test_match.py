from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

import pytest
from tests import commands
from tests.commands import rows_in

EXAMPLES = Path(__file__).parents[2] / "examples"
OFFERS = (EXAMPLES / "offers1.csv", EXAMPLES / "offers2.csv")
PRODUCT = ("--condition", "the product")

run = partial(commands.succeed, "match")
fault = partial(commands.fault, "match")


def test_match_writes_pairs_and_the_rest_of_both_files(tmp_path):
    output, only1, only2 = (tmp_path / name for name in ("m.csv", "one.csv", "two.tsv"))
    files = ("--output", output, "--unmatched1", only1, "--unmatched2", only2)
    result = run(*OFFERS, *PRODUCT, "--at-least", "0.5", *files)
    found = rows_in(output)
    assert sum(row["same_as2"] == row["id1"] for row in found) >= 24
    assert list(found[0]) == (
        "row1 row2 score gap same id1 text1 price1 id2 text2 price2 same_as2".split()
    )
    assert [row["score"] for row in found] == sorted((r["score"] for r in found), reverse=True)
    matched = {row["id1"] for row in found}
    assert {row["id"] for row in rows_in(only1)} == {f"O{n}" for n in range(1, 31)} - matched
    assert len(only2.read_text().splitlines()) == 31 - len(found)
    assert f"{len(found)} matches, the lowest score 0.5" in result.stderr


def test_match_missing_column_names_the_option_of_its_file(tmp_path):
    second = tmp_path / "2.csv"
    second.write_text("name\nA red car.\n")
    words = (*PRODUCT, "--output", tmp_path / "m.csv")
    assert "Name yours with --column2." in fault(OFFERS[0], second, *words)


def test_match_labeled_matches_choose_the_threshold(tmp_path):
    proposals, judged, output = (tmp_path / name for name in ("p.csv", "j.csv", "m.csv"))
    run(*OFFERS, *PRODUCT, "--output", proposals)
    rows = rows_in(proposals)
    for row in rows:
        row["same"] = "yes" if row["same_as2"] == row["id1"] else "no"
    rows[3]["same"] = ""
    with judged.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    words = (*OFFERS, *PRODUCT, "--output", output, "--labeled", judged, "--precision", "0.8")
    result = run(*words)
    assert "right ones among 29 labeled matches" in result.stderr
    assert 24 <= len(rows_in(output)) < 30
    judged.write_text(judged.read_text().replace(rows[0]["text1"], "another"))
    assert "is not a pair of" in fault(*words)


def test_match_several_conditions_have_a_score_each_and_rows_without_text_none(tmp_path):
    first, second, output = (tmp_path / name for name in ("1.csv", "2.csv", "m.csv"))
    first.write_text('name\nA red car.\n""\n')
    second.write_text("text,text1\nA blue car.,x\nA red car.,y\n")
    conditions = ("--condition", "the color", "--condition", "the vehicle")
    words = ("--column", "name", "--column2", "text", "--output", output)
    result = run(first, second, *conditions, *words, "--unmatched1", tmp_path / "u.csv")
    (row,) = rows_in(output)
    assert (row["row2"], row["score: the color"], row["text12"]) == ("2", "1.0", "y")
    assert "1 row has no text and thus no match (row 2)" in result.stderr
    assert (tmp_path / "u.csv").read_text().splitlines()[1:] == ['""']


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Give either --condition, the respect in which to compare, or --plain"),
        ((*PRODUCT, "--at-least", "0.5", "--labeled", "x.csv"), "Give either --at-least, or"),
        ((*PRODUCT, "--precision", "0.9"), "--precision needs --labeled"),
        ((*PRODUCT, "--column2", "name"), "offers2.csv: column 'name' is missing"),
    ],
)
def test_match_bad_options_refused(tmp_path, words, message):
    assert message in fault(*OFFERS, *words, "--output", tmp_path / "m.csv")
