"""Single pairs with what each scorer says of them (Sun et al., 2022, Table 10)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condsim.types import FloatArray, IntArray
from papers.contexts.plan import ContextsLine, Measurement
from papers.pages import pipe_table

_BANDS = 5
_EACH = 2
_SEED = 0


def cases(planned: Sequence[ContextsLine]) -> list[str]:
    """Lay single pairs out as a table: gold, and each scorer on the scale of gold."""
    done: dict[str, Measurement] = {
        ", ".join(line.row.cells.values()): line.measurement
        for line in planned
        if line.measurement is not None and line.measurement.finished
    }
    if not done:
        return ["No scorer is measured yet, so there are no cases."]
    gold = next(iter(done.values())).gold
    task = gold.task
    scores = {
        name: by_rank(one.scores(), task.labels) for name, one in done.items() if one.gold is gold
    }
    rows = [
        [task.sentences1[row], task.sentences2[row], f"{task.labels[row]:.1f}"]
        + [f"{values[row]:.1f}" for values in scores.values()]
        for row in drawn_cases(task.labels, task.label_range)
    ]
    heads = ["sentence 1", "sentence 2", "gold", *(f"{name}, ours" for name in scores)]
    return [
        f"## Cases of {gold.label}",
        "",
        *pipe_table(heads, rows),
        "",
        f"- Drawn with a fixed seed, {_EACH} from each fifth of the scale; none chosen by hand.",
        "- A score stands on the scale of gold by its rank: the highest score of the test set is "
        "shown as the highest label there, and so on. Spearman looks at ranks alone.",
    ]


def by_rank(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Return each score the label of the same rank.

    Example:
        >>> by_rank(np.float32([0.1, 0.9, 0.5]), np.float32([5, 0, 3])).tolist()
        [0.0, 5.0, 3.0]
    """
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ordered = np.sort(labels).astype(np.float64)
    ends = np.cumsum(counts)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    means = (sums[ends] - sums[ends - counts]) / counts
    return np.asarray(means[place], np.float32)


def drawn_cases(labels: FloatArray, label_range: tuple[float, float]) -> IntArray:
    """Draw rows from each fifth of the scale."""
    low, high = label_range
    bands = np.minimum(((labels - low) / (high - low) * _BANDS).astype(int), _BANDS - 1)
    random = np.random.default_rng(_SEED)
    rows: list[int] = []
    for band in reversed(range(_BANDS)):
        there = np.flatnonzero(bands == band)
        chosen = random.choice(there, min(_EACH, len(there)), replace=False)
        rows += sorted(chosen.tolist(), key=lambda row: -labels[row])
    return np.array(rows, np.int64)
