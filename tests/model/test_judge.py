from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import condsim
from condsim.errors import InputError, MissingExtraError, ModelError
from condsim.model.judge import MERGED, VERDICTS, Verdict, calibrated
from condsim.paths import asset

LARGE = Path(__file__).parents[2] / "packages/condsim-judge/src/condsim_judge/model"
KNOWN = "The staging server listens on port 8080."
NEW = {
    "duplicate": "Port 8080 is the one on which the staging server listens.",
    "update": "Last night the staging server was moved to port 8090.",
    "contradiction": "The staging server listens on port 8090.",
    "related": "The staging server has 16 GB of memory.",
    "new": "The coffee machine on the second floor is broken.",
}


@pytest.fixture(scope="module")
def judge():
    return condsim.load_judge()


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(asset("judge"), tmp_path / "judge")


def test_load_judge_large_is_a_package(folder, tmp_path, monkeypatch):
    load_judge = condsim.load_judge.__wrapped__
    monkeypatch.setattr("condsim.model.judge.LARGE_PACKAGE", "condsim_other")
    with pytest.raises(MissingExtraError, match=r"'large' is a .* pip install condsim-other$"):
        load_judge("large")
    package = tmp_path / "condsim_other"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.move(folder, package / "model")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_judge("large").verdict(KNOWN, NEW["update"]).verdict == "update"
    shutil.rmtree(package / "model")
    with pytest.raises(ModelError, match=r"judge\.json is missing"):
        load_judge("large")


@pytest.mark.parametrize("large", [False, True])
def test_verdict_plain_cases_are_right(large):
    found = condsim.load_judge(LARGE if large else None).verdict(KNOWN, list(NEW.values()))
    assert [one.verdict for one in found] == list(NEW)


def test_verdict_column_has_the_verdicts_of_its_pairs(judge):
    found = judge.verdict(KNOWN, list(NEW.values()))
    assert [one.verdict for one in found] == list(NEW)
    for one, text in zip(found, NEW.values(), strict=True):
        assert sum(one.probabilities.values()) == pytest.approx(1)
        single = judge.verdict(KNOWN, text).probabilities
        assert [*single.values()] == pytest.approx([*one.probabilities.values()], abs=1e-4)
    assert judge.verdict([], []) == []


def test_verdict_of_the_model_and_of_the_package_is_that_of_the_judge(judge):
    model = condsim.load()
    pair = (KNOWN, NEW["update"])
    assert condsim.verdict(*pair) == model.verdict(*pair) == judge.verdict(*pair)


def test_verdict_direction_counts(judge):
    assert judge.verdict(KNOWN, NEW["update"]).verdict == "update"
    assert judge.verdict(NEW["update"], KNOWN).verdict != "update"


def test_verdict_same_text_is_a_duplicate_whatever_it_says(judge):
    for text in ("Tests run on Jenkins.", "天气很好", "word " * 9000):
        found = judge.verdict(text, f" {text}\n")
        assert (found.verdict, found.probability) == ("duplicate", 1.0)


@pytest.mark.parametrize(
    ("other", "reason"),
    [("天气很好,我们去公园", "cannot read"), ("word " * 10_000, "more than 256 tokens")],
)
def test_verdict_text_that_is_not_read_is_not_merged(judge, other, reason):
    found = judge.verdict(other, KNOWN)
    assert (found.verdict, found.merge, found.probability) == ("cannot tell", 0, 0)
    assert reason in found.reason
    assert judge.verdict([other, KNOWN], KNOWN)[1].verdict == "duplicate"


def test_verdict_words_that_are_not_read_are_not_merged_when_they_differ(judge):
    great, poor = ("The new menu is really great today 👍", "The new menu is really great today 👎")
    assert judge.verdict(great, poor).verdict not in MERGED
    reason = judge.verdict("It is open 👍 today.", "Today, it is open 👎.").reason
    assert "differ in words" in reason
    assert judge.verdict(great, great).verdict == "duplicate"
    assert judge.verdict("A red car.", "A blue car.", "天气很好").verdict == "cannot tell"


