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
from pydantic import ValidationError

import condsim
from condsim.errors import InputError, ModelError
from condsim.integrations.haystack import (
    HaystackDocumentEmbedder,
    HaystackRanker,
    HaystackTextEmbedder,
)
from condsim.integrations.langchain import LangChainEmbeddings, LangChainReranker
from condsim.integrations.llama_index import LlamaIndexEmbedding, LlamaIndexReranker

TEXTS = ["a black dog", "a red cat", "a red dog"]
QUERY = "a red dog"
EMBEDDERS = [
    LangChainEmbeddings,
    LlamaIndexEmbedding,
    HaystackDocumentEmbedder,
    HaystackTextEmbedder,
]


def nodes():
    return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in TEXTS]


def documents():
    return [HaystackDocument(content=text, meta={"place": i}) for i, text in enumerate(TEXTS)]


@pytest.mark.parametrize("kind", EMBEDDERS)
def test_embedder_model_without_embeddings_refused(kind, ranker_only):
    with pytest.raises(ModelError, match="gives only scores; embeddings need a bi- or tri-encoder"):
        kind(condition="the colour", model=ranker_only)


def test_langchain_embeddings_in_a_store_differ_by_condition(scorer):
    found = {}
    for condition in ("the colour", "the animal"):
        store = InMemoryVectorStore(LangChainEmbeddings(condition, model=scorer))
        store.add_texts(TEXTS[:2])
        found[condition] = store.similarity_search(QUERY, k=1)[0].page_content
    assert found == {"the colour": "a red cat", "the animal": "a black dog"}


def test_langchain_embeddings_are_those_of_the_model(scorer):
    embeddings = LangChainEmbeddings("the colour", model=scorer)
    expected = scorer.encode(TEXTS, "the colour").tolist()
    assert embeddings.embed_documents(TEXTS) == expected
    assert asyncio.run(embeddings.aembed_query(TEXTS[0])) == expected[0]
    assert embeddings.embed_documents([]) == []


def test_langchain_reranker_puts_the_best_first(scorer):
    given = [Document(text, metadata={"place": place}) for place, text in enumerate(TEXTS)]
    reranker = LangChainReranker("the colour", model=scorer)
    found = reranker.compress_documents(given, "a red bus")
    assert [one.metadata["place"] for one in found] == [1, 2, 0]
    assert [one.metadata["relevance_score"] for one in found] == [1, 1, 0]
    assert given[0].metadata == {"place": 0}, "the caller's documents stay as they are"


def test_langchain_reranker_keeps_what_was_asked_for(scorer):
    given = [Document(text) for text in TEXTS]
    best = LangChainReranker("the colour", model=scorer, top_n=1)
    assert [one.page_content for one in best.compress_documents(given, QUERY)] == ["a red cat"]
    like = LangChainReranker(condition="the animal", model=scorer, at_least=0.5)
    found = asyncio.run(like.acompress_documents(given, QUERY))
    assert [one.page_content for one in found] == ["a black dog", "a red dog"]
    assert like.compress_documents([], QUERY) == []


def test_llama_index_embedding_in_an_index_differs_by_condition(scorer):
    found = {}
    for condition in ("the colour", "the animal"):
        embedding = LlamaIndexEmbedding(condition=condition, model=scorer)
        index = VectorStoreIndex([TextNode(text=text) for text in TEXTS[:2]], embed_model=embedding)
        [best] = index.as_retriever(similarity_top_k=1).retrieve(QUERY)
        found[condition] = best.node.get_content()
    assert found == {"the colour": "a red cat", "the animal": "a black dog"}


def test_llama_index_embedding_is_that_of_the_model(scorer):
    embedding = LlamaIndexEmbedding("the colour", model=scorer)
    expected = scorer.encode(TEXTS, "the colour").tolist()
    scorer.calls.clear()
    assert embedding.get_text_embedding_batch(TEXTS) == expected
    assert len(scorer.calls) == 1
    assert asyncio.run(embedding.aget_text_embedding_batch(TEXTS)) == expected
    assert asyncio.run(embedding.aget_query_embedding(TEXTS[0])) == expected[0]
    assert embedding.get_query_embedding(TEXTS[0]) == expected[0]
    assert embedding.model_name == "words"


def test_llama_index_embedding_pipeline_cache_knows_the_condition(scorer):
    pipeline = IngestionPipeline(transformations=[])
    found = []
    for condition in ("the colour", "the animal"):
        pipeline.transformations = [LlamaIndexEmbedding(condition=condition, model=scorer)]
        [node] = pipeline.run(nodes=[TextNode(text="a red cat", id_="1")])
        found.append(node.embedding)
    assert found[0] != found[1]


