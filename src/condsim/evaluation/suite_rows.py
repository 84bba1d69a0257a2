"""From scores and draws to the rows of the suite's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from condsim.evaluation.aggregation import Aggregation
from condsim.evaluation.bootstrap import p_value, percentile_interval
from condsim.evaluation.report import Difference, Metric
from condsim.evaluation.suite_data import SuiteTask
from condsim.evaluation.suite_figures import figure_names, figures
from condsim.evaluation.suite_result import AVERAGE, SuiteRow
from condsim.evaluation.suite_work import Entrant

__all__ = ["suite_rows"]

Float64Array = NDArray[np.float64]

_SEVEN = 7  # columns that SSBC Table 2 averages


def suite_rows(
    entrants: Sequence[Entrant],
    tasks: Sequence[SuiteTask],
    draws: Mapping[str, Mapping[str, Float64Array]],
    *,
    how: Aggregation,
    reference: str | None,
) -> tuple[SuiteRow, ...]:
    """Turns scores and draws into rows of figures.

    Args:
        entrants: The scorers.
        tasks: The data sets.
        draws: By key of the data set and name of the scorer, ``(figures, resamples)``; empty for no
            intervals.
        how: How subsets become one number.
        reference: Name of the scorer that the others are compared with; None for none.

    Returns:
        One for each scorer.
    """
    values = {
        entrant.name: {
            task.key: figures(entrant.scores[task.key], task, how=how)
            for task in tasks
            if task.key in entrant.scores
        }
        for entrant in entrants
    }
    drawn = {
        entrant.name: {
            key: found[entrant.name] for key, found in draws.items() if entrant.name in found
        }
        for entrant in entrants
    }
    names = {task.key: figure_names(task) for task in tasks}
    averaged = [task.key for task in tasks if task.averaged]
    for name in values:
        _add_average(values[name], averaged)
        _add_average(drawn[name], averaged)
    names[AVERAGE] = ("spearman",)
    return tuple(
        SuiteRow(
            name=entrant.name,
            baseline=entrant.baseline,
            revision=entrant.revision,
            figures={
                key: _metrics(names[key], found, drawn[entrant.name].get(key))
                for key, found in values[entrant.name].items()
            },
            comparison=_comparison(entrant.name, values, drawn, reference),
            seconds=entrant.seconds,
            versions=entrant.versions,
            numbers=entrant.numbers,
        )
        for entrant in entrants
    )


def _add_average(found: dict[str, Float64Array], averaged: Sequence[str]) -> None:
    """Adds the mean Spearman over the columns of SSBC Table 2, if all seven are there."""
    if len(averaged) == _SEVEN and all(key in found for key in averaged):
        found[AVERAGE] = np.mean([found[key][:1] for key in averaged], axis=0)


def _metrics(
    names: Sequence[str], values: Float64Array, draws: Float64Array | None
) -> dict[str, Metric]:
    found = {}
    for number, name in enumerate(names):
        low, high = (
            (np.nan, np.nan) if draws is None else percentile_interval(np.asarray(draws[number]))
        )
        found[name] = Metric(float(values[number]), low, high)
    return found


_ByKey = Mapping[str, Mapping[str, Float64Array]]


def _comparison(
    name: str, values: _ByKey, drawn: _ByKey, reference: str | None
) -> dict[str, Difference]:
    """The figure of tables less that of the reference, on the same resamples."""
    if reference is None or name == reference:
        return {}
    found = {}
    for key, draws in drawn[name].items():
        if key in drawn[reference]:
            differences = draws[0] - drawn[reference][key][0]
            found[key] = Difference(
                float(values[name][key][0] - values[reference][key][0]),
                *percentile_interval(differences),
                p_value(differences),
            )
    return found
