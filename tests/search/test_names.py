"""Names of clusters that answer the condition, or carry the values of a criterion."""

import csv
from pathlib import Path

import numpy as np
import pytest

import condsim

pytest.importorskip("sklearn")

from condsim.search.clustering import cluster
from condsim.search.names import condition_phrases

HELPDESK = Path(__file__).parents[2] / "examples" / "helpdesk.csv"


@pytest.fixture(scope="module")
def tickets():
    with HELPDESK.open(encoding="utf-8") as file:
        return {row["text"]: row["problem"] for row in csv.DictReader(file)}


def test_condition_phrases_are_near_their_center_only():
    groups = [["a red car", "the red car"], ["a blue car", "the blue car"]]
    vectors = {"red": [1, 0], "blue": [0, 1]}
    names = condition_phrases(
        groups,
        np.eye(2, dtype=np.float32),
        lambda phrases: np.array(
            [
                next((vectors[word] for word in vectors if word in phrase), [0.7, 0.7])
                for phrase in phrases
            ],
            np.float32,
        ),
    )
    assert [name[0] for name in names] == ["red", "blue"]


def test_condition_phrases_without_words_are_empty():
    names = condition_phrases([["1", "2"], ["3"]], np.eye(2, dtype=np.float32), lambda _: None)
    assert names == [(), ()]


def test_cluster_under_a_condition_has_names_that_answer_it(tickets):
    clusters = cluster(list(tickets), "the problem", k=6)
    named = " ".join(group.name for group in clusters.clusters)
    assert "slow" in named
    assert "cancel" in named
    assert all(len(group.words) <= 3 for group in clusters.clusters)


def test_cluster_under_a_criterion_is_named_by_its_values(tickets):
    model = condsim.load()
    texts, values = list(tickets), list(tickets.values())
    criterion = model.learn(texts[:60], values[:60], condition="the problem")
    clusters = cluster(texts, criterion, k=6, model=model)
    assert {group.name for group in clusters.clusters} == set(values)
    assert clusters.condition == "the problem"