@pytest.mark.parametrize("kind", [LlamaIndexEmbedding, LlamaIndexReranker])
def test_llama_index_class_unknown_setting_refused(kind, scorer):
    with pytest.raises(ValidationError, match="topn"):
        kind("the colour", model=scorer, topn=3)


def test_llama_index_embedding_is_written_by_name():
    embedding = LlamaIndexEmbedding(condition="the colour")
    again = LlamaIndexEmbedding.from_dict(embedding.to_dict())
    assert again.condition == "the colour"
    assert again.get_text_embedding("a red cat") == embedding.get_text_embedding("a red cat")


def test_llama_index_reranker_puts_the_best_first(scorer):
    reranker = LlamaIndexReranker("the colour", model=scorer, top_n=2)
    given = nodes()
    found = reranker.postprocess_nodes(given, query_str="a red bus")
    assert [(one.node.get_content(), one.score) for one in found] == [(t, 1) for t in TEXTS[1:]]
    assert [one.score for one in given] == [0.5] * 3
    assert reranker.postprocess_nodes([], query_str=QUERY) == []


def test_llama_index_reranker_reads_what_embeddings_read(scorer):
    node = TextNode(text="a cat", metadata={"fur": "red", "of": "a dog"})
    node.excluded_embed_metadata_keys = ["of"]
    assert node.get_content(MetadataMode.EMBED) == "fur: red\n\na cat"
    for condition, score in (("the colour", 1), ("the animal", 0)):
        reranker = LlamaIndexReranker(condition=condition, model=scorer)
        [found] = reranker.postprocess_nodes([NodeWithScore(node=node)], query_str=QUERY)
        assert found.score == score


def test_llama_index_reranker_no_query_refused(scorer):
    reranker = LlamaIndexReranker("the colour", model=scorer)
    with pytest.raises(InputError, match="needs a query; pass 'query_str'"):
        reranker.postprocess_nodes(nodes())


def test_haystack_pipelines_find_by_condition(scorer):
    found = {}
    for condition in ("the colour", "the animal"):
        store = InMemoryDocumentStore(embedding_similarity_function="cosine")
        writing = Pipeline()
        writing.add_component("embedder", HaystackDocumentEmbedder(condition, scorer))
        writing.add_component("writer", DocumentWriter(store))
        writing.connect("embedder", "writer")
        writing.run({"embedder": {"documents": documents()[:2]}})
        asking = Pipeline()
        asking.add_component("embedder", HaystackTextEmbedder(condition, scorer))
        asking.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
        asking.connect("embedder.embedding", "retriever.query_embedding")
        result = asking.run({"embedder": {"text": QUERY}})
        found[condition] = result["retriever"]["documents"][0].content
    assert found == {"the colour": "a red cat", "the animal": "a black dog"}


def test_haystack_embedders_are_those_of_the_model(scorer):
    expected = scorer.encode(TEXTS, "the colour")
    given = documents()
    found = HaystackDocumentEmbedder("the colour", scorer).run(documents=given)["documents"]
    np.testing.assert_array_equal([one.embedding for one in found], expected)
    assert [one.meta for one in found] == [one.meta for one in given]
    assert given[0].embedding is None
    single = HaystackTextEmbedder("the colour", scorer).run(text=TEXTS[0])["embedding"]
    assert single == expected[0].tolist()
    assert HaystackDocumentEmbedder("the colour", scorer).run(documents=[]) == {"documents": []}


def test_haystack_ranker_puts_the_best_first(scorer):
    ranker = HaystackRanker("the colour", scorer, top_k=2)
    found = ranker.run(query="a red bus", documents=documents())["documents"]
    assert [(one.content, one.score) for one in found] == [(text, 1) for text in TEXTS[1:]]
    other = ranker.run(query=QUERY, documents=documents(), condition="the animal", top_k=1)
    assert other["documents"][0].content == "a black dog"
    strict = HaystackRanker("the colour", scorer, at_least=0.5)
    assert len(strict.run(query=QUERY, documents=documents())["documents"]) == 2


def test_haystack_pipeline_is_written_and_read_by_name(tmp_path):
    pipeline = Pipeline()
    pipeline.add_component("ranker", HaystackRanker("the colour", top_k=1, at_least=0.25))
    pipeline.add_component("text", HaystackTextEmbedder("the colour"))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["condsim.*"])
    ranker = again.get_component("ranker")
    assert (ranker.condition, ranker.top_k, ranker.at_least) == ("the colour", 1, 0.25)
    assert ranker.model is None


