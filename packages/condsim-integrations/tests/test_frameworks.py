"""The classes for LangChain, LlamaIndex and Haystack, in the real libraries."""

from __future__ import annotations

import asyncio
import pickle

import numpy as np
import pytest
from haystack import Document as HaystackDocument, Pipeline
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

import condsim
from condsim.errors import InputError, ModelError
from condsim_integrations.haystack import (
    HaystackDocumentEmbedder,
    HaystackRanker,
    HaystackTextEmbedder,
)
from condsim_integrations.langchain import LangChainEmbeddings, LangChainReranker
from condsim_integrations.llama_index import LlamaIndexEmbedding, LlamaIndexReranker

TEXTS = ["a black dog", "a red cat", "a red dog"]
QUERY = "a red dog"
BLANK = ["", "a red cat", " ", "a black dog"]
EMBEDDERS = [
    LangChainEmbeddings,
    LlamaIndexEmbedding,
    HaystackDocumentEmbedder,
    HaystackTextEmbedder,
]
RERANKERS = [LangChainReranker, LlamaIndexReranker, HaystackRanker]


def embed(embedder, texts):
    """The vectors that an embedder of any framework gives."""
    if isinstance(embedder, LangChainEmbeddings):
        return embedder.embed_documents(texts)
    if isinstance(embedder, LlamaIndexEmbedding):
        return embedder.get_text_embedding_batch(texts)
    documents = embedder.run(documents=[HaystackDocument(content=text or None) for text in texts])
    return [document.embedding for document in documents["documents"]]


def rerank(kind, texts, query, **options):
    """Index and score of each text that a reranker of any framework keeps, and its inputs."""
    if kind is LangChainReranker:
        documents = [Document(text, metadata={"row": row}) for row, text in enumerate(texts)]
        result = kind(**options).compress_documents(documents, query)
        return [(d.metadata["row"], d.metadata["relevance_score"]) for d in result], documents
    if kind is LlamaIndexReranker:
        nodes = [TextNode(text=text, id_=str(row)) for row, text in enumerate(texts)]
        nodes = [NodeWithScore(node=node, score=0.5) for node in nodes]
        result = kind(**options).postprocess_nodes(nodes, query_str=query)
        return [(int(node.node.id_), node.score) for node in result], nodes
    options["top_k"] = options.pop("top_n", 10)
    documents = [HaystackDocument(content=t or None, meta={"row": i}) for i, t in enumerate(texts)]
    result = kind(**options).run(query=query, documents=documents)["documents"]
    return [(document.meta["row"], document.score) for document in result], documents


def nearest_in_langchain(condition, model):
    store = InMemoryVectorStore(LangChainEmbeddings(condition, model=model))
    store.add_texts(TEXTS[:2])
    return store.similarity_search(QUERY, k=1)[0].page_content


def nearest_in_llama_index(condition, model):
    embedding = LlamaIndexEmbedding(condition=condition, model=model)
    index = VectorStoreIndex([TextNode(text=text) for text in TEXTS[:2]], embed_model=embedding)
    [best] = index.as_retriever(similarity_top_k=1).retrieve(QUERY)
    return best.node.get_content()


def nearest_in_haystack(condition, model):
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    writing = Pipeline()
    writing.add_component("embedder", HaystackDocumentEmbedder(condition, model))
    writing.add_component("writer", DocumentWriter(store))
    writing.connect("embedder", "writer")
    documents = [HaystackDocument(content=text) for text in TEXTS[:2]]
    writing.run({"embedder": {"documents": documents}})
    asking = Pipeline()
    asking.add_component("embedder", HaystackTextEmbedder(condition, model))
    asking.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
    asking.connect("embedder.embedding", "retriever.query_embedding")
    result = asking.run({"embedder": {"text": QUERY}})
    return result["retriever"]["documents"][0].content


@pytest.mark.parametrize(
    "nearest", [nearest_in_langchain, nearest_in_llama_index, nearest_in_haystack]
)
def test_store_of_a_framework_finds_by_condition(scorer, nearest):
    assert nearest("the color", scorer) == "a red cat"
    assert nearest("the animal", scorer) == "a black dog"


@pytest.mark.parametrize("kind", EMBEDDERS[:3])
def test_embedder_gives_the_vectors_of_the_model(scorer, kind):
    expected = scorer.encode(TEXTS, "the color")
    scorer.calls.clear()
    embedder = kind(condition="the color", model=scorer)
    np.testing.assert_array_equal(embed(embedder, TEXTS), expected)
    assert len(scorer.calls) == 1
    assert embed(embedder, []) == []


def test_embedders_of_one_query_and_async_ones_give_the_same(scorer):
    expected = scorer.encode(TEXTS, "the color").tolist()
    langchain = LangChainEmbeddings("the color", model=scorer)
    assert asyncio.run(langchain.aembed_query(TEXTS[0])) == expected[0]
    llama = LlamaIndexEmbedding("the color", model=scorer)
    assert asyncio.run(llama.aget_text_embedding_batch(TEXTS)) == expected
    assert asyncio.run(llama.aget_query_embedding(TEXTS[0])) == expected[0]
    assert llama.get_query_embedding(TEXTS[0]) == expected[0]
    haystack = HaystackTextEmbedder("the color", scorer)
    assert haystack.run(text=TEXTS[0])["embedding"] == expected[0]