def test_verdict_text_without_words_is_not_merged(judge):
    assert judge.verdict("!!!", "???").reason == "There are no words in a text."
    assert judge.verdict("!!!", " !!! ").verdict == "duplicate"
    assert judge.verdict("42", "43").verdict != "cannot tell"
    assert not judge.reads("...")


def test_verdict_about_names_words_of_the_texts(judge):
    found = judge.verdict(KNOWN, NEW["contradiction"], about=True)
    assert 1 <= len(found.about) <= 3
    assert all(word in f"{KNOWN} {NEW['contradiction']}" for word in found.about)
    assert judge.verdict("Yes", "No", about=True).about == ()


def test_verdict_marks_of_the_tokenizer_in_a_text_are_words(judge):
    plain, marked = (judge.verdict(KNOWN, f"Moved. {mark} Gone.") for mark in ("X", "[SEP]"))
    assert plain.probabilities != marked.probabilities
    tokens = judge._tokens(["", "a", "[SEP]"])
    assert judge._input(("", "a", "[SEP]"), tokens).ids.count(judge._end) == 2


@pytest.mark.parametrize("texts", [("", "a"), ("a", None), (["a"], ["b", "c"])])
def test_verdict_bad_texts_are_refused(judge, texts):
    with pytest.raises(InputError):
        judge.verdict(*texts)


def test_verdict_learned_criterion_is_refused(judge):
    texts = [
        f"The {color} {thing}." for color in ("red", "blue") for thing in "car bus van cup".split()
    ]
    criterion = condsim.load().learn(texts, ["red"] * 4 + ["blue"] * 4, condition="the color")
    with pytest.raises(InputError, match="a condition in words"):
        judge.verdict(KNOWN, KNOWN, criterion)


def test_merged_from_takes_back_what_is_less_sure():
    shares = dict(zip(VERDICTS, (0.3, 0.25, 0.2, 0.15, 0.1), strict=True))
    found = Verdict("duplicate", shares)
    assert found.merge == pytest.approx(0.55)
    assert Verdict("new", shares).merge == 0
    assert found.merged_from(0.5) is found
    assert found.merged_from(0.6).verdict == "contradiction"
    other = Verdict("new", shares)
    assert other.merged_from(1.0) is other
    assert set(MERGED) < set(VERDICTS)


@pytest.mark.parametrize(
    ("days", "name", "shares"),
    [
        ((1, 2), "update", (0.1, 0.7, 0.0, 0.15, 0.05)),
        ((1, 1), "contradiction", (0.1, 0.0, 0.7, 0.15, 0.05)),
        ((2, 1), "related", (0.1, 0.0, 0.0, 0.85, 0.05)),
    ],
)
def test_dated_moves_what_the_times_exclude(days, name, shares):
    found = Verdict("update", dict(zip(VERDICTS, (0.1, 0.4, 0.3, 0.15, 0.05), strict=True)))
    first, second = (datetime(2026, 1, day, tzinfo=UTC) for day in days)
    dated = found.dated(first, second.replace(tzinfo=None))
    assert dated.verdict == name
    assert [*dated.probabilities.values()] == pytest.approx(shares)
    unread = Verdict("cannot tell", {}, reason="unread")
    assert unread.dated(first, second) is unread


def test_calibrated_hand_worked_value():
    # exp(ln 3 / 1) is 3 of 3 + 1; a bias of ln 2 doubles the second.
    found = calibrated(np.array([[2 * np.log(3), 0.0]]), 2.0, (0.0, np.log(2)))
    assert found == pytest.approx(np.array([[0.6, 0.4]]))


@pytest.mark.parametrize("name", ["judge.json", "tokenizer.json", "model.onnx"])
def test_judge_missing_or_damaged_file_is_named(folder, name):
    (folder / name).write_text("{")
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        condsim.Judge(folder)
    (folder / name).unlink()
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        condsim.Judge(folder)


@pytest.mark.parametrize("change", [{"bias": [0, 1]}, {"temperature": 0}, {"max_tokens": "many"}])
def test_judge_settings_out_of_range_are_refused(folder, change):
    path = folder / "judge.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=r"judge\.json"):
        condsim.Judge(folder)
