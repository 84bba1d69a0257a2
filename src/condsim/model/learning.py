"""Learn a criterion from labeled texts or pairs: a frozen model, and a second of arithmetic.

From texts, a softmax on the model's vectors gives the probabilities of the values; two texts are as
alike as these and the vectors under the condition say. The embedding of each value's own words is
one more text of that value. From pairs, kernel ridge regression on products of vectors gives a
bilinear form, of which the positive part becomes a map.

Strength and weights are chosen by cross-validation over texts. Where nothing beats the condition
alone, the criterion falls back to it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from condsim.errors import InputError
from condsim.model.applicability import PROBE, logistic
from condsim.model.calibration import Calibration
from condsim.model.criterion import (
    Criterion,
    Encoder,
    Figures,
    features,
    is_known,
    rounded,
    softmax,
    unit,
)
from condsim.types import BoolArray, Float64Array, FloatArray, IntArray, shortened

MIN_LABELS = 8
"""Fewer labeled texts or pairs teach nothing that could be measured."""

_FOLDS = 5
_REPEATS = 2
_STRENGTHS = (5.0, 20.0, 60.0)
_WEIGHTS = (0.25, 0.7, 2.0)
# The usual best; others must be better than it by this much AUC.
_USUAL = (20.0, 0.7)
_MARGIN = 0.002
_STEPS = 300
# Texts that settings are chosen on, and texts of the bootstrap.
_MAX_TEXTS = 700
_MAX_BOOTSTRAP_TEXTS = 300
_BOOTSTRAPS = 200
# Share of labeled texts that may be assigned no value.
_TURNED_AWAY = 0.1
_RANK = 32
_PAIR_RIDGES = (0.3, 1.0, 3.0)
_PAIR_WEIGHTS = (0.7, 2.0, 6.0)
_PAIR_FOLDS = 3
_PAIR_REPEATS = 6
_PAIR_MARGIN = 0.15
_MAX_PAIRS = 3_000


class _Pairs(NamedTuple):
    """Pairs of texts by their indices, ``(p,)``, and whether each has the same value."""

    first: IntArray
    second: IntArray
    same: BoolArray


def learn(
    model: Encoder, texts: Sequence[str], values: Sequence[object], *, condition: str
) -> Criterion:
    """Learn a criterion from labeled texts; see `EmbeddingScorer.learn`."""
    labeled = _labeled(texts, values)
    names = sorted(set(labeled.values()))
    distinct = list(labeled)
    value_of = np.array([names.index(labeled[text]) for text in distinct], np.int64)
    vectors = features(model, distinct, condition)
    words = features(model, names, condition)
    chosen = _spread(value_of, _MAX_TEXTS)
    fit = _chosen_fit(vectors[chosen], value_of[chosen], words)
    weights, bias = _softmax_of(vectors, value_of, words, fit.strength)
    weights = rounded(weights)
    centers = rounded(_centers(vectors, value_of, len(names)))
    limit, turned_away, let_in = _limits(vectors, value_of, centers)
    figures = Figures(
        labels=len(distinct),
        auc=fit.auc if fit.helps else fit.zero_shot,
        low=fit.low,
        high=fit.high,
        zero_shot=fit.zero_shot,
        accuracy=fit.accuracy,
        majority=float(np.bincount(value_of).max() / len(value_of)),
        turned_away=turned_away,
        let_in=let_in,
    )
    return Criterion(
        condition=condition,
        values=tuple(names),
        model=model.name,
        probe=_probe(model),
        weights=weights,
        bias=np.round(bias, 5).astype(np.float32),
        centers=centers,
        limit=limit,
        map=np.zeros((0, vectors.shape[1]), np.float32),
        weight=fit.weight,
        helps=fit.helps,
        calibration=fit.calibration,
        figures=figures,
        labels=_hash_of(sorted(labeled.items())),
        encoder=model,
    )


def learn_pairs(
    model: Encoder,
    first: Sequence[str],
    second: Sequence[str],
    same: Sequence[object],
    *,
    condition: str,
) -> Criterion:
    """Learn a criterion from labeled pairs; see `EmbeddingScorer.learn_pairs`."""
    labeled = _labeled_pairs(first, second, same)
    distinct = sorted({text for pair in labeled for text in pair})
    index = {text: row for row, text in enumerate(distinct)}
    pairs = _Pairs(
        np.array([index[one] for one, _ in labeled], np.int64),
        np.array([index[other] for _, other in labeled], np.int64),
        np.array(list(labeled.values()), np.bool_),
    )
    vectors = features(model, distinct, condition)
    fit, ridge = _chosen_map(vectors, _taken(pairs, _spread(pairs.same.astype(int), _MAX_PAIRS)))
    mapping = rounded(_map_of(vectors, pairs, ridge)) if fit.helps else vectors[:0]
    return Criterion(
        condition=condition,
        values=(),
        model=model.name,
        probe=_probe(model),
        weights=np.zeros((0, vectors.shape[1]), np.float32),
        bias=np.zeros(0, np.float32),
        centers=np.zeros((0, vectors.shape[1]), np.float32),
        limit=-1.0,
        map=mapping,
        weight=fit.weight,
        helps=fit.helps,
        calibration=fit.calibration,
        figures=Figures(
            labels=len(labeled),
            auc=fit.auc if fit.helps else fit.zero_shot,
            low=fit.low,
            high=fit.high,
            zero_shot=fit.zero_shot,
        ),
        labels=_hash_of(sorted([*pair, is_same] for pair, is_same in labeled.items())),
        encoder=model,
    )


class _Fit(NamedTuple):
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


# Checks ------------------------------------------------------------------------------------------


def value_name(value: object) -> str | None:
    """Return a label as a text; None for a missing one: None, NaN or blank."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return str(value).strip() or None


