"""What the stages hand to the next step, and what models had to do with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condsim.annotation.exchange import pull, push
from condsim.annotation.outcome import conditions_of, decide_by_hand, ratings_of, write_stage
from condsim.annotation.prefill import propose_conditions, rate_rows, read_proposal
from condsim.annotation.stages import Answer, condition_items, verification_items
from condsim.errors import InputError
from condsim.prompting.ask import Asker
from condsim.prompting.backend import Answer as ModelAnswer
from condsim.rows.records import Condition, Rating, read_manifest, read_rows


class HalfScorer:
    """Scores rows 0, 0.4, 0.9, 1.2 in turn; 1.2 is out of the range."""

    name = "half"

    def score(self, sentences1, sentences2, conditions):
        return np.resize(np.array([0, 0.4, 0.9, 1.2], np.float32), len(sentences1))


@pytest.fixture
def conditions(store, server, tmp_path):
    """Two pairs handed out to anyone; gives the tasks."""
    path = tmp_path / "pairs.csv"
    path.write_text(
        "pair_id,sentence1,sentence2\np1,A fox.,A hen.\np2,A cow.,A pig.\n", encoding="utf-8"
    )
    push(store, server, "conditions", condition_items(path), anyone=True)
    return [stored.task for stored in store.items("conditions").values()]


def test_conditions_of_pair_gives_high_and_low_with_hints(store, server, conditions):
    server.submit(conditions[1], 2, Answer("The use", "The activity"))
    pull(store, server, "conditions")
    high, low = conditions_of(store)
    assert (high.pair_id, high.condition, high.intended) == ("p2", "The use", "high")
    assert (high.annotator, high.seconds, high.origin, high.hints) == ("bob", 3, "human", "")
    assert low.intended == "low"
    assert low.hints.startswith("5: Say which aspect")


def test_ratings_of_people_and_models_keeps_them_apart(store, server, verification):
    assert rate_rows(store, HalfScorer(), model="half") == 4
    assert rate_rows(store, HalfScorer(), model="half") == 0
    push(store, server, "verification", ())
    server.submit(verification[0], 2, Answer(rating=1), prefilled_by="half")
    pull(store, server, "verification")
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


def test_ratings_of_conditions_a_model_proposed_name_the_model(store, server, written):
    decide_by_hand(store, accept=("bob",))
    changed = [
        replace(written[0], origin="llm", prefilled_by="llm"),
        replace(written[1], prefilled_by="llm"),
        replace(written[2], origin="other"),
        written[3],
    ]
    push(store, server, "verification", verification_items(changed))
    for stored in store.items("verification").values():
        server.submit(stored.task, 2, Answer(rating=3))
        assert "proposed_by" not in stored.shown
    pull(store, server, "verification")
    assert [row.condition_origin for row in ratings_of(store)] == ["llm", "llm", "other", "human"]


def test_propose_conditions_kept_as_they_were_have_the_model_as_origin(
    store, server, conditions, fake_backend, tmp_path
):
    backend = fake_backend(
        lambda prompt: ModelAnswer("High: The use\nLow: The size" if "fox" in prompt else "no idea")
    )
    asker = Asker(backend, tmp_path / "answers.sqlite")
    assert propose_conditions(store, asker, model="llm") == (1, 1)
    assert push(store, server, "conditions", ()).predictions == 1
    server.submit(conditions[0], 2, Answer("The use", "The kind of animal"), prefilled_by="llm")
    pull(store, server, "conditions")
    high, low = conditions_of(store)
    assert (high.origin, high.prefilled_by) == ("llm", "llm")
    assert (low.origin, low.prefilled_by) == ("human", "llm")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("High: The use.\nLow: The size", Answer("The use", "The size")),
        ("- **C-High**: The use\n- **C-Low**: The size", Answer("The use", "The size")),
        ("high: The use", None),
        ("High: The use\nLow: the use", None),
        ("High: a\nLow: b\nHigh: c", None),
        ("High:\nLow: b", None),
    ],
)
def test_read_proposal_text_gives_both_or_none(text, answer):
    assert read_proposal(text) == answer


def test_rate_rows_stage_not_pushed_is_refused(store):
    with pytest.raises(InputError, match="'condsim build push verification' comes first"):
        rate_rows(store, HalfScorer(), model="half")


def test_write_stage_ratings_read_back_with_a_manifest(store, server, verification, tmp_path):
    server.submit(verification[0], 2, Answer(rating=4))
    server.submit(verification[1], 2, Answer())
    pull(store, server, "verification")
    pytest.importorskip("pyarrow")
    written = write_stage(store, "verification")
    assert written.rows == 1
    (row,) = read_rows(written.path, Rating)
    assert (row.label, row.annotator, row.updated_at) == (4, "bob", "2026-01-01T00:00:00Z")
    manifest = read_manifest(written.path)
    assert manifest["set_aside"] == {"no rating": 1}
    assert manifest["annotators_per_item"] == 2


def test_write_stage_conditions_csv_reads_back(store, server, conditions, tmp_path):
    server.submit(conditions[0], 2, Answer("The use", "The size, more or less"))
    pull(store, server, "conditions")
    written = write_stage(store, "conditions", tmp_path / "conditions.csv")
    assert [row.condition for row in read_rows(written.path, Condition)] == [
        "The use",
        "The size, more or less",
    ]
