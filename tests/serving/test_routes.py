from __future__ import annotations

import logging

import numpy as np
import pytest
from tests.words import WordEncoder

import condsim
from condsim.errors import InputError, MissingExtraError, ModelError
from condsim.model.base import PairScorer

PAIRS = [["A man throws a ball.", "A girl kicks a ball."], ["Two dogs run.", "A dog sleeps."]]
CONDITIONS = ["the sport", "the number of animals", "the weather"]


class Stub(PairScorer):
    """Scores by the length of the first text; fails where it is told to."""

    name = "stub"

    def _score_rows(self, rows, scale):
        first = rows.sentences[0]
        if "refuse" in first:
            raise InputError("The model refuses this text.")
        if "break" in first:
            raise ModelError("/a/secret/path is damaged.")
        return np.array([len(text) for text in first], np.float32)


def message(response):
    return response.json()["error"]["message"]


def test_score_crosses_pairs_and_conditions(client, model):
    got = client().post("/v1/score", json={"pairs": PAIRS, "conditions": CONDITIONS}).json()
    wanted = [[model.score(*pair, one) for one in CONDITIONS] for pair in PAIRS]
    assert got["model"] == model.name
    assert got["scale"] == "unit"
    assert np.array(got["scores"]) == pytest.approx(np.array(wanted), abs=1e-4)


def test_score_names_pairs_that_the_model_cannot_read(client):
    happy, angry = "The staff of the hotel was kind 😍", "The staff of the hotel was kind 😡"
    pairs = [PAIRS[0], ["Great 👍", "A dog."], [happy, angry], [happy, happy]]
    answer = client().post("/v1/score", json={"pairs": pairs, "conditions": CONDITIONS}).json()
    assert answer["unread"] == [1, 2]
    assert "unread" not in client().post("/v1/score", json={"pairs": PAIRS}).json()


@pytest.mark.parametrize("scale", ["unit", "likert", "raw"])
def test_score_without_conditions_compares_the_texts_as_a_whole(client, model, scale):
    scores = client().post("/v1/score", json={"pairs": PAIRS, "scale": scale}).json()["scores"]
    expected = [[model.score(*pair, scale=scale)] for pair in PAIRS]
    assert np.array(scores) == pytest.approx(np.array(expected), abs=1e-4)


def test_score_overall_is_a_share_of_the_whole(client, model):
    body = {"pairs": PAIRS, "conditions": CONDITIONS, "overall": 0.4}
    scores = client().post("/v1/score", json=body).json()["scores"]
    wanted = [[model.score(*pair, name, overall=0.4) for name in CONDITIONS] for pair in PAIRS]
    assert np.array(scores) == pytest.approx(np.array(wanted), abs=1e-4)
    whole = [client().post("/v1/score", json={"pairs": PAIRS, "overall": x}) for x in (0, 0.4)]
    assert whole[0].json() == whole[1].json()


def test_applicability_is_that_of_the_model(client, model):
    body = {"pairs": PAIRS, "conditions": CONDITIONS}
    got = client().post("/v1/applicability", json=body).json()["probabilities"]
    wanted = [[model.applicability(*pair, one) for one in CONDITIONS] for pair in PAIRS]
    assert np.array(got) == pytest.approx(np.array(wanted), abs=1e-4)


REFUNDS = ["I want a refund for my lamp.", "Please give me my money back."]


def test_score_marks_conditions_that_do_not_apply(client, model):
    body = {"pairs": [REFUNDS, PAIRS[0]], "conditions": ["the type of food", "the request"]}
    answer = client().post("/v1/score", json=body).json()
    names = body["conditions"]
    expected = [[model.applicability(*pair, name) for name in names] for pair in body["pairs"]]
    assert np.array(answer["applicability"]) == pytest.approx(np.array(expected), abs=1e-4)
    assert answer["remarks"][0] == ["neither text seems to mention it", ""]
    many = {**body, "pairs": [REFUNDS] * 33}
    assert "remarks" not in client().post("/v1/score", json=many).json()
    marked = client().post("/v1/score", json={**many, "applicability": True}).json()
    assert len(marked["remarks"]) == 33
    for unmarked in ({**body, "applicability": False}, {"pairs": [REFUNDS]}):
        assert "applicability" not in client().post("/v1/score", json=unmarked).json()
    wanted = {"pairs": PAIRS, "conditions": ["a"], "applicability": True}
    for scorer, rule in ((WordEncoder(), "has no applicability head"), (Stub(), "scores only")):
        assert "remarks" not in client(scorer).post("/v1/score", json=body).json()
        assert rule in message(client(scorer).post("/v1/score", json=wanted))


