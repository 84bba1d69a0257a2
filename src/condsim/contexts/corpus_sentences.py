"""Paragraphs to sentences: split, checked, and without near-duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from condsim.contexts.corpus_reading import Paragraph
from condsim.contexts.corpus_seen import SeenKeys
from condsim.contexts.corpus_settings import CorpusCounts, CorpusSettings
from condsim.errors import require

__all__ = ["Sentence", "near_duplicate_key", "split_sentences"]

_NO_LETTER = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffd\ud800-\udfff]")
_AT_ONCE = 1 << 15  # sentences looked up together


class Sentence(NamedTuple):
    """A sentence on its way into the corpus.

    Attributes:
        document: Number of its document among those read.
        name: Name of the document.
        text: The sentence, runs of white space made one space.
        words: Its number of words.
    """

    document: int
    name: str
    text: str
    words: int


def near_duplicate_key(sentence: str) -> bytes:
    """Eight bytes that are equal for sentences of the same words.

    Case, punctuation and spaces do not count, nor which digits a number has.

    Args:
        sentence: The sentence.

    Returns:
        The key; empty if the sentence has no letter or digit.
    """
    letters = _DIGITS.sub("0", _NO_LETTER.sub("", sentence.casefold()))
    return blake2b(letters.encode(), digest_size=8).digest() if letters else b""


def split_sentences(
    paragraphs: Iterable[Paragraph], settings: CorpusSettings, counts: CorpusCounts
) -> Iterator[list[Sentence]]:
    """Splits paragraphs and drops what is no sentence, or one seen before.

    Args:
        paragraphs: The paragraphs in order.
        settings: Language and lengths.
        counts: Where what is dropped is counted, by reason; changed in place.

    Yields:
        Sentences that are kept, in order, some thousands at a time.

    Raises:
        MissingExtraError: If sentencex is not installed.
    """
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
    segment = require("sentencex", extra="contexts").segment
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