def _labeled(texts: Sequence[str], values: Sequence[object]) -> dict[str, str]:
    """Return the value of each distinct labeled text."""
    if len(texts) != len(values):
        raise InputError(
            f"There must be a value for each text; got {len(texts)} texts and {len(values)} values."
        )
    labeled: dict[str, str] = {}
    for row, (text, value) in enumerate(zip(texts, values, strict=True)):
        _check_text("texts", text, row)
        name = value_name(value)
        if name is None:
            continue
        if labeled.setdefault(text, name) != name:
            raise InputError(
                f"The text {shortened(text, 60)!r} has two values, {labeled[text]!r} and {name!r}. "
                "Give each text one."
            )
    counts = Counter(labeled.values())
    if len(labeled) < MIN_LABELS:
        raise InputError(
            f"A criterion is learned from {MIN_LABELS} or more labeled texts; got {len(labeled)}."
        )
    if len(counts) < 2:
        raise InputError(f"All labeled texts have the value {value!r}. Label texts of another one.")
    if max(counts.values()) < 2:
        raise InputError(
            "Every labeled text has a value of its own. Some texts must share a value."
        )
    return labeled


def _labeled_pairs(
    first: Sequence[str], second: Sequence[str], same: Sequence[object]
) -> dict[tuple[str, str], bool]:
    """Return whether each distinct labeled pair is the same."""
    if not len(first) == len(second) == len(same):
        raise InputError(
            "Pairs need a first text, a second text and a label each; got "
            f"{len(first)}, {len(second)} and {len(same)}."
        )
    labeled: dict[tuple[str, str], bool] = {}
    for row, (text1, text2, label) in enumerate(zip(first, second, same, strict=True)):
        _check_text("first", text1, row)
        _check_text("second", text2, row)
        name = value_name(label)
        if name is None or text1 == text2:
            continue
        if label not in (0, 1):
            raise InputError(f"'same' must be True, False or missing; got {label!r} at index {row}.")
        pair = (min(text1, text2), max(text1, text2))
        if labeled.setdefault(pair, bool(label)) != bool(label):
            raise InputError(
                f"The pair at index {row} is labeled both the same and different: "
                f"{shortened(text1, 40)!r} and {shortened(text2, 40)!r}."
            )
    if len(labeled) < MIN_LABELS:
        raise InputError(
            f"A criterion is learned from {MIN_LABELS} or more labeled pairs; got {len(labeled)}."
        )
    if len(set(labeled.values())) < 2:
        raise InputError("All pairs have the same label. Some must be the same, some different.")
    return labeled


def _check_text(name: str, text: object, row: int) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{name!r} must have text at index {row}; got {text!r}.")


# Values ------------------------------------------------------------------------------------------


