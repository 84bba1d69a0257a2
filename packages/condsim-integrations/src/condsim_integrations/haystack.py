"""Embedders and a ranker under a condition for Haystack."""

from __future__ import annotations

from dataclasses import replace

from condsim.errors import requires_extra
from condsim.loading import load_encoder
from condsim.model.base import Condition
from condsim_integrations import Model, encode_present, is_blank, named, ranked, scorer_of

with requires_extra("haystack"):
    from haystack import Document, component


class _Embedder:
    """Base of both embedders; Haystack reads the attributes to write a pipeline to a file."""

    def __init__(self, condition: Condition | None, model: Model = None) -> None:
        self.model = model
        self._encoder = load_encoder(model)
        self.condition = named(self._encoder, condition)


@component
class HaystackTextEmbedder(_Embedder):
    """A Haystack text embedder under a condition, for queries.

    Attributes:
        condition: The condition, the same as for the documents; None: texts as a whole.
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
        ModelError: If there is no such model, or it has no embeddings.
    """

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Encode documents; ``documents`` are copies with embeddings, or none where text is."""
        texts = [document.content for document in documents]
        vectors = encode_present(self._encoder, texts, self.condition, log="no embedding").tolist()
        return {
            "documents": [
                replace(document, embedding=None if is_blank(document.content) else vector)
                for document, vector in zip(documents, vectors, strict=True)
            ]
        }


@component
class HaystackRanker:
    """A Haystack ranker that sorts documents by their score under a condition.

    Documents without text have no score, and are the last.

    Attributes:
        condition: The respect in which documents are compared with the query; None: as a whole.
        model: The model; None is the default model. A pipeline can be written to a file if the
            model is given by name.
        top_k: How many documents to keep, 1 or more; all if None.
        at_least: The lowest score to keep, 0 to 1; any if None.

    Raises:
        InputError: When it ranks, if ``top_k`` is below 1.
        ModelError: If there is no such model.
    """

    def __init__(
        self,
        condition: Condition | None,
        model: Model = None,
        *,
        top_k: int | None = None,
        at_least: float | None = None,
    ) -> None:
        self.model = model
        self.top_k = top_k
        self.at_least = at_least
        self._scorer = scorer_of(model)
        self.condition = named(self._scorer, condition)

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
        best = ranked(
            self._scorer,
            query,
            [document.content for document in documents],
            self.condition if condition is None else condition,
            top=self.top_k if top_k is None else top_k,
            at_least=self.at_least,
        )
        return {"documents": [replace(documents[index], score=score) for index, score in best]}
