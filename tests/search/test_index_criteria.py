"""An index searched and prepared under a learned criterion."""

import csv
from pathlib import Path

import pytest

import condsim

pytest.importorskip("lancedb")

from condsim.search.index import Index

HELPDESK = Path(__file__).parents[2] / "examples" / "helpdesk.csv"


@pytest.fixture(scope="module")
def rows():
    with HELPDESK.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def criterion(rows):
    texts, values = [row["text"] for row in rows], [row["problem"] for row in rows]
    return condsim.load().learn(texts, values, condition="the problem")


def problems(hits):
    return [hit.columns["problem"] for hit in hits]


def test_index_search_under_a_criterion(rows, criterion, tmp_path):
    index = Index.build(rows, tmp_path / "tickets.index")
    query = "The password does not work."
    hits = index.search(query, criterion, rescore=30, top=8)
    assert set(problems(hits)) == {"cannot log in"}
    model = condsim.load()
    assert hits[0].score == pytest.approx(model.score(query, hits[0].text, criterion), abs=0.01)
    path = tmp_path / "problem.criterion"
    criterion.save(path)
    assert problems(index.search(query, str(path), rescore=30, top=8)) == problems(hits)
    both = index.search(query, [criterion, "the product"], rescore=30, top=5)
    assert len(both) == 5


def test_index_prepared_for_a_criterion_knows_it_later(rows, criterion, tmp_path):
    folder = tmp_path / "tickets.index"
    index = Index.build(rows[:100], folder, key="id")
    assert index.prepare(criterion) == 100
    # A new process has only what the index stores.
    again = Index(folder)
    again.add(rows[100:])
    hits = again.search("The password does not work.", top=8)
    assert set(problems(hits)) == {"cannot log in"}
    assert list(hits[0].scores) == [criterion.name]
    (_, vectors) = next(again.vectors(criterion.name))
    assert vectors.shape[1] == criterion.dimension
