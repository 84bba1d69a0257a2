"""Scorer and task in, report out."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError, ModelError
from condsim.evaluation.report import Difference, Metric, ModelResult, Report
from condsim.evaluation.statistics import (
    METRICS,
    Metrics,
    bootstrap,
    check_pairs,
    count_over_estimation,
    p_value,
    percentile_interval,
)
from condsim.scorers import (
    FittedBaseline,
    ScoredOnce,
    baseline,
    out_of_fold,
)
from condsim.tasks import Pairing, pair_rows
from condsim.types import Scorer, Task

Rows = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...] | None]


Float64Array = NDArray[np.float64]

CONDITION_ONLY = "condition-only"
FOLDS = 10
OUT_OF_FOLD = f"this file, out of fold ({FOLDS} folds, sentence pairs kept whole)"
FEWEST_ROWS = 3


def evaluate(
    scorer: Scorer,
    task: Task,
    *,
    baselines: Sequence[Scorer | str] = (),
    against: Scorer | None = None,
    condition_only: Scorer | None = None,
    resamples: int = 1000,
    seed: int = 0,
    over_estimation: bool = False,
) -> Report:
    """Measures a scorer on a task, with the condition-only baseline beside it.

    Only rows with a label are scored and counted. The condition-only baseline is always part of
    the report: conditions alone predict much of a C-STS label. For a task without conditions there
    is no such baseline; pair accuracy and partial Spearman are then NaN.

    Args:
        scorer: The model.
        task: The data.
        baselines: Further baselines: scorers, or names in
            `condsim.scorers.BASELINES`. A name that needs fitting is predicted out
            of fold from ``task`` itself.
        against: A second model, for the paired difference and its p-value.
        condition_only: A fitted condition-only scorer; out-of-fold predictions from ``task``
            itself by default. The report says which. Not used for a task without conditions.
        resamples: Number of bootstrap resamples of the sentence pairs, at least 1.
        seed: Seed of the resamples and of the folds.
        over_estimation: Whether to count the pairs that each scorer drives too far apart, on raw
            similarities; see `over_estimation`. Nothing is scored twice for it.

    Returns:
        The report.

    Raises:
        InputError: If fewer than 3 rows have a label, ``resamples`` is below 1, a baseline's name
            is unknown, or over-estimation is asked for and no sentence pair has two labels.
        ModelError: If a scorer returns another number of scores than rows, or NaN or infinity.
    """
    valid = _valid_rows(task)
    if resamples < 1:
        raise InputError(f"The number of resamples must be at least 1. Got {resamples}.")
    chosen = _baselines(valid, baselines, condition_only)
    pairing = _pairing(valid)
    if over_estimation:
        check_pairs(pairing.pairs, valid)
    entries = [*chosen, scorer, *([] if against is None else [against])]
    measured = [_predict(entry, valid, seed=seed, raw=over_estimation) for entry in entries]

    gold = valid.gold.astype(np.float64)
    metrics = Metrics(
        [one.scores for one in measured],
        gold=gold,
        given=None if valid.conditions is None else measured[0].scores,
        high=pairing.high,
        low=pairing.low,
    )
    values = metrics.point()  # (scorers, metrics)
    draws = bootstrap(metrics, pairing.pair_ids, resamples=resamples, seed=seed)
    results = [
        replace(
            one.result,
            metrics=_with_intervals(values[index], draws[index]),
            over_estimation=None
            if one.raw is None
            else count_over_estimation(one.raw, gold, high=pairing.high, low=pairing.low),
        )
        for index, one in enumerate(measured)
    ]
    model = len(chosen)
    return Report(
        task=task.name,
        task_revision=task.revision,
        rows=len(task),
        valid_rows=len(valid),
        invalid_rows=len(task) - len(valid),
        pairs=int(pairing.pair_ids.max()) + 1,
        contrasting_pairs=pairing.pairs,
        model=results[model],
        baselines=tuple(results[:model]),
        against=None if against is None else results[model + 1],
        comparison={}
        if against is None
        else _compare(values[model] - values[model + 1], draws[model] - draws[model + 1]),
        seed=seed,
        resamples=resamples,
        versions=_versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _valid_rows(task: Task) -> Task:
    """The task with the rows that have a label only."""
    valid = task.labelled()
    if len(valid) < FEWEST_ROWS:
        raise InputError(
            f"{task.name}: an evaluation needs at least {FEWEST_ROWS} rows with a label. "
            f"Got {len(valid)} among {len(task)} rows; give a file with labels."
        )
    return valid


def _baselines(
    task: Task, further: Sequence[Scorer | str], condition_only: Scorer | None
) -> list[Scorer | str]:
    """The baselines to measure, the condition-only one first where there are conditions."""
    chosen = [entry for entry in further if entry != CONDITION_ONLY]
    for entry in chosen:
        if isinstance(entry, str):
            baseline(entry)  # an unknown name is told before the model runs
    if task.conditions is None:
        return chosen
    return [CONDITION_ONLY if condition_only is None else condition_only, *chosen]


def _pairing(task: Task) -> Pairing:
    """The pairs; without conditions rows of one sentence pair are one input, not high and low."""
    pairing = pair_rows(task)
    if task.conditions is not None:
        return pairing
    none = np.zeros(0, dtype=np.int64)
    return replace(pairing, high=none, low=none)


class _Measured(NamedTuple):
    """What one scorer gave: the result, still without metrics, and scores, ``(n,)``."""

    result: ModelResult
    scores: Float64Array
    raw: Float64Array | None


def _predict(entry: Scorer | str, task: Task, *, seed: int, raw: bool) -> _Measured:
    """Scores the rows with a scorer, or with the baseline of that name; ``raw``: also uncalibrated.

    What out-of-fold baselines predict is gold itself, so for them both are the same.
    """
    if isinstance(entry, str):
        scorer = baseline(entry)
        if isinstance(scorer, FittedBaseline):
            out = out_of_fold(task, name=entry, folds=FOLDS, seed=seed).astype(np.float64)
            result = ModelResult(entry, {}, fitted_on=OUT_OF_FOLD)
            return _Measured(result, out, out if raw else None)
        entry = scorer
    once = ScoredOnce(entry) if raw else None
    rows = (task.sentences1, task.sentences2, task.conditions)
    scores = np.asarray((once or entry).score(*rows))
    if scores.shape != (len(task),):
        raise ModelError(
            f"{entry.name}: score must return one number for each row, ({len(task)},). "
            f"Got the shape {scores.shape}."
        )
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise ModelError(
            f"{entry.name}: every score must be a finite number. Got {scores[row]} for the "
            f"{row + 1}. row with a label; the model is damaged or its training diverged."
        )
    result = ModelResult(
        entry.name,
        {},
        revision=getattr(entry, "revision", None),
        fitted_on=getattr(entry, "fitted_on", None),
        scored_by=getattr(entry, "scored_by", None),
    )
    return _Measured(
        result,
        scores.astype(np.float64),
        None if once is None else once.score(*rows, scale="raw").astype(np.float64),
    )


def _with_intervals(values: Float64Array, draws: Float64Array) -> dict[str, Metric]:
    """Metrics by name from their values ``(metrics,)`` and resamples ``(metrics, resamples)``."""
    return {
        name: Metric(float(value), *percentile_interval(drawn))
        for name, value, drawn in zip(METRICS, values, draws, strict=True)
    }


def _compare(values: Float64Array, draws: Float64Array) -> dict[str, Difference]:
    """Differences by name, from those of the rows and of the same resamples."""
    return {
        name: Difference(float(value), *percentile_interval(drawn), p_value(drawn))
        for name, value, drawn in zip(METRICS, values, draws, strict=True)
    }


def _versions() -> dict[str, str]:
    """Versions of what the figures depend on; libraries only if they are loaded."""
    versions = {"python": platform.python_version()}
    for library in ("condsim", "numpy", "onnxruntime", "torch"):
        if library in sys.modules:
            try:
                versions[library] = metadata.version(library)
            except metadata.PackageNotFoundError:  # run from a source tree
                versions[library] = "not installed"
    return versions
