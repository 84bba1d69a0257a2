"""Baselines fitted and measured on one file, honestly: each row predicted by a fit without it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from condsim.errors import InputError, unknown_name
from condsim.scorers.baselines.tfidf import TfIdfCosineScorer, TfIdfRidge
from condsim.types import FloatArray, Task

WORD = re.compile(r"\b\w\w+\b")  # scikit-learn's default: words of two characters or more


class WordOverlapScorer:
    """Jaccard overlap of the lower-cased words of the two sentences; blind to the condition."""

    name = "word-overlap"

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
    ) -> FloatArray:
        """Scores each pair.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            conditions: Not looked at.

        Returns:
            Shared words over all words, in [0, 1], ``(n,)``; 0 if neither sentence has a word.
        """
        overlaps = []
        for sentence1, sentence2 in zip(sentences1, sentences2, strict=True):
            words1, words2 = set(_words(sentence1)), set(_words(sentence2))
            overlaps.append(len(words1 & words2) / max(1, len(words1 | words2)))
        return np.asarray(overlaps, dtype=np.float32)


class ConditionOnlyScorer:
    """Ridge regression on the TF-IDF of the condition; never sees the sentences.

    Words and pairs of adjacent words, as ``TfidfVectorizer(ngram_range=(1, 2))``. Sublinear term
    frequency makes no difference on conditions (words hardly repeat in one).
    The penalty: fitted on the re-annotated C-STS train file, alpha = 8 reaches a higher Spearman
    on its dev file than 1 (42.4 against 41.3), so the bar is set high on purpose.
    """

    name = "condition-only"

    def __init__(self, *, alpha: float = 8.0, max_features: int = 100_000) -> None:
        """Sets the regression up.

        Args:
            alpha: Weight of the ridge penalty, > 0.
            max_features: How many terms are kept at most, the most frequent first.
        """
        self.fitted_on: str | None = None
        self._ridge = TfIdfRidge(_words_and_bigrams, alpha=alpha, max_features=max_features)

    def fit(self, conditions: Sequence[str], gold: ArrayLike) -> ConditionOnlyScorer:
        """Fits on conditions and their gold similarities.

        Args:
            conditions: The condition of each row, length n.
            gold: Gold similarity in [0, 1], ``(n,)``, finite.

        Returns:
            The scorer itself.

        Raises:
            InputError: If there are no rows, the lengths differ or a label is missing.
        """
        self._ridge.fit(conditions, np.asarray(gold, dtype=np.float64))
        return self

    def fit_task(self, task: Task) -> ConditionOnlyScorer:
        """Fits on the rows of a task that have a label.

        Args:
            task: The rows to learn from; without conditions the mean label is all there is.

        Returns:
            The scorer itself.

        Raises:
            InputError: If no row has a label.
        """
        rows = np.flatnonzero(task.valid)
        conditions = task.conditions or ("",) * len(task)
        self.fitted_on = f"{task.name} {task.revision}"
        return self.fit([conditions[row] for row in rows], task.gold[rows])

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
    ) -> FloatArray:
        """Scores each row by its condition.

        Args:
            sentences1: Not looked at; length n.
            sentences2: Not looked at.
            conditions: Conditions, length n, or None: every row then gets the same score.

        Returns:
            Predicted gold similarity, cut to [0, 1], ``(n,)``.

        Raises:
            InputError: If the scorer has not been fitted.
        """
        texts = conditions if conditions is not None else ("",) * len(sentences1)
        return np.clip(self._ridge.predict(texts), 0, 1).astype(np.float32)


class SentencesOnlyScorer:
    """Ridge regression on the TF-IDF of the two sentences; never sees the condition.

    The terms are the words and pairs of adjacent words of both sentences in either order, those
    that both hold marked as shared.
    """

    name = "sentences-only"

    def __init__(self, *, alpha: float = 8.0, max_features: int = 100_000) -> None:
        """Sets the regression up.

        Args:
            alpha: Weight of the ridge penalty, > 0.
            max_features: How many terms are kept at most, the most frequent first.
        """
        self.fitted_on: str | None = None
        self._ridge = TfIdfRidge(_order_free_terms, alpha=alpha, max_features=max_features)

    def fit(
        self, sentences1: Sequence[str], sentences2: Sequence[str], gold: ArrayLike
    ) -> SentencesOnlyScorer:
        """Fits on sentence pairs and their gold similarities.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            gold: Gold similarity in [0, 1], ``(n,)``, finite.

        Returns:
            The scorer itself.

        Raises:
            InputError: If there are no rows, the lengths differ or a label is missing.
        """
        pairs = zip(sentences1, sentences2, strict=True)
        self._ridge.fit(pairs, np.asarray(gold, dtype=np.float64))
        return self

    def fit_task(self, task: Task) -> SentencesOnlyScorer:
        """Fits on the rows of a task that have a label.

        Args:
            task: The rows to learn from.

        Returns:
            The scorer itself.

        Raises:
            InputError: If no row has a label.
        """
        rows = np.flatnonzero(task.valid)
        self.fitted_on = f"{task.name} {task.revision}"
        return self.fit(
            [task.sentences1[row] for row in rows],
            [task.sentences2[row] for row in rows],
            task.gold[rows],
        )

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
    ) -> FloatArray:
        """Scores each row by its sentences.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            conditions: Not looked at.

        Returns:
            Predicted gold similarity, cut to [0, 1], ``(n,)``.

        Raises:
            InputError: If the scorer has not been fitted.
        """
        pairs = zip(sentences1, sentences2, strict=True)
        return np.clip(self._ridge.predict(pairs), 0, 1).astype(np.float32)


FittedBaseline: TypeAlias = ConditionOnlyScorer | SentencesOnlyScorer  # those that learn from gold
Baseline: TypeAlias = FittedBaseline | TfIdfCosineScorer | WordOverlapScorer

BASELINES: dict[str, type[Baseline]] = {
    "condition-only": ConditionOnlyScorer,
    "sentences-only": SentencesOnlyScorer,
    "tfidf-cosine": TfIdfCosineScorer,
    "word-overlap": WordOverlapScorer,
}


def baseline(name: str, *, train: Task | None = None) -> Baseline:
    """Makes a baseline, fitted if rows to learn from are given.

    Args:
        name: A name in :data:`BASELINES`.
        train: The rows to learn from; a baseline that learns nothing ignores them.

    Returns:
        The baseline.

    Raises:
        InputError: If no baseline has this name or no row of ``train`` has a label.
    """
    if name not in BASELINES:
        raise unknown_name("baseline", name, BASELINES)
    scorer = BASELINES[name]()
    if train is not None and isinstance(scorer, FittedBaseline):
        scorer.fit_task(train)
    return scorer


def _words(text: str) -> list[str]:
    """The lower-cased words of a text."""
    return WORD.findall(text.lower())


def _words_and_bigrams(text: str) -> list[str]:
    """The lower-cased words of a text and its pairs of adjacent words."""
    words = _words(text)
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def _order_free_terms(pair: tuple[str, str]) -> list[str]:
    """The terms of both sentences, those they share once and marked."""
    terms1, terms2 = _words_and_bigrams(pair[0]), _words_and_bigrams(pair[1])
    shared = set(terms1) & set(terms2)
    own = [term for term in terms1 + terms2 if term not in shared]
    return own + [f"both: {term}" for term in sorted(shared)]


def out_of_fold(
    task: Task, *, name: str = "condition-only", folds: int = 10, seed: int = 0
) -> FloatArray:
    """Predicts each row with a baseline fitted on the other folds of the same file.

    The rows of a sentence pair are always in one fold, so no row is predicted by a fit that has
    seen its sentences. Fitted on a separate train file the baseline is usually stronger.

    Args:
        task: The rows to predict; those with a label are also the ones learnt from.
        name: A name in :data:`condsim.scorers.baselines.simple.BASELINES`.
        folds: Number of folds, at least 2; the last are empty if there are fewer sentence pairs.
        seed: Seed of the split; the order of the rows plays no part.

    Returns:
        A prediction for every row, in [0, 1], ``(n,)``; 0.5 where no other fold has a label.

    Raises:
        InputError: If ``folds`` is below 2 or no baseline has this name.
    """
    if folds < 2:
        raise InputError(f"The number of folds must be at least 2. Got {folds}.")
    fold = assign_folds(task, folds=folds, seed=seed)
    predictions = np.full(len(task), 0.5, dtype=np.float32)
    for number in range(folds):
        rows = np.flatnonzero(fold == number)
        rest = replace(task, labels=np.where(fold == number, np.float32(np.nan), task.labels))
        if rows.size == 0 or not rest.valid.any():
            continue
        conditions = task.conditions
        predictions[rows] = baseline(name, train=rest).score(
            [task.sentences1[row] for row in rows],
            [task.sentences2[row] for row in rows],
            [conditions[row] for row in rows] if conditions else None,
        )
    return predictions


def assign_folds(task: Task, *, folds: int, seed: int) -> NDArray[np.int64]:
    """Draws the fold of each row; sentence pairs are kept whole.

    Args:
        task: The rows.
        folds: Number of folds, at least 2.
        seed: Seed of the split; the order of the rows plays no part.

    Returns:
        The folds, ``(n,)``, each in [0, folds).
    """
    pairs = list(zip(task.sentences1, task.sentences2, strict=True))
    distinct = sorted(set(pairs))
    shuffled = np.random.default_rng(seed).permutation(len(distinct)) % folds
    fold = dict(zip(distinct, shuffled.tolist(), strict=True))
    return np.asarray([fold[pair] for pair in pairs], dtype=np.int64)


UNFITTED_BASELINES = tuple(
    name for name, kind in BASELINES.items() if not issubclass(kind, FittedBaseline)
)
"""Baselines that learn nothing, and so can be asked for by name alone."""
