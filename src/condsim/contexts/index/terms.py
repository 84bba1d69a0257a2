"""Terms of the TF-IDF index: words and pairs of neighbouring words, as numbers.

The words are those of scikit-learn's ``TfidfVectorizer``: runs of two letters or digits and more,
in lower case.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.corpus import open_array
from condsim.errors import InputError
from condsim.scorers import tokens_of
from condsim.types import FloatArray, IntArray

WORDS = "words.txt"
BIGRAMS = "bigrams.npy"
FREQUENCIES = "document_frequencies.npy"


@dataclass(frozen=True)
class Vectors:
    """Sparse vectors of m sentences, each of length 1, or empty where no term is known."""

    starts: IntArray  # (m + 1,), first term of each sentence, then their number
    terms: IntArray  # (k,), of one sentence after the other
    weights: FloatArray  # (k,)


class Terms:
    """The vocabulary of an index: W words, then B bigrams, each with its number of chunks."""

    def __init__(self, folder: Path, *, texts: int) -> None:
        try:
            text = (folder / WORDS).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{folder} is damaged: cannot read {WORDS}: {error}") from error
        self._words = {word: number for number, word in enumerate(text.split())}
        self._bigrams: NDArray[np.uint64] = open_array(folder / BIGRAMS, np.uint64)
        self._frequencies: NDArray[np.int32] = open_array(folder / FREQUENCIES, np.int32)
        self._texts = texts
        if len(self._frequencies) != len(self._words) + len(self._bigrams):
            raise InputError(f"{folder} is damaged: its files do not hold the same terms.")

    def __len__(self) -> int:
        return len(self._frequencies)

    def vectors(self, sentences: Sequence[str]) -> Vectors:
        """TF-IDF vectors of sentences, as scikit-learn's ``TfidfVectorizer`` has them."""
        rows, terms = self._occurrences(sentences)
        pairs, counts = np.unique(rows * len(self) + terms, return_counts=True)
        rows, terms = np.divmod(pairs, max(len(self), 1))
        frequencies = self._frequencies[terms].astype(np.float64)
        weights = counts * (np.log((1 + self._texts) / (1 + frequencies)) + 1)
        norms = np.sqrt(np.bincount(rows, weights**2, minlength=len(sentences)))
        starts = np.searchsorted(rows, np.arange(len(sentences) + 1))
        return Vectors(
            starts=starts.astype(np.int64),
            terms=terms,
            weights=(weights / norms[rows]).astype(np.float32),
        )

    def _occurrences(self, sentences: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Sentence and term of each word and bigram that is known."""
        words = array("q")
        lengths = [_extend(words, tokens_of(sentence), self._words) for sentence in sentences]
        unigrams = np.frombuffer(words, dtype=np.int64)
        rows = np.repeat(np.arange(len(sentences)), lengths)
        left, right = unigrams[:-1], unigrams[1:]
        known = (rows[:-1] == rows[1:]) & (left >= 0) & (right >= 0)
        keys = left[known].astype(np.uint64) * np.uint64(len(self._words))
        keys += right[known].astype(np.uint64)
        place = np.searchsorted(self._bigrams, keys)
        inside = place < len(self._bigrams)
        inside[inside] = self._bigrams[place[inside]] == keys[inside]
        bigrams = place[inside].astype(np.int64) + len(self._words)
        return (
            np.concatenate([rows[unigrams >= 0], rows[:-1][known][inside]]),
            np.concatenate([unigrams[unigrams >= 0], bigrams]),
        )


def _extend(numbers: array[int], tokens: Iterable[str], words: dict[str, int]) -> int:
    """Appends the numbers of words, -1 for those not known; returns how many."""
    before = len(numbers)
    numbers.extend(words.get(token, -1) for token in tokens)
    return len(numbers) - before
