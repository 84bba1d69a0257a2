from __future__ import annotations

import pytest

import condsim
from condsim.errors import InputError, ScoredWarning
from condsim.model.finding import decide
from condsim.model.judge import VERDICTS, Verdict
from condsim.search import Index, find_verdicts

KNOWN = ["Tests run on Jenkins.", "Anna is allergic to peanuts.", "The office has twelve desks."]
NEW = [
    "We have moved the tests from Jenkins to GitHub Actions.",
    "Anna has an allergy to peanuts.",
    "The flight to Lisbon leaves at noon.",
]


def sure(name, probability=0.9):
    return Verdict(name, dict.fromkeys(VERDICTS, 0.0) | {name: probability})


@pytest.mark.parametrize(
    ("verdicts", "place"),
    [
        ((sure("new"), sure("new")), 0),
        ((sure("new"), sure("related"), sure("related", 0.95)), 2),
        ((sure("related"), Verdict("cannot tell", {}), sure("new")), 0),
        ((Verdict("cannot tell", {}), sure("new")), 1),
        ((Verdict("cannot tell", {}), Verdict("cannot tell", {})), 0),
        ((Verdict("cannot tell", {}), sure("update", 0.5)), 1),
        ((sure("duplicate", 0.6), sure("contradiction", 0.8), sure("related")), 1),
    ],
)
def test_decide_takes_what_asks_for_most(verdicts, place):
    assert decide(verdicts) == place


def test_find_verdicts_in_memory_and_in_an_index_agree(tmp_path):
    judge = condsim.load_judge()
    found = list(find_verdicts(NEW, KNOWN, judge))
    assert [one.verdict.verdict for one in found] == ["update", "duplicate", "new"]
    assert [one.row for one in found[:2]] == [0, 1]
    assert [one.known for one in found[:2]] == KNOWN[:2]
    index = Index.build([{"text": text} for text in KNOWN], tmp_path / "facts")
    stored = list(find_verdicts(NEW, index, judge))
    assert [one.verdict for one in stored] == [one.verdict for one in found]
    assert [one.row for one in stored[:2]] == ["1", "2"]
    for one in found:
        assert sorted(read.row for read in one.candidates) == [0, 1, 2]
        (same,) = (read for read in one.candidates if read.row == one.row)
        assert same.verdict == one.verdict


def test_find_verdicts_nothing_known_is_new():
    known, unread = find_verdicts([NEW[0], "天气很好"], [], condsim.load_judge())
    assert (known.verdict.verdict, known.verdict.probability, known.known) == ("new", 1.0, None)
    assert unread.verdict.verdict == "cannot tell"


def test_find_verdicts_known_text_that_is_not_read_decides_nothing():
    known = ["天气很好,我们去公园", "word " * 3000, *KNOWN]
    with pytest.warns(ScoredWarning):
        found = list(find_verdicts(NEW, known, condsim.load_judge()))
    verdicts = [one.verdict.verdict for one in found]
    assert verdicts == ["update", "duplicate", "new"]


def test_find_verdicts_merges_less_probable_than_asked_are_withdrawn():
    judge = condsim.load_judge()
    (found,) = find_verdicts(NEW[1:2], KNOWN, judge, merged_from=1.0, about=True)
    assert found.verdict.verdict not in ("duplicate", "update")
    (found,) = find_verdicts(NEW[1:2], KNOWN, judge, about=True)
    assert found.verdict.about


def test_find_verdicts_reads_no_more_candidates_than_asked():
    texts = [f"Room {number} has a window." for number in range(30)]
    reads = []

    class Counting:
        def verdict(self, first, second, condition):
            reads.append(len(first))
            return [sure("new")] * len(first)

    list(find_verdicts(["Room 3 is dark."], texts, Counting(), candidates=5))
    assert reads == [5]


@pytest.mark.parametrize("arguments", [("a", ["b"]), (["a"], "b"), ([""], ["b"])])
def test_find_verdicts_bad_texts_are_refused(arguments):
    with pytest.raises(InputError):
        find_verdicts(*arguments, condsim.load_judge())
    with pytest.raises(InputError, match="merged_from"):
        find_verdicts(["a"], ["b"], condsim.load_judge(), merged_from=2)