def _chosen_fit(vectors: FloatArray, value_of: IntArray, words: FloatArray) -> _Fit:
    """Choose strength and weight by the AUC of pairs over folds of texts."""
    rows, columns = np.triu_indices(len(vectors), 1)
    pairs = _Pairs(rows, columns, value_of[rows] == value_of[columns])
    base = _cosines(vectors, pairs)
    zero_shot = area_under_curve(base, pairs.same)
    best, best_key, best_auc = base, _USUAL, -1.0
    accuracies: dict[float, float] = {}
    for strength in sorted(_STRENGTHS, key=lambda value: value != _USUAL[0]):
        held_out = list(_held_out_probabilities(vectors, value_of, words, strength))
        accuracies[strength] = float(
            np.mean([(p.argmax(axis=1) == value_of).mean() for p in held_out])
        )
        for weight in sorted(_WEIGHTS, key=lambda value: value != _USUAL[1]):
            scores = np.mean([_joint_cosines(p, base, weight, pairs) for p in held_out], axis=0)
            auc = area_under_curve(scores, pairs.same)
            if auc > best_auc + (_MARGIN if best_auc >= 0 else 0):
                best, best_key, best_auc = scores, (strength, weight), auc
    helps = best_auc > zero_shot
    used = best if helps else base
    low, high = _interval(used, pairs, len(vectors))
    strength, weight = best_key
    return _Fit(
        strength=strength,
        weight=weight,
        helps=helps,
        auc=best_auc,
        low=low,
        high=high,
        zero_shot=zero_shot,
        accuracy=accuracies[strength],
        calibration=_calibration(used, pairs.same),
    )


def _cosines(vectors: FloatArray, pairs: _Pairs) -> FloatArray:
    cosines: FloatArray = (vectors @ vectors.T)[pairs.first, pairs.second]
    return cosines


def _joint_cosines(
    probabilities: FloatArray, base: FloatArray, weight: float, pairs: _Pairs
) -> FloatArray:
    """Compute the cosines of ``[√w x, p]``, given those of x."""
    products = (probabilities @ probabilities.T)[pairs.first, pairs.second]
    lengths = np.sqrt(weight + (probabilities**2).sum(axis=1))
    joint = (weight * base + products) / (lengths[pairs.first] * lengths[pairs.second])
    return np.asarray(joint, np.float32)


def _held_out_probabilities(
    vectors: FloatArray, value_of: IntArray, words: FloatArray, strength: float
) -> Iterator[FloatArray]:
    """Compute the probabilities of each text by models that have not seen it, several times."""
    for repeat in range(_REPEATS):
        fold_of = _stratified(value_of, seed=repeat)
        probabilities = np.zeros((len(vectors), len(words)), np.float32)
        for fold in range(_FOLDS):
            left = fold_of != fold
            weights, bias = _softmax_of(vectors[left], value_of[left], words, strength)
            probabilities[~left] = softmax(vectors[~left] @ weights.T + bias)
        yield probabilities


def _stratified(value_of: IntArray, *, seed: int) -> IntArray:
    """Deal texts to folds, those of each value evenly, ``(n,)``."""
    order = np.random.default_rng(seed).permutation(len(value_of))
    order = order[np.argsort(value_of[order], kind="stable")]
    fold_of = np.empty(len(order), np.int64)
    fold_of[order] = np.arange(len(order)) % _FOLDS
    return fold_of


def _softmax_of(
    vectors: FloatArray, value_of: IntArray, words: FloatArray, strength: float
) -> tuple[FloatArray, FloatArray]:
    """Fit weights ``(k, d)`` and bias ``(k,)``: cross-entropy + |weights|² / (2 strength).

    The words of each value are one more text of it. Accelerated gradient descent (Nesterov, 1983,
    with restarts) in the space that the texts span.
    """
    inputs = np.concatenate([vectors, words]).astype(np.float64)
    targets = np.zeros((len(inputs), len(words)))
    targets[np.arange(len(inputs)), np.concatenate([value_of, np.arange(len(words))])] = 1
    mean = inputs.mean(axis=0)
    basis = _basis(inputs - mean)  # (r, d)
    points = np.concatenate([(inputs - mean) @ basis.T, np.ones((len(inputs), 1))], axis=1)
    step = 1 / (0.5 * np.linalg.norm(points, 2) ** 2 + 1 / strength)
    weights = previous = np.zeros((len(words), points.shape[1]))
    momentum = 0.0
    for _ in range(_STEPS):
        ahead = weights + momentum / (momentum + 3) * (weights - previous)
        errors = _softmax64(points @ ahead.T) - targets
        gradient = errors.T @ points + ahead / strength
        previous, weights = weights, ahead - step * gradient
        # A step uphill ends the momentum.
        momentum = 0.0 if (gradient * (weights - previous)).sum() > 0 else momentum + 1
        if np.abs(gradient).max() < 1e-3:
            break
    full = weights[:, :-1] @ basis
    return full.astype(np.float32), (weights[:, -1] - full @ mean).astype(np.float32)