@pytest.mark.parametrize("kind", EMBEDDERS[:3])
def test_embedder_gives_blank_documents_no_vector(scorer, caplog, kind):
    expected = scorer.encode([BLANK[1], BLANK[3]], "the color").tolist()
    vectors = embed(kind(condition="the color", model=scorer), BLANK)
    assert [vectors[1], vectors[3]] == expected
    blank = None if kind is HaystackDocumentEmbedder else [0] * scorer.dimension
    assert [vectors[0], vectors[2]] == [blank, blank]
    (message,) = caplog.messages
    assert message.startswith("2 of 4 texts are blank; they get ")
    with pytest.raises(InputError):
        LangChainEmbeddings("the color", model=scorer).embed_query(" ")


@pytest.mark.parametrize("kind", RERANKERS)
def test_reranker_puts_the_best_first_and_keeps_what_was_asked_for(scorer, kind):
    options = {"condition": "the color", "model": scorer}
    order, inputs = rerank(kind, TEXTS, "a red bus", **options)
    assert order == [(1, 1), (2, 1), (0, 0)]
    first = inputs[0].metadata if kind is LangChainReranker else inputs[0].score
    # The documents of the caller are not changed.
    assert first in ({"row": 0}, 0.5, None)
    assert rerank(kind, TEXTS, "a red bus", top_n=1, **options)[0] == [(1, 1)]
    options["condition"] = "the animal"
    assert rerank(kind, TEXTS, QUERY, at_least=0.5, **options)[0] == [(0, 1), (2, 1)]
    assert rerank(kind, [], QUERY, **options)[0] == []


@pytest.mark.parametrize("kind", RERANKERS)
def test_reranker_puts_blank_documents_last_without_a_score(scorer, kind):
    options = {"condition": "the color", "model": scorer}
    order = [(1, 1), (3, 0), (0, None), (2, None)]
    assert rerank(kind, BLANK, QUERY, **options)[0] == order
    assert rerank(kind, BLANK, QUERY, at_least=0.5, top_n=3, **options)[0] == order[:1]


def test_rerankers_of_one_call_have_options_of_it(scorer):
    ranker = HaystackRanker("the color", scorer, top_k=2)
    documents = [HaystackDocument(content=text) for text in TEXTS]
    result = ranker.run(query=QUERY, documents=documents, condition="the animal", top_k=1)
    assert [document.content for document in result["documents"]] == ["a black dog"]
    langchain = LangChainReranker(condition="the animal", model=scorer, at_least=0.5)
    result = asyncio.run(langchain.acompress_documents([Document(text) for text in TEXTS], QUERY))
    assert [document.page_content for document in result] == ["a black dog", "a red dog"]
    with pytest.raises(InputError, match="needs a query; pass 'query_str'"):
        LlamaIndexReranker("the color", model=scorer).postprocess_nodes(
            [NodeWithScore(node=TextNode(text="a"))]
        )
    for top in (0, -1):
        message = f"must keep 1 text or more; got {top}"
        with pytest.raises(InputError, match=message):
            rerank(LangChainReranker, ["a"], QUERY, condition="x", model=scorer, top_n=top)
        with pytest.raises(InputError, match=message):
            ranker.run(query=QUERY, documents=documents, top_k=top)


def test_llama_index_pipeline_cache_knows_the_condition(scorer):
    pipeline = IngestionPipeline(transformations=[])
    vectors = []
    for condition in ("the color", "the animal"):
        pipeline.transformations = [LlamaIndexEmbedding(condition=condition, model=scorer)]
        [node] = pipeline.run(nodes=[TextNode(text="a red cat", id_="1")])
        vectors.append(node.embedding)
    assert vectors[0] != vectors[1]


def test_llama_index_reranker_reads_what_embeddings_read(scorer):
    node = TextNode(text="a cat", metadata={"fur": "red", "of": "a dog"})
    node.excluded_embed_metadata_keys = ["of"]
    assert node.get_content(MetadataMode.EMBED) == "fur: red\n\na cat"
    for condition, score in (("the color", 1), ("the animal", 0)):
        reranker = LlamaIndexReranker(condition=condition, model=scorer)
        [ranked] = reranker.postprocess_nodes([NodeWithScore(node=node)], query_str=QUERY)
        assert ranked.score == score


def test_components_are_written_and_read_by_name():
    embedding = LlamaIndexEmbedding(condition="the color")
    again = LlamaIndexEmbedding.from_dict(embedding.to_dict())
    assert again.condition == "the color"
    assert again.get_text_embedding("a red cat") == embedding.get_text_embedding("a red cat")
    pipeline = Pipeline()
    pipeline.add_component("ranker", HaystackRanker("the color", top_k=1, at_least=0.25))
    pipeline.add_component("text", HaystackTextEmbedder("the color"))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["condsim_integrations.*"])
    ranker = again.get_component("ranker")
    assert (ranker.condition, ranker.top_k, ranker.at_least) == ("the color", 1, 0.25)
    assert ranker.model is None


@pytest.mark.parametrize("kind", [*EMBEDDERS, *RERANKERS])
def test_framework_class_of_a_model_that_cannot_serve_is_refused(kind, ranker_only):
    with pytest.raises(ModelError, match=r"^There is no model folder 'no/such/folder'.*$"):
        kind(condition="the color", model="no/such/folder")
    if kind in EMBEDDERS:
        with pytest.raises(ModelError):
            kind(condition="the color", model=ranker_only)


def test_classes_are_pickled_with_their_model():
    expected = condsim.load().encode(TEXTS, "the color")
    for kind in (LangChainEmbeddings, LlamaIndexEmbedding):
        embedder = pickle.loads(pickle.dumps(kind("the color", model=condsim.load())))
        np.testing.assert_allclose(embed(embedder, TEXTS), expected, atol=1e-6)
    reranker = pickle.loads(pickle.dumps(LangChainReranker("the color", top_n=1)))
    assert len(reranker.compress_documents([Document(text) for text in TEXTS], QUERY)) == 1
