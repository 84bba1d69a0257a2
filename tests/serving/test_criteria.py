"""Learned criteria on the server: conditions with a name."""

import csv
from pathlib import Path

import pytest

import condsim

pytest.importorskip("fastapi")

from fastapi.testclient import TestClient
from tests import commands

from condsim.errors import ModelError
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


ROUTES = {
    "/v1/embeddings": {"input": PAIR},
    "/embed": {"inputs": PAIR},
    "/v2/embed": {"texts": PAIR},
    "/rerank": {"query": PAIR[0], "texts": PAIR},
    "/similarity": {"inputs": {"source_sentence": PAIR[0], "sentences": PAIR}},
    "/v1/score": {"pairs": [PAIR]},
    "/v1/applicability": {"pairs": [PAIR]},
    "/v1/cluster": {"texts": [*PAIR, "It is locked.", "The sink leaks."], "k": 2},
    "/v1/dedupe": {"texts": PAIR, "at_least": 0.9},
    "/v1/explain": {"sentence1": PAIR[0], "sentence2": PAIR[1]},
}


@pytest.mark.parametrize("path", ROUTES)
def test_every_route_takes_a_criterion_by_name_and_reads_no_file(client, learned, tmp_path, path):
    pytest.importorskip("sklearn")
    body = ROUTES[path]
    answer = client.post(path, json={**body, "condition": "my problem"})
    assert answer.status_code == 200, answer.text
    file = tmp_path / "secret.criterion"
    learned[1].save(file)
    header = {"X-Condsim-Condition": str(file)}
    for refused in (
        client.post(path, json={**body, "condition": str(file)}),
        client.post(path, json=body, headers=header),
    ):
        assert refused.status_code == 404
        assert "no criterion" in refused.text


def test_search_and_match_under_a_criterion_by_its_name(learned, tmp_path):
    pytest.importorskip("lancedb")
    from condsim.search.index import Index

    model, criterion = learned
    with HELPDESK.open(encoding="utf-8") as file:
        index = Index.build(list(csv.DictReader(file)), tmp_path / "tickets.index")
    with TestClient(create_app(model, index=index, criteria={"mine": criterion})) as client:
        body = {"query": "The password does not work.", "top": 8}
        for condition in ("mine", ["mine", "the product"]):
            answer = client.post("/v1/search", json={**body, "conditions": condition})
            assert answer.status_code == 200, answer.text
            assert len(answer.json()["results"]) == 8
        hits = client.post("/v1/search", json={**body, "conditions": "mine"}).json()["results"]
        assert {hit["columns"]["problem"] for hit in hits} == {"cannot log in"}
        two = {"texts1": PAIR[:1], "texts2": [PAIR[1], "The bill is wrong."], "conditions": "mine"}
        (match,) = client.post("/v1/match", json=two).json()["matches"]
        expected = model.score(*PAIR, criterion)
        assert match["score"] == pytest.approx(expected, abs=0.01)


def test_create_app_leaves_the_model_of_its_caller_as_it_was(learned):
    model, criterion = condsim.load(), learned[1]
    with TestClient(create_app(model, criteria={"mine": criterion})) as client:
        answer = client.post("/v1/score", json={"pairs": [PAIR], "conditions": ["mine"]})
        assert answer.status_code == 200
    assert dict(model.criteria) == {}


def test_models_list_the_criteria(client):
    assert client.get("/v1/models").json()["data"][0]["criteria"] == ["my problem"]


def test_serve_criterion_of_another_form_is_refused():
    for text in ("a", "=b", "a="):
        assert "must be NAME=FILE" in commands.fault("serve", "--criterion", text)
    missing = commands.fault("serve", "--criterion", "a=no.criterion", kind=ModelError)
    assert "no.criterion: no such file" in missing