@pytest.mark.parametrize(
    "kind", [*EMBEDDERS, LangChainReranker, LlamaIndexReranker, HaystackRanker]
)
def test_framework_class_unknown_model_is_one_line(kind):
    with pytest.raises(ModelError, match=r"^There is no model folder 'no/such/folder'.*$"):
        kind(condition="the colour", model="no/such/folder")


BLANK = [None, "a red cat", " ", "a black dog"]


def test_embedders_blank_documents_have_no_vector(scorer, caplog):
    expected = scorer.encode([BLANK[1], BLANK[3]], "the colour").tolist()
    zeros = [0] * scorer.dimension
    lists = [zeros, expected[0], zeros, expected[1]]
    texts = ["", *BLANK[1:]]
    assert LangChainEmbeddings("the colour", model=scorer).embed_documents(texts) == lists
    embedding = LlamaIndexEmbedding("the colour", model=scorer)
    assert embedding.get_text_embedding_batch(texts) == lists
    documents = [HaystackDocument(content=text) for text in BLANK]
    found = HaystackDocumentEmbedder("the colour", scorer).run(documents=documents)["documents"]
    assert [document.embedding for document in found] == [None, expected[0], None, expected[1]]
    assert [record.getMessage() for record in caplog.records] == [
        "2 of 4 texts are blank; they get a vector of zeros.",
        "2 of 4 texts are blank; they get a vector of zeros.",
        "2 of 4 texts are blank; they get no embedding.",
    ]
    with pytest.raises(InputError, match="must have text"):
        LangChainEmbeddings("the colour", model=scorer).embed_query(" ")


def test_rerankers_blank_documents_are_the_last_and_have_no_score(scorer):
    texts = ["", *BLANK[1:]]
    order = [(1, 1), (3, 0), (0, None), (2, None)]
    ranker = HaystackRanker("the colour", scorer)
    documents = [HaystackDocument(content=text, meta={"row": i}) for i, text in enumerate(BLANK)]
    found = ranker.run(query=QUERY, documents=documents)["documents"]
    assert [(document.meta["row"], document.score) for document in found] == order
    chain = LangChainReranker("the colour", model=scorer)
    given = [Document(text, metadata={"row": row}) for row, text in enumerate(texts)]
    found = [item.metadata for item in chain.compress_documents(given, QUERY)]
    assert [(item["row"], item["relevance_score"]) for item in found] == order
    index = LlamaIndexReranker("the colour", model=scorer)
    given = [NodeWithScore(node=TextNode(text=t, id_=str(row))) for row, t in enumerate(texts)]
    found = index.postprocess_nodes(given, query_str=QUERY)
    assert [(int(item.node.id_), item.score) for item in found] == order
    strict = HaystackRanker("the colour", scorer, at_least=0.5, top_k=3)
    assert len(strict.run(query=QUERY, documents=documents)["documents"]) == 1


def test_classes_are_pickled_with_their_model():
    for kind in (LangChainEmbeddings, LlamaIndexEmbedding):
        embedding = pickle.loads(pickle.dumps(kind("the colour", model=condsim.load())))
        expected = condsim.load().encode(TEXTS, "the colour")
        found = getattr(embedding, "embed_documents", None) or embedding.get_text_embedding_batch
        np.testing.assert_allclose(found(TEXTS), expected, atol=1e-6)
    reranker = pickle.loads(pickle.dumps(LangChainReranker("the colour", top_n=1)))
    assert len(reranker.compress_documents([Document(text) for text in TEXTS], QUERY)) == 1


@pytest.mark.parametrize("top", [0, -1])
def test_reranker_number_below_1_refused(scorer, top):
    expected = f"must keep 1 text or more; got {top}"
    with pytest.raises(InputError, match=expected):
        LangChainReranker("the colour", model=scorer, top_n=top).compress_documents(
            [Document("a")], QUERY
        )
    with pytest.raises(InputError, match=expected):
        HaystackRanker("the colour", scorer).run(query=QUERY, documents=documents(), top_k=top)


def test_rerankers_of_the_model_that_ships_agree():
    model = condsim.load()
    scores = model.score(QUERY, TEXTS, "the colour")
    expected = [TEXTS[place] for place in np.argsort(-scores, kind="stable")]
    chain = LangChainReranker(condition="the colour")
    found = [
        one.page_content for one in chain.compress_documents(list(map(Document, TEXTS)), QUERY)
    ]
    assert found == expected
    index = LlamaIndexReranker(condition="the colour", model=model)
    found = [one.node.get_content() for one in index.postprocess_nodes(nodes(), query_str=QUERY)]
    assert found == expected
    ranker = HaystackRanker("the colour", model)
    found = ranker.run(query=QUERY, documents=documents())["documents"]
    assert [one.content for one in found] == expected
