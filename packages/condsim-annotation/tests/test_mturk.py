from __future__ import annotations

import csv

import pytest
from typer.testing import CliRunner

from condsim.errors import InputError
from condsim_annotation.cli import app
from condsim_annotation.exchange import TOKEN, PushOptions
from condsim_annotation.mturk import export_mturk, import_mturk
from condsim_annotation.outcome import decide_by_hand, ratings_of, stage_outcome
from condsim_annotation.records import Condition
from condsim_annotation.stages import verification_items

HEAD = "AssignmentId,WorkerId,AssignmentStatus,SubmitTime,WorkTimeInSeconds,Input.condsim_item"
TIME = "Fri Nov 20 09:30:00 PST 2026"


@pytest.fixture
def exported(store, tmp_path):
    """Two rows to rate for workers W1 and W2; the ids of the rows."""
    decide_by_hand(store, accept=["W1", "W2"])
    rows = [
        Condition("p", "A <b>fox</b> 🦊.", 'A "hen".', text, intended, "ann")
        for text, intended in (("The use", "high"), ("The size", "low"))
    ]
    export_mturk(
        store, "verification", verification_items(rows), tmp_path, PushOptions(annotators=2)
    )
    return list(store.items("verification"))


def batch_file(tmp_path, answers, *lines):
    path = tmp_path / "results.csv"
    path.write_text("\n".join([f"{HEAD},{answers}", *lines, ""]), encoding="utf-8")
    return path


def test_export_mturk_texts_are_escaped(exported, tmp_path):
    with (tmp_path / "mturk-verification.csv").open(encoding="ascii", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert list(first) == ["condsim_item", "sentence1", "sentence2", "condition"]
    assert first["sentence1"] == "A &lt;b&gt;fox&lt;/b&gt; &#129418;."
    assert first["sentence2"] == "A &quot;hen&quot;."
    assert [first["condsim_item"], second["condsim_item"]] == exported
    assert "${condition}" in (tmp_path / "mturk-verification.html").read_text(encoding="utf-8")


def test_import_mturk_twice_changes_nothing(store, exported, tmp_path):
    high, low = exported
    path = batch_file(
        tmp_path,
        "Answer.rating",
        f"A1,W1,Submitted,{TIME},31,{high},4",
        f"A2,W2,Approved,{TIME},12,{high},5",
        f"A3,W3,Submitted,{TIME},12,{low},5",
        f"A4,W1,Rejected,{TIME},12,{low},5",
        f"A5,W1,Submitted,{TIME},12,other,5",
        f"A6,W2,Submitted,{TIME},12,{low},",
    )
    report = import_mturk(store, "verification", path)
    assert (report.annotations, report.new, report.foreign) == (4, 4, 1)
    assert import_mturk(store, "verification", path).new == 0
    ratings = list(ratings_of(store))
    assert [(row.annotator, row.label, row.seconds) for row in ratings] == [
        ("w1", 4, 31),
        ("w2", 5, 12),
    ]
    assert ratings[0].updated_at == "2026-11-20T17:30:00+00:00"
    assert stage_outcome(store, "verification").set_aside == {
        "no rating": 1,
        "the annotator is not in the pool": 1,
    }


def test_import_mturk_assignment_rejected_since_no_longer_counts(store, exported, tmp_path):
    line = f"A1,W1,{{}},{TIME},31,{exported[0]},4"
    import_mturk(
        store, "verification", batch_file(tmp_path, "Answer.rating", line.format("Submitted"))
    )
    rejected = batch_file(tmp_path, "Answer.rating", line.format("Rejected"))
    assert import_mturk(store, "verification", rejected).removed == 1
    assert list(ratings_of(store)) == []
    assert import_mturk(store, "verification", rejected).removed == 0


def test_import_mturk_one_column_for_each_choice_is_read(store, exported, tmp_path):
    path = batch_file(
        tmp_path,
        "Answer.rating.-1,Answer.rating.1,Answer.rating.2",
        f"A1,W1,Submitted,,,{exported[0]},true,false,false",
        f"A2,W2,Submitted,,,{exported[0]},false,false,TRUE",
    )
    import_mturk(store, "verification", path)
    assert [row.label for row in ratings_of(store)] == [-1, 2]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["A1,W1,Submitted,,,{},1", "A1,W1,Submitted,,,{},2"], "row 2 .* 'A1' appears twice"),
        (["A1,,Submitted,,,{},1"], "row 1 .*'WorkerId': must not be empty"),
        (["A1,W1,Submitted,,soon,{},1"], "row 1 .*'WorkTimeInSeconds': must be a number"),
    ],
)
def test_import_mturk_fault_names_the_row_and_changes_nothing(
    store, exported, tmp_path, lines, message
):
    lines = [line.format(exported[0]) for line in lines]
    with pytest.raises(InputError, match=message):
        import_mturk(store, "verification", batch_file(tmp_path, "Answer.rating", *lines))
    assert store.annotations("verification") == []


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Runs a command in a folder of its own and gives its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(TOKEN, raising=False)

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, list(words))
        if result.exception is not None:
            raise result.exception
        return result.output

    return run


def test_build_mturk_form_and_results_make_a_file_of_ratings(build, tmp_path):
    (tmp_path / "conditions.csv").write_text(
        "pair_id,sentence1,sentence2,condition,intended,annotator\n"
        "p,A fox.,A hen.,The use,high,w1\np,A fox.,A hen.,The size,low,w1\n",
        encoding="utf-8",
    )
    assert "w2: accepted" in build("qualify", "--accept", "W2")
    words = ("mturk", "form", "verification", "--data", "conditions.csv", "--output", ".")
    assert "2 items in mturk-verification.csv" in build(*words)
    item = (tmp_path / "mturk-verification.csv").read_text().splitlines()[1].split('"')[1]
    (tmp_path / "batch.csv").write_text(
        f"AssignmentId,WorkerId,Input.condsim_item,Answer.rating\nA1,W2,{item},4\nA2,W1,{item},4\n",
        encoding="utf-8",
    )
    words = ("mturk", "results", "verification", "batch.csv", "--output", "ratings.csv")
    shown = build(*words)
    assert "2 annotations, 2 new" in shown
    assert "1 rows in ratings.csv" in shown
    assert "1 do not count: the annotator is not in the pool" in shown
    assert "0 new, 0 edited" in build(*words)
    assert "verification: 2 items, 0 done of 3 answers each" in build("status", "--offline")
