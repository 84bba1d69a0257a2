"""Embeddings and a re-ranker under a condition, and a memory, for LangChain."""

from __future__ import annotations

from collections.abc import Sequence

from condsim.errors import requires_extra
from condsim.loading import load_encoder
from condsim.model.base import Condition, PairScorer
from condsim_integrations import Model, encode_present, named, ranked, scorer_of
from condsim_integrations.memory import StoreMemory

with requires_extra("langchain"):
    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore
    from pydantic import ConfigDict, PrivateAttr


class LangChainEmbeddings(Embeddings):
    """LangChain embeddings under a condition, for any of its vector stores.

    Documents and queries are encoded alike; a store that was filled under one condition answers
    queries under that one.

    Attributes:
        condition: The respect in which texts are near to each other; None: as a whole.

    Raises:
        ModelError: If there is no such model, or it has no embeddings.
    """

    def __init__(self, condition: Condition | None, *, model: Model = None) -> None:
        """Load the model, a bi- or tri-encoder; None is the default model."""
        self._encoder = load_encoder(model)
        self.condition = named(self._encoder, condition)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Encode n texts; return n lists of ``dimension`` numbers, all 0 for a blank text."""
        vectors = encode_present(self._encoder, texts, self.condition, log="a vector of zeros")
        lists: list[list[float]] = vectors.tolist()
        return lists

    def embed_query(self, text: str) -> list[float]:
        """Encode one text; return ``dimension`` numbers."""
        vector: list[float] = self._encoder.encode(text, self.condition).tolist()
        return vector


class LangChainReranker(BaseDocumentCompressor):
    """A LangChain document compressor that ranks documents by their score under a condition.

    Each document that is kept is a copy whose metadata has its score as ``relevance_score``. Blank
    documents have no score (None), and are the last.

    Attributes:
        condition: The respect in which documents are compared with the query; None: as a whole.
        model: The model; None is the default model.
        top_n: How many documents to keep, 1 or more; all if None.
        at_least: The lowest score to keep, 0 to 1; any if None.

    Raises:
        InputError: When it ranks, if ``top_n`` is below 1.
        ModelError: If there is no such model.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    condition: str | None
    model: Model = None
    top_n: int | None = None
    at_least: float | None = None
    _scorer: PairScorer = PrivateAttr()

    def __init__(
        self,
        condition: Condition | None,
        *,
        model: Model = None,
        top_n: int | None = None,
        at_least: float | None = None,
    ) -> None:
        """Load the model, outside pydantic, which would wrap the error."""
        scorer = scorer_of(model)
        values = {
            "condition": named(scorer, condition),
            "model": model,
            "top_n": top_n,
            "at_least": at_least,
        }
        super().__init__(**values)
        self._scorer = scorer

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Return the documents to keep, the best first."""
        best = ranked(
            self._scorer,
            query,
            [document.page_content for document in documents],
            self.condition,
            top=self.top_n,
            at_least=self.at_least,
        )
        relevant = []
        for index, score in best:
            metadata = {**documents[index].metadata, "relevance_score": score}
            relevant.append(documents[index].model_copy(update={"metadata": metadata}))
        return relevant


class LangChainMemory(StoreMemory[VectorStore, Document]):
    """A LangChain vector store in which each fact is once.

    Attributes:
        store: A vector store that deletes by id and whose documents have ids.
        condition: The respect in which texts are judged; None: all that they say.
        candidates: How many known documents are judged for each new one.
        merged_from: The least probability at which a document is dropped or replaces another.

    Raises:
        InputError: If a setting breaks a rule.
    """

    _id_name = "id"

    def _text(self, entry: Document) -> str:
        return entry.page_content

    def _nearest(self, text: str) -> Sequence[Document]:
        return self.store.similarity_search(text, k=self.candidates)

    def _insert(self, entry: Document) -> None:
        self.store.add_documents([entry])

    def _delete(self, key: str) -> None:
        self.store.delete([key])

    def _with_history(self, entry: Document, old: Document) -> Document:
        metadata = {**entry.metadata, **self._history(old, old.metadata)}
        return entry.model_copy(update={"metadata": metadata})
