from __future__ import annotations

import json
from functools import partial

import pytest
from tests import commands
from tests.commands import rows_in

import condsim

TEXTS = """text,date,score
A dog runs.,2026-01-01,3
A train is late.,,4
A dog runs.,2026-03-01,5
"""
ANIMAL = ("--condition", "the animal")
NEAR = (*ANIMAL, "--at-least", "0.95")

run = partial(commands.succeed, "dedupe")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(TEXTS, "utf-8")
    return path


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out.csv"


def fault(file, output, *options):
    return commands.fault("dedupe", file, *NEAR, "--output", output, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--keep", "last"], "--keep must be one of first, longest, newest:COLUMN, oldest:COLUMN"),
        (["--keep", "newest:"], "--keep must be one of"),
        (["--keep", "newest:year"], "column 'year' is missing"),
        (["--keep", "newest:text"], "column 'text': must be a number or a date"),
        (["--column", "body"], "column 'body' is missing; found 'text', "),
        (["--to", "2"], "Give either --at-least"),
        (["--at-least", "0.6"], "once for each --condition; got 2 for 1."),
        (["--review", "band.csv"], "Give --review and --review-from together"),
        (["--groups", "out.txt"], "the suffix must be"),
    ],
)
def test_dedupe_bad_option_refused_and_nothing_is_written(file, output, options, message):
    assert message in fault(file, output, *options)
    assert sorted(path.name for path in file.parent.iterdir()) == ["in.csv"]


def test_dedupe_dates_mixed_with_numbers_or_past_their_range_refused(file, output, tmp_path):
    file.write_text(TEXTS.replace("2026-03-01", "17"))
    message = fault(file, output, "--keep", "newest:date")
    assert "row 3 (line 4), column 'date': is a number, while rows before have a date" in message
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": "A dog.", "age": 10**400}) + "\n")
    fault(tmp_path / "in.jsonl", output, "--keep", "newest:age")


def test_dedupe_groups_keeps_columns_that_are_called_as_its_own(file, output, tmp_path):
    groups = tmp_path / "groups.csv"
    file.write_text("text,group,group.1\nA dog runs.,alpha,one\nA dog runs.,beta,two\n")
    run(file, *NEAR, "--output", output, "--groups", groups)
    row, _ = rows_in(groups)
    assert len(row) == 7
    assert {"alpha", "one"} < set(row.values())


def test_dedupe_to_keeps_that_many_rows(file, output):
    run(file, *ANIMAL, "--to", "1", "--output", output)
    assert len(rows_in(output)) == 1


def test_dedupe_review_writes_pairs_of_kept_rows(file, output, tmp_path):
    band = tmp_path / "band.csv"
    run(file, *NEAR, "--output", output, "--review", band, "--review-from", "0")
    (row,) = rows_in(band)
    assert (row["row1"], row["row2"], row["duplicate"]) == ("1", "2", "")
    assert (row["text1"], row["text2"]) == ("A dog runs.", "A train is late.")


def test_dedupe_row_without_text_stays_and_is_counted(file, output):
    file.write_text("text,id\nA dog runs.,1\n,2\nA dog runs.,3\n")
    result = run(file, *NEAR, "--output", output)
    assert output.read_text() == "text,id\nA dog runs.,1\n,2\n"
    assert "1 row has no text and thus no group (row 2)" in result.stderr
    fault(file, output, "--strict")


def test_dedupe_without_duplicates_writes_headers(file, output, tmp_path):
    groups, review = tmp_path / "groups.csv", tmp_path / "review.tsv"
    file.write_text("text,group\nA dog runs.,1\n")
    options = ("--groups", groups, "--review", review, "--review-from", "0.9")
    run(file, *NEAR, "--output", output, *options)
    assert groups.read_text() == "group,row,kept,score,text,group.1\n"
    assert review.read_text().split() == "row1 row2 score text1 text2 duplicate".split()


@pytest.mark.parametrize(("keep", "date"), [("newest", "2026-03-01"), ("oldest", "2026-01-01")])
def test_dedupe_keep_by_a_column_chooses_the_row(file, output, keep, date):
    run(file, *NEAR, "--keep", f"{keep}:date", "--output", output)
    assert [row["date"] for row in rows_in(output) if row["text"] == "A dog runs."] == [date]


