"""Baselines of words; two of them are fitted on the gold labels of a part of the data."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any, Self, TypeAlias

import numpy as np

from condsim.errors import InputError, check_name, require
from condsim.types import Float64Array, FloatArray, Task

# scikit-learn's default: words of two characters or more.
_WORD = re.compile(r"\b\w\w+\b")


def tokens_of(text: str) -> list[str]:
    """List the lower-cased words of two characters or more, in their order."""
    return _WORD.findall(text.lower())


def _words_and_bigrams(text: str) -> list[str]:
    words = tokens_of(text)
    return words + [f"{first} {second}" for first, second in pairwise(words)]


class WordOverlapScorer:
    """Jaccard overlap of the lower-cased words of the two sentences; blind to the condition."""

    name = "word-overlap"

    def score(
        self, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str] | None
    ) -> FloatArray:
        """Divide shared words by all words, in [0, 1], ``(n,)``; 0 if there are none."""
        overlaps = []
        for sentence1, sentence2 in zip(sentences1, sentences2, strict=True):
            words1, words2 = set(tokens_of(sentence1)), set(tokens_of(sentence2))
            overlaps.append(len(words1 & words2) / max(1, len(words1 | words2)))
        return np.asarray(overlaps, dtype=np.float32)


class TfIdfCosineScorer:
    """Cosine of the TF-IDF vectors of the two sentences; blind to the condition.

    The vectors are as in scikit-learn's ``TfidfVectorizer``, fitted on the distinct sentences
    that are scored.
    """

    name = "tfidf-cosine"

    def score(
        self, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str] | None
    ) -> FloatArray:
        """Compute cosines in [0, 1], ``(n,)``; 0 if a sentence has no word."""
        text = require("sklearn.feature_extraction.text", extra="train")
        distinct = list(dict.fromkeys([*sentences1, *sentences2]))
        vectorizer = text.TfidfVectorizer()
        if not any(map(tokens_of, distinct)):
            return np.zeros(len(sentences1), dtype=np.float32)
        self._fit(vectorizer, distinct)
        first, second = vectorizer.transform(sentences1), vectorizer.transform(sentences2)
        cosines = np.asarray(first.multiply(second).sum(axis=1), dtype=np.float32).ravel()
        return np.clip(cosines, 0, 1)

    def _fit(self, vectorizer: Any, sentences: list[str]) -> None:  # noqa: ANN401
        """Learn the words and their idf."""
        vectorizer.fit(sentences)


class TfIdfRidge:
    """Linear ridge regression with an intercept on L2-normalized TF-IDF features, in numpy.

    Features and fit are as in scikit-learn's ``TfidfVectorizer`` and ``Ridge``, without which
    `condsim evaluate` must run; the tests compare both.
    """

    def __init__(self, *, alpha: float = 8.0, max_features: int = 100_000) -> None:
        self._alpha, self._max_features = alpha, max_features
        # The column of each term, and the idf and the coefficient of each column.
        self._vocabulary: dict[str, int] = {}
        self._idf = np.zeros(0)
        self._coefficients = np.zeros(0)
        self._intercept: float | None = None

    def fit(self, documents: Iterable[list[str]], targets: Float64Array) -> None:
        """Learn from the terms of n documents and their finite targets, ``(n,)``."""
        if not targets.size:
            raise InputError("A baseline must be fitted on at least one row with a label.")
        documents = list(documents)
        frequent = Counter(chain.from_iterable(documents)).most_common(self._max_features)
        self._vocabulary = {term: column for column, (term, _) in enumerate(frequent)}
        counts = _SparseMatrix(documents, self._vocabulary)
        frequency = np.bincount(counts.columns, minlength=len(frequent))
        self._idf = np.log((1 + targets.size) / (1 + frequency)) + 1
        features = counts.weighted(self._idf)
        means = features.transposed_times(np.full(targets.size, 1 / targets.size))  # (d,)
        centered = targets - targets.mean()
        self._coefficients = _solve_ridge(features, means, centered, alpha=self._alpha)
        self._intercept = float(targets.mean()) - _inner(means, self._coefficients)

    def predict(self, documents: Iterable[list[str]]) -> Float64Array:
        """Predict the target of each document from its terms, ``(n,)``."""
        if self._intercept is None:
            raise InputError("This baseline is not fitted; call fit first.")
        features = _SparseMatrix(documents, self._vocabulary).weighted(self._idf)
        return features.times(self._coefficients) + self._intercept


class _SparseMatrix:
    """Counts of the terms of each document, ``(n, d)``, as entries; the core has no scipy."""

    def __init__(self, documents: Iterable[list[str]], vocabulary: dict[str, int]) -> None:
        rows, columns, values = array("q"), array("q"), array("d")
        self.height, self.width = 0, len(vocabulary)
        for document in documents:
            for term, number in Counter(document).items():
                if term in vocabulary:
                    rows.append(self.height)
                    columns.append(vocabulary[term])
                    values.append(number)
            self.height += 1
        self.rows, self.columns = np.array(rows, np.int64), np.array(columns, np.int64)
        self.values = np.array(values, np.float64)

    def weighted(self, weights: Float64Array) -> Self:
        """Multiply the columns by weights, ``(d,)``, in place, and scale each row to length 1."""
        self.values *= weights[self.columns]
        squares = np.bincount(self.rows, np.square(self.values), minlength=self.height)
        self.values /= np.sqrt(squares)[self.rows]
        return self

    def times(self, vector: Float64Array) -> Float64Array:
        """Multiply by a vector ``(d,)``, ``(n,)``."""
        products = self.values * vector[self.columns]
        return np.asarray(np.bincount(self.rows, products, minlength=self.height), np.float64)

    def transposed_times(self, vector: Float64Array) -> Float64Array:
        """Multiply the transpose by a vector ``(n,)``, ``(d,)``."""
        products = self.values * vector[self.rows]
        return np.asarray(np.bincount(self.columns, products, minlength=self.width), np.float64)


def _solve_ridge(
    features: _SparseMatrix, means: Float64Array, targets: Float64Array, *, alpha: float
) -> Float64Array:
    """Solve ``(Xc' Xc + alpha I) w = Xc' y``; Xc are the centered features ``X - 1 means'``.

    Conjugate gradients (Hestenes and Stiefel, 1952) only multiply by the sparse matrix, so memory
    grows with the number of words, not its square. The products are centered, not the features,
    which would no longer be sparse. A few dozen steps are enough.
    """

    def centered_transpose(vector: Float64Array) -> Float64Array:
        return features.transposed_times(vector) - means * float(vector.sum())

    coefficients = np.zeros(features.width)
    residual = centered_transpose(targets)
    direction = residual.copy()
    size = start = _inner(residual, residual)
    for _ in range(2000):
        if size <= 1e-18 * start:
            break
        through = features.times(direction) - _inner(means, direction)  # (n,)
        image = centered_transpose(through) + alpha * direction
        step = size / _inner(direction, image)
        coefficients += step * direction
        residual -= step * image
        previous, size = size, _inner(residual, residual)
        direction = residual + (size / previous) * direction
    return coefficients


def _inner(first: Float64Array, second: Float64Array) -> float:
    """Multiply without BLAS, whose threads cost more than they save on such vectors."""
    return float(np.sum(first * second))


class _RidgeScorer(ABC):
    """Ridge regression on the TF-IDF of a part of each row."""

    name: str

    def __init__(self) -> None:
        self.fitted_on: str | None = None
        self._ridge = TfIdfRidge()

    @abstractmethod
    def _terms(
        self, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str] | None
    ) -> Iterable[list[str]]:
        """List the terms of each row, of the part that the regression sees."""

    def fit_task(self, task: Task) -> Self:
        """Fit on the rows of a task that have a label."""
        rows = task.labeled()
        terms = self._terms(rows.sentences1, rows.sentences2, rows.conditions)
        self._ridge.fit(terms, np.asarray(rows.gold, dtype=np.float64))
        self.fitted_on = f"{task.name} {task.revision}"
        return self

    def score(
        self, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str] | None
    ) -> FloatArray:
        """Predict the gold similarity of each row, cut to [0, 1], ``(n,)``."""
        terms = self._terms(sentences1, sentences2, conditions)
        return np.clip(self._ridge.predict(terms), 0, 1).astype(np.float32)


class ConditionOnlyScorer(_RidgeScorer):
    """Ridge regression on the TF-IDF of the condition; never sees the sentences.

    Words and pairs of adjacent words, as ``TfidfVectorizer(ngram_range=(1, 2))``. The penalty 8
    reaches a higher Spearman on the dev file of the re-annotated C-STS than 1 (42.4 against 41.3),
    fitted on its train file, so that the baseline is a strong one.
    """

    name = "condition-only"

    def _terms(
        self, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str] | None
    ) -> Iterable[list[str]]:
        return map(_words_and_bigrams, conditions or ("",) * len(sentences1))


class SentencesOnlyScorer(_RidgeScorer):
    """Ridge regression on the TF-IDF of the two sentences; never sees the condition.

    The terms are the words and pairs of adjacent words of both sentences in either order; those
    in both are marked as shared.
    """

    name = "sentences-only"

    def _terms(
        self, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str] | None
    ) -> Iterable[list[str]]:
        for pair in zip(sentences1, sentences2, strict=True):
            terms1, terms2 = map(_words_and_bigrams, pair)
            shared = set(terms1) & set(terms2)
            single = [term for term in terms1 + terms2 if term not in shared]
            yield single + [f"both: {term}" for term in sorted(shared)]


FittedBaseline: TypeAlias = ConditionOnlyScorer | SentencesOnlyScorer
Baseline: TypeAlias = FittedBaseline | TfIdfCosineScorer | WordOverlapScorer

BASELINES: dict[str, type[Baseline]] = {
    "condition-only": ConditionOnlyScorer,
    "sentences-only": SentencesOnlyScorer,
    "tfidf-cosine": TfIdfCosineScorer,
    "word-overlap": WordOverlapScorer,
}

UNFITTED_BASELINES = ("tfidf-cosine", "word-overlap")
"""Baselines that learn nothing, and so need only a name."""


def baseline(name: str, *, train: Task | None = None) -> Baseline:
    """Make a baseline, fitted if there are rows to learn from.

    Args:
        name: A name in :data:`BASELINES`.
        train: The rows to learn from; a baseline that learns nothing ignores them.

    Raises:
        InputError: If no baseline has this name or no row of ``train`` has a label.
    """
    check_name("baseline", name, BASELINES)
    scorer = BASELINES[name]()
    if train is not None and isinstance(scorer, FittedBaseline):
        scorer.fit_task(train)
    return scorer


def out_of_fold(
    task: Task, *, name: str = "condition-only", folds: int = 10, seed: int = 0
) -> FloatArray:
    """Predict each row with a baseline fitted on the other folds of the same file.

    The rows of a sentence pair, in either order, are always in one fold, so no row is predicted by
    a fit that has seen its pair, though perhaps one of its sentences in another pair. Fitted on a
    separate train file the baseline is usually stronger.

    Some folds are empty if there are few sentence pairs. The split does not depend on the order of
    the rows. A single condition predicts nothing, so all rows then get the mean label. Predictions
    are in [0, 1], ``(n,)``; 0.5 if no other fold has a label.
    """
    # Imported here, because condsim.load imports this module and must be fast.
    from condsim.data.tasks import draw_folds

    pairs = list(zip(task.sentences1, task.sentences2, strict=True))
    fold = draw_folds(pairs, folds=folds, seed=seed)
    predictions = np.full(len(task), 0.5, dtype=np.float32)
    if name == ConditionOnlyScorer.name and len(set(task.conditions or ())) == 1:
        # A fold's own mean would rank rows in reverse: high labels lower the mean of the others.
        predictions[:] = task.labeled().gold.mean() if task.valid.any() else 0.5
        return predictions
    for number in range(folds):
        rows = np.flatnonzero(fold == number)
        train = replace(task, labels=np.where(fold == number, np.float32(np.nan), task.labels))
        if rows.size == 0 or not train.valid.any():
            continue
        held_out = task.take(rows)
        predictions[rows] = baseline(name, train=train).score(
            held_out.sentences1, held_out.sentences2, held_out.conditions
        )
    return predictions
