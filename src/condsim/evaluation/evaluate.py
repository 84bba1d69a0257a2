"""The evaluation engine: scores and a task in, a report out."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.data.nli_triplets import Triplets
from condsim.data.tasks import pair_rows
from condsim.errors import InputError, ModelError
from condsim.evaluation.metrics import (
    METRICS,
    Metrics,
    over_estimation as count_over_estimation,
    triplet_wins,
)
from condsim.evaluation.report import ModelResult, Report, loaded_versions
from condsim.evaluation.statistics import Difference, Metric, bootstrap, weighted_mean
from condsim.model.base import rescaled
from condsim.model.baselines import FittedBaseline, baseline, out_of_fold
from condsim.types import Float64Array, FloatArray, Scorer, Task

CONDITION_ONLY = "condition-only"
FOLDS = 10
OUT_OF_FOLD = f"this file, out of fold ({FOLDS} folds, sentence pairs kept whole)"
FEWEST_ROWS = 3
"""Minimum number of labeled rows of an evaluation."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of the rows of a task, ``(n,)``, with their provenance.

    ``values`` are calibrated if the scorer has a calibration; over-estimation is counted on ``raw``
    similarities, or on the values if it is None.
    """

    name: str
    values: FloatArray
    raw: FloatArray | None = None
    revision: str | None = None
    fitted_on: str | None = None
    scored_by: Mapping[str, Any] | None = None


def score_rows(scorer: Scorer, task: Task) -> Scores:
    """Score every row of a task once, for `evaluate`.

    A scorer with a ``calibration`` and the option ``scale``, such as every encoder of condsim,
    returns raw similarities, and its scores are computed from them. The scores of any other count
    as both.
    """
    score: Any = scorer.score
    has_scales = "scale" in inspect.signature(scorer.score).parameters
    options = {"scale": "raw"} if has_scales and hasattr(scorer, "calibration") else {}
    raw = np.asarray(score(task.sentences1, task.sentences2, task.conditions, **options))
    calibration = getattr(scorer, "calibration", None) if options else None
    return Scores(
        scorer.name,
        raw if calibration is None else rescaled(raw.astype(np.float32), calibration, "unit"),
        raw=raw,
        revision=getattr(scorer, "revision", None),
        fitted_on=getattr(scorer, "fitted_on", None),
        scored_by=getattr(scorer, "scored_by", None),
    )


def evaluate(
    scorer: Scorer | Scores,
    task: Task,
    *,
    baselines: Sequence[Scorer | str] = (),
    against: Scorer | Scores | None = None,
    condition_only: Scorer | None = None,
    resamples: int = 1000,
    seed: int = 0,
    over_estimation: bool = False,
) -> Report:
    """Measure a scorer on a task, next to the condition-only baseline.

    Only rows with a label are scored and counted. The condition-only baseline is always part of
    the report: conditions alone predict much of a C-STS label. For a task without conditions there
    is no such baseline; pair accuracy and partial Spearman are then NaN.

    Args:
        scorer: A scorer, or scores of all rows of the task or of its labeled rows.
        baselines: Further baselines: scorers, or names in `condsim.model.baselines.BASELINES`. A
            name that needs fitting is predicted out of fold from ``task`` itself.
        against: A second model, or its scores, for the paired difference and its p-value.
        condition_only: A fitted condition-only scorer; by default predictions out of fold from
            ``task`` itself. The report says which. Ignored for a task without conditions.
        resamples: Number of bootstrap resamples of the sentence pairs, at least 1.
        over_estimation: Whether to count the pairs that each scorer drives too far apart, on raw
            similarities; see `over_estimation`. Nothing is scored twice for it.

    Raises:
        InputError: If scorer and task are the wrong way round, fewer than 3 rows have a label,
            ``resamples`` is below 1, a baseline's name is unknown, or over-estimation is requested
            and no sentence pair has two labels.
        ModelError: If there are more or fewer scores than rows, or one is NaN or infinite.
    """
    if isinstance(scorer, Task) or not isinstance(task, Task):
        raise InputError(
            "'evaluate' takes the scorer first and the task second; got "
            f"{type(scorer).__name__} and {type(task).__name__}."
        )
    labeled = labeled_rows(task, over_estimation=over_estimation)
    for entry in baselines:
        # An unknown name is reported before anything is scored.
        if isinstance(entry, str):
            baseline(entry)
    models = [scorer] if against is None else [scorer, against]
    model_scores = [
        model if isinstance(model, Scores) else score_rows(model, labeled) for model in models
    ]
    entries: list[Scorer | str] = [entry for entry in baselines if entry != CONDITION_ONLY]
    if task.conditions is not None:
        entries.insert(0, CONDITION_ONLY if condition_only is None else condition_only)
    # The condition-only baseline comes first, the other baselines next, the models last.
    all_scores = [_baseline_scores(entry, labeled, seed=seed) for entry in entries]
    all_scores += [_select_labeled(scores, task) for scores in model_scores]
    model = len(entries)

    pairing = pair_rows(labeled)
    if labeled.conditions is None:
        # Rows of one sentence pair are then the same input.
        pairing = replace(pairing, high=pairing.high[:0], low=pairing.low[:0])
    metrics = Metrics(
        [scores.values.astype(np.float64) for scores in all_scores],
        gold=labeled.gold.astype(np.float64),
        control=None if task.conditions is None else all_scores[0].values.astype(np.float64),
        high=pairing.high,
        low=pairing.low,
    )
    values = metrics.point()  # (scorers, metrics)
    draws = bootstrap(metrics, pairing.pair_ids, resamples=resamples, seed=seed)
    counted_task = labeled if over_estimation else None
    results = [
        _result(*scored, counted_task=counted_task)
        for scored in zip(all_scores, values, draws, strict=True)
    ]
    comparison = {}
    if against is not None:
        gaps, drawn_gaps = values[model] - values[model + 1], draws[model] - draws[model + 1]
        for name, gap, drawn in zip(METRICS, gaps, drawn_gaps, strict=True):
            comparison[name] = Difference.of(gap, drawn)
    return Report(
        task=task.name,
        task_revision=task.revision,
        rows=len(task),
        valid_rows=len(labeled),
        invalid_rows=len(task) - len(labeled),
        pairs=int(pairing.pair_ids.max()) + 1,
        contrasting_pairs=pairing.pairs,
        model=results[model],
        baselines=tuple(results[:model]),
        against=None if against is None else results[model + 1],
        comparison=comparison,
        seed=seed,
        resamples=resamples,
        versions={
            "python": platform.python_version(),
            **loaded_versions("condsim", "numpy", "onnxruntime", "torch"),
        },
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def labeled_rows(task: Task, *, over_estimation: bool = False) -> Task:
    """Return the rows with a label: at least 3, and for over-estimation pairs with two labels."""
    labeled = task.labeled()
    if len(labeled) < FEWEST_ROWS:
        raise InputError(
            f"{task.name}: an evaluation needs at least {FEWEST_ROWS} rows with a label; "
            f"{len(labeled)} of {len(task)} rows have one."
        )
    if over_estimation:
        # The labels as scores show whether there are pairs.
        count_over_estimation(labeled.gold, labeled)
    return labeled


def _baseline_scores(entry: Scorer | str, task: Task, *, seed: int) -> Scores:
    """Score with a baseline; one that needs fitting is predicted out of fold by its name."""
    if isinstance(entry, str):
        scorer = baseline(entry)
        if isinstance(scorer, FittedBaseline):
            predicted = out_of_fold(task, name=entry, folds=FOLDS, seed=seed)
            return Scores(entry, predicted, fitted_on=OUT_OF_FOLD)
        entry = scorer
    return _select_labeled(score_rows(entry, task), task)


def _select_labeled(scores: Scores, task: Task) -> Scores:
    """Check scores and keep the scores of labeled rows, ``(n,)``."""
    valid = task.valid
    if scores.values.shape == valid.shape and not valid.all():
        raw = None if scores.raw is None else scores.raw[valid]
        scores = replace(scores, values=scores.values[valid], raw=raw)
    check_scores(scores.name, scores.values, int(valid.sum()))
    return scores


def _result(
    scores: Scores, values: Float64Array, draws: Float64Array, *, counted_task: Task | None
) -> ModelResult:
    """Combine the metrics of a scorer and their draws with the provenance of its scores."""
    over_estimated = None
    if counted_task is not None:
        raw = scores.values if scores.raw is None else scores.raw
        over_estimated = count_over_estimation(raw, counted_task)
    named = zip(METRICS, values, draws, strict=True)
    return ModelResult(
        scores.name,
        {name: Metric.of(value, drawn) for name, value, drawn in named},
        revision=scores.revision,
        fitted_on=scores.fitted_on,
        scored_by=scores.scored_by,
        over_estimation=over_estimated,
    )


def triplet_accuracy(
    scorer: Scorer, triplets: Triplets, *, resamples: int = 1000, seed: int = 0
) -> Metric:
    """Measure a scorer on triplets.

    Raw similarities are compared, since calibration maps all very low ones to one score, and all
    very high ones. Equal similarities count as wrong: a constant scorer must not be right.

    Returns:
        The accuracy in percent with its 95 % interval.

    Raises:
        InputError: If there are no triplets or ``resamples`` is below 1.
        ModelError: If there are more or fewer scores than rows, or one is NaN or infinite.
    """
    if not len(triplets):
        raise InputError(f"{triplets.name}: has no triplets.")
    raw = np.asarray(score_rows(scorer, triplets.pairs()).raw)
    check_scores(scorer.name, raw, 2 * len(triplets))
    wins = 100 * triplet_wins(raw)  # (n,)
    return Metric.bootstrapped(
        partial(weighted_mean, wins), np.arange(wins.size), resamples=resamples, seed=seed
    )


def check_scores(name: str, scores: NDArray[Any], rows: int) -> None:
    """Reject scores that are not one finite number for each row."""
    if scores.shape != (rows,):
        raise ModelError(
            f"{name}: score must return one number for each row, ({rows},); got the shape "
            f"{scores.shape}."
        )
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise ModelError(
            f"{name}: every score must be a finite number; got {scores[row]} for row {row + 1} of "
            "the scored rows. The model is damaged or its training diverged."
        )
