"""The evaluation engine: scores and a task in, a report out."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from condsim.data.statistics import Pairing, pair_rows
from condsim.data.triplets import Triplets
from condsim.errors import InputError, ModelError
from condsim.evaluation.bootstrap import Difference, Metric, bootstrap, weighted_mean
from condsim.evaluation.metrics import (
    METRICS,
    Metrics,
    check_pairs,
    count_over_estimation,
    triplet_wins,
)
from condsim.evaluation.report import ModelResult, Report, ResultFile, loaded_versions
from condsim.model.base import rescaled
from condsim.model.baselines import FittedBaseline, baseline, out_of_fold
from condsim.prompting.scorer import PromptScorer, likert_range
from condsim.types import BoolArray, FloatArray, Scorer, Task

CONDITION_ONLY = "condition-only"
FOLDS = 10
OUT_OF_FOLD = f"this file, out of fold ({FOLDS} folds, sentence pairs kept whole)"
FEWEST_ROWS = 3
"""Labelled rows that an evaluation needs."""


@dataclass(frozen=True, eq=False)
class Scores:
    """What a scorer made of the rows of a task, with its provenance.

    Attributes:
        values: Scores of the rows, ``(n,)``; calibrated ones where the scorer has a calibration.
        raw: Raw similarities, ``(n,)``, on which over-estimation is counted; None if they are the
            same.
        revision: Version of the model, if it has one.
        fitted_on: For a fitted baseline, the rows it learnt from.
        scored_by: What decides the scores beside the model, if the scorer says so.
    """

    name: str
    values: FloatArray
    raw: FloatArray | None = None
    revision: str | None = None
    fitted_on: str | None = None
    scored_by: Mapping[str, Any] | None = None


def score_rows(scorer: Scorer, task: Task) -> Scores:
    """Scores every row of a task once, for `evaluate`.

    A scorer with a ``calibration`` and the option ``scale``, such as every encoder of condsim, is
    asked for raw similarities, and its scores are computed from them. The scores of any other are
    taken as both.

    Returns:
        The scores, ``(n,)``; `evaluate` checks them.
    """
    scales = "scale" in inspect.signature(scorer.score).parameters
    score: Any = scorer.score
    calibrated = scales and hasattr(scorer, "calibration")
    option = {"scale": "raw"} if calibrated else {}
    rows = (task.sentences1, task.sentences2, task.conditions)
    raw = np.asarray(score(*rows, **option))
    calibration = getattr(scorer, "calibration", None) if calibrated else None
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
    """Measures a scorer on a task, with the condition-only baseline beside it.

    Only rows with a label are scored and counted. The condition-only baseline is always part of
    the report: conditions alone predict much of a C-STS label. For a task without conditions there
    is no such baseline; pair accuracy and partial Spearman are then NaN.

    Args:
        scorer: What to measure, or scores that are already there: of all rows of the task, or of
            its labelled rows.
        baselines: Further baselines: scorers, or names in `BASELINES`. A name that needs
            fitting is predicted out of fold from ``task`` itself.
        against: A second model, or its scores, for the paired difference and its p-value.
        condition_only: A fitted condition-only scorer; by default predictions out of fold from
            ``task`` itself. The report says which. Not used for a task without conditions.
        resamples: Number of bootstrap resamples of the sentence pairs, at least 1.
        seed: Seed of the resamples and of the folds.
        over_estimation: Whether to count the pairs that each scorer drives too far apart, on raw
            similarities; see `over_estimation`. Nothing is scored twice for it.

    Raises:
        InputError: If fewer than 3 rows have a label, ``resamples`` is below 1, a baseline's name
            is unknown, or over-estimation is asked for and no sentence pair has two labels.
        ModelError: If there is another number of scores than rows, or NaN or infinity among them.
    """
    valid = _checked(task, baselines, resamples, over_estimation=over_estimation)
    models = [
        one if isinstance(one, Scores) else score_rows(one, valid)
        for one in (scorer, against)
        if one is not None
    ]
    pairing = _pairing(valid)
    further: list[Scorer | str] = [entry for entry in baselines if entry != CONDITION_ONLY]
    if task.conditions is not None:
        further.insert(0, CONDITION_ONLY if condition_only is None else condition_only)
    floors = [_baseline_scores(entry, valid, seed=seed) for entry in further]
    entries = [*floors, *(_on_labelled(entry, task) for entry in models)]
    gold = valid.gold.astype(np.float64)
    metrics = Metrics(
        [one.values.astype(np.float64) for one in entries],
        gold=gold,
        given=None if valid.conditions is None else entries[0].values.astype(np.float64),
        high=pairing.high,
        low=pairing.low,
    )
    values = metrics.point()  # (scorers, metrics)
    draws = bootstrap(metrics, pairing.pair_ids, resamples=resamples, seed=seed)
    results = [
        ModelResult(
            one.name,
            {
                name: Metric.of(value, drawn)
                for name, value, drawn in zip(METRICS, values[index], draws[index], strict=True)
            },
            revision=one.revision,
            fitted_on=one.fitted_on,
            scored_by=one.scored_by,
            over_estimation=None
            if not over_estimation
            else count_over_estimation(
                one.values if one.raw is None else one.raw, gold, high=pairing.high, low=pairing.low
            ),
        )
        for index, one in enumerate(entries)
    ]
    model = len(floors)
    comparison = {}
    if against is not None:
        gaps, drawn_gaps = values[model] - values[model + 1], draws[model] - draws[model + 1]
        found = zip(METRICS, gaps, drawn_gaps, strict=True)
        comparison = {name: Difference.of(gap, drawn) for name, gap, drawn in found}
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
        comparison=comparison,
        seed=seed,
        resamples=resamples,
        versions={
            "python": platform.python_version(),
            **loaded_versions("condsim", "numpy", "onnxruntime", "torch"),
        },
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def triplet_accuracy(
    scorer: Scorer, triplets: Triplets, *, resamples: int = 1000, seed: int = 0
) -> Metric:
    """Measures a scorer on triplets.

    Raw similarities are compared, since calibration maps all very low ones to one score, and all
    very high ones. Equal similarities count as wrong: a constant scorer must not be right.

    Args:
        triplets: The triplets; a pair that is in several is scored each time.
        resamples: Number of bootstrap resamples of the triplets, at least 1.

    Returns:
        The accuracy in percent with its 95 % interval.

    Raises:
        InputError: If there are no triplets or ``resamples`` is below 1.
        ModelError: If the scorer returns another number of scores than rows, NaN or infinity.
    """
    if not len(triplets):
        raise InputError(f"{triplets.name}: has no triplets. Give at least one.")
    raw = np.asarray(score_rows(scorer, triplets.pairs()).raw)
    check_scores(scorer.name, raw, 2 * len(triplets))
    right = 100 * triplet_wins(raw)  # (n,)
    accuracy = partial(weighted_mean, right)
    return Metric.bootstrapped(accuracy, np.arange(right.size), resamples=resamples, seed=seed)


def labelled_rows(task: Task, *, over_estimation: bool = False) -> Task:
    """Gives the rows that are scored and measured: those with a label.

    Args:
        over_estimation: Whether pairs of rows with two labels are needed, too.

    Raises:
        InputError: If fewer than 3 rows have a label, or there are no pairs with two labels.
    """
    valid = task.labelled()
    if len(valid) < FEWEST_ROWS:
        raise InputError(
            f"{task.name}: an evaluation needs at least {FEWEST_ROWS} rows with a label. "
            f"Got {len(valid)} among {len(task)} rows; give a file with labels."
        )
    if over_estimation:
        check_pairs(_pairing(valid).pairs, valid)
    return valid


def _pairing(valid: Task) -> Pairing:
    """The pairs; without conditions, rows of one sentence pair are the same input."""
    pairing = pair_rows(valid)
    if valid.conditions is not None:
        return pairing
    return replace(pairing, high=pairing.high[:0], low=pairing.low[:0])


def _checked(
    task: Task, baselines: Sequence[Scorer | str], resamples: int, *, over_estimation: bool
) -> Task:
    """The labelled rows, if all that was asked for can be done."""
    valid = labelled_rows(task, over_estimation=over_estimation)
    if resamples < 1:
        raise InputError(f"The number of resamples must be at least 1. Got {resamples}.")
    for entry in baselines:
        if isinstance(entry, str):
            baseline(entry)
    return valid


def _baseline_scores(entry: Scorer | str, task: Task, *, seed: int) -> Scores:
    """Scores of a baseline; one that needs fitting is predicted out of fold by its name."""
    if isinstance(entry, str):
        scorer = baseline(entry)
        if isinstance(scorer, FittedBaseline):
            predicted = out_of_fold(task, name=entry, folds=FOLDS, seed=seed)
            return Scores(entry, predicted, fitted_on=OUT_OF_FOLD)
        entry = scorer
    return _on_labelled(score_rows(entry, task), task)


def _on_labelled(scores: Scores, task: Task) -> Scores:
    """Scores of the labelled rows, ``(n,)``, checked."""
    valid = task.valid
    if scores.values.shape == valid.shape and not valid.all():
        raw = None if scores.raw is None else scores.raw[valid]
        scores = replace(scores, values=scores.values[valid], raw=raw)
    check_scores(scores.name, scores.values, int(valid.sum()))
    return scores


def check_scores(name: str, scores: NDArray[Any], rows: int) -> None:
    """Refuses another number of scores than rows, NaN and infinity."""
    if scores.shape != (rows,):
        raise ModelError(
            f"{name}: score must return one number for each row, ({rows},). "
            f"Got the shape {scores.shape}."
        )
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise ModelError(
            f"{name}: every score must be a finite number. Got {scores[row]} for row {row + 1} of "
            "those it scored; the model is damaged or its training diverged."
        )


class PromptReport(ResultFile):
    """The result of prompting a model.

    Attributes:
        settings: What was asked of which model: `PromptSettings` as plain values.
        invalid: Labelled rows whose answer is no number, in %; they count with a random value.
        out_of_range: Labelled rows whose answer is a number that is not on the scale, in %.
        expected: Labelled rows whose score is an expected value, in %.
        usage: Requests, tokens and rows answered from the store, of the run that made the report.
        notes: How the model was asked otherwise than usual, such as sampled.
        report: All labelled rows.
        valid_only: The rows with a valid answer alone; None if they are too few.
    """

    _kind: ClassVar[str] = "report of a prompted model"
    _format_key: ClassVar[str] = "prompt_format"
    _again: ClassVar[str] = (
        "Run the same 'condsim prompt' again; stored answers are not asked for again."
    )

    prompt_format: Literal[1] = 1
    settings: Mapping[str, Any]
    invalid: float
    out_of_range: float
    expected: float
    usage: Mapping[str, int]
    notes: tuple[str, ...]
    report: Report
    valid_only: Report | None


def evaluate_prompt(
    scorer: PromptScorer,
    task: Task,
    *,
    settings: Mapping[str, Any],
    condition_only: Scorer | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> PromptReport:
    """Prompts a model for the labelled rows of a task and measures what it answered.

    Args:
        settings: What the scorer was made of, for the report.
        condition_only: See `evaluate`; not used for the valid rows alone.
        resamples: Number of bootstrap resamples of the sentence pairs, at least 1.

    Raises:
        InputError: If fewer than 3 rows have a label, or the instruction's scale is not that of
            the labels.
        BackendError: If the model does not answer or the budget is used up; run again to go on.
    """
    rows = labelled_rows(task)
    scale = likert_range(conditional=rows.conditions is not None)
    if scale != rows.label_range:
        raise InputError(
            f"{task.name}: the labels are from {rows.label_range[0]:g} to {rows.label_range[1]:g} "
            f"and the instruction asks for {scale[0]:g} to {scale[1]:g}. Give C-STS or STS-B data."
        )
    predictions = scorer.predict(rows.sentences1, rows.sentences2, rows.conditions)
    scores = predictions.unit
    report = evaluate(
        Scores(scorer.name, scores),
        rows,
        condition_only=condition_only,
        resamples=resamples,
        seed=seed,
    )
    valid_only = None
    kept = np.flatnonzero(predictions.valid)
    if len(kept) >= FEWEST_ROWS:
        alone = Scores(scorer.name, scores[kept])
        valid_only = evaluate(alone, rows.take(kept), resamples=resamples, seed=seed)
    return PromptReport(
        settings=settings,
        invalid=_percent(~predictions.valid),
        out_of_range=_percent(predictions.valid & ~predictions.in_range),
        expected=_percent(predictions.expected),
        usage=asdict(scorer.asker.usage),
        notes=scorer.asker.backend.notes,
        report=report,
        valid_only=valid_only,
    )


def _percent(rows: BoolArray) -> float:
    return 100.0 * float(rows.mean())
