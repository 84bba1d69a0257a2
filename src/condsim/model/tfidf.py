"""TF-IDF: cosines of two sentences, and the ridge regression of the fitted baselines, in numpy."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from condsim.data.reading import text_lines
from condsim.errors import InputError, require
from condsim.io import sha256_of
from condsim.types import Float64Array, FloatArray, IntArray

_BLOCK = 8192  # sentences of a corpus read at once


class StoredTexts(Protocol):
    """Texts on disk, such as a corpus of `condsim.contexts`."""

    folder: Path
    revision: str

    def __len__(self) -> int:
        """Number of texts."""

    def sentences(self, ids: IntArray) -> list[str]:
        """The texts of some rows."""


class TfIdfCosineScorer:
    """Cosine of the TF-IDF vectors of the two sentences; blind to the condition.

    The vectors are those of scikit-learn's ``TfidfVectorizer`` at its defaults: lower-cased words
    of two letters or digits and more, smoothed idf, ``ln((1 + n) / (1 + df)) + 1``. A word that is
    in no document of the text the idf is from counts as the rarest.
    """

    name = "tfidf-cosine"

    def __init__(self, *, idf_from: Path | str | StoredTexts | None = None) -> None:
        """Sets the scorer up; the idf is counted when the first pairs are scored.

        Args:
            idf_from: What the idf is counted on: a text file (perhaps gzipped), of which each line
                that is not blank is a document, or an open corpus (`condsim.contexts.Corpus`), of
                which each sentence is. By default the distinct sentences that are scored, so that
                the score of a pair depends on what is scored with it.

        Raises:
            InputError: If there is no such file or corpus.
        """
        self.fitted_on: str | None = None
        self._idf_from = Path(idf_from) if isinstance(idf_from, str) else idf_from
        self._counted: tuple[int, Counter[str]] | None = None
        if isinstance(self._idf_from, Path):
            text_lines(self._idf_from)  # refuses what is no file
            self.fitted_on = f"idf of {self._idf_from.name} {sha256_of(self._idf_from)[:12]}"
        elif self._idf_from is not None:
            self.fitted_on = f"idf of {self._idf_from.folder.name} {self._idf_from.revision[:12]}"

    def score(
        self, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str] | None
    ) -> FloatArray:
        """Gives cosines in [0, 1], ``(n,)``; 0 if a sentence has no word.

        Raises:
            InputError: If what the idf is from has no text.
            MissingExtraError: If scikit-learn is not installed.
        """
        text = require("sklearn.feature_extraction.text", extra="train")
        distinct = list(dict.fromkeys([*sentences1, *sentences2]))
        vectorizer = text.TfidfVectorizer()
        analyze: Callable[[str], list[str]] = vectorizer.build_analyzer()
        if self._idf_from is not None and self._counted is None:
            self._counted = _count(_documents(self._idf_from), self.fitted_on, analyze)
        if not any(analyze(sentence) for sentence in distinct):
            return np.zeros(len(sentences1), dtype=np.float32)
        vectorizer.fit(distinct)
        if self._counted is not None:
            documents, frequencies = self._counted
            known = np.array([frequencies[word] for word in vectorizer.get_feature_names_out()])
            vectorizer.idf_ = np.log((1 + documents) / (1 + known)) + 1
        vectors = vectorizer.transform(distinct)  # (distinct, words), rows of length 1
        place = {sentence: row for row, sentence in enumerate(distinct)}
        first = vectors[[place[sentence] for sentence in sentences1]]
        second = vectors[[place[sentence] for sentence in sentences2]]
        cosines = np.asarray(first.multiply(second).sum(axis=1), dtype=np.float32).ravel()
        return np.clip(cosines, 0, 1)


def _count(
    documents: Iterable[str], what: str | None, analyze: Callable[[str], list[str]]
) -> tuple[int, Counter[str]]:
    """Counts documents, and for each word those that have it."""
    number = 0
    frequencies: Counter[str] = Counter()
    for document in documents:
        number += 1
        frequencies.update(set(analyze(document)))
    if not number:
        raise InputError(f"{what}: there is no text to count an idf on. Give another file.")
    return number, frequencies


def _documents(source: Path | StoredTexts) -> Iterator[str]:
    """The lines of a file that are not blank, or the sentences of a corpus."""
    if isinstance(source, Path):
        yield from filter(str.strip, text_lines(source))
        return
    for start in range(0, len(source), _BLOCK):
        yield from source.sentences(np.arange(start, min(start + _BLOCK, len(source))))


BLOCK = 8192  # documents turned into features at once when predicting
TOLERANCE = 1e-9  # of the residual of the normal equations, relative to its start
STEPS = 2000  # at most; a few dozen are enough at alpha = 8


@dataclass(frozen=True)
class _SparseRows:
    """A sparse matrix ``(n, d)`` as the coordinates and values of its non-zero entries."""

    rows: NDArray[np.int64]  # (nnz,)
    columns: NDArray[np.int64]  # (nnz,)
    values: Float64Array  # (nnz,)
    shape: tuple[int, int]

    def times(self, vector: Float64Array) -> Float64Array:
        """The product with a vector ``(d,)``, ``(n,)``."""
        products = self.values * vector[self.columns]
        return np.asarray(np.bincount(self.rows, products, minlength=self.shape[0]), np.float64)

    def transposed_times(self, vector: Float64Array) -> Float64Array:
        """The product of the transpose with a vector ``(n,)``, ``(d,)``."""
        products = self.values * vector[self.rows]
        return np.asarray(np.bincount(self.columns, products, minlength=self.shape[1]), np.float64)


class TfIdfRidge:
    """Linear ridge regression with an intercept on L2-normalised TF-IDF features."""

    # The features are those of scikit-learn's ``TfidfVectorizer`` at its defaults (smoothed idf,
    # ``ln((1 + n) / (1 + df)) + 1``, rows of length 1) and the fit is that of its ``Ridge``; the
    # tests hold both against it. The normal equations are solved by conjugate gradients, which only
    # multiply by the sparse matrix: memory grows with the number of words, not its square.

    def __init__(self, *, alpha: float = 8.0, max_features: int = 100_000) -> None:
        if alpha <= 0:
            raise InputError(f"The 'alpha' of a ridge regression must be above 0. Got {alpha}.")
        if max_features < 1:
            raise InputError(f"'max_features' must be at least 1. Got {max_features}.")
        self._alpha = alpha
        self._max_features = max_features
        self._vocabulary: dict[str, int] = {}
        self._idf = np.zeros(0)  # (d,)
        self._coefficients = np.zeros(0)  # (d,)
        self._intercept: float | None = None

    def fit(self, documents: Iterable[list[str]], targets: Float64Array) -> None:
        """Learns from the terms of n documents and their finite targets, ``(n,)``."""
        if not targets.size:
            raise InputError("A baseline is fitted on at least one row with a label. Got none.")
        self._vocabulary = {}
        counts = self._keep_frequent(self._count(documents, grow=True))
        if counts.shape[0] != targets.size:
            raise InputError(
                f"Texts and labels must have one length. Got {counts.shape[0]} and {targets.size}."
            )
        frequency = np.bincount(counts.columns, minlength=counts.shape[1])  # documents with it
        self._idf = np.log((1 + targets.size) / (1 + frequency)) + 1
        features = self._weigh(counts)
        means = features.transposed_times(np.full(targets.size, 1 / targets.size))  # (d,)
        self._coefficients = _solve(features, means, targets - targets.mean(), self._alpha)
        self._intercept = float(targets.mean()) - _dot(means, self._coefficients)

    def predict(self, documents: Iterable[list[str]]) -> Float64Array:
        """Predicts the target of each document from its terms, ``(n,)``."""
        if self._intercept is None:
            raise InputError("This baseline has not been fitted; call fit first.")
        blocks = [np.zeros(0)]
        remaining = iter(documents)
        while block := list(islice(remaining, BLOCK)):
            features = self._weigh(self._count(block, grow=False))
            blocks.append(features.times(self._coefficients) + self._intercept)
        return np.concatenate(blocks)

    def _count(self, documents: Iterable[list[str]], *, grow: bool) -> _SparseRows:
        """Counts the terms of each document; ``grow`` adds unknown terms to the vocabulary."""
        vocabulary = self._vocabulary
        columns, lengths = array("q"), array("q")
        for document in documents:
            before = len(columns)
            for term in document:
                column = (
                    vocabulary.setdefault(term, len(vocabulary)) if grow else vocabulary.get(term)
                )
                if column is not None:
                    columns.append(column)
            lengths.append(len(columns) - before)
        width = max(1, len(vocabulary))
        rows = np.repeat(np.arange(len(lengths)), np.asarray(lengths, dtype=np.int64))
        cells = rows * width + np.asarray(columns, dtype=np.int64)
        cells, counts = np.unique(cells, return_counts=True)
        shape = (len(lengths), width)
        return _SparseRows(cells // width, cells % width, counts.astype(np.float64), shape)

    def _keep_frequent(self, counts: _SparseRows) -> _SparseRows:
        """Cuts vocabulary and counts to the most frequent terms."""
        if counts.shape[1] <= self._max_features:
            return counts
        frequency = np.bincount(counts.columns, counts.values, minlength=counts.shape[1])
        kept = np.sort(np.argsort(-frequency, kind="stable")[: self._max_features])
        position = np.full(counts.shape[1], -1)
        position[kept] = np.arange(kept.size)
        self._vocabulary = {
            term: int(position[column])
            for term, column in self._vocabulary.items()
            if position[column] >= 0
        }
        columns = position[counts.columns]
        stays = columns >= 0
        return _SparseRows(
            counts.rows[stays], columns[stays], counts.values[stays], (counts.shape[0], kept.size)
        )

    def _weigh(self, counts: _SparseRows) -> _SparseRows:
        """Counts times idf, each row scaled to length 1."""
        values = counts.values * self._idf[counts.columns]
        squares = np.bincount(counts.rows, np.square(values), minlength=counts.shape[0])
        values /= np.sqrt(squares)[counts.rows]
        return _SparseRows(counts.rows, counts.columns, values, counts.shape)


def _solve(
    features: _SparseRows, means: Float64Array, targets: Float64Array, alpha: float
) -> Float64Array:
    """Solves ``(Xc' Xc + alpha I) w = Xc' y``; Xc are the centred features ``X - 1 means'``."""
    # Conjugate gradients (Hestenes and Stiefel, 1952); the centring is done on the products, since
    # centred features would no longer be sparse. Targets are centred before.

    def centred_transpose(vector: Float64Array) -> Float64Array:
        return features.transposed_times(vector) - means * float(vector.sum())

    coefficients = np.zeros(features.shape[1])
    residual = centred_transpose(targets)
    direction = residual.copy()
    size = start = _dot(residual, residual)
    for _ in range(STEPS):
        if size <= TOLERANCE**2 * start:
            break
        through = features.times(direction) - _dot(means, direction)  # (n,)
        image = centred_transpose(through) + alpha * direction
        step = size / _dot(direction, image)
        coefficients += step * direction
        residual -= step * image
        previous, size = size, _dot(residual, residual)
        direction = residual + (size / previous) * direction
    return coefficients


def _dot(first: Float64Array, second: Float64Array) -> float:
    """The inner product, without BLAS: its threads cost more than they save on such vectors."""
    return float(np.sum(first * second))
