"""Embedders and a ranker under a condition for Haystack."""

from __future__ import annotations

from condsim.errors import requires_extra
from condsim.integrations.models import Model, ranked, scorer_of
from condsim.loading import load_encoder

with requires_extra("haystack"):
    from dataclasses import replace

    from haystack import Document, component


class _Embedder:
    """What both embedders keep; Haystack reads the attributes to write a pipeline to a file."""

    def __init__(self, condition: str | None, model: Model = None) -> None:
        self.condition = condition
        self.model = model
        self._encoder = load_encoder(model)


@component
class HaystackTextEmbedder(_Embedder):
    """A Haystack text embedder under a condition, for queries.

    Attributes:
        condition: The condition, the same as that of the documents; None: texts as a whole.
        model: A bi- or tri-encoder; None is the default model. A pipeline can be written to a
            file if the model is given by name.

    Raises:
        ModelError: If there is no such model, or it has no embeddings.
    """

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """Encode a text; ``embedding`` is a list of ``dimension`` numbers."""
        return {"embedding": self._encoder.encode([text], self.condition)[0].tolist()}


@component
class HaystackDocumentEmbedder(_Embedder):
    """A Haystack document embedder under a condition.

    Attributes:
        condition: The respect in which documents are near to each other; None: as a whole.
        model: As for `HaystackTextEmbedder`.

    Raises:
        InputError: If a document has no text.
        ModelError: If there is no such model, or it has no embeddings.
    """

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Encode documents; ``documents`` are copies with embeddings."""
        vectors = self._encoder.encode([one.content for one in documents], self.condition).tolist()
        pairs = zip(documents, vectors, strict=True)
        return {"documents": [replace(one, embedding=vector) for one, vector in pairs]}


@component
class HaystackRanker:
    """A Haystack ranker that sorts documents by their score under a condition.

    Attributes:
        condition: The respect in which documents are compared with the query; None: as a whole.
        model: The model; None is the default model. A pipeline can be written to a file if the
            model is given by name.
        top_k: How many documents to keep, 1 or more; all if None.
        at_least: The lowest score to keep, 0 to 1; any if None.

    Raises:
        InputError: When it ranks, if a document has no text or ``top_k`` is below 1.
        ModelError: If there is no such model.
    """

    def __init__(
        self,
        condition: str | None,
        model: Model = None,
        *,
        top_k: int | None = None,
        at_least: float | None = None,
    ) -> None:
        """Load the model."""
        self.condition = condition
        self.model = model
        self.top_k = top_k
        self.at_least = at_least
        self._scorer = scorer_of(model)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        documents: list[Document],
        condition: str | None = None,
        top_k: int | None = None,
    ) -> dict[str, list[Document]]:
        """Rank documents, for this query under another condition or to another number if given.

        Returns:
            ``documents``: copies of those that are kept, with their scores, the best first.
        """
        texts = [one.content for one in documents]
        condition = condition if condition is not None else self.condition
        top = top_k if top_k is not None else self.top_k
        found = ranked(self._scorer, query, texts, condition, top=top, at_least=self.at_least)
        return {"documents": [replace(documents[index], score=score) for index, score in found]}
