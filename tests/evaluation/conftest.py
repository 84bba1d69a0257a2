from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from condsim.types import FloatArray, Task


class TableScorer:
    """Looks its scores up by condition: the tests decide what each row gets."""

    def __init__(self, name: str, scores: dict[str, float], *, revision: str | None = None) -> None:
        self.name = name
        self.revision = revision
        self.rows_seen = 0
        self._scores = scores

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
    ) -> FloatArray:
        assert conditions is not None
        self.rows_seen += len(sentences1)
        return np.asarray([self._scores[text] for text in conditions], dtype=np.float32)


@pytest.fixture
def make_task() -> Callable[..., Task]:
    # Two rows per sentence pair; the condition of row i is "aspect i".
    def make(labels: Sequence[float]) -> Task:
        n = len(labels)
        return Task(
            name="tiny",
            revision="0123456789ab",
            sentences1=tuple(f"Lamp {row // 2} is on." for row in range(n)),
            sentences2=tuple(f"Lamp {row // 2} is off." for row in range(n)),
            conditions=tuple(f"aspect {row}" for row in range(n)),
            labels=np.asarray(labels, dtype=np.float32),
        )

    return make


@pytest.fixture
def make_scorer() -> Callable[..., TableScorer]:
    def make(name: str, scores: Sequence[float], *, revision: str | None = None) -> TableScorer:
        table = {f"aspect {row}": float(score) for row, score in enumerate(scores)}
        return TableScorer(name, table, revision=revision)

    return make


@pytest.fixture
def tied_samples() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    # Random samples of many sizes, most of them with many ties.
    generator = np.random.default_rng(7)
    samples = []
    for size in (3, 4, 5, 8, 20, 101):
        for levels in (2, 5, 1000):
            x, y, z = generator.integers(levels, size=(3, size)) / levels
            samples.append((x, y, z))
    return samples
