"""Trains an applicability head: logistic regression on features of embeddings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condsim.config import Settings
from condsim.data.csts import load_applicability
from condsim.data.statistics import draw_folds
from condsim.data.sts import join_tasks
from condsim.errors import InputError, require
from condsim.evaluation.bootstrap import Metric
from condsim.evaluation.metrics import auroc
from condsim.model.applicability import PROBE, ApplicabilityHead, features
from condsim.model.baselines import out_of_fold
from condsim.model.embedding import EmbeddingScorer
from condsim.types import Task

Float64Array = NDArray[np.float64]

SAMPLE = 12_000
"""Most extra rows that are kept, unless asked otherwise."""

STRENGTH = 0.01
"""Inverse weight of the squared coefficients, scikit-learn's C."""

_FOLDS = 10
_EXTRA_STRENGTH = 0.003  # of the fit on extra rows
_EXTRA_WEIGHT = 5.0  # spread of the extra fit's opinion among the features
_BLOCK = 1024  # rows embedded at once


def load_extra(
    paths: Sequence[Path | str], *, sample: int = SAMPLE, seed: int = 0, exclude: Task | None = None
) -> Task:
    """Loads extra rows: of each condition as many that it applies to as not.

    Args:
        paths: Files that `condsim.data.csts.load_applicability` reads; one may hold the rows that
            apply and another those that do not.
        sample: Most rows to keep, 2 or more.
        exclude: Rows none of whose sentences may be kept: those that are measured on.

    Returns:
        The rows drawn, in the order of the files.

    Raises:
        InputError: If a file breaks a rule, or no condition has rows of both kinds.
        MissingExtraError: If a file is Parquet and pyarrow is not installed.
    """
    if sample < 2:
        raise InputError(f"The 'sample' of extra rows must be 2 or more. Got {sample}.")
    tasks = [load_applicability(path, require_both=False) for path in paths]
    joined = join_tasks(tasks, name=" + ".join(task.name for task in tasks))
    joined = replace(joined, revision=" + ".join(task.revision for task in tasks))
    kept_apart = set() if exclude is None else {*exclude.sentences1, *exclude.sentences2}
    rows_of: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    conditions = joined.conditions or ()
    random = np.random.default_rng(seed)
    for row in random.permutation(len(joined)).tolist():
        if kept_apart.isdisjoint((joined.sentences1[row], joined.sentences2[row])):
            rows_of[conditions[row].casefold()][int(joined.labels[row])].append(row)
    kinds = (rows_of[condition] for condition in sorted(rows_of))
    pairs = [pair for both in kinds for pair in zip(*both, strict=False)]  # as many of each kind
    if not pairs:
        raise InputError(
            f"{joined.name}: some condition must have a row that it applies to (label 1 to 5) and "
            "one that it does not (label -1), sentences of the rows measured on left out. Give "
            "both files of 'condsim build weak --absent'."
        )
    drawn = random.permutation(len(pairs))[: sample // 2]
    return joined.take(np.sort(np.array([pairs[number] for number in drawn]).ravel()))


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear function of features.

    Attributes:
        weights: One for each feature, ``(f,)``.
    """

    weights: Float64Array
    bias: float

    def __call__(self, values: Float64Array) -> Float64Array:
        """Gives the logit of each row of features, ``(n,)``."""
        return np.asarray(values @ self.weights + self.bias, np.float64)


def features_of(scorer: EmbeddingScorer, rows: Task) -> Float64Array:
    """Embeds rows and turns them into features, ``(n, f)``."""
    columns = rows.sentences1, rows.sentences2, rows.conditions or ()
    starts = range(0, len(rows), _BLOCK)
    blocks = ([column[start : start + _BLOCK] for column in columns] for start in starts)
    return np.concatenate([features(scorer.embedded(*block)) for block in blocks])


def fit_linear(
    values: Float64Array, applies: NDArray[np.bool_], *, extra: Linear | None, strength: float
) -> Linear:
    """Fits a logistic regression; what extra rows taught is one more feature of it.

    As that feature is linear in the others, the result is too.

    Args:
        values: Features, ``(n, f)``.
        applies: Whether the condition applies, ``(n,)``.
        extra: The fit on extra rows, if there are any.
        strength: Inverse weight of the squared coefficients, above 0.

    Returns:
        The logit that the condition applies.

    Raises:
        MissingExtraError: If scikit-learn is not installed.
    """
    centre = values.mean(axis=0)
    shown = values - centre
    offset, scale = 0.0, 1.0
    if extra is not None:
        opinion = extra(values)
        offset, scale = float(opinion.mean()), _EXTRA_WEIGHT / max(float(opinion.std()), 1e-9)
        shown = np.column_stack([shown, (opinion - offset) * scale])
    model = _logistic(shown, applies, strength=strength)
    weights, bias = model.weights[: values.shape[1]], model.bias
    bias -= float(centre @ weights)
    if extra is not None:
        share = float(model.weights[-1]) * scale
        weights = weights + share * extra.weights
        bias += share * (extra.bias - offset)
    return Linear(weights, bias)


def fit_extra(scorer: EmbeddingScorer, rows: Task) -> Linear:
    """Fits what extra rows teach."""
    values = features_of(scorer, rows)
    return fit_linear(values, rows.labels > 0, extra=None, strength=_EXTRA_STRENGTH)


def decisions_out_of_fold(
    values: Float64Array, rows: Task, *, extra: Linear | None, strength: float, seed: int
) -> Float64Array:
    """Gives each row the logit of a fit that has not seen its sentence pair, ``(n,)``."""
    applies = rows.labels > 0
    pairs = list(zip(rows.sentences1, rows.sentences2, strict=True))
    enough = len(set(map(frozenset, pairs))) >= _FOLDS
    fold = draw_folds(pairs, folds=_FOLDS, seed=seed)
    logits = np.empty(len(rows))
    for number in range(_FOLDS):
        rest = fold != number
        if not enough or applies[rest].all() or not applies[rest].any():
            raise InputError(
                f"{rows.name}: {_FOLDS} folds need as many sentence pairs, and rows of both kinds "
                f"outside each. Got {int(applies.sum())} rows whose condition applies and "
                f"{int((~applies).sum())} whose does not; give more rows."
            )
        fitted = fit_linear(values[rest], applies[rest], extra=extra, strength=strength)
        logits[~rest] = fitted(values[~rest])
    return logits


def fit_head(
    scorer: EmbeddingScorer,
    rows: Task,
    *,
    extra: Task | None = None,
    strength: float = STRENGTH,
    seed: int = 0,
) -> ApplicabilityHead:
    """Trains a head for a model.

    Its probabilities are calibrated on logits from 10-fold cross-validation over sentence pairs,
    for data in which as many conditions apply as in ``rows``.

    Args:
        rows: Rows with the label 1 where the condition applies and 0 where it does not, as
            `condsim.data.csts.load_applicability` reads them.
        extra: More such rows of another origin, such as weak ones; what they teach is one feature
            of the fit on ``rows``.
        strength: Inverse weight of the squared coefficients, above 0.

    Raises:
        InputError: If rows are too few or all of one kind, or ``strength`` is not above 0.
        MissingExtraError: If scikit-learn is not installed.
    """
    check_strength(strength)
    applies = rows.labels > 0
    values = features_of(scorer, rows)
    prior = None if extra is None else fit_extra(scorer, extra)
    logits = decisions_out_of_fold(values, rows, extra=prior, strength=strength, seed=seed)
    scale = calibrated(logits, applies)
    slope = float(scale.weights[0])
    fitted = fit_linear(values, applies, extra=prior, strength=strength)
    applying = int(applies.sum())
    facts: dict[str, str | int | float] = {"rows": f"{rows.name} {rows.revision}"}
    facts |= {"applies": applying, "does_not_apply": len(rows) - applying}
    if extra is not None:
        facts["extra_rows"] = f"{extra.name} {extra.revision}"
    return ApplicabilityHead(
        model=scorer.name,
        weights=slope * fitted.weights,
        bias=slope * fitted.bias + scale.bias,
        probe=scorer.encode(*PROBE),
        facts=facts,
    )


def check_strength(strength: float) -> None:
    """Refuses a strength that is not above 0."""
    if not 0 < strength < np.inf:
        raise InputError(f"The 'strength' must be a number above 0. Got {strength}.")


def calibrated(logits: Float64Array, applies: NDArray[np.bool_]) -> Linear:
    """Fits slope and constant that calibrate the logits of unseen rows (Platt, 1999)."""
    return _logistic(logits[:, None], applies, strength=1e4)


def _logistic(values: Float64Array, applies: NDArray[np.bool_], *, strength: float) -> Linear:
    library: Any = require("sklearn.linear_model", extra="train")
    model = library.LogisticRegression(C=strength, max_iter=1000, tol=1e-3)
    model.fit(values, applies)
    return Linear(np.asarray(model.coef_[0], np.float64), float(model.intercept_[0]))


class ApplicabilityReport(Settings):
    """What heads reach: AUROC, 0 to 1, where 0.5 is chance, with 95 % intervals.

    Attributes:
        data_revision: First 12 hex digits of the SHA-256 of their file.
        does_not_apply: Rows whose condition does not apply.
        head: Head trained on the rows, each predicted by a fit without its sentence pair.
        extra_only: Head trained on the extra rows alone; None if there are none.
        both: Head trained on the rows and the extra ones, by the same folds; None likewise.
        condition_only: Ridge regression on the TF-IDF of the condition, by as many folds.
        cosine: The model's similarity taken for applicability.
        brier: Mean squared error of the probabilities of the head in use, 0 to 1.
        brier_constant: Of a constant probability, for comparison.
        seed: Seed of folds and resamples.
    """

    format: Literal[1] = 1
    model: str
    data: str
    data_revision: str
    rows: int
    does_not_apply: int
    head: Metric
    extra_only: Metric | None
    both: Metric | None
    condition_only: Metric
    cosine: Metric
    brier: float
    brier_constant: float
    seed: int
    resamples: int


def measure_applicability(
    scorer: EmbeddingScorer,
    rows: Task,
    *,
    extra: Task | None = None,
    strength: float = STRENGTH,
    seed: int = 0,
    resamples: int = 1000,
) -> ApplicabilityReport:
    """Measures heads by 10-fold cross-validation over sentence pairs, beside baselines.

    Args:
        rows: Rows with the label 1 where the condition applies and 0 where it does not.
        extra: More such rows to fit on, never to measure on; their sentences must not be in
            ``rows``.
        strength: See `condsim.training.applicability.fit_head`.
        seed: Seed of folds and resamples.

    Raises:
        InputError: If rows are too few or all of one kind, or an option is out of range.
        MissingExtraError: If scikit-learn is not installed.
    """
    check_strength(strength)
    applies = rows.labels > 0
    numbers: dict[frozenset[str], int] = {}  # of pairs in either order
    texts = map(frozenset, zip(rows.sentences1, rows.sentences2, strict=True))
    pairs = np.array([numbers.setdefault(pair, len(numbers)) for pair in texts], np.int64)

    def area(scores: NDArray[np.floating]) -> Metric:
        return auroc(scores, applies, pairs, resamples=resamples, seed=seed)

    values = features_of(scorer, rows)
    logits = decisions_out_of_fold(values, rows, extra=None, strength=strength, seed=seed)
    used, only, both = logits, None, None
    if extra is not None:
        prior = fit_extra(scorer, extra)
        used = decisions_out_of_fold(values, rows, extra=prior, strength=strength, seed=seed)
        only, both = area(prior(values)), area(used)
    chances = 1 / (1 + np.exp(-calibrated(used, applies)(used[:, None])))
    return ApplicabilityReport(
        model=scorer.name,
        data=rows.name,
        data_revision=rows.revision,
        rows=len(rows),
        does_not_apply=int((~applies).sum()),
        head=area(logits),
        extra_only=only,
        both=both,
        condition_only=area(out_of_fold(rows, name="condition-only", seed=seed)),
        cosine=area(scorer.score(rows.sentences1, rows.sentences2, rows.conditions, scale="raw")),
        brier=float(np.mean((chances - applies) ** 2)),
        brier_constant=float(applies.mean() * (1 - applies.mean())),
        seed=seed,
        resamples=resamples,
    )
