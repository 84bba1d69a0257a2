"""Score pairs on a Ray cluster: a class for ``map_batches`` of `ray.data`.

Ray reads and writes the files (Parquet, CSV, JSON, object storage), starts the workers, each of
which loads the model once, and repeats the work of a worker that died.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from condsim.data.row import missing_columns
from condsim.loading import load_scorer
from condsim.model.base import Scale


class RayScorer:
    """Add the column ``score`` to batches of pairs.

    Example:
        >>> scorer = RayScorer(condition="the animal")
        >>> pair = {"sentence1": ["A dog runs."], "sentence2": ["A dog sleeps."]}
        >>> bool(scorer(pair)["score"][0] > 0.5)
        True
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        condition: str | None = None,
        text1: str = "sentence1",
        text2: str = "sentence2",
        condition_column: str = "condition",
        scale: Scale = "unit",
        overall: float = 0.0,
        device: str | None = None,
    ) -> None:
        """Load a model, by a name or folder that all machines know.

        Args:
            model: As `condsim.load` takes it.
            condition: Condition of all pairs, in place of the column of conditions. Without either,
                pairs are compared as a whole.
            text1: Column of the first texts.
            text2: Column of the second texts.
            condition_column: Column of the conditions.
            scale: As `score` of a model takes it, and so is ``overall``.
            overall: Share of the similarity without the condition, 0 to 1.
            device: Device of torch, such as ``"cuda"``; ONNX models run on the processor.

        Raises:
            ModelError: If there is no such model, or it is damaged.
        """
        self._scorer = load_scorer(model, device=device)
        self._texts, self._condition = (text1, text2), condition
        self._condition_column, self._scale, self._overall = condition_column, scale, overall

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Score a batch, columns by name; InputError if a column of texts is missing."""
        for name in self._texts:
            if name not in batch:
                raise missing_columns("batch", [name], list(batch))
        first, second = (list(map(str, batch[name])) for name in self._texts)
        conditions: str | list[str] | None = self._condition
        if conditions is None and self._condition_column in batch:
            conditions = list(map(str, batch[self._condition_column]))
        scores = self._scorer.score(
            first, second, conditions, scale=self._scale, overall=self._overall
        )
        return {**batch, "score": np.asarray(scores, np.float32)}
