"""What the filters look at in two sentences: words in common, lengths, cosine (C-STS A.2).

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
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condsim.errors import InputError
from condsim.types import FloatArray, IntArray

ENGLISH_STOP_WORDS = frozenset(
    """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    who whom whose which what
    am is are was were be been being have has had having do does did doing
    can could may might must shall should will would
    and but or nor so yet if than then because while as until although though since unless whether
    of at by for with about against between into through during before after above below to from
    up down in out on off over under upon onto toward towards within without along across around
    behind beside besides beneath near among amid per via
    here there when where why how all any both each few more most other others some such no not only
    own same too very just now also another again further once
    s t d ll m re ve
    it's he's she's that's there's they're we're you're i'm isn't aren't wasn't weren't doesn't
    don't didn't can't couldn't won't wouldn't hasn't haven't hadn't
    """.split()
)
"""The default list, lower case."""


def read_stop_words(path: Path) -> frozenset[str]:
    """Reads a list of stop words.

    Args:
        path: UTF-8 text, words separated by white space; an empty file means none.

    Returns:
        The words in lower case.

    Raises:
        InputError: If the file cannot be read.
    """
    try:
        return frozenset(path.read_text(encoding="utf-8").casefold().split())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read the stop words {path}: {error}.") from error


_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")  # \u2019: the curly apostrophe


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures of sentence pairs, arrays of one shape.

    Attributes:
        same_text: Whether both sentences are the same text.
        iou: 0 to 1.
        text_cosine: -1 to 1; None where there is no text encoder.
        length_ratio: 0 to 1.
        min_length: Characters.
    """

    same_text: NDArray[np.bool_]
    iou: NDArray[np.float64]
    text_cosine: FloatArray | None
    length_ratio: NDArray[np.float64]
    min_length: IntArray


