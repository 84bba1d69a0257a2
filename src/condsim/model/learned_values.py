"""Learn a criterion from labeled texts: a frozen model, and a second of arithmetic.

A softmax on the model's vectors gives the probabilities of the values; two texts are as alike as
these and the vectors under the condition say. The embedding of each value's own words is one more
text of that value. Strength and weight are chosen by cross-validation over texts. Where nothing
beats the scores of the condition alone, the criterion falls back to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from condsim.errors import InputError
from condsim.model.criterion import (
    ALONE,
    Criterion,
    Encoder,
    Figures,
    check_values,
    features,
    rounded,
    softmax,
    under_condition,
    unit,
)
from condsim.model.learned_figures import (
    MIN_LABELS,
    USUAL_WEIGHT,
    WEIGHTS,
    Fit,
    Pairs,
    area_under_curve,
    check_texts,
    cosines,
    fit_logistic,
    gain_error,
    hash_of,
    held_out,
    interval,
    probe,
    span_of,
    spread,
    value_name,
)
from condsim.model.learned_pairs import checked_pairs
from condsim.types import Float64Array, FloatArray, IntArray, shortened

_FOLDS = 5
_REPEATS = 2
_STRENGTHS = (5.0, 20.0, 60.0)
# Strength and weight that hardly ever lose to the condition alone, and those that mostly gain more.
_CAREFUL = (20.0, 2.0)
_USUAL = (20.0, USUAL_WEIGHT)
# Standard errors by which a bolder setting must gain.
_ERRORS_FOR_USUAL = 1.0
_ERRORS_FOR_BEST = 1.5
_STEPS = 300
# Exponent of a value's frequency that its probability is divided by: frequent values would swallow
# rare ones.
_PRIOR = 0.5
# Texts that settings are chosen on.
_MAX_TEXTS = 700
# Share of labeled texts that may be assigned no value.
_TURNED_AWAY = 0.1


def learn(
    model: Encoder,
    texts: Sequence[str],
    values: Sequence[object],
    *,
    condition: str,
    pairs: tuple[Sequence[str], Sequence[str], Sequence[object]] | None = None,
) -> Criterion:
    """Learn a criterion from labeled texts; see `EmbeddingScorer.learn`."""
    labeled = _labeled(texts, values)
    if pairs is not None:
        _spread_values(labeled, checked_pairs(*pairs))
    _check_counts(labeled)
    names = sorted(set(labeled.values()))
    recognized = probe(model)
    check_values(names, recognized)
    distinct = list(labeled)
    value_of = np.array([names.index(labeled[text]) for text in distinct], np.int64)
    vectors = features(model, distinct, condition)
    words = features(model, names, condition)
    chosen = spread(value_of, _MAX_TEXTS)
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
        probe=recognized,
        weights=weights,
        bias=np.round(bias, 5).astype(np.float32),
        centers=centers,
        limit=limit,
        map=np.zeros((0, vectors.shape[1]), np.float32),
        weight=fit.weight if fit.helps else ALONE,
        helps=fit.helps,
        calibration=fit.calibration,
        figures=figures,
        labels=hash_of(sorted(labeled.items())),
        encoder=model,
        held_out=fit.held_out,
    )


def _labeled(texts: Sequence[str], values: Sequence[object]) -> dict[str, str]:
    """Return the value of each distinct labeled text."""
    check_texts("texts", texts)
    if len(texts) != len(values):
        raise InputError(
            f"There must be a value for each text; got {len(texts)} texts and {len(values)} values."
        )
    labeled: dict[str, str] = {}
    for text, value in zip(texts, values, strict=True):
        name = value_name(value)
        if name is None:
            continue
        if labeled.setdefault(text, name) != name:
            raise InputError(
                f"The text {shortened(text, 60)!r} has two values, {labeled[text]!r} and {name!r}. "
                "Give each text one."
            )
    return labeled


def _spread_values(labeled: dict[str, str], pairs: Mapping[tuple[str, str], bool]) -> None:
    """Give a text the value of the texts that it is the same as."""
    same_as: dict[str, list[str]] = {}
    for (first, second), is_same in pairs.items():
        if is_same:
            same_as.setdefault(first, []).append(second)
            same_as.setdefault(second, []).append(first)
    reached = list(labeled)
    for text in reached:
        for other in same_as.get(text, ()):
            if other not in labeled:
                labeled[other] = labeled[text]
                reached.append(other)
    for (first, second), is_same in pairs.items():
        known = first in labeled and second in labeled
        if known and (labeled[first] == labeled[second]) != is_same:
            raise InputError(
                f"{shortened(first, 40)!r} and {shortened(second, 40)!r} are labeled "
                f"{'the same' if is_same else 'different'}, but their values are "
                f"{labeled[first]!r} and {labeled[second]!r}."
            )


def _check_counts(labeled: Mapping[str, str]) -> None:
    counts = Counter(labeled.values())
    if len(labeled) < MIN_LABELS:
        raise InputError(
            f"A criterion is learned from {MIN_LABELS} or more labeled texts; got {len(labeled)}."
        )
    if len(counts) < 2:
        (value,) = counts
        raise InputError(f"All labeled texts have the value {value!r}. Label texts of another one.")
    if max(counts.values()) < 2:
        raise InputError("All labeled texts have different values. Some texts must share a value.")


def _chosen_fit(vectors: FloatArray, value_of: IntArray, words: FloatArray) -> Fit:
    """Choose strength and weight by the AUC of pairs over folds of texts.

    The weight of the condition is lowered only for a gain beyond its standard error: with few
    labels, the setting that happens to do best on them may lose on other texts.
    """
    rows, columns = np.triu_indices(len(vectors), 1)
    pairs = Pairs(rows, columns, value_of[rows] == value_of[columns])
    base = cosines(under_condition(vectors), pairs)
    zero_shot = area_under_curve(base, pairs.same)
    scores: dict[tuple[float, float], FloatArray] = {}
    accuracies: dict[float, float] = {}
    for strength in _STRENGTHS:
        repeats = list(_held_out_probabilities(vectors, value_of, words, strength))
        accuracies[strength] = float(
            np.mean([(p.argmax(axis=1) == value_of).mean() for p in repeats])
        )
        for weight in WEIGHTS:
            joint = [_joint_cosines(p, base, weight, pairs) for p in repeats]
            scores[strength, weight] = np.mean(joint, axis=0)
    aucs = {key: area_under_curve(found, pairs.same) for key, found in scores.items()}

    def gains(better: tuple[float, float], than: tuple[float, float], errors: float) -> bool:
        error = gain_error(scores[better], scores[than], pairs, len(vectors))
        return aucs[better] - aucs[than] > errors * error

    best = max(aucs, key=lambda key: aucs[key])
    if not gains(best, _USUAL, _ERRORS_FOR_BEST):
        best = _USUAL if gains(_USUAL, _CAREFUL, _ERRORS_FOR_USUAL) else _CAREFUL
    helps = aucs[best] > zero_shot
    used = scores[best] if helps else base
    low, high = interval(used, pairs, len(vectors))
    strength, weight = best
    calibration = fit_logistic(used, pairs.same)
    return Fit(
        strength=strength,
        weight=weight,
        helps=helps,
        auc=aucs[best],
        low=low,
        high=high,
        zero_shot=zero_shot,
        accuracy=accuracies[strength],
        calibration=calibration,
        held_out=held_out(used, pairs, calibration),
    )


def _joint_cosines(
    probabilities: FloatArray, base: FloatArray, weight: float, pairs: Pairs
) -> FloatArray:
    """Compute the cosines of ``[√w c, p]`` from the cosines of c."""
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
    """Deal texts to folds, each value evenly, ``(n,)``."""
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
    basis = span_of(inputs - mean)  # (r, d)
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
    bias = weights[:, -1] - full @ mean - _PRIOR * np.log(targets.sum(axis=0))
    return full.astype(np.float32), bias.astype(np.float32)


def _softmax64(logits: Float64Array) -> Float64Array:
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=1, keepdims=True))


def _centers(vectors: FloatArray, value_of: IntArray, count: int) -> FloatArray:
    return unit(np.stack([vectors[value_of == value].mean(axis=0) for value in range(count)]))


def _limits(
    vectors: FloatArray, value_of: IntArray, centers: FloatArray
) -> tuple[float, float, float | None]:
    """Find the lowest cosine of a known text, and how often known and unknown ones are misjudged.

    Each text is compared with centers made without it, and as an unknown one with the
    other values' centers.
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