def test_dedupe_keep_newest_reads_dates_with_the_day_first(file, output):
    file.write_text("text,date\nA dog runs.,02.12.2025\nA dog runs.,01.03.2026 09:30\n")
    run(file, *NEAR, "--keep", "newest:date", "--output", output)
    assert [row["date"] for row in rows_in(output)] == ["01.03.2026 09:30"]


def test_dedupe_row_without_a_date_is_kept_last(file, output):
    file.write_text("text,date\nA dog runs.,\nA dog runs.,2026-03-01\n")
    for keep in ("newest", "oldest"):
        run(file, *NEAR, "--keep", f"{keep}:date", "--output", output)
        assert [row["date"] for row in rows_in(output)] == ["2026-03-01"]


def test_dedupe_plain_compares_texts_as_a_whole(file, output):
    run(file, "--plain", "--at-least", "0.95", "--output", output)
    assert len(rows_in(output)) == 2
    message = commands.fault("dedupe", file, "--plain", *NEAR, "--output", output)
    assert "Give either --condition, the respect in which to compare, or --plain" in message
    message = commands.fault("dedupe", file, *ANIMAL, "--output", output)
    assert message.startswith("Give either --at-least, the score that duplicates reach")


def test_dedupe_files_have_a_score_for_each_condition(file, output, tmp_path):
    texts = ["Cancel my gym membership.", "Please cancel my gym membership.", "Cancel my phone."]
    file.write_text("text\n" + "\n".join(texts) + "\n", "utf-8")
    groups, review = tmp_path / "groups.csv", tmp_path / "review.csv"
    conditions = ("the request", "the product")
    words = [word for name in conditions for word in ("--condition", name)]
    files = ("--output", output, "--groups", groups, "--review", review)
    run(file, *words, "--at-least", "0.85", *files, "--review-from", "0.1")
    model = condsim.load()
    kept, member = rows_in(groups)
    (pair,) = rows_in(review)
    for name in conditions:
        assert kept[f"score: {name}"] == "1.0"
        score = model.score(texts[0], texts[1], name, overall=0.3)
        assert float(member[f"score: {name}"]) == pytest.approx(score, abs=1e-3)
        score = model.score(texts[0], texts[2], name, overall=0.3)
        assert float(pair[f"score: {name}"]) == pytest.approx(score, abs=1e-3)


def test_dedupe_one_condition_that_merges_different_texts_warns(file, output):
    texts = [
        "I want a refund for the shoes.",
        "I want a refund for the train ticket.",
        "A bus is late.",
    ]
    file.write_text("text\n" + "\n".join(texts) + "\n", "utf-8")
    words = ("--condition", "the request", "--at-least", "0.7", "--output", output)
    result = run(file, *words)
    assert "1 of 1 removed rows reach 0.7 under the condition but not as a whole" in result.stderr
    assert "give a second --condition, and read --groups" in result.stderr
    assert "not as a whole" not in run(file, *words, "--condition", "the place").stderr


def test_dedupe_condition_that_changes_nothing_says_so(file, output):
    result = run(file, *NEAR, "--output", output)
    assert "'the animal' hardly changes the result: --plain removes" in result.stderr


def test_dedupe_overall_is_a_share_and_and_overall_a_test_of_its_own(file, output):
    texts = ["A small dog barks at the postman.", "The dog sleeps in the garden of a hotel."]
    file.write_text("text\n" + "\n".join(texts) + "\n", "utf-8")
    model = condsim.load()
    alone, mixed, plain = (
        model.score(*texts, "the animal"),
        model.score(*texts, "the animal", overall=0.3),
        model.score(*texts),
    )
    assert alone > mixed + 0.02 > plain + 0.04

    def kept(*options):
        run(file, *ANIMAL, "--output", output, *options)
        return len(rows_in(output))

    between = (alone + mixed) / 2
    assert kept("--at-least", between) == 2
    assert kept("--at-least", between, "--overall", 0) == 1
    assert kept("--at-least", mixed - 0.01) == 1
    assert kept("--at-least", mixed - 0.01, "--and-overall", plain + 0.01) == 2