HEADER = {"X-Condsim-Condition": "the sport"}
REQUESTS = {
    "/v1/embeddings": {"input": PAIRS[0]},
    "/embed": {"inputs": PAIRS[0]},
    "/rerank": {"query": PAIRS[0][0], "texts": PAIRS[0]},
    "/similarity": {"inputs": {"source_sentence": PAIRS[0][0], "sentences": PAIRS[0]}},
    "/v1/score": {"pairs": PAIRS},
    "/v1/applicability": {"pairs": PAIRS},
    "/v1/cluster": {"texts": [*PAIRS[0], *PAIRS[1]], "k": 2},
    "/v1/dedupe": {"texts": PAIRS[0], "at_least": 0.9},
    "/v1/match": {"texts1": PAIRS[0], "texts2": PAIRS[1]},
    "/v1/verdict": {"pairs": PAIRS},
    "/v1/explain": {"sentence1": PAIRS[0][0], "sentence2": PAIRS[0][1]},
}


@pytest.mark.parametrize("path", REQUESTS)
def test_condition_from_the_header_is_that_of_the_field(client, path):
    ask = client()
    by_field = ask.post(path, json={**REQUESTS[path], "condition": "the sport"})
    by_header = ask.post(path, json=REQUESTS[path], headers=HEADER)
    assert by_field.status_code == by_header.status_code == 200
    assert by_header.json() == by_field.json()
    other = {"X-Condsim-Condition": "the number of people"}
    both = ask.post(path, json={**REQUESTS[path], "condition": "the sport"}, headers=other)
    assert both.json() == by_field.json()


def test_condition_in_a_header_is_utf_8_or_latin_1(client, model):
    for encoding in ("utf-8", "latin-1"):
        headers = {"X-Condsim-Condition": "le café".encode(encoding)}
        got = client().post("/embed", json={"inputs": "A dog."}, headers=headers).json()
        assert got[0] == pytest.approx(model.encode("A dog.", "le café"), abs=1e-4)


RERANK_PATHS = ["/rerank", "/v1/rerank", "/v2/rerank"]


@pytest.mark.parametrize("path", RERANK_PATHS)
def test_rerank_documents_in_the_form_of_cohere_and_jina(client, path):
    body = {"query": "four", "documents": ["x", {"text": "yy"}], "condition": "c", "top_n": 1}
    got = client(Stub()).post(path, json={**body, "return_documents": True}).json()
    assert got["results"] == [{"index": 0, "relevance_score": 4, "document": {"text": "x"}}]
    assert got["model"] == "stub"


@pytest.mark.parametrize("path", RERANK_PATHS)
def test_rerank_texts_in_the_form_of_tei(client, path):
    body = {"query": "four", "texts": ["x", "yy"], "return_text": True, "truncate": True}
    got = client(Stub()).post(path, json={**body, "model": "stub", "top_n": 0}).json()
    assert got == [{"index": 0, "score": 4, "text": "x"}, {"index": 1, "score": 4, "text": "yy"}]


