from __future__ import annotations

import numpy as np
import pytest

from condsim.evaluation.report import Report
from condsim.types import Task


class TableScorer:
    """Looks its scores up by condition: the tests decide what each row gets."""

    def __init__(self, name, scores, *, revision=None):
        self.name = name
        self.revision = revision
        self.rows_seen = 0
        self._scores = scores

    def score(self, sentences1, sentences2, conditions):
        assert conditions is not None
        self.rows_seen += len(sentences1)
        return np.asarray([self._scores[text] for text in conditions], dtype=np.float32)


def report_of(model, **changes):
    """A report of some rows that nobody scored."""
    report = Report(
        task="dev",
        task_revision="0123456789ab",
        rows=12,
        valid_rows=10,
        invalid_rows=2,
        pairs=5,
        contrasting_pairs=4,
        model=model,
        baselines=(),
        against=None,
        comparison={},
        seed=0,
        resamples=1000,
        versions={"python": "3.11.7", "numpy": "2.4.6"},
        created="2030-01-02T03:04:05+00:00",
    )
    return report.replaced(**changes)


@pytest.fixture
def make_task():
    # Two rows per sentence pair; the condition of row i is "aspect i".
    def make(labels):
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
def make_scorer():
    def make(name, scores, *, revision=None):
        table = {f"aspect {row}": float(score) for row, score in enumerate(scores)}
        return TableScorer(name, table, revision=revision)

    return make


@pytest.fixture
def tied_samples():
    # Random samples of many sizes, most of them with many ties.
    generator = np.random.default_rng(7)
    samples = []
    for size in (3, 4, 5, 8, 20, 101):
        for levels in (2, 5, 1000):
            x, y, z = generator.integers(levels, size=(3, size)) / levels
            samples.append((x, y, z))
    return samples
