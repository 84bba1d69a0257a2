from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path

import pytest
from tests import commands
from tests.commands import rows_in

from condsim.model.judge import VERDICTS
from condsim.paths import asset

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIR = ("Tests run on Jenkins.", "We have moved the tests from Jenkins to GitHub Actions.")

run = partial(commands.succeed, "verdict")
fault = partial(commands.fault, "verdict")


def write(path, head, *rows):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([head, *rows])
    return path


def test_verdict_pair_prints_it_and_the_probabilities():
    result = run(*PAIR, "--about")
    assert result.stdout == "update\n"
    assert all(name in result.stderr for name in (*VERDICTS, "decided by"))
    assert "cannot read" in run(PAIR[0], "天气很好,我们去公园").stderr
    assert run(*PAIR, "--judge", asset("judge")).stdout == "update\n"


def test_verdict_pairs_keep_columns_and_rows_without_text_have_none(tmp_path):
    head = ("id", "sentence1", "sentence2")
    file = write(tmp_path / "p.csv", head, (7, *PAIR), (8, PAIR[0], ""))
    result = run(file, "--output", tmp_path / "out.csv", "--about")
    first, second = rows_in(tmp_path / "out.csv")
    assert list(first) == [*head, "verdict", "probability", *VERDICTS, "reason", "about"]
    assert (first["id"], first["verdict"]) == ("7", "update")
    assert sum(float(first[name]) for name in VERDICTS) == pytest.approx(1, abs=1e-3)
    assert not second["verdict"]
    assert "update 1" in result.stderr


def test_verdict_times_of_the_texts_decide_between_update_and_contradiction(tmp_path):
    head = ("sentence1", "sentence2", "day1", "day2")
    pair = ("The store opens at nine.", "The store opens at eight.")
    days = (("2026-01-01", "2026-05-01T09:00Z"), ("2026-01-01", "2026-01-01"), ("", "2026-01-01"))
    earlier = (*pair, "2026-01-01", "2025-01-01")
    file = write(tmp_path / "p.csv", head, *((*pair, *both) for both in days), earlier)
    run(file, "--output", tmp_path / "out.csv", "--time", "day")
    found = [row["verdict"] for row in rows_in(tmp_path / "out.csv")]
    assert found == ["update", "contradiction", "contradiction", "related"]
    bad = write(tmp_path / "bad.csv", head, (*pair, "May", "2026-01-01"))
    message = fault(bad, "--output", tmp_path / "out2.csv", "--time", "day")
    assert "column 'day1': must be a date or time in ISO 8601" in message
    assert "'time1' is missing" in fault(bad, "--output", tmp_path / "out2.csv", "--time", "time")


def test_verdict_against_names_the_known_row(tmp_path):
    new, known = EXAMPLES / "facts-new.csv", EXAMPLES / "facts.csv"
    run(new, "--against", known, "--output", tmp_path / "out.csv")
    found = rows_in(tmp_path / "out.csv")
    assert found[0]["verdict"] == "duplicate"
    assert found[1]["verdict"] == "update"
    assert found[1]["known"] == PAIR[0]
    assert found[1]["known_row"] == "4"
    assert "candidates" not in found[1]


def test_verdict_standard_input_against_a_file_writes_all_candidates_as_json(tmp_path):
    known = EXAMPLES / "facts.csv"
    text = json.dumps({"text": PAIR[1]})
    options = ("--against", known, "--candidates", "3", "--output", tmp_path / "out.jsonl")
    run("-", *options, stdin=text)
    (found,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (found["verdict"], found["known_row"]) == ("update", 4)
    assert len(found["candidates"]) == 3
    (decided,) = (one for one in found["candidates"] if one["known_row"] == 4)
    assert (decided["known"], decided["verdict"]) == (PAIR[0], "update")
    assert set(decided["probabilities"]) == set(VERDICTS)


def test_verdict_threshold_of_labeled_pairs_keeps_its_promise(tmp_path):
    from papers.judge.rows import read_verdicts

    head = ("sentence1", "sentence2", "verdict")
    rows = [(row["sentence1"], row["sentence2"], row["verdict"]) for row in read_verdicts("dev")]
    labeled = write(tmp_path / "labeled.csv", head, *rows[:400])
    file = write(tmp_path / "p.csv", head[:2], *(row[:2] for row in rows[:400]))
    promise = ("--labeled", labeled, "--at-most-false-merges", "0.2")
    result = run(file, "--output", tmp_path / "out.csv", *promise)
    assert "are false merges" in result.stderr
    merged = [
        row[2] in ("duplicate", "update")
        for row, found in zip(rows, rows_in(tmp_path / "out.csv"), strict=False)
        if found["verdict"] in ("duplicate", "update")
    ]
    assert len(merged) >= 20
    assert sum(merged) / len(merged) >= 0.8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((PAIR[0],), "no file 'Tests run on Jenkins.'. Give two"),
        ((*PAIR, "--candidates", "3"), "go with --against"),
        ((*PAIR, "--output", "x.csv"), "go with one file"),
        (("p.csv",), "needs --output"),
        (("p.csv", "--against", "p.csv", "--time", "day"), "goes with a file of pairs"),
        (("p.csv", "--output", "x.csv", "--labeled", "p.csv"), "go together"),
        (("p.csv", "--output", "x.csv", "--against", "nowhere.csv"), "nowhere.csv"),
        (
            ("p.csv", "--output", "x.csv", "--labeled", "p.csv", "--at-most-false-merges", ".1"),
            "verdict",
        ),
        (
            ("p.csv", "--output", "x.csv", "--labeled", "l.csv", "--at-most-false-merges", ".1"),
            "'perhaps'",
        ),
        (
            ("p.csv", "--output", "x.csv", "--labeled", "n.csv", "--at-most-false-merges", ".1"),
            "no row is a duplicate or an update",
        ),
    ],
)
def test_verdict_bad_options_are_one_line(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "p.csv", ("sentence1", "sentence2", "text"), (*PAIR, "x"))
    write(tmp_path / "l.csv", ("sentence1", "sentence2", "verdict"), (*PAIR, "perhaps"))
    write(tmp_path / "n.csv", ("sentence1", "sentence2", "verdict"), (*PAIR, "new"))
    assert message in fault(*words)
    assert not (tmp_path / "x.csv").exists()
