"""The pool of annotators, rows of the next stage, and answers of models."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from condsim.errors import InputError
from condsim_annotation.exchange import (
    PushOptions,
    answer_of,
    pull_annotations,
    push_items,
    result_of,
)
from condsim_annotation.mturk import mturk_form
from condsim_annotation.outcome import (
    conditions_of,
    decide_by_hand,
    propose_conditions,
    rate_rows,
    ratings_of,
    read_proposal,
    score_test,
    write_stage,
)
from condsim_annotation.records import Rating
from condsim_annotation.stages import (
    FIELDS,
    HINT_RULES,
    STAGES,
    TaskAnswer,
    hints_of,
    items_to_annotate,
    labeling_config,
    verification_items,
)
from condsim_annotation.tables import read_manifest, read_rows
from condsim_llm.ask import Asker
from condsim_llm.backend import Answer


class HalfScorer:
    """Scores rows 0, 0.4, 0.9, 1.2 in turn; 1.2 is out of the range."""

    name = "half"

    def score(self, sentences1, sentences2, conditions):
        return np.resize(np.array([0, 0.4, 0.9, 1.2], np.float32), len(sentences1))


@pytest.fixture
def take_test(store, server):
    """Push the test; `take_test(account, answer_of)` answers it and pulls."""
    push_items(store, server, "qualification", items_to_annotate("qualification"))

    def take(account, answer_of, items=6):
        for item in list(store.items("qualification").values())[:items]:
            server.submit(item.task, account, answer_of(item.facts["label"]))
        pull_annotations(store, server, "qualification")

    return take


@pytest.fixture
def conditions(store, server, tmp_path):
    """Two pairs pushed for anyone; the tasks."""
    path = tmp_path / "pairs.csv"
    path.write_text(
        "pair_id,sentence1,sentence2\np1,A fox.,A hen.\np2,A cow.,A pig.\n", encoding="utf-8"
    )
    push_items(
        store, server, "conditions", items_to_annotate("conditions", path), PushOptions(anyone=True)
    )
    return [item.task for item in store.items("conditions").values()]


def test_score_test_good_and_bad_answers_make_the_pool(store, take_test):
    take_test(1, lambda label: TaskAnswer("The purpose of it", "The place", label))
    take_test(2, lambda label: TaskAnswer("The activity", "The color is red", label))
    take_test(3, lambda label: TaskAnswer("The place", "the place", 3))
    ann, bob, cleo = score_test(store)
    assert (ann.condition_score, ann.rating_score, ann.accepted) == (1, 1, True)
    assert (bob.condition_score, bob.rating_score, bob.accepted) == (0, 1, False)
    # Known 5, 1, -1, 2, 5, 1: 3 is within 1 of the fourth alone.
    assert (cleo.condition_score, cleo.accepted) == (0, False)
    assert cleo.rating_score == pytest.approx(1 / 6)
    assert [name for name, member in store.pool().items() if member.accepted] == ["ann"]


def test_score_test_unfinished_is_not_decided(store, take_test):
    take_test(1, lambda label: TaskAnswer("The purpose of it", "The place", label), items=5)
    (ann,) = score_test(store)
    assert (ann.answered, ann.items, ann.accepted) == (5, 6, None)
    assert store.pool() == {}


def test_score_test_decision_by_hand_stands(store, take_test):
    take_test(1, lambda label: TaskAnswer("The activity", "The thing", 3))
    decide_by_hand(store, accept=["ANN"])
    assert score_test(store)[0].accepted is False
    assert store.pool()["ann"].accepted
    decide_by_hand(store, reject=["ann"])
    assert not store.pool()["ann"].accepted


def test_conditions_of_pair_yields_high_and_low_with_hints(store, server, conditions):
    server.submit(conditions[1], 2, TaskAnswer("The use", "The activity"))
    pull_annotations(store, server, "conditions")
    high, low = conditions_of(store)
    assert (high.pair_id, high.condition, high.intended) == ("p2", "The use", "high")
    assert (high.annotator, high.seconds, high.origin, high.hints) == ("bob", 3, "human", "")
    assert low.intended == "low"
    assert low.hints.startswith("5: Say which aspect")


def test_ratings_of_people_and_models_are_separate(store, server, verification):
    assert rate_rows(store, HalfScorer(), model="half") == 4
    assert rate_rows(store, HalfScorer(), model="half") == 0
    push_items(store, server, "verification", ())
    server.submit(verification[0], 2, TaskAnswer(rating=1), prefilled_by="half")
    pull_annotations(store, server, "verification")
    rows = list(ratings_of(store))
    assert [(row.annotator, row.label, row.origin, row.prefilled_by) for row in rows] == [
        ("bob", 1, "human", "half"),
        ("half", 1, "half", ""),
        ("half", 3, "half", ""),
        ("half", 5, "half", ""),
        ("half", 5, "half", ""),
    ]
    assert rows[0].intended == "high"
    assert rows[0].row_id == rows[1].row_id


def test_ratings_of_conditions_that_a_model_proposed_name_it(store, server, written):
    decide_by_hand(store, accept=("bob",))
    proposed = [
        replace(written[0], origin="llm", prefilled_by="llm"),
        replace(written[1], prefilled_by="llm"),
        replace(written[2], origin="other"),
        written[3],
    ]
    push_items(store, server, "verification", verification_items(proposed))
    for item in store.items("verification").values():
        server.submit(item.task, 2, TaskAnswer(rating=3))
        assert "proposed_by" not in item.shown
    pull_annotations(store, server, "verification")
    assert [row.condition_origin for row in ratings_of(store)] == ["llm", "llm", "other", "human"]


def test_propose_conditions_unchanged_have_the_model_as_origin(
    store, server, conditions, fake_backend, tmp_path
):
    backend = fake_backend(
        lambda prompt: Answer("High: The use\nLow: The size" if "fox" in prompt else "no idea")
    )
    asker = Asker(backend, tmp_path / "answers.sqlite")
    assert propose_conditions(store, asker, model="llm") == (1, 1)
    assert push_items(store, server, "conditions", ()).predictions == 1
    answer = TaskAnswer("The use", "The kind of animal")
    server.submit(conditions[0], 2, answer, prefilled_by="llm")
    pull_annotations(store, server, "conditions")
    high, low = conditions_of(store)
    assert (high.origin, high.prefilled_by) == ("llm", "llm")
    assert (low.origin, low.prefilled_by) == ("human", "llm")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("High: The use.\nLow: The size", TaskAnswer("The use", "The size")),
        ("- **C-High**: The use\n- **C-Low**: The size", TaskAnswer("The use", "The size")),
        ("high: The use", None),
        ("High: The use\nLow: the use", None),
        ("High: a\nLow: b\nHigh: c", None),
        ("High:\nLow: b", None),
    ],
)
def test_read_proposal_text_has_both_or_none(text, answer):
    assert read_proposal(text) == answer


def test_write_stage_ratings_read_back_with_a_manifest(store, server, verification):
    pytest.importorskip("pyarrow")
    server.submit(verification[0], 2, TaskAnswer(rating=4))
    server.submit(verification[1], 2, TaskAnswer())
    pull_annotations(store, server, "verification")
    file = write_stage(store, "verification")
    assert file[1] == 1
    (row,) = read_rows(file[0], Rating)
    assert (row.label, row.annotator, row.updated_at) == (4, "bob", "2026-01-01T00:00:00Z")
    manifest = read_manifest(file[0])
    assert manifest["set_aside"] == {"no rating": 1}
    assert manifest["annotators_per_item"] == 2


def test_work_that_lacks_its_stage_is_refused(store):
    with pytest.raises(InputError, match="has no items"):
        score_test(store)
    with pytest.raises(InputError):
        rate_rows(store, HalfScorer(), model="half")
    with pytest.raises(InputError, match="'ann' is both"):
        decide_by_hand(store, accept=["Ann"], reject=["ann "])


SHOWN = {
    "qualification": set(
        "sentence1 sentence2 test_sentence1 test_sentence2 test_condition".split()
    ),
    "conditions": {"sentence1", "sentence2", "hints"},
    "verification": {"sentence1", "sentence2", "condition"},
}


@pytest.mark.parametrize("stage", STAGES)
def test_pages_stage_show_its_variables_and_ask_its_fields(stage):
    page = ElementTree.fromstring(labeling_config(stage))
    fields = {tag.get("name") for kind in ("TextArea", "Choices") for tag in page.iter(kind)}
    assert fields == set(FIELDS[stage])
    texts = {tag.get("name"): tag.get("value") for tag in page.iter("Text")}
    assert texts == {name: f"${name}" for name in SHOWN[stage]}
    assert {tag.get("toName") for tag in page.iter() if tag.get("toName")} <= set(texts)
    form = mturk_form(stage)
    assert set(re.findall(r"\$\{(\w+)\}", form)) == SHOWN[stage] - {"hints"}
    assert set(re.findall(r'<input [^>]*name="(\w+)"', form)) == set(FIELDS[stage])
    assert ("const RULES" in form) == (stage != "verification")


@pytest.mark.parametrize("stage", STAGES)
def test_result_of_answer_reads_back(stage):
    answer = TaskAnswer("The sport", "The place", 4)
    of_stage = {name: getattr(answer, name) for name in FIELDS[stage]}
    assert answer_of(result_of(stage, answer)) == TaskAnswer(**of_stage)


@pytest.mark.parametrize(
    ("condition", "broken"),
    [
        ("The purpose of the action", []),
        ("the the sport", [1]),
        ("??", [1]),
        ("The color of the", [1, 6]),
        ("The age of the dog", [2]),
        ("The color of the car", [6]),
        ("The color is red", [3, 6]),
        ("two dogs", [3]),
        ("What the man is", []),
        ("The sport in the sentence", [4]),
        ("Topic of both captions.", [4]),
        ("The activity.", [5]),
        ("setting", [5]),
        ("The kind of activity", []),
        ("How many people there are", [6]),
    ],
)
def test_hints_of_condition_names_the_rules(condition, broken):
    sentences = "A man in a red coat skis.", "A dog barks at a blue car."
    assert [hint.rule for hint in hints_of(condition, *sentences)] == broken


def test_hint_rules_patterns_have_no_syntax_that_only_python_has():
    for rule in HINT_RULES:
        for pattern in (rule.pattern, rule.needed or ""):
            assert not re.search(r"\(\?(?![:!=])|\\[AZ]|<\w+>", pattern), pattern


def test_condition_items_without_pair_ids_names_pairs_by_their_texts(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("sentence1,sentence2\nA fox.,A hen.\nA cow.,A pig.\n", encoding="utf-8")
    first, second = items_to_annotate("conditions", path)
    assert first.item_id != second.item_id
    packed = tmp_path / "pairs.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert first == next(items_to_annotate("conditions", packed))


def test_qualification_items_known_answers_stay_hidden(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text(
        "sentence1,sentence2,condition,label\nA fox.,A hen.,The animal,2.0\na,b,c,-1\n",
        encoding="utf-8",
    )
    items = list(items_to_annotate("qualification", path))
    assert [item.facts for item in items] == [{"label": 2}, {"label": -1}]
    assert "label" not in items[0].shown
