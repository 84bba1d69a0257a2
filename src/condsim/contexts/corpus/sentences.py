"""From paragraphs to sentences: split, checked, without near-duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.corpus.reading import Paragraph
from condsim.contexts.settings import CorpusCounts, CorpusSettings
from condsim.types import BoolArray

Keys = NDArray[np.uint64]


class SeenKeys:
    """Keys seen so far, as sorted runs, each at least twice as long as the next.

    Ten million keys take 80 MB, and as much again while runs are merged; in a set some 800 MB.
    """

    def __init__(self) -> None:
        self._runs: list[Keys] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def add(self, keys: Keys) -> BoolArray:
        """Adds keys, ``(n,)``; gives which were new, of equal ones the first only, ``(n,)``."""
        distinct, first = np.unique(keys, return_index=True)
        known = np.zeros(len(distinct), dtype=np.bool_)
        for run in self._runs:
            place = np.searchsorted(run, distinct)
            np.minimum(place, len(run) - 1, out=place)
            known |= run[place] == distinct
        new = np.zeros(len(keys), dtype=np.bool_)
        new[first[~known]] = True
        self._append(distinct[~known])
        return new

    def _append(self, run: Keys) -> None:
        if not len(run):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            merged = np.concatenate([self._runs.pop(), last])
            merged.sort()
            self._runs.append(merged)


_NO_LETTER = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffd\ud800-\udfff]")
_AT_ONCE = 1 << 15  # sentences looked up together


class Sentence(NamedTuple):
    """A sentence on its way into the corpus."""

    document: int  # number among those read
    name: str  # of the document
    text: str  # runs of white space made one space
    words: int  # their number


def near_duplicate_key(sentence: str) -> bytes:
    """Eight bytes for the words of a sentence; ignores case, punctuation and values of numbers."""
    letters = _DIGITS.sub("0", _NO_LETTER.sub("", sentence.casefold()))
    return blake2b(letters.encode(), digest_size=8).digest() if letters else b""


def split_sentences(
    paragraphs: Iterable[Paragraph], settings: CorpusSettings, counts: CorpusCounts
) -> Iterator[list[Sentence]]:
    """Splits paragraphs; drops what is not a sentence and sentences seen before."""
    seen = SeenKeys()
    waiting: list[Sentence] = []
    keys: list[bytes] = []
    for sentence in _candidates(paragraphs, settings):
        reason, key = _judge(sentence, settings)
        if reason:
            counts.dropped[reason] += 1
            continue
        waiting.append(sentence)
        keys.append(key)
        if len(waiting) == _AT_ONCE:
            yield _unseen(waiting, keys, seen, counts)
            waiting, keys = [], []
    yield _unseen(waiting, keys, seen, counts)


def _candidates(paragraphs: Iterable[Paragraph], settings: CorpusSettings) -> Iterator[Sentence]:
    from sentencex import segment

    language = settings.language
    for document, name, text, is_sentence in paragraphs:
        for part in [text] if is_sentence else segment(language, text):
            words = part.split()
            if words:
                yield Sentence(document, name, " ".join(words), len(words))


def _judge(sentence: Sentence, settings: CorpusSettings) -> tuple[str, bytes]:
    """The reason to drop a sentence, empty for none, and its key."""
    if _CONTROL.search(sentence.text):
        return "not_text", b""
    if sentence.words < settings.min_words:
        return "too_short", b""
    if sentence.words > settings.max_words:
        return "too_long", b""
    key = near_duplicate_key(sentence.text)
    return ("", key) if key else ("not_text", b"")


def _unseen(
    sentences: list[Sentence], keys: list[bytes], seen: SeenKeys, counts: CorpusCounts
) -> list[Sentence]:
    new = seen.add(np.frombuffer(b"".join(keys), dtype="<u8").astype(np.uint64))
    kept = [sentence for sentence, first in zip(sentences, new.tolist(), strict=True) if first]
    counts.dropped["near_duplicate"] += len(sentences) - len(kept)
    return kept