def test_dedupe_is_that_of_the_search_package(client, model):
    dedupe = pytest.importorskip("condsim.search.dedupe")
    texts = ["A man throws a ball.", "A dog sleeps.", "A man throws a ball!", "A dog is sleeping."]
    body = {"texts": texts, "condition": ["the animal", "the act"], "at_least": [0.8, 0.7]}
    got = client().post("/v1/dedupe", json=body).json()
    expected = dedupe.find_duplicates(texts, model, body["condition"], at_least=[0.8, 0.7])
    assert got["kept"] == np.flatnonzero(expected.kept).tolist()
    for duplicate in got["duplicates"]:
        index = duplicate["index"]
        assert duplicate["duplicate_of"] == expected.kept_row[index]
        assert duplicate["score"] == pytest.approx(expected.score[index], abs=1e-4)
    assert len(got["kept"]) + len(got["duplicates"]) == len(texts)
    fewer = client().post("/v1/dedupe", json={"texts": texts, "condition": "the act", "to": 2})
    assert len(fewer.json()["kept"]) == 2


def test_match_is_that_of_the_search_package(client, model):
    search = pytest.importorskip("condsim.search")
    body = {"texts1": ["A red car.", "A dog."], "texts2": ["A black dog.", "Rain.", "A car, red."]}
    got = client().post("/v1/match", json={**body, "condition": "the subject"}).json()
    wanted = search.find_matches(*body.values(), model, "the subject")
    indices = [(pair["index1"], pair["index2"]) for pair in got["matches"]]
    assert indices == list(zip(wanted.rows1.tolist(), wanted.rows2.tolist(), strict=True))
    scores = [(pair["score"], pair["gap"]) for pair in got["matches"]]
    assert scores == pytest.approx(np.stack([wanted.score, wanted.gap], axis=1), abs=1e-4)
    assert (got["unmatched1"], got["unmatched2"]) == ([], [1])
    plain = client().post("/v1/match", json={**body, "at_least": 1})
    assert (plain.status_code, plain.json()["matches"]) == (200, [])


def test_verdict_is_that_of_the_judge(client):
    known = "Tests run on Jenkins."
    pairs = [
        [known, "We have moved the tests from Jenkins to GitHub Actions."],
        [known, "天气很好"],
    ]
    got = client().post("/v1/verdict", json={"pairs": pairs, "about": True}).json()
    wanted = condsim.load_judge().verdict(*zip(*pairs, strict=True), about=True)
    first, second = got["verdicts"]
    assert (first["verdict"], tuple(first["about"])) == ("update", wanted[0].about)
    assert first["probabilities"] == pytest.approx(wanted[0].probabilities, abs=1e-4)
    assert (second["verdict"], second["reason"]) == ("cannot tell", wanted[1].reason)


FACTS = ["Tests run on Jenkins.", "The office has twelve desks."]


def test_verdict_against_known_texts_has_all_candidates(client, model):
    search = pytest.importorskip("condsim.search")
    new = "We have moved the tests from Jenkins to GitHub Actions."
    body = {"texts": [new], "known": FACTS, "about": True}
    (got,) = client().post("/v1/verdict", json=body).json()["verdicts"]
    judge = condsim.load_judge()
    (wanted,) = search.find_verdicts([new], FACTS, judge, scorer=model, about=True)
    assert (got["verdict"], got["known"], got["row"]) == ("update", FACTS[0], 0)
    assert tuple(got["about"]) == wanted.verdict.about
    read = [(one["known"], one["row"], one["verdict"]) for one in got["candidates"]]
    assert read == [(one.known, one.row, one.verdict.verdict) for one in wanted.candidates]
    assert len(read) == 2


def test_verdict_against_the_index_names_keys(client, index):
    body = {"texts": ["A parcel."], "candidates": 1}
    (got,) = client(index=index).post("/v1/verdict", json=body).json()["verdicts"]
    assert [one["row"] for one in got["candidates"]] == [got["row"]]
    assert got["row"] in {str(row["id"]) for row in ROWS}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "either 'pairs'"),
        ({"pairs": [["a", "b"]], "texts": ["c"]}, 422, "either 'pairs'"),
        ({"pairs": [["a", "b"]], "known": ["c"]}, 422, "goes with 'texts'"),
        ({"texts": ["a"]}, 404, "--index DIR"),
        ({"texts": ["a"] * 60, "known": ["b"], "candidates": 1000}, 413, "candidates"),
    ],
)
def test_verdict_bad_requests_are_refused(client, body, status, words):
    response = client().post("/v1/verdict", json=body)
    assert response.status_code == status
    assert words in message(response)


