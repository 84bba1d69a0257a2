"""Fits an applicability head. Needs the ``train`` extra."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError, require
from condsim.scorers.applicability import PROBE, ApplicabilityHead, features
from condsim.scorers.embedding import EmbeddingScorer
from condsim.scorers.out_of_fold import assign_folds
from condsim.types import Task

__all__ = [
    "FOLDS",
    "STRENGTH",
    "Linear",
    "calibrated",
    "check_strength",
    "decisions_out_of_fold",
    "features_of",
    "fit_extra",
    "fit_head",
    "fit_linear",
]

FOLDS = 10
STRENGTH = 0.01
"""Inverse weight of the squared coefficients, scikit-learn's C."""

_EXTRA_STRENGTH = 0.003  # of the fit on extra rows
_EXTRA_WEIGHT = 5.0  # spread of the extra fit's opinion among the features
_BLOCK = 1024  # rows embedded at once

Float64Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear function of features.

    Attributes:
        weights: One for each feature, ``(f,)``.
        bias: The constant.
    """

    weights: Float64Array
    bias: float

    def __call__(self, values: Float64Array) -> Float64Array:
        """Gives the logit of each row of features, ``(n,)``."""
        return np.asarray(values @ self.weights + self.bias, np.float64)


def features_of(scorer: EmbeddingScorer, rows: Task) -> Float64Array:
    """Embeds rows and turns them into features.

    Args:
        scorer: The model.
        rows: Rows with conditions.

    Returns:
        See `condsim.scorers.applicability.features`, ``(n, f)``.
    """
    conditions = rows.conditions or ()
    parts = []
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        embedded = scorer.embedded(rows.sentences1[part], rows.sentences2[part], conditions[part])
        parts.append(features(embedded))
    return np.concatenate(parts)


def fit_linear(
    values: Float64Array, applies: NDArray[np.bool_], *, extra: Linear | None, strength: float
) -> Linear:
    """Fits a logistic regression; what extra rows taught is one more feature of it.

    As that feature is linear in the others, the result is too.

    Args:
        values: Features, ``(n, f)``.
        applies: Whether the condition applies, ``(n,)``.
        extra: What was fitted on extra rows.
        strength: Inverse weight of the squared coefficients.

    Returns:
        The logit that the condition applies.
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


def fit_extra(values: Float64Array, applies: NDArray[np.bool_]) -> Linear:
    """Fits what extra rows teach.

    Args:
        values: Features of the extra rows, ``(n, f)``.
        applies: Whether the condition applies, ``(n,)``.

    Returns:
        The logit that the condition applies.
    """
    return fit_linear(values, applies, extra=None, strength=_EXTRA_STRENGTH)


def decisions_out_of_fold(
    values: Float64Array,
    rows: Task,
    *,
    extra: Linear | None,
    strength: float,
    seed: int,
) -> Float64Array:
    """Gives each row the logit of a fit that has not seen its sentence pair.

    Args:
        values: Features, ``(n, f)``.
        rows: The rows, with labels 0 and 1.
        extra: What was fitted on extra rows.
        strength: Inverse weight of the squared coefficients.
        seed: Seed of the folds.

    Returns:
        Logits that the condition applies, ``(n,)``.

    Raises:
        InputError: If there are too few sentence pairs, or all rows that a fold leaves are of one
            kind.
    """
    applies = rows.labels > 0
    fold = assign_folds(rows, folds=FOLDS, seed=seed)
    logits = np.empty(len(rows))
    for number in range(FOLDS):
        rest = fold != number
        if rest.all() or applies[rest].all() or not applies[rest].any():
            raise InputError(
                f"{rows.name}: {FOLDS} folds need as many sentence pairs, and rows of both kinds "
                f"outside each. Got {int(applies.sum())} rows whose condition applies and "
                f"{int((~applies).sum())} whose does not; give more rows."
            )
        fitted = fit_linear(values[rest], applies[rest], extra=extra, strength=strength)
        logits[~rest] = fitted(values[~rest])
    return logits


def calibrated(logits: Float64Array, applies: NDArray[np.bool_]) -> Linear:
    """Fits slope and constant that turn logits into those of probabilities (Platt, 1999).

    Args:
        logits: Of rows that the fit has not seen, ``(n,)``.
        applies: Whether the condition applies, ``(n,)``.

    Returns:
        A function of one feature, the logit.
    """
    return _logistic(logits[:, None], applies, strength=1e4)


def fit_head(
    scorer: EmbeddingScorer,
    rows: Task,
    *,
    extra: Task | None = None,
    strength: float = STRENGTH,
    seed: int = 0,
) -> ApplicabilityHead:
    """Fits a head for a model.

    Its probabilities are calibrated on logits from 10-fold cross-validation over sentence pairs,
    for data in which as many conditions apply as in ``rows``.

    Args:
        scorer: The model.
        rows: Rows with the label 1 where the condition applies and 0 where it does not, as
            `condsim.tasks.applicability.load_applicability` reads them.
        extra: More such rows of another origin, such as weak ones; what they teach is one feature
            of the fit on ``rows``.
        strength: Inverse weight of the squared coefficients, above 0.
        seed: Seed of the folds.

    Returns:
        The head.

    Raises:
        InputError: If rows are too few or all of one kind, or ``strength`` is not above 0.
        MissingExtraError: If scikit-learn is not installed.
    """
    check_strength(strength)
    applies = rows.labels > 0
    values = features_of(scorer, rows)
    prior = None if extra is None else fit_extra(features_of(scorer, extra), extra.labels > 0)
    logits = decisions_out_of_fold(values, rows, extra=prior, strength=strength, seed=seed)
    scale = calibrated(logits, applies)
    slope = float(scale.weights[0])
    fitted = fit_linear(values, applies, extra=prior, strength=strength)
    facts: dict[str, str | int | float] = {
        "rows": f"{rows.name} {rows.revision}",
        "applies": int(applies.sum()),
        "does_not_apply": int((~applies).sum()),
    }
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
    """Refuses a strength that is not above 0.

    Args:
        strength: What was given.

    Raises:
        InputError: If it is not above 0.
    """
    if not 0 < strength < np.inf:
        raise InputError(f"The 'strength' must be a number above 0. Got {strength}.")


def _logistic(values: Float64Array, applies: NDArray[np.bool_], *, strength: float) -> Linear:
    library: Any = require("sklearn.linear_model", extra="train")
    model = library.LogisticRegression(C=strength, max_iter=1000, tol=1e-3)
    model.fit(values, applies)
    return Linear(np.asarray(model.coef_[0], np.float64), float(model.intercept_[0]))
