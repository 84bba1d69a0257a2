from __future__ import annotations

import csv

import pytest

from condsim.annotation.mturk import export_mturk, import_mturk
from condsim.annotation.outcome import decide_by_hand, outcome_of, ratings_of
from condsim.annotation.stages import verification_items
from condsim.errors import InputError
from condsim.rows.records import Condition

HEAD = "AssignmentId,WorkerId,AssignmentStatus,SubmitTime,WorkTimeInSeconds,Input.condsim_item"


@pytest.fixture
def exported(store, tmp_path):
    """Two rows to rate written for workers W1 and W2; gives the ids of the rows."""
    decide_by_hand(store, accept=["W1", "W2"])
    rows = [
        Condition("p", "A <b>fox</b> 🦊.", 'A "hen".', text, intended, "ann")
        for text, intended in (("The use", "high"), ("The size", "low"))
    ]
    export_mturk(store, "verification", verification_items(rows), tmp_path, annotators=2)
    return list(store.items("verification"))


def results(tmp_path, answers, *lines):
    path = tmp_path / "results.csv"
    path.write_text("\n".join([f"{HEAD},{answers}", *lines, ""]), encoding="utf-8")
    return path


def test_export_mturk_texts_stand_in_a_page_as_they_are(exported, tmp_path):
    with (tmp_path / "mturk-verification.csv").open(encoding="ascii", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert list(first) == ["condsim_item", "sentence1", "sentence2", "condition"]
    assert first["sentence1"] == "A &lt;b&gt;fox&lt;/b&gt; &#129418;."
    assert first["sentence2"] == "A &quot;hen&quot;."
    assert [first["condsim_item"], second["condsim_item"]] == exported
    assert "${condition}" in (tmp_path / "mturk-verification.html").read_text(encoding="utf-8")


def test_import_mturk_twice_changes_nothing(store, exported, tmp_path):
    high, low = exported
    path = results(
        tmp_path,
        "Answer.rating",
        f"A1,W1,Submitted,Fri Nov 20 09:30:00 PST 2026,31,{high},4",
        f"A2,W2,Approved,Fri Nov 20 09:31:00 PST 2026,12,{high},5",
        f"A3,W3,Submitted,Fri Nov 20 09:32:00 PST 2026,12,{low},5",
        f"A4,W1,Rejected,Fri Nov 20 09:33:00 PST 2026,12,{low},5",
        "A5,W1,Submitted,Fri Nov 20 09:33:00 PST 2026,12,other,5",
        f"A6,W2,Submitted,Fri Nov 20 09:33:00 PST 2026,12,{low},",
    )
    pulled = import_mturk(store, "verification", path)
    assert (pulled.annotations, pulled.new, pulled.foreign) == (4, 4, 1)
    assert import_mturk(store, "verification", path).new == 0
    assert [(row.annotator, row.label, row.seconds) for row in ratings_of(store)] == [
        ("w1", 4, 31),
        ("w2", 5, 12),
    ]
    assert next(ratings_of(store)).updated_at == "2026-11-20T17:30:00+00:00"
    assert dict(outcome_of(store, "verification").set_aside) == {
        "no rating": 1,
        "the annotator is not in the pool": 1,
    }


def test_import_mturk_assignment_rejected_since_no_longer_counts(store, exported, tmp_path):
    def batch(status):
        line = f"A1,W1,{status},Fri Nov 20 09:30:00 PST 2026,31,{exported[0]},4"
        return results(tmp_path, "Answer.rating", line)

    import_mturk(store, "verification", batch("Submitted"))
    rejected = batch("Rejected")
    assert import_mturk(store, "verification", rejected).removed == 1
    assert list(ratings_of(store)) == []
    assert import_mturk(store, "verification", rejected).removed == 0


def test_import_mturk_rating_as_one_column_a_choice_is_read(store, exported, tmp_path):
    path = results(
        tmp_path,
        "Answer.rating.-1,Answer.rating.1,Answer.rating.2",
        f"A1,W1,Submitted,,,{exported[0]},true,false,false",
        f"A2,W2,Submitted,,,{exported[0]},false,false,TRUE",
    )
    import_mturk(store, "verification", path)
    assert [row.label for row in ratings_of(store)] == [-1, 2]


def test_import_mturk_one_assignment_with_two_answers_is_refused(store, exported, tmp_path):
    lines = [f"A1,W1,Submitted,,,{exported[0]},{rating}" for rating in (1, 2)]
    with pytest.raises(InputError, match=r"row 2 .* 'A1' stands twice with different answers"):
        import_mturk(store, "verification", results(tmp_path, "Answer.rating", *lines))
    assert store.annotations("verification") == []


def test_import_mturk_empty_worker_names_the_place(store, exported, tmp_path):
    path = results(tmp_path, "Answer.rating", f"A1,,Submitted,,,{exported[0]},1")
    with pytest.raises(InputError, match=r"row 1 .*'WorkerId': must not be empty"):
        import_mturk(store, "verification", path)


def test_import_mturk_not_handed_out_is_refused(store, tmp_path):
    with pytest.raises(InputError, match="'condsim build mturk form conditions' comes first"):
        import_mturk(store, "conditions", results(tmp_path, "Answer.high"))


def test_import_mturk_time_of_no_number_names_the_place(store, exported, tmp_path):
    path = results(tmp_path, "Answer.rating", f"A1,W1,Submitted,,soon,{exported[0]},1")
    with pytest.raises(InputError, match=r"row 1 .*'WorkTimeInSeconds': must be a number, got"):
        import_mturk(store, "verification", path)
    assert store.annotations("verification") == []
