"""Measures of two sentences for the filters: shared words, lengths, cosine (C-STS A.2).

- **IOU**: intersection over union of the sets of words, without stop words and whatever the case; 0
  where neither sentence has a content word.
- **ratio**: words of the shorter by words of the longer. Words are what white space separates: so
  counted, 94.6 % of the C-STS pairs reach 0.7 (93.6 % where marks are no words).
- **length**: characters of the shorter.
- **cosine** of the text encoder's vectors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set as AbstractSet
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError
from condsim.types import FloatArray, IntArray


def read_stop_words(path: Path | None = None) -> frozenset[str]:
    """Reads a list of stop words.

    Args:
        path: UTF-8 text, words separated by white space; an empty file means none. An English list
            if None.

    Raises:
        InputError: If the file cannot be read.
    """
    own = resources.files("condsim.construction.candidates") / "stop_words.txt"
    try:
        return frozenset((path or own).read_text(encoding="utf-8").casefold().split())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read the stop words {path}: {error}.") from error


_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")  # \u2019: the curly apostrophe


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures of sentence pairs, arrays of one shape."""

    same_text: NDArray[np.bool_]  # both sentences are the same text
    iou: NDArray[np.float64]  # 0 to 1
    text_cosine: FloatArray | None  # -1 to 1; None where there is no text encoder
    length_ratio: NDArray[np.float64]  # 0 to 1
    min_length: IntArray  # characters


@dataclass(frozen=True, eq=False)
class TextFacts:
    """What is counted once for each text."""

    starts: IntArray  # where the content words of each text start in `words`, (n,)
    sizes: IntArray  # number of its content words, (n,)
    words: IntArray  # numbers of the content words from 0, each once a text
    vocabulary: int  # number of different content words
    word_counts: IntArray  # words that white space separates, (n,)
    lengths: IntArray  # characters, (n,)
    text_ids: IntArray  # the same number for equal texts, (n,)

    def product(
        self,
        rows: slice,
        others: IntArray,
        *,
        vectors: FloatArray | None,
        seen: NDArray[np.int16] | None = None,
    ) -> Measures:
        """Measures every pair of r texts with c others, shape ``(r, c)``.

        Args:
            others: Numbers of the others, ``(c,)``.
            vectors: Vectors of length 1 of all texts, ``(n, width)``; None for no cosine.
            seen: Scratch space of zeros, ``(vocabulary, r or more)``, zero again afterwards; saves
                making it at each call.
        """
        count = rows.stop - rows.start
        if seen is None:
            seen = np.zeros((self.vocabulary, count), dtype=np.int16)
        texts = np.arange(rows.start, rows.stop)
        for column, text in enumerate(texts):
            seen[self.words[self.starts[text] :][: self.sizes[text]], column] = 1
        flat, ends = self._places(others), np.cumsum(self.sizes[others])
        running = np.zeros((len(flat) + 1, count), dtype=np.int32)
        np.cumsum(seen[self.words[flat], :count], axis=0, out=running[1:])
        common = (running[ends] - running[ends - self.sizes[others]]).T  # (r, c)
        seen[self.words[self._places(texts)]] = 0
        cosine = None
        if vectors is not None:
            cosine = np.clip(np.asarray(vectors[rows]) @ np.asarray(vectors[others]).T, -1, 1)
        return self._measures(texts[:, None], others, common, cosine)

    def paired(self, first: IntArray, second: IntArray, *, vectors: FloatArray | None) -> Measures:
        """Measures pairs of texts one by one: numbers of both, ``(p,)``, to shape ``(p,)``."""
        keys = np.sort(np.concatenate([self._keys(first), self._keys(second)]))
        both = keys[1:][keys[1:] == keys[:-1]]  # a word is in a bag once
        common = np.bincount(both // max(self.vocabulary, 1), minlength=len(first))
        cosine = None
        if vectors is not None:
            cosine = np.einsum("pd,pd->p", vectors[first], vectors[second])
            cosine = np.clip(cosine, -1, 1)
        return self._measures(first, second, common, cosine)

    def _measures(
        self, first: IntArray, second: IntArray, common: IntArray, cosine: FloatArray | None
    ) -> Measures:
        """Puts measures together; texts of shapes that broadcast, content words in common."""
        counts, others = self.word_counts[first], self.word_counts[second]
        union = self.sizes[first] + self.sizes[second] - common
        return Measures(
            same_text=self.text_ids[first] == self.text_ids[second],
            iou=common / np.maximum(union, 1),
            text_cosine=cosine,
            length_ratio=np.minimum(counts, others) / np.maximum(counts, others),
            min_length=np.minimum(self.lengths[first], self.lengths[second]),
        )

    def _keys(self, texts: IntArray) -> IntArray:
        """Numbers the words of some texts so that those of different texts differ."""
        texts_of = np.repeat(np.arange(len(texts)), self.sizes[texts])
        keys: IntArray = texts_of * self.vocabulary + self.words[self._places(texts)]
        return keys

    def _places(self, texts: IntArray) -> IntArray:
        """Gives the places in `words` of the words of some texts, one text after the other."""
        return ranges(self.starts[texts], self.sizes[texts])


def ranges(starts: IntArray, sizes: IntArray) -> IntArray:
    """Joins ranges of numbers.

    Example:
        >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    before = np.cumsum(sizes) - sizes
    joined: IntArray = np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes)
    return joined


def bag_of_words(text: str, stop_words: AbstractSet[str]) -> frozenset[str]:
    """Gives the content words of a text.

    Example:
        >>> sorted(bag_of_words("The dog, the DOG's ball and 2 cats.", {"the", "and"}))
        ['2', 'ball', 'cats', 'dog', "dog's"]
    """
    words = (word.replace("\u2019", "'") for word in _WORD.findall(text.casefold()))
    return frozenset(words) - stop_words


def text_facts(texts: Sequence[str], *, stop_words: AbstractSet[str] | None = None) -> TextFacts:
    """Counts what the filters need of each text; the stop words are English ones if None."""
    stop_words = read_stop_words() if stop_words is None else stop_words
    vocabulary: dict[str, int] = {}
    known: dict[str, int] = {}
    words: list[int] = []
    facts: list[tuple[int, ...]] = []
    for text in texts:
        start = len(words)
        bag = bag_of_words(text, stop_words)
        words.extend(vocabulary.setdefault(word, len(vocabulary)) for word in bag)
        number = known.setdefault(text, len(known))
        facts.append((start, len(bag), len(text.split()), len(text), number))
    columns = np.array(facts, np.int64).reshape(-1, 5).T
    starts, sizes, counts, lengths, ids = np.ascontiguousarray(columns)
    return TextFacts(
        starts=starts,
        sizes=sizes,
        words=np.array(words, dtype=np.int64),
        vocabulary=len(vocabulary),
        word_counts=counts,
        lengths=lengths,
        text_ids=ids,
    )
