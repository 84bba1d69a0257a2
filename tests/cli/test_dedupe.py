from __future__ import annotations

import csv
import json

import pytest
import typer
from typer.testing import CliRunner

import condsim
from condsim.cli.dedupe import dedupe
from condsim.cli.process import guard
from condsim.errors import InputError

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(dedupe)
guard(APP)

TEXTS = """text,date,score
A dog runs.,2026-01-01,3
A train is late.,,4
A dog runs.,2026-03-01,5
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(TEXTS, "utf-8")
    return path


def invoke(file, output, *options):
    words = [file, "--condition", "the animal", "--at-least", "0.95", "--output", output, *options]
    return CliRunner().invoke(APP, [str(word) for word in words])


def test_dedupe_keeps_all_columns_and_shows_groups(file, tmp_path):
    groups = tmp_path / "groups.csv"
    result = invoke(file, tmp_path / "out.csv", "--keep", "newest:date", "--groups", groups)
    assert result.exit_code == 0, result.exception
    assert "2 of 3 rows kept; groups of duplicates: 1, the largest of 2 rows" in result.stderr
    lines = TEXTS.splitlines()
    assert (tmp_path / "out.csv").read_text().splitlines() == [lines[0], *lines[2:]]
    with groups.open(newline="") as stream:
        rows = [list(row.values()) for row in csv.DictReader(stream)]
    assert rows == [
        ["1", "3", "true", "1.0", "A dog runs.", "2026-03-01", "5"],
        ["1", "1", "false", "1.0", "A dog runs.", "2026-01-01", "3"],
    ]


def test_dedupe_jsonl_rows_of_different_columns_fit_a_table(tmp_path):
    file = tmp_path / "in.jsonl"
    rows = [{"text": "A dog runs.", "note": "x"}, {"text": "A train is late.", "year": 7}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    invoke(file, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "text,note,year",
        "A dog runs.,x,",
        "A train is late.,,7",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--keep", "last"], "--keep must be first, longest or newest:COLUMN"),
        (["--keep", "newest:"], "--keep must be first"),
        (["--keep", "newest:year"], "column 'year' is missing"),
        (["--keep", "newest:text"], "column 'text': must be a number or a date"),
        (["--column", "body"], "no column 'body'; found 'text', "),
        (["--and-overall", "90"], "from 0 to 1"),
        (["--to", "2"], "either --at-least"),
        (["--review", "band.csv"], "go together"),
        (["--groups", "out.txt"], "the suffix decides the format"),
    ],
)
def test_dedupe_bad_option_is_one_line_and_nothing_is_written(file, tmp_path, options, message):
    error = invoke(file, tmp_path / "out.csv", *options).exception
    assert isinstance(error, InputError)
    assert message in str(error)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


def test_dedupe_dates_and_numbers_mixed_are_refused(file, tmp_path):
    file.write_text(TEXTS.replace("2026-03-01", "17"))
    error = invoke(file, tmp_path / "out.csv", "--keep", "newest:date").exception
    assert "row 3 (line 4), column 'date': is a number, while rows before have a date" in str(error)


def test_dedupe_groups_keeps_columns_that_are_called_as_its_own(tmp_path):
    file, groups = tmp_path / "in.csv", tmp_path / "groups.csv"
    file.write_text("text,group,group.1\nA dog runs.,alpha,one\nA dog runs.,beta,two\n")
    invoke(file, tmp_path / "out.csv", "--groups", groups)
    with groups.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows[0]) == 7
    assert {"alpha", "one"} < set(rows[0].values())


def test_dedupe_number_too_large_for_a_date_is_refused(tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps({"text": "A dog.", "age": 10**400}) + "\n")
    result = invoke(file, tmp_path / "out.csv", "--keep", "newest:age")
    assert isinstance(result.exception, InputError)


def test_dedupe_to_keeps_that_many_rows(file, tmp_path):
    words = [file, "--condition", "the animal", "--to", "1", "--output", tmp_path / "out.csv"]
    result = CliRunner().invoke(APP, [str(word) for word in words])
    assert result.exit_code == 0, result.exception
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 2


def test_dedupe_review_writes_pairs_of_kept_rows(file, tmp_path):
    band = tmp_path / "band.csv"
    result = invoke(file, tmp_path / "out.csv", "--review", band, "--review-from", "0")
    assert result.exit_code == 0, result.exception
    with band.open(newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["row1"], row["row2"], row["duplicate"]) == ("1", "2", "")
    assert (row["text1"], row["text2"]) == ("A dog runs.", "A train is late.")


def test_dedupe_row_without_text_stays_and_is_counted(tmp_path):
    file, output = tmp_path / "in.csv", tmp_path / "out.csv"
    file.write_text("text,id\nA dog runs.,1\n,2\nA dog runs.,3\n")
    result = invoke(file, output)
    assert output.read_text() == "text,id\nA dog runs.,1\n,2\n"
    assert "1 row has no text and thus no group (row 2)" in result.stderr
    assert isinstance(invoke(file, output, "--strict").exception, InputError)


def test_dedupe_without_duplicates_writes_headers(tmp_path):
    file, groups, review = (tmp_path / name for name in ("in.csv", "groups.csv", "review.tsv"))
    file.write_text("text,group\nA dog runs.,1\n")
    options = ("--groups", groups, "--review", review, "--review-from", "0.9")
    result = invoke(file, tmp_path / "out.csv", *options)
    assert result.exit_code == 0, result.exception
    assert groups.read_text() == "group,row,kept,score,text,group.1\n"
    assert review.read_text().split() == "row1 row2 score text1 text2 duplicate".split()


def test_dedupe_separator_and_encoding_override_detection(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("text#date\nUn été.#1\nUn été.#2\n", "mac_roman")
    options = ("--separator", "#", "--encoding", "mac-roman")
    invoke(file, tmp_path / "out.csv", *options)
    assert (tmp_path / "out.csv").read_text("utf-8") == "text,date\nUn été.,1\n"


def test_dedupe_overall_is_a_share_and_and_overall_a_test_of_its_own(tmp_path):
    file, output = tmp_path / "in.csv", tmp_path / "out.csv"
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
        words = (file, "--condition", "the animal", "--output", output, *options)
        assert CliRunner().invoke(APP, [str(word) for word in words]).exit_code == 0
        return len(output.read_text().splitlines()) - 1

    between = (alone + mixed) / 2
    assert kept("--at-least", between) == 2
    assert kept("--at-least", between, "--overall", 0) == 1
    assert kept("--at-least", mixed - 0.01) == 1
    assert kept("--at-least", mixed - 0.01, "--and-overall", plain + 0.01) == 2
