"""Learned criteria on the server: conditions with a name."""

import csv
from pathlib import Path

import pytest

import condsim

pytest.importorskip("fastapi")

from fastapi.testclient import TestClient

from condsim.serving.app import create_app

HELPDESK = Path(__file__).parents[2] / "examples" / "helpdesk.csv"


@pytest.fixture(scope="module")
def learned():
    model = condsim.load()
    with HELPDESK.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    texts = [row["text"] for row in rows]
    return model, model.learn(texts, [row["problem"] for row in rows], condition="the problem")


@pytest.fixture(scope="module")
def client(learned):
    model, criterion = learned
    with TestClient(create_app(model, criteria={"my problem": criterion})) as client:
        yield client


PAIR = ["I cannot log in.", "My password is refused."]


def test_score_under_a_criterion_by_its_name(client, learned):
    model, criterion = learned
    answer = client.post(
        "/v1/score", json={"pairs": [PAIR], "conditions": ["my problem", "the product"]}
    )
    assert answer.status_code == 200, answer.text
    scores = answer.json()["scores"]
    expected = model.score_matrix([PAIR[0]], [PAIR[1]], [criterion, "the product"])
    assert scores[0] == pytest.approx(expected[0].tolist(), abs=0.01)


def test_embeddings_under_a_criterion(client, learned):
    _, criterion = learned
    answer = client.post("/v1/embeddings", json={"input": PAIR, "condition": "my problem"})
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["data"][0]["embedding"]) == criterion.dimension
    mixed = client.post(
        "/v1/embeddings", json={"input": PAIR, "condition": ["my problem", "the product"]}
    )
    assert mixed.status_code == 422


def test_files_of_the_server_are_not_read_for_callers(client, learned, tmp_path):
    path = tmp_path / "secret.criterion"
    learned[1].save(path)
    answer = client.post("/v1/score", json={"pairs": [PAIR], "conditions": [str(path)]})
    assert answer.status_code == 404
    assert "no criterion" in answer.text


def test_duplicates_under_a_criterion(client):
    pytest.importorskip("sklearn")
    body = {"texts": PAIR, "conditions": ["my problem"], "at_least": 0.5}
    answer = client.post("/v1/dedupe", json=body)
    assert answer.status_code == 200, answer.text
