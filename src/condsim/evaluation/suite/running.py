"""Scorers and data sets in, one table out: the evaluation of SSBC §4 on any scorer."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from condsim import __version__
from condsim.cache import KeptArrays
from condsim.console import Progress, silent
from condsim.data.statistics import pair_rows
from condsim.errors import InputError, unknown_name
from condsim.evaluation.bootstrap import Difference, Metric
from condsim.evaluation.correlation import Aggregation
from condsim.evaluation.suite.result import AVERAGE, Column, SuiteReport, SuiteRow, group_average
from condsim.evaluation.suite.sets import SuiteTask
from condsim.evaluation.suite.work import (
    LEARNT,
    Entrant,
    SuiteWork,
    Unopened,
    metric_names,
    metric_values,
    undefined_metrics,
)
from condsim.model.baselines import BASELINES, UNFITTED_BASELINES
from condsim.model.torch import check_precision
from condsim.types import Scorer

if TYPE_CHECKING:
    from condsim.model.torch import Precision

_SEVEN = 7  # columns that SSBC Table 2 averages
# By key of the data set: a line for each metric, its value and then that of each resample.
_ByKey = dict[str, NDArray[np.float64]]


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
    baselines: Sequence[str] = (*UNFITTED_BASELINES, *LEARNT),
    progress: Progress = silent,
) -> SuiteReport:
    """Measures scorers on data sets, with the baselines that cost nothing beside them.

    TF-IDF cosine and word overlap are on every data set, condition-only and sentences-only on those
    with conditions. Metrics are of raw similarities: for encoders the cosine. They are Spearman and
    Pearson, or accuracy of triplets; of sets with a group Spearman and pair accuracy.

    Args:
        scorers: Scorers, or what opens them (`condsim.loading.named_scorer`).
        tasks: What `load_suite` found.
        against: Name of the scorer that the others are compared with, given a bootstrap; the first
            of ``scorers`` by default, or the first baseline.
        condition: What pairs of data without conditions are compared with respect to; nothing if
            None. A tri-encoder needs one.
        aggregation: How the subsets of a year become one number.
        resamples: Bootstrap resamples of the sentence pairs, for intervals and p-values; 0 for
            none.
        seed: Seed of the resamples and of the folds of baselines.
        cache: Folder that keeps scores by version of the model and contents of the rows. Scorers
            of unknown version, such as objects without a ``revision``, are not kept.
        precision: What encoders of sentence-transformers compute in; see
            `condsim.model.torch.Precision`. The packaged model is int8 in any case.
        baselines: Names in `condsim.model.baselines.BASELINES`; all of them by default.
        progress: Called with the stage, what is done and what there is.

    Raises:
        InputError: If there is no data set or nothing that scores, two scorers have one name,
            ``against`` is none of them, ``resamples`` is negative, a baseline or the precision is
            unknown, or a scorer refuses the rows.
        ModelError: If a model cannot be loaded or gives no finite score.
        MissingExtraError: If a model needs a library that is not installed.
    """
    if not tasks:
        raise InputError("A suite needs at least one data set. Got none.")
    if resamples < 0:
        raise InputError(f"The number of resamples must be 0 or more. Got {resamples}.")
    check_precision(precision)
    for name in baselines:
        if name not in BASELINES:
            raise unknown_name("baseline", name, BASELINES)
    names = _names(scorers, tasks, baselines)
    if not names:
        raise InputError("A suite needs at least one scorer or baseline. Got none.")
    if against is not None and against not in names:
        raise unknown_name("scorer to compare with", against, names)
    work = SuiteWork(
        {task.key: task for task in tasks},
        KeptArrays(cache),
        condition=condition,
        seed=seed,
        progress=progress,
        precision=precision,
    )
    entrants = work.baselines(baselines)
    entrants += [work.scored(scorer.name, scorer) for scorer in scorers]
    reference = None
    if resamples:
        models = [entrant.name for entrant in entrants if not entrant.baseline]
        reference = against or next(iter(models), entrants[0].name)
    drawn = {
        task.key: work.draws(entrants, task, how=aggregation, resamples=resamples)
        for task in (tasks if resamples else ())
    }
    columns = tuple(_column(task, how=aggregation) for task in tasks)
    undefined = {column.key: column.undefined for column in columns}
    return SuiteReport(
        columns=columns,
        rows=_rows(entrants, tasks, drawn, undefined, how=aggregation, reference=reference),
        against=reference,
        aggregation=aggregation,
        condition=condition,
        resamples=resamples,
        seed=seed,
        versions={"condsim": __version__, "python": platform.python_version()},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _rows(
    entrants: Sequence[Entrant],
    tasks: Sequence[SuiteTask],
    drawn: Mapping[str, Mapping[str, NDArray[np.float64]]],
    undefined: Mapping[str, tuple[str, ...]],
    *,
    how: Aggregation,
    reference: str | None,
) -> tuple[SuiteRow, ...]:
    """The rows of the table; ``drawn`` by data set, then scorer: ``(metrics, resamples)``."""
    means = _means(tasks)
    names = {task.key: metric_names(task) for task in tasks}
    shown = 1 if tasks[0].group is None else None  # of STS the mean Spearman alone is reported
    names |= {mean: names[keys[0]][:shown] for mean, keys in means.items()}
    counted: dict[str, NDArray[np.bool_]] = {}  # (sets, metrics, 1) each
    for mean, keys in means.items():
        some = np.array([[name not in undefined[key] for name in names[mean]] for key in keys])
        counted[mean] = (some | ~some.any(axis=0))[..., None]  # of none, the mean is undefined
    found: dict[str, _ByKey] = {}
    for entrant in entrants:
        own = found[entrant.name] = {}
        for task in tasks:
            if task.key in entrant.scores:
                values = metric_values(entrant.scores[task.key], task, how=how)
                draws = drawn[task.key][entrant.name] if drawn else np.empty((len(values), 0))
                own[task.key] = np.column_stack([values, draws])
        for mean, keys in means.items():
            if all(key in own for key in keys):
                each = np.stack([own[key][: len(names[mean])] for key in keys])
                own[mean] = np.mean(each, axis=0, where=counted[mean])
    return tuple(
        SuiteRow(
            name=entrant.name,
            baseline=entrant.baseline,
            revision=entrant.revision,
            figures={
                key: {
                    name: Metric.of(one[0], one[1:])
                    for name, one in zip(names[key], metrics, strict=True)
                }
                for key, metrics in found[entrant.name].items()
            },
            comparison=_comparison(entrant.name, found, reference),
            seconds=entrant.seconds,
            versions=entrant.facts.get("versions", {}),
            numbers=entrant.facts.get("numbers"),
        )
        for entrant in entrants
    )


def _means(tasks: Sequence[SuiteTask]) -> dict[str, list[str]]:
    """The keys of the data sets that each mean is over, by its key."""
    averaged = [task for task in tasks if task.averaged]
    means = {AVERAGE: [task.key for task in averaged]}
    for task in averaged:
        if task.group is not None:
            means.setdefault(group_average(task.group), []).append(task.key)
    return means if len(means) > 1 or len(averaged) >= _SEVEN else {}


def _comparison(
    name: str, found: Mapping[str, _ByKey], reference: str | None
) -> dict[str, Difference]:
    """The main metric less that of the reference, on the same resamples."""
    if reference is None or name == reference:
        return {}
    gaps = {
        key: metrics[0] - found[reference][key][0]
        for key, metrics in found[name].items()
        if key in found[reference]
    }
    return {key: Difference.of(gap[0], gap[1:]) for key, gap in gaps.items()}


def _names(
    scorers: Sequence[Scorer | Unopened], tasks: Sequence[SuiteTask], baselines: Sequence[str]
) -> list[str]:
    """The names of all rows; an error if two are the same."""
    learnt = any(task.task.conditions is not None for task in tasks)
    names = [name for name in baselines if learnt or name not in LEARNT]
    for scorer in scorers:
        if scorer.name in names:
            raise InputError(
                f"Two scorers are called {scorer.name!r}, and a table needs a name for each. Give "
                "one as LABEL=NAME; a baseline has its own."
            )
        names.append(scorer.name)
    return names


def _column(task: SuiteTask, *, how: Aggregation) -> Column:
    return Column(
        key=task.key,
        title=task.title,
        figure=metric_names(task)[0],
        revision=task.revision,
        rows=len(task.task) // 2 if task.triplets else len(task.task),
        subsets=dict(zip(task.names, task.subsets, strict=True)),
        published=task.published,
        group=task.group,
        conditions=None if task.group is None else len(set(task.task.conditions or ())),
        pairs=None if task.group is None else pair_rows(task.task).pairs,
        undefined=undefined_metrics(task, how=how),
    )
