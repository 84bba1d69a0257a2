"""Scores that were computed before, as a scorer that `condsim.evaluation.measuring` can measure."""

from __future__ import annotations

from collections.abc import Sequence

from condsim.types import FloatArray


class FixedScores:
    """Scores that were computed before, in the order of the rows."""

    def __init__(self, name: str, scores: FloatArray) -> None:
        """Takes the scores.

        Args:
            name: Name of what computed them.
            scores: One for each row, ``(n,)``.
        """
        self.name = name
        self._scores = scores

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
    ) -> FloatArray:
        """Gives the scores; see `condsim.types.Scorer`.

        Args:
            sentences1: First sentences of the rows they were computed for.
            sentences2: Second sentences.
            conditions: Not looked at.

        Returns:
            The scores, ``(n,)``.
        """
        return self._scores