def _basis(points: Float64Array) -> Float64Array:
    """Return an orthonormal basis of the space of points, ``(r, d)``."""
    if len(points) >= points.shape[1]:
        return np.eye(points.shape[1])
    _, lengths, basis = np.linalg.svd(points, full_matrices=False)
    return np.asarray(basis[lengths > 1e-6])


def _softmax64(logits: Float64Array) -> Float64Array:
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=1, keepdims=True))


def _centers(vectors: FloatArray, value_of: IntArray, count: int) -> FloatArray:
    return unit(np.stack([vectors[value_of == value].mean(axis=0) for value in range(count)]))


def _limits(
    vectors: FloatArray, value_of: IntArray, centers: FloatArray
) -> tuple[float, float, float | None]:
    """Find the lowest cosine of a known text, and how often known and unknown ones are misjudged.

    Each text is compared with centers made without it, and as an unknown one with those of the
    other values.
    """
    counts = np.bincount(value_of)
    cosines = vectors @ centers.T
    own = np.empty(len(vectors), np.float32)
    for row, value in enumerate(value_of.tolist()):
        rest = vectors[value_of == value].sum(axis=0) - vectors[row]
        own[row] = vectors[row] @ unit(rest[None])[0] if counts[value] > 1 else -1
    unknown = cosines.copy()
    unknown[np.arange(len(vectors)), value_of] = -1
    nearest_other = unknown.max(axis=1)
    nearest = np.maximum(own, nearest_other)[counts[value_of] > 1]
    limit = round(float(np.quantile(nearest, _TURNED_AWAY, method="lower")), 6)
    let_in = None if len(centers) < 3 else float((nearest_other >= limit).mean())
    return limit, float((nearest < limit).mean()), let_in


# Pairs -------------------------------------------------------------------------------------------


def _chosen_map(vectors: FloatArray, pairs: _Pairs) -> tuple[_Fit, float]:
    """Choose ridge and weight by AUC; each pair is scored by maps that lack both of its texts."""
    base = _cosines(vectors, pairs)
    best, best_weight, best_ridge, best_auc, best_zero = base, _USUAL[1], _PAIR_RIDGES[0], -1.0, 1.0
    tested = np.ones(len(base), np.bool_)
    for ridge in _PAIR_RIDGES:
        folds = list(_fold_maps(vectors, pairs, ridge))
        for weight in _PAIR_WEIGHTS:
            total, count = np.zeros(len(base)), np.zeros(len(base))
            for rows, mapping in folds:
                joint = unit(np.concatenate([weight**0.5 * vectors, vectors @ mapping.T], axis=1))
                total[rows] += _cosines(joint, _taken(pairs, rows))
                count[rows] += 1
            covered = count > 0
            if len(set(pairs.same[covered].tolist())) < 2:
                continue
            scores = np.where(covered, total / np.maximum(count, 1), base).astype(np.float32)
            auc = area_under_curve(scores[covered], pairs.same[covered])
            if auc > best_auc + _MARGIN:
                best, best_weight, best_ridge, best_auc = scores, weight, ridge, auc
                tested, best_zero = covered, area_under_curve(base[covered], pairs.same[covered])
    # The fewer pairs were tested, the more must be gained.
    rarer = min(int(pairs.same[tested].sum()), int((~pairs.same[tested]).sum()))
    helps = best_auc > best_zero + _PAIR_MARGIN / math.sqrt(max(rarer, 1))
    used = (best if helps else base)[tested]
    tested_pairs = _taken(pairs, np.flatnonzero(tested))
    low, high = _interval(used, tested_pairs, len(vectors))
    calibration = _calibration(used, tested_pairs.same)
    zero_shot = best_zero if best_auc >= 0 else area_under_curve(base, pairs.same)
    fit = _Fit(0.0, best_weight, helps, best_auc, low, high, zero_shot, None, calibration)
    return fit, best_ridge


