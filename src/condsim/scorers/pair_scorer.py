"""What scorers that a user calls by hand have in common: single texts or columns, and a scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import overload

from condsim.scorers.inputs import Rows, Scale, Texts, check_rows, check_scale
from condsim.types import FloatArray

__all__ = ["PairScorer"]


class PairScorer(ABC):
    """Scores single texts or columns of them, on a scale of the caller's choice."""

    @abstractmethod
    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        """Scores checked rows.

        Args:
            rows: Rows with two columns of sentences, length n.
            scale: One of those there are.

        Returns:
            Scores on that scale, ``(n,)`` float32.
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
        sentences1: Texts,
        sentences2: Texts,
        conditions: Texts | None = None,
        *,
        scale: Scale = "unit",
    ) -> FloatArray: ...

    def score(
        self,
        sentences1: Texts,
        sentences2: Texts,
        conditions: Texts | None = None,
        *,
        scale: Scale = "unit",
    ) -> float | FloatArray:
        """Scores pairs of sentences, each with respect to its condition.

        A single text among sequences stands for every row.

        Args:
            sentences1: First sentences, length n, or one.
            sentences2: Second sentences, length n, or one.
            conditions: Conditions, length n, or one; None compares the sentences as a whole, where
                the model can do that.
            scale: ``unit``: in [0, 1], 0.5 is Likert 3; ``likert``: the same in [1, 5]; ``raw``: as
                the model gives it. The class says what that is.

        Returns:
            A float for single texts, else ``(n,)`` float32; higher is more similar.

        Raises:
            InputError: If a text is empty or no str, lengths differ, the scale is unknown, or the
                model needs a condition, or knows of none.
        """
        check_scale(scale)
        rows = check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        scores = self._score_rows(rows, scale)
        return float(scores[0]) if rows.single else scores
