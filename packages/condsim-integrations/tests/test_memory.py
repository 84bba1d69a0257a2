"""The memories on top of LangChain's and LlamaIndex's stores."""

from __future__ import annotations

import json

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

from condsim.errors import InputError, ScoredWarning
from condsim_integrations.langchain import LangChainEmbeddings, LangChainMemory
from condsim_integrations.llama_index import LlamaIndexEmbedding, LlamaIndexMemory

FACTS = ["Tests run on Jenkins.", "Anna is allergic to peanuts.", "The office has twelve desks."]
UPDATE = "We have moved the tests from Jenkins to GitHub Actions."
AGAIN = "The tests no longer run on GitHub Actions; since Monday they run on Buildkite."
CONFLICT = "Peanuts are fine for Anna; she has no allergies."


def in_langchain(**options):
    return LangChainMemory(InMemoryVectorStore(LangChainEmbeddings(None)), **options), Document


def in_llama_index(**options):
    index = VectorStoreIndex([], embed_model=LlamaIndexEmbedding(None))
    return LlamaIndexMemory(index, **options), lambda text: TextNode(text=text)


MEMORIES = [in_langchain, in_llama_index]


def stored(memory):
    """Texts of a memory and their metadata."""
    return {memory._text(entry): entry.metadata for entry in memory._nearest("tests")}


@pytest.mark.parametrize("make", MEMORIES)
def test_memory_keeps_each_fact_once_and_old_values(make):
    memory, entry = make()
    assert [one.verdict.verdict for one in memory.add([entry(FACTS[0])])] == ["new"]
    memory.add([entry(text) for text in FACTS[1:]])
    assert set(stored(memory)) == set(FACTS)
    again, update, conflict = memory.add([entry(FACTS[0]), entry(UPDATE), entry(CONFLICT)])
    assert [one.verdict.verdict for one in (again, update, conflict)] == [
        "duplicate",
        "update",
        "contradiction",
    ]
    assert (update.known, conflict.known) == (FACTS[0], FACTS[1])
    assert set(stored(memory)) == {UPDATE, *FACTS[1:]}
    memory.add([entry(AGAIN)])
    assert json.loads(stored(memory)[AGAIN]["history"]) == [FACTS[0], UPDATE]


@pytest.mark.parametrize("make", MEMORIES)
def test_memory_of_a_sure_user_merges_nothing_unsure(make):
    memory, entry = make(merged_from=1.0, candidates=1)
    memory.add([entry(FACTS[0]), entry(UPDATE)])
    assert FACTS[0] in stored(memory)


@pytest.mark.parametrize("make", MEMORIES)
def test_memory_bad_texts_and_settings_are_refused_before_anything_is_written(make):
    memory, entry = make()
    with pytest.raises(InputError):
        memory.add([entry(FACTS[0]), entry(" ")])
    assert stored(memory) == {}
    with pytest.warns(ScoredWarning):
        (finding,) = memory.add([entry("天气很好")])
    assert finding.verdict.verdict == "cannot tell"
    assert stored(memory) == {}
    for options in ({"candidates": 0}, {"merged_from": 2.0}):
        with pytest.raises(InputError):
            make(**options)


def test_memory_store_without_ids_is_refused():
    class Nameless(InMemoryVectorStore):
        def similarity_search(self, query, k=4, **options):
            return [Document(text) for text in FACTS]

    memory = LangChainMemory(Nameless(LangChainEmbeddings(None)))
    with pytest.raises(InputError, match="no ids"):
        memory.add([Document(UPDATE)])