def test_texts_that_the_model_cannot_read_are_listed_and_no_duplicates(client):
    body = {"texts": ["Great 👍", "Great 👎", "Great 👍"], "condition": "the mood"}
    got = client().post("/v1/dedupe", json={**body, "at_least": 0.5}).json()
    assert got["kept"] == [0, 1]
    assert [item["duplicate_of"] for item in got["duplicates"]] == [0]
    assert got["unread"] == [0, 1, 2]
    texts = ["A red car.", "A red bus.", "天气", "A black cat."]
    body = {"texts": texts, "condition": "the color", "k": 2}
    assert client().post("/v1/cluster", json=body).json()["unread"] == [2]


def test_cluster_is_that_of_the_search_package(client, model):
    search = pytest.importorskip("condsim.search")
    texts = ["A red car.", "A red bus.", "A red van.", "A black cat.", "A black dog."]
    body = {"texts": texts, "condition": "the color", "k": 2}
    got = client().post("/v1/cluster", json=body).json()
    wanted = search.cluster(texts, "the color", k=2)
    assert got["labels"] == wanted.labels.tolist()
    assert [tuple(one["words"]) for one in got["clusters"]] == [
        one.words for one in wanted.clusters
    ]
    assert got["silhouette"] == pytest.approx(wanted.silhouette, abs=1e-3)


def test_cluster_without_the_search_extra_says_what_to_install(client, monkeypatch):
    def missing(*_):
        raise MissingExtraError.of("sklearn", extra="search")

    monkeypatch.setattr("condsim.serving.routes._cluster", missing)
    got = client().post("/v1/cluster", json={"texts": ["a", "b", "c"]})
    assert got.status_code == 501
    assert "pip install 'condsim[search]'" in message(got)


def test_explain_is_that_of_the_model(client, model):
    texts = {"sentence1": "Three people watch a match.", "sentence2": "A trio plays tennis."}
    body = {**texts, "condition": "number of people"}
    content = client().post("/v1/explain", json=body).json()
    expected = model.explain(**body)
    words = [word for text in content["texts"] for word in text["words"]]
    expected_words = [word for text in expected.texts for word in text.words]
    assert [word["text"] for word in words] == [word.text for word in expected_words]
    figures = [word["contribution"] for word in words]
    expected_figures = [word.contribution for word in expected_words]
    assert figures == pytest.approx(expected_figures, abs=1e-4)
    assert content["remainder"] + sum(figures) == pytest.approx(content["score"], abs=1e-6)
    assert np.array(content["pairs"]) == pytest.approx(expected.pairs, abs=1e-4)
    assert "condition" not in client().post("/v1/explain", json=texts).json()
    assert "pairs" not in client(Stub()).post("/v1/explain", json=texts).json()


def test_explain_takes_the_same_queue_as_all(client):
    ask = client(Stub())
    body = {"sentence1": "one two", "sentence2": "x", "condition": "c"}
    assert ask.post("/v1/explain", json=body).status_code == 200
    # 4 subsets of two words, 2 + 1 (which counts as none and as all) of one
    assert "condsim_batch_rows_sum 6.0" in ask.get("/metrics").text
    refused = ask.post("/v1/explain", json={**body, "sentence1": "refuse"})
    assert message(refused) == "The model refuses this text."


ROWS = [
    {"text": "The kettle arrived cracked.", "id": "a", "year": 2023},
    {"text": "The kettle came three weeks late.", "id": "b", "year": 2024},
    {"text": "My lamp was delivered a month late.", "id": "c", "year": 2024},
]
QUERY = {"query": "I waited two months.", "conditions": ["the complaint", "the product"]}


@pytest.fixture(scope="module")
def index(model, tmp_path_factory):
    pytest.importorskip("lancedb")
    from condsim.search.index import Index

    return Index.build(ROWS, tmp_path_factory.mktemp("index") / "made", key="id", model=model)


