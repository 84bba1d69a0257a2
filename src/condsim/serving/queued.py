"""The model as other threads ask it: in the batches of all callers."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

from condsim.scorers import EmbeddingScorer, PairScorer, Rows, Scale
from condsim.serving.batching import Batcher
from condsim.types import FloatArray


class QueuedScores(PairScorer):
    """A model that gives scores; not to be asked in the thread of the event loop."""

    def __init__(self, scorer: PairScorer, batcher: Batcher) -> None:
        self.name = scorer.name
        self._batcher = batcher
        self._on: dict[str, Any] = {
            scale: partial(scorer.score, scale=scale) for scale in get_args(Scale)
        }

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        conditions = [] if rows.conditions is None else [rows.conditions]
        return self._batcher.wait(self._on[scale], *rows.sentences, *conditions)


class QueuedEmbeddings(EmbeddingScorer):
    """A model that gives embeddings; not to be asked in the thread of the event loop."""

    def __init__(self, scorer: EmbeddingScorer, batcher: Batcher) -> None:
        super().__init__(
            name=scorer.name,
            order=scorer.order,
            dimension=scorer.dimension,
            calibration=scorer.calibration,
        )
        self._batcher = batcher
        self._encode = scorer.encode

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        if isinstance(texts[0], str):
            return self._batcher.wait(self._encode, [str(text) for text in texts])
        first, second = ([text[side] for text in texts] for side in (0, 1))
        columns = (second, first) if self.order == "condition-first" else (first, second)
        return self._batcher.wait(self._encode, *columns)


def queued(scorer: PairScorer, batcher: Batcher) -> PairScorer:
    """Gives a model that asks for each of its texts in a batcher's queue."""
    if isinstance(scorer, EmbeddingScorer):
        return QueuedEmbeddings(scorer, batcher)
    return QueuedScores(scorer, batcher)
