"""Learn a criterion from labeled pairs: a frozen model, and a second of arithmetic.

Kernel ridge regression on products of vectors gives a bilinear form, of which the positive part
becomes a map. Ridge and weight are chosen by cross-validation over texts. Where nothing beats the
scores of the condition alone, the criterion falls back to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from condsim.errors import InputError
from condsim.model.criterion import (
    Criterion,
    Encoder,
    Figures,
    features,
    rounded,
    under_condition,
    unit,
)
from condsim.model.learned_figures import (
    MARGIN,
    MAX_PAIRS,
    MIN_LABELS,
    USUAL_WEIGHT,
    Fit,
    Pairs,
    area_under_curve,
    check_texts,
    cosines,
    fit_logistic,
    hash_of,
    held_out,
    interval,
    probe,
    span_of,
    spread,
    taken,
    value_name,
)
from condsim.types import FloatArray, IntArray, shortened

_RANK = 32
_RIDGES = (0.3, 1.0, 3.0)
_WEIGHTS = (0.7, 2.0, 6.0)
_FOLDS = 3
_REPEATS = 6
# Texts among which pairs that follow are looked for, and how many of these are used.
_MAX_TEXTS = 2_000
_MAX_IMPLIED = 500
# Divided by the root of the number of tested pairs of the rarer label: the AUC to gain.
_MARGIN_OF_ONE = 0.15


def learn_pairs(
    model: Encoder,
    first: Sequence[str],
    second: Sequence[str],
    same: Sequence[object],
    *,
    condition: str,
) -> Criterion:
    """Learn a criterion from labeled pairs; see `EmbeddingScorer.learn_pairs`."""
    labeled = checked_pairs(first, second, same)
    if len(labeled) < MIN_LABELS:
        raise InputError(
            f"A criterion is learned from {MIN_LABELS} or more labeled pairs; got {len(labeled)}."
        )
    if len(set(labeled.values())) < 2:
        raise InputError("All pairs have the same label. Some must be the same, some different.")
    distinct = sorted({text for pair in labeled for text in pair})
    index = {text: row for row, text in enumerate(distinct)}
    pairs = Pairs(
        np.array([index[one] for one, _ in labeled], np.int64),
        np.array([index[other] for _, other in labeled], np.int64),
        np.array(list(labeled.values()), np.bool_),
    )
    pairs = _with_implied(pairs, len(distinct))
    vectors = features(model, distinct, condition)
    fit, ridge = _chosen_map(vectors, taken(pairs, spread(pairs.same.astype(int), MAX_PAIRS)))
    mapping = rounded(_map_of(vectors, pairs, ridge)) if fit.helps else vectors[:0]
    return Criterion(
        condition=condition,
        values=(),
        model=model.name,
        probe=probe(model),
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
        labels=hash_of(sorted([*pair, is_same] for pair, is_same in labeled.items())),
        encoder=model,
        held_out=fit.held_out,
    )


def checked_pairs(
    first: Sequence[str], second: Sequence[str], same: Sequence[object]
) -> dict[tuple[str, str], bool]:
    """Return whether each distinct labeled pair is the same."""
    check_texts("first", first)
    check_texts("second", second)
    if not len(first) == len(second) == len(same):
        raise InputError(
            "Pairs need a first text, a second text and a label each; got "
            f"{len(first)}, {len(second)} and {len(same)}."
        )
    labeled: dict[tuple[str, str], bool] = {}
    for row, (text1, text2, label) in enumerate(zip(first, second, same, strict=True)):
        name = value_name(label)
        if name is None or text1 == text2:
            continue
        if label not in (0, 1):
            raise InputError(
                f"'same' must be True, False or missing; got {label!r} at index {row}."
            )
        pair = (min(text1, text2), max(text1, text2))
        if labeled.setdefault(pair, bool(label)) != bool(label):
            raise InputError(
                f"The pair at index {row} is labeled both the same and different: "
                f"{shortened(text1, 40)!r} and {shortened(text2, 40)!r}."
            )
    return labeled


def _with_implied(pairs: Pairs, texts: int) -> Pairs:
    """Add the pairs that follow: what is the same as one text differs from what that differs from.

    Labels that contradict each other imply nothing: groups of texts with such a pair stay as given.
    """
    if texts > _MAX_TEXTS:
        return pairs
    group = np.arange(texts)
    for first, second in zip(pairs.first[pairs.same], pairs.second[pairs.same], strict=True):
        group[group == group[first]] = group[second]
    one, other = group[pairs.first], group[pairs.second]
    torn = np.isin(group, one[~pairs.same & (one == other)])
    differ = np.zeros((texts, texts), np.bool_)
    differ[one[~pairs.same], other[~pairs.same]] = True
    differ |= differ.T
    first, second = np.triu_indices(texts, 1)
    same = group[first] == group[second]
    implied = (same | differ[group[first], group[second]]) & ~torn[first] & ~torn[second]
    implied[_places(pairs, texts)] = False
    rows = np.flatnonzero(implied)
    rows = rows[spread(same[rows].astype(int), _MAX_IMPLIED)]
    more = Pairs(first[rows], second[rows], same[rows])
    return Pairs(*(np.concatenate(both) for both in zip(pairs, more, strict=True)))


def _places(pairs: Pairs, texts: int) -> IntArray:
    """Find the places of pairs in `np.triu_indices`."""
    low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    return np.asarray(low * (2 * texts - low - 1) // 2 + high - low - 1)


def _chosen_map(vectors: FloatArray, pairs: Pairs) -> tuple[Fit, float]:
    """Choose ridge and weight by AUC; each pair is scored by maps that lack both of its texts."""
    plain = under_condition(vectors)
    base = cosines(plain, pairs)
    best, best_weight, best_ridge, best_auc, best_zero = base, USUAL_WEIGHT, _RIDGES[0], -1.0, 1.0
    tested = np.ones(len(base), np.bool_)
    for ridge in _RIDGES:
        folds = list(_fold_maps(vectors, pairs, ridge))
        for weight in _WEIGHTS:
            total, count = np.zeros(len(base)), np.zeros(len(base))
            for rows, mapping in folds:
                joint = unit(np.concatenate([weight**0.5 * plain, vectors @ mapping.T], axis=1))
                total[rows] += cosines(joint, taken(pairs, rows))
                count[rows] += 1
            covered = count > 0
            if len(set(pairs.same[covered].tolist())) < 2:
                continue
            scores = np.where(covered, total / np.maximum(count, 1), base).astype(np.float32)
            auc = area_under_curve(scores[covered], pairs.same[covered])
            if auc > best_auc + MARGIN:
                best, best_weight, best_ridge, best_auc = scores, weight, ridge, auc
                tested, best_zero = covered, area_under_curve(base[covered], pairs.same[covered])
    # The fewer pairs were tested, the more must be gained.
    rarer = min(int(pairs.same[tested].sum()), int((~pairs.same[tested]).sum()))
    helps = best_auc > best_zero + _MARGIN_OF_ONE / math.sqrt(max(rarer, 1))
    used = (best if helps else base)[tested]
    tested_pairs = taken(pairs, np.flatnonzero(tested))
    low, high = interval(used, tested_pairs, len(vectors))
    calibration = fit_logistic(used, tested_pairs.same)
    zero_shot = best_zero if best_auc >= 0 else area_under_curve(base, pairs.same)
    tested_scores = held_out(used, tested_pairs, calibration)
    fit = Fit(
        0.0, best_weight, helps, best_auc, low, high, zero_shot, None, calibration, tested_scores
    )
    return fit, best_ridge


def _fold_maps(
    vectors: FloatArray, pairs: Pairs, ridge: float
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the pairs whose texts are both in a fold, and the map of the pairs without either."""
    for repeat in range(_REPEATS):
        fold_of = np.random.default_rng(repeat).permutation(len(vectors)) % _FOLDS
        for fold in range(_FOLDS):
            inside = (fold_of[pairs.first] == fold).astype(int) + (fold_of[pairs.second] == fold)
            left = np.flatnonzero(inside == 0)
            if len(set(pairs.same[left].tolist())) == 2:
                yield np.flatnonzero(inside == 2), _map_of(vectors, taken(pairs, left), ridge)


def _map_of(vectors: FloatArray, pairs: Pairs, ridge: float) -> FloatArray:
    """Fit a map A, ``(r, d)``, so that A x · A y is high where x and y are the same.

    Kernel ridge regression of ±1 on symmetric products of the vectors gives the bilinear form
    ``x M y``; A is the root of its positive part, scaled so that its output has length 1 on
    average.
    """
    first, second, same = taken(pairs, spread(pairs.same.astype(int), MAX_PAIRS))
    left, right = vectors[first].astype(np.float64), vectors[second].astype(np.float64)
    kernel = (left @ left.T) * (right @ right.T) + (left @ right.T) * (right @ left.T)
    targets = np.where(same, 1.0, -1.0)
    dual = np.linalg.solve(kernel + ridge * np.eye(len(kernel)), targets - targets.mean())
    basis = span_of(np.concatenate([left, right]))
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