def _fold_maps(
    vectors: FloatArray, pairs: _Pairs, ridge: float
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the pairs whose texts are both in a fold, and the map of the pairs without either."""
    for repeat in range(_PAIR_REPEATS):
        fold_of = np.random.default_rng(repeat).permutation(len(vectors)) % _PAIR_FOLDS
        for fold in range(_PAIR_FOLDS):
            inside = (fold_of[pairs.first] == fold).astype(int) + (fold_of[pairs.second] == fold)
            left = np.flatnonzero(inside == 0)
            if len(set(pairs.same[left].tolist())) == 2:
                yield np.flatnonzero(inside == 2), _map_of(vectors, _taken(pairs, left), ridge)


def _map_of(vectors: FloatArray, pairs: _Pairs, ridge: float) -> FloatArray:
    """Fit a map A, ``(r, d)``, so that A x · A y is high where x and y are the same.

    Kernel ridge regression of ±1 on symmetric products of the vectors gives the bilinear form
    ``x M y``; A is the root of its positive part, scaled so that its output has length 1 on
    average.
    """
    taken = _spread(pairs.same.astype(int), _MAX_PAIRS)
    first, second, same = _taken(pairs, taken)
    left, right = vectors[first].astype(np.float64), vectors[second].astype(np.float64)
    kernel = (left @ left.T) * (right @ right.T) + (left @ right.T) * (right @ left.T)
    targets = np.where(same, 1.0, -1.0)
    dual = np.linalg.solve(kernel + ridge * np.eye(len(kernel)), targets - targets.mean())
    basis = _basis(np.concatenate([left, right]))
    left, right = left @ basis.T, right @ basis.T
    form = (left * dual[:, None]).T @ right
    roots, directions = np.linalg.eigh((form + form.T) / 2)
    roots, directions = roots[::-1][:_RANK], directions[:, ::-1][:, :_RANK]
    positive = roots > 1e-9
    if not positive.any():
        return vectors[:0]
    mapping = (directions[:, positive] * np.sqrt(roots[positive])).T @ basis
    texts = vectors[np.unique(np.concatenate([first, second]))]
    length = np.sqrt(((texts @ mapping.T) ** 2).sum(axis=1).mean())
    return np.asarray(mapping / max(length, 1e-9), np.float32)


def _taken(pairs: _Pairs, rows: IntArray) -> _Pairs:
    return _Pairs(pairs.first[rows], pairs.second[rows], pairs.same[rows])


# Figures -----------------------------------------------------------------------------------------


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


def _interval(scores: FloatArray, pairs: _Pairs, texts: int) -> tuple[float, float]:
    """Compute a 95 % interval of the AUC by a bootstrap over texts."""
    chosen = np.flatnonzero((pairs.first < texts) & (pairs.second < texts))
    if texts > _MAX_BOOTSTRAP_TEXTS:
        few = np.zeros(texts, np.bool_)
        few[np.random.default_rng(0).permutation(texts)[:_MAX_BOOTSTRAP_TEXTS]] = True
        inside = np.flatnonzero(few[pairs.first] & few[pairs.second])
        chosen = inside if len(inside) > _MAX_BOOTSTRAP_TEXTS else chosen[:_MAX_PAIRS]
    first, second, same = _taken(pairs, chosen)
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


def _calibration(scores: FloatArray, same: BoolArray) -> Calibration:
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
    return Calibration(
        tuple(np.round(raw, 5).tolist()), tuple(np.round(score, 7).tolist())
    )


# Small helpers -----------------------------------------------------------------------------------


def _spread(groups: IntArray, limit: int) -> IntArray:
    """Choose at most ``limit`` rows, of each group in proportion; all if there are so few."""
    if len(groups) <= limit:
        return np.arange(len(groups))
    order = np.random.default_rng(0).permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    return np.sort(order[np.linspace(0, len(order) - 1, limit).astype(int)])


def _probe(model: Encoder) -> FloatArray:
    text, condition = PROBE
    return np.round(model.encode([text], condition)[0], 4)


def _hash_of(labels: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(labels, ensure_ascii=False).encode()).hexdigest()[:16]
