"""Scorers and data sets in, one table out: the evaluation of SSBC §4 on any scorer.

```python
from condsim.evaluation.suite import evaluate_suite
from condsim.evaluation.suite_data import load_suite
from condsim.evaluation.suite_tables import suite_markdown

report = evaluate_suite([condsim.load()], load_suite("data", "sts"))
print(suite_markdown(report))
```
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condsim import __version__
from condsim.errors import InputError, unknown_name
from condsim.evaluation.report import Difference, Metric
from condsim.evaluation.statistics import Aggregation, p_value, percentile_interval
from condsim.evaluation.suite.data import SuiteTask
from condsim.evaluation.suite.figures import figure_names, figures
from condsim.evaluation.suite.result import AVERAGE, Column, SuiteReport, SuiteRow
from condsim.evaluation.suite.scores import LEARNT
from condsim.evaluation.suite.work import Entrant, Stage, SuiteWork, Unopened
from condsim.kept import KeptArrays
from condsim.scorers import UNFITTED_BASELINES, Precision, check_precision
from condsim.types import Scorer

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
        draws: By key of the data set and name of the scorer, ``(figures, resamples)``; empty for no
            intervals.
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


def evaluate_suite(
    scorers: Sequence[Scorer | Unopened],
    tasks: Sequence[SuiteTask],
    *,
    against: str | None = None,
    condition: str | None = None,
    aggregation: Aggregation = "all",
    resamples: int = 0,
    seed: int = 0,
    cache: Path | None = None,
    precision: Precision = "auto",
    progress: Stage | None = None,
) -> SuiteReport:
    """Measures scorers on data sets, with the baselines that cost nothing beside them.

    TF-IDF cosine and word overlap are on every data set, condition-only and sentences-only on those
    with conditions. Figures are of raw similarities: for encoders the cosine.

    Args:
        scorers: Scorers, or what opens them (`condsim.loading.named_scorer`).
        tasks: What `condsim.evaluation.suite.data.load_suite` found.
        against: Name of the scorer that the others are compared with, given a bootstrap; the first
            of ``scorers`` by default, or the first baseline.
        condition: What pairs of data without conditions are compared with respect to; nothing if
            None. A tri-encoder needs one.
        aggregation: How the subsets of a year become one number.
        resamples: Bootstrap resamples of the sentence pairs, for intervals and p-values; 0 for
            none.
        seed: Seed of the resamples and of the folds of baselines.
        cache: Folder that keeps scores by version of the model and contents of the rows. Scorers
            whose version cannot be told, such as objects without a ``revision``, are not kept.
        precision: What encoders of sentence-transformers compute in; see
            `condsim.scorers.encoder.Precision`. The packaged model is int8 in any case.
        progress: Is told of a stage, what is done of it and what there is.

    Returns:
        The report.

    Raises:
        InputError: If there is no data set, two scorers have one name, ``against`` is none of
            them, ``resamples`` is negative, the precision is unknown, or a scorer refuses the rows.
        ModelError: If a model cannot be loaded or gives no finite score.
        MissingExtraError: If a model needs a library that is not installed.
    """
    if not tasks:
        raise InputError("A suite needs at least one data set. Got none.")
    if resamples < 0:
        raise InputError(f"The number of resamples must be 0 or more. Got {resamples}.")
    check_precision(precision)
    chosen = [(scorer.name, scorer) for scorer in scorers]
    names = _names(chosen, tasks)
    if against is not None and against not in names:
        raise unknown_name("scorer to compare with", against, names)
    report = progress or (lambda stage, done, total: None)
    work = SuiteWork(tasks, KeptArrays(cache), condition, seed, report, precision)
    entrants = [*work.baselines(), *(work.scored(name, one) for name, one in chosen)]
    reference = None
    if resamples:
        models = [entrant.name for entrant in entrants if not entrant.baseline]
        reference = against or next(iter(models), entrants[0].name)
    draws = {
        task.key: work.draws(entrants, task, how=aggregation, resamples=resamples)
        for task in (tasks if resamples else ())
    }
    return SuiteReport(
        columns=tuple(_column(task) for task in tasks),
        rows=suite_rows(entrants, tasks, draws, how=aggregation, reference=reference),
        against=reference,
        aggregation=aggregation,
        condition=condition,
        resamples=resamples,
        seed=seed,
        versions={"condsim": __version__, "python": platform.python_version()},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _names(
    chosen: Sequence[tuple[str, Scorer | Unopened]], tasks: Sequence[SuiteTask]
) -> list[str]:
    """The names of all rows; an error if two are the same."""
    learnt = LEARNT if any(task.task.conditions is not None for task in tasks) else ()
    names = [*UNFITTED_BASELINES, *learnt]
    for name, _ in chosen:
        if name in names:
            raise InputError(
                f"Two scorers are called {name!r}, and a table needs a name for each. Give one as "
                "LABEL=NAME; the baselines are there anyway."
            )
        names.append(name)
    return names


def _column(task: SuiteTask) -> Column:
    rows = len(task.task) // 2 if task.triplets else len(task.task)
    return Column(
        key=task.key,
        title=task.title,
        figure=figure_names(task)[0],
        revision=task.revision,
        rows=rows,
        subsets=dict(zip(task.names, task.subsets, strict=True)),
        published=task.published,
    )
