"""Scores kept, so that one pass over the data gives the raw and the calibrated ones."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from condsim.scorers.calibration import Calibration
from condsim.scorers.inputs import Scale, check_scale, rescaled
from condsim.types import FloatArray, Scorer

Rows = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...] | None]


class ScoredOnce:
    """A scorer that keeps its last scores: the same rows are not scored again, on any scale.

    A scorer with a ``calibration`` and the option ``scale``, such as every model of condsim, is
    asked for raw similarities and the other scales are computed from them. Any other is taken at
    its word: its scores are both raw and calibrated.

    Attributes:
        name: Name of the scorer.
        revision: Its version, if it has one.
        fitted_on: For a fitted baseline, the rows it learnt from.
        scored_by: What it says decides its scores beside a model, if it says so.
        calibration: From raw similarity to score, or None where they are the same.
    """

    def __init__(self, scorer: Scorer) -> None:
        """Wraps a scorer.

        Args:
            scorer: The scorer; not copied.
        """
        self.name = scorer.name
        self.revision: str | None = getattr(scorer, "revision", None)
        self.fitted_on: str | None = getattr(scorer, "fitted_on", None)
        self.scored_by: Mapping[str, object] | None = getattr(scorer, "scored_by", None)
        self._score: Any = scorer.score
        self._has_scales = (
            hasattr(scorer, "calibration") and "scale" in inspect.signature(scorer.score).parameters
        )
        self.calibration: Calibration | None = (
            getattr(scorer, "calibration", None) if self._has_scales else None
        )
        self._rows: Rows | None = None
        self._raw: FloatArray = np.zeros(0, np.float32)

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: Scale = "unit",
    ) -> FloatArray:
        """Scores each pair, or returns what it scored before.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            conditions: Conditions, length n, or None.
            scale: See `condsim.scorers.inputs.Scale`.

        Returns:
            Similarity of each pair, ``(n,)`` float32; higher is more similar.

        Raises:
            InputError: If the scale is unknown, or the scorer refuses the rows.
        """
        check_scale(scale)
        rows: Rows = (
            tuple(sentences1),
            tuple(sentences2),
            None if conditions is None else tuple(conditions),
        )
        if rows != self._rows:
            option = {"scale": "raw"} if self._has_scales else {}
            scores = self._score(sentences1, sentences2, conditions, **option)
            self._raw, self._rows = np.array(scores, dtype=np.float32), rows
        return rescaled(self._raw.copy(), self.calibration, scale)
