"""Tables of the comparison: figures with intervals, their rows and their places in the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from condsim.errors import InputError
from condsim.evaluation.statistics import Metric
from condsim.types import IntArray

_RESAMPLES = 500


def table_row(approach: str, figures: Sequence[Metric], *cells: str) -> str:
    """Lay figures, times 100, and other numbers out as a row of a table."""
    words = [
        f"{figure.value:.1f}"
        + ("" if np.isnan(figure.low) else f" [{figure.low:.1f}, {figure.high:.1f}]")
        for figure in figures
    ]
    return f"| {' | '.join([approach, *words, *cells])} |"


def percent(statistic: Callable[[IntArray], float], size: int) -> Metric:
    """Evaluate a statistic of rows, given their indices, with its bootstrap interval."""
    generator = np.random.default_rng(0)
    draws = [statistic(generator.integers(size, size=size)) for _ in range(_RESAMPLES)]
    return Metric.of(100 * statistic(np.arange(size)), 100 * np.array(draws))


def fill(text: str, tables: Mapping[str, Sequence[str]]) -> str:
    """Replace the rows of each table between its marks, below its head."""
    for name, rows in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if not mark or not end:
            raise InputError(f"The page must have the lines <!-- {name} --> and <!-- /{name} -->.")
        head = rest.splitlines()[:2]
        text = before + mark + "\n".join([*head, *rows, end]) + after
    return text