@dataclass(frozen=True, eq=False)
class TextFacts:
    """What is counted once for each text.

    Attributes:
        starts: Where the content words of each text start, and their number at the end,
            ``(n + 1,)``.
        words: Numbers of the content words, each once a text, from 0.
        vocabulary: Number of different content words.
        word_counts: Words that white space separates, ``(n,)``.
        lengths: Characters, ``(n,)``.
        text_ids: The same number for equal texts, ``(n,)``.
    """

    starts: IntArray
    words: IntArray
    vocabulary: int
    word_counts: IntArray
    lengths: IntArray
    text_ids: IntArray

    def product(
        self,
        rows: slice,
        others: IntArray,
        *,
        vectors: FloatArray | None,
        seen: NDArray[np.int16] | None = None,
    ) -> Measures:
        """Measures every pair of some texts with some others.

        Args:
            others: Numbers of the others, ``(c,)``.
            vectors: Vectors of length 1 of all texts, ``(n, width)``; None for no cosine.
            seen: Scratch space of zeros, ``(vocabulary, r or more)``, zero again afterwards; saves
                making it at each call.

        Returns:
            Measures of shape ``(r, c)``.
        """
        count = rows.stop - rows.start
        if seen is None:
            seen = np.zeros((self.vocabulary, count), dtype=np.int16)
        for column, row in enumerate(range(rows.start, rows.stop)):
            seen[self.words[self.starts[row] : self.starts[row + 1]], column] = 1
        flat, sizes = self._flat(others), self.starts[others + 1] - self.starts[others]
        ends = np.cumsum(sizes)
        running = np.zeros((len(flat) + 1, count), dtype=np.int32)
        np.cumsum(seen[self.words[flat], :count], axis=0, out=running[1:])
        common = (running[ends] - running[ends - sizes]).T  # (r, c)
        seen[self.words[self.starts[rows.start] : self.starts[rows.stop]]] = 0
        own = self.starts[rows.start + 1 : rows.stop + 1] - self.starts[rows]
        union = own[:, None] + sizes - common
        few, many = _ordered(self.word_counts[rows][:, None], self.word_counts[others])
        cosine = None
        if vectors is not None:
            cosine = np.clip(np.asarray(vectors[rows]) @ np.asarray(vectors[others]).T, -1, 1)
        return Measures(
            same_text=self.text_ids[rows][:, None] == self.text_ids[others],
            iou=common / np.maximum(union, 1),
            text_cosine=cosine,
            length_ratio=few / many,
            min_length=_ordered(self.lengths[rows][:, None], self.lengths[others])[0],
        )

    def paired(self, first: IntArray, second: IntArray, *, vectors: FloatArray | None) -> Measures:
        """Measures pairs of texts one by one.

        Args:
            first: Numbers of the first texts, ``(p,)``.
            second: Numbers of the second texts, ``(p,)``.

        Returns:
            Measures of shape ``(p,)``.
        """
        common = self._common(first, second)
        sizes = np.diff(self.starts)
        few, many = _ordered(self.word_counts[first], self.word_counts[second])
        cosine = None
        if vectors is not None:
            cosine = np.einsum("pd,pd->p", vectors[first], vectors[second])
            cosine = np.clip(cosine, -1, 1)
        return Measures(
            same_text=self.text_ids[first] == self.text_ids[second],
            iou=common / np.maximum(sizes[first] + sizes[second] - common, 1),
            text_cosine=cosine,
            length_ratio=few / many,
            min_length=_ordered(self.lengths[first], self.lengths[second])[0],
        )

    def _common(self, first: IntArray, second: IntArray) -> IntArray:
        """Counts the content words that both texts of a pair have, (p,)."""
        keys = np.sort(np.concatenate([self._keys(first), self._keys(second)]))
        both = keys[1:][keys[1:] == keys[:-1]]  # a word is in a bag once
        return np.bincount(both // max(self.vocabulary, 1), minlength=len(first))

    def _keys(self, texts: IntArray) -> IntArray:
        """Numbers the words of some texts so that those of different places differ."""
        places, sizes = np.arange(len(texts)), self.starts[texts + 1] - self.starts[texts]
        keys: IntArray = np.repeat(places, sizes) * self.vocabulary + self.words[self._flat(texts)]
        return keys

    def _flat(self, texts: IntArray) -> IntArray:
        """Gives the places in `words` of the words of some texts, one text after the other."""
        sizes = self.starts[texts + 1] - self.starts[texts]
        before = np.cumsum(sizes) - sizes
        return np.asarray(
            np.arange(int(sizes.sum())) + np.repeat(self.starts[texts] - before, sizes), np.int64
        )


def bag_of_words(text: str, stop_words: AbstractSet[str] = ENGLISH_STOP_WORDS) -> frozenset[str]:
    """Gives the content words of a text.

    Example:
        >>> sorted(bag_of_words("The dog, the DOG's ball and 2 cats."))
        ['2', 'ball', 'cats', 'dog', "dog's"]
    """
    words = (word.replace("\u2019", "'") for word in _WORD.findall(text.casefold()))
    return frozenset(words) - stop_words


def text_facts(
    texts: Sequence[str], *, stop_words: AbstractSet[str] = ENGLISH_STOP_WORDS
) -> TextFacts:
    """Counts what the filters need of each text."""
    vocabulary: dict[str, int] = {}
    known: dict[str, int] = {}
    words: list[int] = []
    starts, counts, lengths, ids = [0], [], [], []
    for text in texts:
        bag = bag_of_words(text, stop_words)
        words.extend(vocabulary.setdefault(word, len(vocabulary)) for word in bag)
        starts.append(len(words))
        counts.append(len(text.split()))
        lengths.append(len(text))
        ids.append(known.setdefault(text, len(known)))
    return TextFacts(
        starts=np.array(starts, dtype=np.int64),
        words=np.array(words, dtype=np.int64),
        vocabulary=len(vocabulary),
        word_counts=np.array(counts, dtype=np.int64),
        lengths=np.array(lengths, dtype=np.int64),
        text_ids=np.array(ids, dtype=np.int64),
    )


def _ordered(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Gives the lower and the higher of two counts."""
    return np.minimum(first, second), np.maximum(first, second)