def test_search_is_that_of_the_index(client, index):
    ask = client(index=index)
    body = {**QUERY, "weights": [0.7, 0.2], "where": "year > 2023", "top": 1, "at_least": 0.01}
    got = ask.post("/v1/search", json=body).json()["results"]
    weights = dict(zip(QUERY["conditions"], [0.7, 0.2], strict=True))
    (wanted,) = index.search(QUERY["query"], weights, where="year > 2023", top=1, at_least=0.01)
    assert got[0]["score"] == pytest.approx(wanted.score, abs=1e-4)
    assert got[0]["scores"] == pytest.approx(wanted.scores, abs=1e-4)
    assert (got[0]["key"], got[0]["columns"]) == (wanted.key, wanted.columns)
    card = ask.get("/v1/models").json()["data"][0]
    assert card["index"] == {"columns": ["text", "id", "year"], "prepared": []}


def test_search_a_damaged_index_is_no_fault_of_the_caller(client, model, tmp_path):
    search = pytest.importorskip("condsim.search")
    index = search.Index.build(ROWS, tmp_path / "made", model=model)
    ask = client(index=index)
    for file in (tmp_path / "made").rglob("*.lance"):
        if file.is_file():
            file.write_bytes(b"damaged")
    got = ask.post("/v1/search", json=QUERY)
    assert got.status_code == 500
    assert str(tmp_path) not in got.text


def test_search_without_an_index_or_with_one_of_another_model_is_refused(client, index):
    response = client(Stub()).post("/v1/search", json=QUERY)
    assert (response.status_code, "--index DIR" in message(response)) == (404, True)
    with pytest.raises(InputError, match="scores only"):
        client(Stub(), index=index)


def test_health_ready_and_models_name_the_model(client, model):
    ask = client()
    assert ask.get("/health").json()["status"] == "ok"
    assert ask.get("/ready").json()["model"] == model.name
    (card,) = ask.get("/v1/models").json()["data"]
    assert card["id"] == model.name
    for name in (model.name, "default"):
        assert ask.get(f"/v1/models/{name}").json() == card
    assert ask.get("/v1/models/owner/other").status_code == 404


def test_metrics_count_requests_batches_and_the_queue(client):
    ask = client(Stub())
    ask.post("/v1/score", json={"pairs": PAIRS})
    ask.post("/v1/score", json={"pairs": []})
    ask.get("/nothing/here")
    text = ask.get("/metrics").text
    assert 'condsim_requests_total{route="/v1/score",status="200"} 1.0' in text
    assert 'condsim_requests_total{route="/v1/score",status="400"} 1.0' in text
    assert 'condsim_requests_total{route="other",status="404"} 1.0' in text
    assert 'condsim_request_seconds_count{route="/v1/score"} 2.0' in text
    assert "condsim_batch_rows_sum 2.0" in text
    assert "condsim_queue_rows 0.0" in text
    assert "/nothing/here" not in text


def test_key_is_needed_everywhere_but_for_probes(client):
    ask = client(Stub(), keys=["secret-1", "secret-2"])
    body = {"pairs": PAIRS}
    for path in ("/health", "/ready"):
        assert ask.get(path).status_code == 200
    for headers in ({}, {"Authorization": "secret-1"}, {"Authorization": "Bearer secret-"}):
        for response in (
            ask.post("/v1/score", json=body, headers=headers),
            ask.get("/metrics", headers=headers),
            ask.get("/v1/models", headers=headers),
            ask.post("/", json={"inputs": "a"}, headers=headers),
        ):
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            assert "secret" not in response.text
    for key in ("secret-1", "secret-2"):
        headers = {"Authorization": f"Bearer {key}"}
        assert ask.post("/v1/score", json=body, headers=headers).status_code == 200


IGNORED = {
    "input_type": "query",
    "task": "retrieval.query",
    "truncate": "END",
    "truncation": True,
    "truncate_prompt_tokens": 512,
    "prompt_name": "query",
    "user": "someone",
}


