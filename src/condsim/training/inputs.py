"""Models that are given only a part of each row: the data ablation of C-STS (Table 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from condsim.scorers.inputs import Scale
from condsim.types import FloatArray, Scorer, Task

__all__ = ["HIDDEN", "Inputs", "MaskedScorer", "masked"]

Inputs = Literal["both", "condition", "sentences"]

HIDDEN = "-"
"""Stands where a text is kept from the model; scorers refuse an empty one."""


def masked(task: Task, inputs: Inputs) -> Task:
    """Hides the sentences or the conditions of every row.

    Args:
        task: The task.
        inputs: What stays.

    Returns:
        The same rows and labels with ``HIDDEN`` for each hidden text. Sentence pairs can no longer
        be told apart once their sentences are hidden, so pair rows first.
    """
    hidden = (HIDDEN,) * len(task)
    if inputs == "condition":
        return replace(task, sentences1=hidden, sentences2=hidden)
    if inputs == "sentences":
        return replace(task, conditions=hidden)
    return task


class MaskedScorer:
    """A scorer that hides a part of each row from the scorer inside.

    Attributes:
        name: Name of the scorer inside.
        calibration: Its calibration, if it has one.
        revision: Its version, if it has one.
    """

    def __init__(self, scorer: Scorer, inputs: Inputs) -> None:
        """Wraps a scorer.

        Args:
            scorer: A scorer with the option ``scale``; not copied.
            inputs: What it is given.
        """
        self.name = scorer.name
        self.calibration = getattr(scorer, "calibration", None)
        self.revision: str | None = getattr(scorer, "revision", None)
        self._score: Any = scorer.score
        self._inputs = inputs

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: Scale = "unit",
    ) -> FloatArray:
        """Scores pairs of which a part is hidden.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            conditions: Conditions, length n, or None.
            scale: See `condsim.scorers.inputs.Scale`.

        Returns:
            ``(n,)`` float32; higher is more similar.
        """
        hidden = [HIDDEN] * len(sentences1)
        if self._inputs == "condition":
            sentences1 = sentences2 = hidden
        elif self._inputs == "sentences":
            conditions = hidden
        scores: FloatArray = self._score(sentences1, sentences2, conditions, scale=scale)
        return scores
