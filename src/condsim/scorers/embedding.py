"""What every scorer does that compares two embeddings by cosine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import overload

import numpy as np

from condsim.encoders.conditioning import Order, check_order, conditional_sentences
from condsim.scorers.calibration import Calibration
from condsim.scorers.inputs import Scale, check_rows, check_scale, distinct, rescaled
from condsim.types import FloatArray, IntArray

__all__ = ["EmbeddingScorer"]

_ROWS = 4096  # scored at a time: bounds the memory, whatever the number of rows


class EmbeddingScorer(ABC):
    """Scores by the cosine of two conditional sentences, each distinct one encoded once.

    Memory does not grow with the number of rows, apart from the result.

    Attributes:
        name: Short name, shown in tables.
        order: Which of condition and sentence comes first in what the model reads.
        dimension: Length of an embedding.
        calibration: From cosine to a score in [0, 1]; if None, scores are the cosines.
    """

    def __init__(
        self, *, name: str, order: Order, dimension: int, calibration: Calibration | None
    ) -> None:
        """Keeps what is common.

        Args:
            name: Short name, shown in tables.
            order: Which of condition and sentence comes first.
            dimension: Length of an embedding.
            calibration: From cosine to a score in [0, 1], or None.

        Raises:
            InputError: If the order is unknown.
        """
        check_order(order)
        self.name = name
        self.order: Order = order
        self.dimension = dimension
        self.calibration = calibration

    @abstractmethod
    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embeds texts, or pairs of texts in the model's order.

        Args:
            texts: Distinct ones, length m, at least 1.

        Returns:
            Embeddings of length 1, (m, dimension).
        """

    @overload
    def score(  # type: ignore[overload-overlap]  # a str is a sequence of str to the type checker
        self,
        sentences1: str,
        sentences2: str,
        conditions: str | None = None,
        *,
        scale: Scale = "unit",
    ) -> float: ...

    @overload
    def score(
        self,
        sentences1: str | Sequence[str],
        sentences2: str | Sequence[str],
        conditions: str | Sequence[str] | None = None,
        *,
        scale: Scale = "unit",
    ) -> FloatArray: ...

    def score(
        self,
        sentences1: str | Sequence[str],
        sentences2: str | Sequence[str],
        conditions: str | Sequence[str] | None = None,
        *,
        scale: Scale = "unit",
    ) -> float | FloatArray:
        """Scores pairs of sentences, each with respect to its condition.

        A single text among sequences stands for every row.

        Args:
            sentences1: First sentences, length n, or one.
            sentences2: Second sentences, length n, or one.
            conditions: Conditions, length n, or one. None compares the sentences as a whole, for a
                model trained without conditions; a tri-encoder cannot do it.
            scale: ``unit``, calibrated, in [0, 1], 0.5 is Likert 3; ``likert``, 1 to 5; ``raw``,
                the cosine.

        Returns:
            A float for single texts, else ``(n,)`` float32; higher is more similar.

        Raises:
            InputError: If a text is empty or no str, lengths differ or the scale is unknown.
        """
        check_scale(scale)
        rows = check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        raw = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            vectors, where = self._embed_distinct(
                [column[part] for column in rows.sentences],
                None if rows.conditions is None else rows.conditions[part],
            )
            raw[part] = np.einsum("nd,nd->n", vectors[where[0]], vectors[where[1]])
        np.clip(raw, -1, 1, out=raw)  # rounding may leave a cosine of 1.0000001
        scores = rescaled(raw, self.calibration, scale)
        return float(scores[0]) if rows.single else scores

    def encode(
        self, sentences: str | Sequence[str], conditions: str | Sequence[str] | None = None
    ) -> FloatArray:
        """Encodes sentences, each under its condition.

        The dot product of two embeddings is the raw score of the pair.

        Args:
            sentences: Sentences, length n, or one.
            conditions: Conditions, length n, or one for all; see `score` for None.

        Returns:
            Embeddings of length 1, ``(n, dimension)`` float32; ``(dimension,)`` for single texts.

        Raises:
            InputError: If a text is empty or no str, or lengths differ.
        """
        rows = check_rows(conditions, sentences=sentences)
        embeddings = np.empty((len(rows), self.dimension), dtype=np.float32)
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            vectors, where = self._embed_distinct(
                [rows.sentences[0][part]],
                None if rows.conditions is None else rows.conditions[part],
            )
            embeddings[part] = vectors[where[0]]
        return embeddings[0] if rows.single else embeddings

    def _embed_distinct(
        self, columns: Sequence[Sequence[str]], conditions: Sequence[str] | None
    ) -> tuple[FloatArray, IntArray]:
        """Embeds each conditional sentence once.

        Returns:
            Embeddings of the distinct ones, (m, dimension), and for each column and row the place
            of its own, (columns, n).
        """
        sentences, conditions_of, where = distinct(columns, conditions)
        if conditions_of is None:
            return self._embed(sentences), where
        pairs = conditional_sentences(sentences, conditions_of, order=self.order)
        return self._embed(pairs), where