@pytest.mark.parametrize(
    "path", ["/v1/embeddings", "/embed", "/v2/embed", "/rerank", "/similarity"]
)
def test_keys_of_other_servers_clients_have_no_effect(client, path):
    body = {**REQUESTS, "/v2/embed": {"texts": PAIRS[0]}}[path]
    ask = client()
    plain, ignored = (ask.post(path, json=sent).json() for sent in (body, {**body, **IGNORED}))
    if path == "/v2/embed":
        assert plain.pop("id") != ignored.pop("id")
    assert plain == ignored
    misspelled = ask.post(path, json={**body, "conditon": "the sport"})
    assert message(misspelled) == "Unknown request key 'conditon'."


def test_paths_without_the_version_or_with_a_slash_at_the_end(client, model):
    ask, body = client(), {"input": "A dog."}
    expected = ask.post("/v1/embeddings", json=body).json()
    for path in ("/embeddings", "/embeddings/", "/v1/embeddings/", "/v1/embeddings//"):
        assert ask.post(path, json=body).json() == expected
    for path in ("/models", "/models/", "/v1/models/"):
        assert ask.get(path).json()["data"][0]["id"] == model.name
    info = ask.get("/info/").json()
    assert (info["model_id"], info["max_client_batch_size"]) == (model.name, 2048)
    for path in ("/tokenize", "/v1/tokenize", "/decode"):
        answer = ask.post(path, json={"inputs": "a"})
        assert (answer.status_code, "no such route" in message(answer)) == (404, True)


def test_embeddings_of_as_many_texts_as_clients_send(client):
    texts = [f"a cat {number}" for number in range(2048)]
    answer = client(WordEncoder()).post("/v1/embeddings", json={"input": texts})
    assert answer.status_code == 200
    assert [item["index"] for item in answer.json()["data"]] == list(range(2048))
    refused = client(WordEncoder()).post("/v1/embeddings", json={"input": [*texts, "a"]})
    assert (refused.status_code, "2048 input (--max-rows)" in message(refused)) == (413, True)


@pytest.mark.parametrize("k", [1, 101, 2.5, True, "many"])
def test_cluster_takes_a_number_of_groups_or_auto(client, k):
    pytest.importorskip("sklearn")
    texts = ["A red car.", "A red bus.", "A blue car.", "A blue bus.", "A red van.", "A blue van."]
    ask, body = client(), {"texts": texts, "condition": "the color", "overall": 0}
    answer = ask.post("/v1/cluster", json={**body, "k": "auto"}).json()
    assert len(set(answer["labels"])) == 2
    refused = ask.post("/v1/cluster", json={**body, "k": k})
    assert "'k' must be 'auto' or a whole number from 2 to 100" in message(refused)


def test_error_of_the_model_is_told_only_if_the_caller_can_help_it(client, caplog):
    ask = client(Stub())
    refused = ask.post("/v1/score", json={"pairs": [["refuse", "b"]]})
    assert (refused.status_code, message(refused)) == (400, "The model refuses this text.")
    with caplog.at_level(logging.ERROR):
        broken = ask.post("/v1/score", json={"pairs": [["break", "b"]]})
    assert broken.status_code == 500
    assert "secret" not in broken.text
    assert "/a/secret/path is damaged." in caplog.text


def test_model_that_gives_scores_only_refuses_what_needs_embeddings(client):
    ask, body = client(Stub()), {"pairs": PAIRS, "conditions": CONDITIONS}
    assert "scores only" in message(ask.post("/v1/embeddings", json={"input": "a"}))
    assert ask.post("/v1/applicability", json=body).status_code == 400
    response = ask.post("/v1/score", json={**body, "overall": 0.4})
    assert (response.status_code, "gives no embeddings" in message(response)) == (400, True)


