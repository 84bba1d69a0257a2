"""Figures of criteria that are learned: AUC over pairs, its interval, and the calibration."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from condsim.errors import InputError
from condsim.model.applicability import PROBE, logistic
from condsim.model.calibration import Calibration
from condsim.model.criterion import Encoder, HeldOut
from condsim.types import BoolArray, Float64Array, FloatArray, IntArray

MIN_LABELS = 8
"""Fewer labeled texts or pairs teach nothing that could be measured."""

WEIGHTS = (0.25, 0.7, 2.0)
"""Weights of the vector under the condition that are tried."""

USUAL_WEIGHT = 0.7

MARGIN = 0.002
"""AUC that a setting must gain over the usual one."""

MAX_PAIRS = 3_000

# How missing values of numpy and pandas are written.
_MISSING = ("nan", "NaT", "<NA>")
_MAX_BOOTSTRAP_TEXTS = 300
_BOOTSTRAPS = 200


class Pairs(NamedTuple):
    """Pairs of texts by their indices, ``(p,)``, and whether each has the same value."""

    first: IntArray
    second: IntArray
    same: BoolArray


class Fit(NamedTuple):
    """Settings that did best, their figures, and the calibration of their scores."""

    strength: float
    weight: float
    helps: bool
    auc: float
    low: float
    high: float
    zero_shot: float
    accuracy: float | None
    calibration: Calibration
    held_out: HeldOut


def area_under_curve(
    scores: FloatArray, same: BoolArray, weights: Float64Array | None = None
) -> float:
    """Compute the area under the ROC curve, in [0, 1]; equal scores count half."""
    order = np.argsort(scores, kind="stable")
    share = np.ones(len(order)) if weights is None else weights[order]
    ordered, positive = scores[order], same[order]
    below = np.cumsum(np.where(positive, 0.0, share))
    # Of equal scores, all lower-scored negatives count whole, and equal ones half.
    first = np.searchsorted(ordered, ordered, side="left")
    last = np.searchsorted(ordered, ordered, side="right") - 1
    before = np.where(first > 0, below[first - 1], 0.0)
    wins = (before + below[last]) / 2
    total = share[positive].sum() * below[-1]
    return float((share * wins)[positive].sum() / total) if total > 0 else 0.5


def interval(scores: FloatArray, pairs: Pairs, texts: int) -> tuple[float, float]:
    """Compute a 95 % interval of the AUC by a bootstrap over texts."""
    chosen = np.flatnonzero((pairs.first < texts) & (pairs.second < texts))
    if texts > _MAX_BOOTSTRAP_TEXTS:
        few = np.zeros(texts, np.bool_)
        few[np.random.default_rng(0).permutation(texts)[:_MAX_BOOTSTRAP_TEXTS]] = True
        inside = np.flatnonzero(few[pairs.first] & few[pairs.second])
        chosen = inside if len(inside) > _MAX_BOOTSTRAP_TEXTS else chosen[:MAX_PAIRS]
    first, second, same = taken(pairs, chosen)
    order = np.argsort(scores[chosen], kind="stable")
    first, second, same, ordered = first[order], second[order], same[order], scores[chosen][order]
    generator = np.random.default_rng(0)
    areas = []
    for _ in range(_BOOTSTRAPS):
        draws = np.bincount(generator.integers(0, texts, texts), minlength=texts)
        weights = (draws[first] * draws[second]).astype(np.float64)
        wins = np.cumsum(np.where(same, 0.0, weights))
        total = weights[same].sum() * wins[-1]
        if total > 0:
            areas.append(float((weights * wins)[same].sum() / total))
    if not areas:
        return 0.0, 1.0
    whole = area_under_curve(ordered, same)
    low, high = np.quantile(areas, [0.025, 0.975])
    return float(min(low, whole)), float(max(high, whole))


def gain_error(better: FloatArray, base: FloatArray, pairs: Pairs, texts: int) -> float:
    """Estimate the standard error of the AUC that one list of scores gains over another.

    The infinitesimal jackknife over texts: a text counts with all of its pairs.
    """
    parts = _wins(better, pairs.same) - _wins(base, pairs.same)
    of_text = np.bincount(pairs.first, parts, texts) + np.bincount(pairs.second, parts, texts)
    return float(np.sqrt((of_text**2).sum()))


def _wins(scores: FloatArray, same: BoolArray) -> Float64Array:
    """Compute how much each pair moves the AUC away from its mean, ``(p,)``."""
    parts = np.empty(len(scores))
    for rows, others, sign in ((same, ~same, 1), (~same, same, -1)):
        ordered = np.sort(scores[others])
        sides = [np.searchsorted(ordered, scores[rows], side=side) for side in ("left", "right")]
        ranks = sign * (sides[0] + sides[1]) / (2 * max(len(ordered), 1))
        parts[rows] = (ranks - ranks.mean()) / len(ranks) if len(ranks) else 0
    return parts


def fit_logistic(scores: FloatArray, same: BoolArray) -> Calibration:
    """Fit a logistic curve, so that 0.5 is as likely as not to be the same, as knots."""
    center, spread = float(scores.mean()), float(scores.std()) or 1.0
    inputs = np.stack([(scores - center) / spread, np.ones(len(scores))], axis=1).astype(np.float64)
    rate = (same.sum() + 1) / (len(same) + 2)
    weights = np.array([1.0, math.log(rate / (1 - rate))])
    ridge = np.array([1.0, 1e-3])
    for _ in range(50):
        chances = logistic(inputs @ weights)
        curvature = inputs.T @ (inputs * (chances * (1 - chances))[:, None]) + np.diag(ridge)
        step = np.linalg.solve(curvature, inputs.T @ (chances - same) + ridge * weights)
        # Whole steps of Newton's method overshoot where the chances are near 0 and 1.
        weights = weights - step * min(1.0, 1.0 / float(np.abs(step).max() + 1e-12))
    slope = max(float(weights[0]), 1e-2)
    raw = np.linspace(-1, 1, 65)
    curve = logistic(slope * (raw - center) / spread + weights[1])
    # A small straight part keeps the curve rising where it is flat.
    score = 0.002 * (raw + 1) / 2 + 0.998 * curve
    return Calibration(tuple(np.round(raw, 5).tolist()), tuple(np.round(score, 7).tolist()))


def held_out(cosines: FloatArray, pairs: Pairs, calibration: Calibration) -> HeldOut:
    """Keep the pairs that a criterion was tested on, with their calibrated scores."""
    texts = np.stack([pairs.first, pairs.second], axis=1)
    return HeldOut(calibration.apply(cosines), texts, pairs.same)


def spread(groups: IntArray, limit: int) -> IntArray:
    """Choose at most ``limit`` rows, of each group in proportion; all if there are so few."""
    if len(groups) <= limit:
        return np.arange(len(groups))
    order = np.random.default_rng(0).permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    return np.sort(order[np.linspace(0, len(order) - 1, limit).astype(int)])


def probe(model: Encoder) -> FloatArray:
    """Embed the fixed text by which a model is recognized, ``(d,)``."""
    text, condition = PROBE
    return np.asarray(np.round(model.encode([text], condition)[0], 4), np.float32)


def hash_of(labels: Sequence[object]) -> str:
    """Hash labels, in any order that is sorted."""
    return hashlib.sha256(json.dumps(labels, ensure_ascii=False).encode()).hexdigest()[:16]


def check_texts(name: str, texts: Sequence[str]) -> None:
    """Refuse a single text in place of a sequence, and a blank one, by its index."""
    if isinstance(texts, str):
        raise InputError(f"{name!r} must be a sequence of texts; got the text {texts[:40]!r}.")
    for row, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{name!r} must have text at index {row}; got {text!r}.")


def value_name(value: object) -> str | None:
    """Return a label as a text; None for a missing one: None, NaN, pandas' NA and NaT, or blank."""
    name = str(value).strip()
    is_missing = value is None or (not isinstance(value, str) and name in _MISSING)
    return None if is_missing else name or None


def cosines(vectors: FloatArray, pairs: Pairs) -> FloatArray:
    """Compute the cosines of pairs of unit vectors, ``(p,)``."""
    products: FloatArray = (vectors @ vectors.T)[pairs.first, pairs.second]
    return products


def span_of(points: Float64Array) -> Float64Array:
    """Return an orthonormal basis of the space of points, ``(r, d)``."""
    if len(points) >= points.shape[1]:
        return np.eye(points.shape[1])
    _, lengths, basis = np.linalg.svd(points, full_matrices=False)
    return np.asarray(basis[lengths > 1e-6])


def taken(pairs: Pairs, rows: IntArray) -> Pairs:
    """Select some of the pairs."""
    return Pairs(pairs.first[rows], pairs.second[rows], pairs.same[rows])
