"""Embeddings and a node postprocessor under a condition, and a memory, for LlamaIndex."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from condsim.errors import InputError, requires_extra
from condsim.loading import load_encoder
from condsim.model.base import Condition, PairScorer
from condsim.model.embedding import EmbeddingScorer
from condsim_integrations import Model, encode_present, named, ranked, scorer_of
from condsim_integrations.memory import HISTORY, StoreMemory

with requires_extra("llama-index"):
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle


class LlamaIndexEmbedding(BaseEmbedding):
    """LlamaIndex embeddings under a condition, for any of its indexes.

    Nodes and queries are encoded alike; an index that was built under one condition answers queries
    under that one. LlamaIndex keeps an ``embeddings_cache`` by the text alone, so give each
    condition a separate cache. The vector of a blank text is 0.

    Attributes:
        condition: The respect in which texts are near to each other; None: as a whole.
        model: A bi- or tri-encoder; None is the default model.
        embed_batch_size: Texts encoded at once, 1 to 2048.

    Raises:
        ModelError: If there is no such model, or it has no embeddings.
    """

    model_config = ConfigDict(extra="forbid")

    condition: str | None
    model: Model = None
    embed_batch_size: int = Field(default=512, gt=0, le=2048)
    _encoder: EmbeddingScorer = PrivateAttr()

    def __init__(
        self,
        condition: Condition | None,
        *,
        model: Model = None,
        **fields: Any,  # noqa: ANN401  (the other attributes, and LlamaIndex's)
    ) -> None:
        """Load the model, outside pydantic, which would wrap the error."""
        encoder = load_encoder(model)
        fields |= {
            "condition": named(encoder, condition),
            "model": model,
            "model_name": encoder.name,
        }
        super().__init__(**fields)
        self._encoder = encoder

    @classmethod
    def class_name(cls) -> str:
        """The name in LlamaIndex's files."""
        return "CondsimEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors = encode_present(self._encoder, texts, self.condition, log="a vector of zeros")
        lists: list[list[float]] = vectors.tolist()
        return lists

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._encoder.encode(query, self.condition).tolist()
        return vector

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)


class LlamaIndexReranker(BaseNodePostprocessor):
    """A LlamaIndex node postprocessor that ranks nodes by their score under a condition.

    It reads a node as embeddings do, with its metadata; ``excluded_embed_metadata_keys`` of the
    node leaves some out. Nodes without text have no score, and are the last.

    Attributes:
        condition: The respect in which nodes are compared with the query; None: as a whole.
        model: The model; None is the default model.
        top_n: How many nodes to keep, 1 or more; all if None.
        at_least: The lowest score to keep, 0 to 1; any if None.

    Raises:
        InputError: When it ranks, if there is no query or ``top_n`` is below 1.
        ModelError: If there is no such model.
    """

    model_config = ConfigDict(extra="forbid")

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
        **fields: Any,  # noqa: ANN401  (the other attributes, and LlamaIndex's)
    ) -> None:
        """Load the model, outside pydantic, which would wrap the error."""
        scorer = scorer_of(model)
        super().__init__(**{**fields, "condition": named(scorer, condition), "model": model})
        self._scorer = scorer

    @classmethod
    def class_name(cls) -> str:
        """The name in LlamaIndex's files."""
        return "CondsimReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InputError("A re-ranker needs a query; pass 'query_str' or 'query_bundle'.")
        best = ranked(
            self._scorer,
            query_bundle.query_str,
            [node.node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes],
            self.condition,
            top=self.top_n,
            at_least=self.at_least,
        )
        return [NodeWithScore(node=nodes[index].node, score=score) for index, score in best]


class LlamaIndexMemory(StoreMemory[VectorStoreIndex, BaseNode]):
    """A LlamaIndex vector index in which each fact is once.

    Attributes:
        store: An index whose vector store deletes nodes by id.
        condition: The respect in which texts are judged; None: all that they say.
        candidates: How many known nodes are judged for each new one.
        merged_from: The least probability at which a node is dropped or replaces another.

    Raises:
        InputError: If a setting breaks a rule.
    """

    _id_name = "node_id"

    def _text(self, entry: BaseNode) -> str:
        return entry.get_content(metadata_mode=MetadataMode.NONE)

    def _nearest(self, text: str) -> Sequence[BaseNode]:
        retriever = self.store.as_retriever(similarity_top_k=self.candidates)
        return [near.node for near in retriever.retrieve(text)]

    def _insert(self, entry: BaseNode) -> None:
        self.store.insert_nodes([entry])

    def _delete(self, key: str) -> None:
        self.store.delete_nodes([key], delete_from_docstore=True)

    def _with_history(self, entry: BaseNode, old: BaseNode) -> BaseNode:
        # The history is neither embedded nor shown to a language model.
        hidden = {
            name: [*dict.fromkeys([*getattr(entry, name), HISTORY])]
            for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
        }
        metadata = {**entry.metadata, **self._history(old, old.metadata)}
        return entry.model_copy(update={"metadata": metadata, **hidden})