@pytest.mark.parametrize(
    ("limits", "body", "option"),
    [
        ({"max_rows": 3}, {"pairs": PAIRS, "conditions": ["a", "b"]}, "--max-rows"),
        ({"max_characters": 20}, {"pairs": [["a", "b"]], "conditions": ["c" * 21]}, "characters"),
        ({"max_bytes": 30}, {"pairs": [["a", "b" * 30]]}, "--max-bytes"),
    ],
)
def test_limits_name_their_option(client, limits, body, option):
    response = client(Stub(), **limits).post("/v1/score", json=body)
    assert (response.status_code, option in message(response)) == (413, True)


DEDUPE = {"texts": ["a", "b"], "condition": "c", "at_least": 0.9}
LONG = {"pairs": [["a", "b" * 900]], "conditions": ["the animal " * 400]}
NO_TEXT = "'texts' must have text; got ' ' at index 1"
ONE_FORM = "A request must have either 'documents' or 'texts'."
REFUSED = [
    ("/embed", {"inputs": "a", "dimensions": 7}, "'dimensions' must equal the model's, 384"),
    ("/rerank", {"query": "a"}, ONE_FORM),
    ("/rerank", {"query": "a", "texts": ["b"], "documents": ["c"]}, ONE_FORM),
    ("/v1/score", {"pairs": PAIRS, "conditions": ["a"], "overall": 3}, "overall"),
    ("/v1/score", {"pairs": PAIRS, "conditions": [""]}, "'condition' must have text"),
    ("/v1/score", {"pairs": PAIRS, "conditions": ["?!"]}, "must have a letter, digit or symbol"),
    ("/v1/score", LONG, "leave room for the text; it has 800"),
    ("/v1/dedupe", DEDUPE | {"at_least": None}, "Give the score that duplicates reach"),
    ("/v1/dedupe", DEDUPE | {"at_least": 2}, "0 to 1"),
    ("/v1/dedupe", DEDUPE | {"condition": None}, "'condition' is missing"),
    ("/v1/dedupe", DEDUPE | {"condition": ["a", "a"]}, "once"),
    ("/v1/dedupe", DEDUPE | {"texts": ["a", " "]}, NO_TEXT),
    ("/v1/search", QUERY | {"weights": [1]}, "'weights' must have one for each"),
    ("/v1/search", QUERY | {"weights": [1, 0]}, "must be a number above 0"),
    ("/v1/search", QUERY | {"conditions": ["a", "a"]}, "must not have one twice"),
    ("/v1/search", QUERY | {"conditions": None}, "A search needs a condition"),
    ("/v1/search", QUERY | {"where": "nothing > 3"}, "on the columns 'text', 'id', 'year'"),
    ("/v1/search", QUERY | {"where": "year = ?"}, "cannot be used"),
    ("/v1/search", QUERY | {"where": "year = $1"}, "cannot be used"),
    ("/v1/search", QUERY | {"where": "length(repeat(text, 100000000)) > 0"}, "cannot be used"),
    ("/v1/search", QUERY | {"where": "1; DROP TABLE rows"}, "cannot be used"),
    ("/v1/search", QUERY | {"query": " "}, "must be a text"),
    ("/v1/search", QUERY | {"rescore": 5000}, "--max-rows"),
]


@pytest.mark.parametrize(("path", "body", "rule"), REFUSED)
def test_wrong_request_is_refused_in_one_line(client, index, path, body, rule):
    response = client(index=index).post(path, json=body)
    assert response.status_code == (413 if rule == "--max-rows" else 400)
    assert rule in message(response)
    assert "\n" not in message(response)
    # The folder of the index.
    assert "made" not in response.text


@pytest.mark.parametrize("conditions", [[], ["a"], ["a", "b"]])
def test_embeddings_conditions_of_another_number_are_422(client, conditions):
    body = {"input": ["a", "b", "c"], "condition": conditions}
    response = client().post("/v1/embeddings", json=body)
    assert response.status_code == 422
    assert f"each of the 3 input; got a list of {len(conditions)}" in message(response)


def test_condition_in_the_header_that_is_empty_is_refused(client):
    headers = {"X-Condsim-Condition": ""}
    response = client().post("/embed", json={"inputs": "A dog."}, headers=headers)
    assert (response.status_code, "must have text" in message(response)) == (400, True)
