"""How tables of a suite show one figure."""

from __future__ import annotations

import math

from condsim.evaluation.statistics import Difference, Metric

SIGNIFICANT = 0.05
"""A mark is set where the p-value of the difference is below it."""

MARK = "*"


def figure_text(
    metric: Metric | None, compared: Difference | None, *, digits: int, interval: str
) -> str:
    """A metric with its mark and its interval, which ``interval`` formats; empty if None."""
    if metric is None:
        return ""
    mark = MARK if compared is not None and compared.p_value < SIGNIFICANT else ""
    value = "-" if math.isnan(metric.value) else f"{metric.value:.{digits}f}"
    return value + mark + ("" if math.isnan(metric.low) else interval.format(metric))


def escaped(text: str) -> str:
    """Text that cannot break out of a Markdown table, and no emphasis."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
