"""The real clients of other servers, as their users write them, against a running server."""

from __future__ import annotations

import base64

import numpy as np
import pytest

pytest.importorskip("fastapi")

QUERY = "A man throws a ball."
TEXTS = ["A recipe for soup.", "A boy kicks a ball.", "Two dogs run."]
CONDITION = "the sport"
HEADERS = {"X-Condsim-Condition": CONDITION}


@pytest.fixture(scope="module")
def expected(model):
    """Indices of the texts, the best first, and their scores."""
    scores = model.score(QUERY, TEXTS, CONDITION)
    assert scores != pytest.approx(model.score(QUERY, TEXTS), abs=0.01)
    best = np.argsort(-scores, kind="stable").tolist()
    return best, [float(scores[index]) for index in best]


@pytest.fixture(scope="module")
def vectors(model):
    return pytest.approx(model.encode(TEXTS, CONDITION), abs=1e-4)


@pytest.fixture(scope="module")
def openai_client(server):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


def test_openai_embeddings(openai_client, model, vectors):
    by_field = {"extra_body": {"condition": CONDITION}}
    for options in (by_field, {"extra_headers": HEADERS}):
        answer = openai_client.embeddings.create(model=model.name, input=TEXTS, **options)
        assert np.array([item.embedding for item in answer.data]) == vectors
    plain = openai_client.embeddings.create(
        model=model.name, input="A dog.", encoding_format="float"
    )
    assert plain.data[0].embedding == pytest.approx(model.encode("A dog."), abs=1e-4)


def test_openai_models(openai_client, model):
    assert [card.id for card in openai_client.models.list()] == [model.name]
    assert openai_client.models.retrieve(model.name).id == model.name


def test_openai_errors_are_those_of_openai(openai_client, model):
    openai = pytest.importorskip("openai")
    create = openai_client.embeddings.create
    with pytest.raises(openai.BadRequestError):
        create(model=model.name, input="")
    with pytest.raises(openai.NotFoundError, match=model.name):
        create(model="text-embedding-3-small", input="a")
    with pytest.raises(openai.NotFoundError, match=model.name):
        openai_client.models.retrieve("text-embedding-3-small")
    with pytest.raises(openai.UnprocessableEntityError, match="one for each of the 3 input"):
        create(model=model.name, input=TEXTS, extra_body={"condition": [CONDITION]})


@pytest.mark.parametrize("options", [{"default_headers": HEADERS}, {"field": True}])
def test_langchain_openai_embeddings(server, vectors, options):
    langchain_openai = pytest.importorskip("langchain_openai")
    if options == {"field": True}:
        options = {"model_kwargs": {"extra_body": {"condition": CONDITION}}}
    embeddings = langchain_openai.OpenAIEmbeddings(
        model="default",
        base_url=f"{server.url}/v1",
        api_key="any",
        check_embedding_ctx_length=False,
        **options,
    )
    assert np.array(embeddings.embed_documents(TEXTS)) == vectors
    assert np.array([embeddings.embed_query(text) for text in TEXTS]) == vectors


@pytest.fixture
def cohere_client(server):
    cohere, httpx = pytest.importorskip("cohere"), pytest.importorskip("httpx")
    with httpx.Client() as connection:
        yield lambda kind: getattr(cohere, kind)(
            "any", base_url=server.url, httpx_client=connection
        )


BY_FIELD = {"additional_body_parameters": {"condition": CONDITION}}
BY_HEADER = {"additional_headers": HEADERS}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", ["Client", "ClientV2"])
def test_cohere_rerank(cohere_client, model, expected, kind):
    answer = cohere_client(kind).rerank(
        model=model.name, query=QUERY, documents=TEXTS, top_n=2, request_options=BY_FIELD
    )
    indices, scores = expected
    assert [result.index for result in answer.results] == indices[:2]
    found = [result.relevance_score for result in answer.results]
    assert found == pytest.approx(scores[:2], abs=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("options", [BY_FIELD, BY_HEADER])
def test_cohere_embed(cohere_client, model, vectors, options):
    answer = cohere_client("ClientV2").embed(
        model=model.name,
        input_type="search_document",
        texts=TEXTS,
        embedding_types=["float", "base64"],
        request_options=options,
    )
    assert np.array(answer.embeddings.float_) == vectors
    decoded = [np.frombuffer(base64.b64decode(item), "<f4") for item in answer.embeddings.base64]
    assert np.array(decoded) == vectors
    assert answer.texts == TEXTS


@pytest.fixture
def hub_client():
    hub = pytest.importorskip("huggingface_hub")
    return lambda url, **options: hub.InferenceClient(model=url, token="any", **options)


@pytest.mark.parametrize("path", ["", "/embed"])
def test_huggingface_feature_extraction(server, hub_client, vectors, path):
    client = hub_client(f"{server.url}{path}", headers=HEADERS)
    assert client.feature_extraction(TEXTS, normalize=True, truncate=True) == vectors
    assert client.feature_extraction(TEXTS[0]).shape == (1, 384)


def test_huggingface_sentence_similarity(server, hub_client, model):
    client = hub_client(f"{server.url}/similarity", headers=HEADERS)
    scores = client.sentence_similarity(QUERY, other_sentences=TEXTS)
    assert scores == pytest.approx(model.score(QUERY, TEXTS, CONDITION), abs=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("provider", ["text-embeddings-inference", "jina", "cohere"])
@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank"])
def test_rerankers(server, expected, provider, path):
    rerankers = pytest.importorskip("rerankers")
    ranker = rerankers.Reranker(
        "default", model_type=provider, api_key="any", url=f"{server.url}{path}"
    )
    ranker.headers |= HEADERS
    ranked = ranker.rank(QUERY, TEXTS)
    indices, scores = expected
    assert [result.document.text for result in ranked] == [TEXTS[index] for index in indices]
    assert [result.score for result in ranked] == pytest.approx(scores, abs=1e-4)


def test_llama_index_tei_embedding(server, model):
    tei = pytest.importorskip("llama_index.embeddings.text_embeddings_inference")
    embedding = tei.TextEmbeddingsInference(model_name="default", base_url=server.url)
    plain = model.encode(TEXTS)
    assert np.array(embedding.get_text_embedding_batch(TEXTS)) == pytest.approx(plain, abs=1e-4)
    assert embedding.get_query_embedding(TEXTS[0]) == pytest.approx(plain[0], abs=1e-4)


def test_llama_index_tei_rerank(server, model):
    tei = pytest.importorskip("llama_index.postprocessor.tei_rerank")
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    reranker = tei.TextEmbeddingInference(base_url=server.url, top_n=2)
    found = reranker.postprocess_nodes(nodes, query_str=QUERY)
    scores = model.score(QUERY, TEXTS)
    best = np.argsort(-scores, kind="stable")[:2]
    assert [node.node.text for node in found] == [TEXTS[index] for index in best]
    assert [node.score for node in found] == pytest.approx(scores[best], abs=1e-4)
