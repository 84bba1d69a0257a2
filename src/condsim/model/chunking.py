"""Long texts: the chunks in which a model reads them, and one warning for what it truncates.

A bi- or tri-encoder reads a long text in chunks. A bi-encoder refuses a condition that leaves no
room for them; a tri-encoder truncates one that is longer than it reads, and a cross-encoder
truncates anything.
"""

from __future__ import annotations

import logging
import re
import reprlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from condsim.errors import InputError
from condsim.model.inputs import Order
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Input = str | list[str]
"""A text alone, or with its condition in the model's order."""

TOKENS_PER_CHUNK = 48
"""Maximum number of tokens of a chunk's text: models learn from short texts, and long chunks did
worse than short ones (papers/docs/experiments.md)."""

MIN_CHUNK_TOKENS = 16
"""Tokens that a condition must leave for a chunk's text."""

# Abbreviations of this language do not end a sentence.
_LANGUAGE = "en"
_LINE, _SPACE = re.compile(r"\n"), re.compile(r"\s")


@dataclass(frozen=True)
class Chunks:
    """Inputs in chunks.

    Attributes:
        inputs: The chunks of all inputs, one input after the other.
        owner: Index of the input that each chunk belongs to, ascending, (chunks,).
        tokens: Tokens of each chunk, without those of the condition, (chunks,).
    """

    inputs: list[Input]
    owner: IntArray
    tokens: IntArray

    def pooled(self, vectors: FloatArray) -> FloatArray:
        """Pool vectors of the chunks, (chunks, d), to those of the inputs, of length 1, (n, d)."""
        starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        weighted = vectors * self.tokens[:, None].astype(np.float32)
        sums: FloatArray = np.add.reduceat(weighted, starts, axis=0)
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        return sums


class Chunker:
    """Splitter of inputs that are longer than a model reads."""

    def __init__(self, tokenizer: Tokenizer, *, order: Order, joint: bool) -> None:
        """Copy a tokenizer; ``joint``: text and condition share the limit."""
        self._tokenizer = tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._text_index = 0 if order == "sentence-first" else 1
        self._joint = joint

    def split(self, inputs: Sequence[Input], *, limit: int) -> Chunks:
        """Split inputs of which the model reads at most ``limit`` tokens."""
        texts = self.texts(inputs)
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        chunks: list[Input] = []
        owner: list[int] = []
        tokens: list[int] = []
        for number, (item, encoding) in enumerate(zip(inputs, encodings, strict=True)):
            for part, size in _cut(texts[number], encoding, self._room(item, limit)):
                if isinstance(item, str):
                    chunks.append(part)
                else:
                    pair = list(item)
                    pair[self._text_index] = part
                    chunks.append(pair)
                owner.append(number)
                tokens.append(size)
        return Chunks(chunks, np.array(owner, np.int64), np.array(tokens, np.int64))

    def texts(self, inputs: Sequence[Input]) -> list[str]:
        """List the texts of inputs, without their conditions."""
        return [item if isinstance(item, str) else item[self._text_index] for item in inputs]

    def _room(self, item: Input, limit: int) -> int:
        """Number of tokens for a chunk's text; a condition must leave room for it."""
        is_pair = self._joint and not isinstance(item, str)
        free = limit - self._tokenizer.num_special_tokens_to_add(is_pair=is_pair)
        if is_pair:
            condition = item[1 - self._text_index]
            most = free - min(MIN_CHUNK_TOKENS, free // 2)
            size = len(self._tokenizer.encode(condition, add_special_tokens=False))
            if size > most:
                raise InputError(
                    f"The condition {reprlib.repr(condition)} must have at most {most} tokens, to "
                    f"leave room for the text; it has {size:,}."
                )
            free -= size
        return min(TOKENS_PER_CHUNK, max(1, free))


def _cut(text: str, encoding: Encoding, room: int) -> Iterator[tuple[str, int]]:
    """Cut a text into parts of at most ``room`` tokens; yield each with its tokens.

    Each is as long as possible and ends with a sentence, else a line, else a word, else anywhere.
    """
    if not len(encoding):
        yield text, 1
    starts = np.array([start for start, _ in encoding.offsets], np.int64)
    boundaries = [np.searchsorted(starts, ends) for ends in _ends(text)]
    begin = 0
    while begin < len(starts):
        end = min(begin + room, len(starts))
        if end < len(starts):
            for tokens in boundaries:
                last = int(tokens[np.searchsorted(tokens, end, side="right") - 1])
                if begin < last <= end:
                    end = last
                    break
        first = starts[begin] if begin else 0
        if part := text[first : starts[end] if end < len(starts) else None].strip():
            yield part, end - begin
        begin = end


def _ends(text: str) -> tuple[list[int], list[int], list[int]]:
    """List the characters at which sentences, lines and words of a text end; none is empty."""
    from sentencex import segment

    sentences, start = [0], 0
    for sentence in segment(_LANGUAGE, text):
        sentences.append(start + len(sentence.rstrip()))
        start += len(sentence)
    lines = [0, *(match.start() for match in _LINE.finditer(text))]
    words = [0, *(match.start() for match in _SPACE.finditer(text))]
    return sentences, lines, words


_LOGGER = logging.getLogger(__name__)
# Truncated inputs by the name of the model and its limit in tokens.
_COUNTS: ContextVar[Counter[tuple[str, int]] | None] = ContextVar("truncations", default=None)


@contextmanager
def collect_truncations(*, warn: bool = True) -> Iterator[None]:
    """Count the inputs that models truncate, and warn once when the outermost block ends."""
    if warn and _COUNTS.get() is not None:
        yield
        return
    counts: Counter[tuple[str, int]] = Counter()
    token = _COUNTS.set(counts)
    try:
        yield
    finally:
        _COUNTS.reset(token)
        for (name, limit), number in counts.items() if warn else ():
            inputs = "1 input" if number == 1 else f"{number} inputs"
            _LOGGER.warning("%s truncated %s at %d tokens, the most it reads.", name, inputs, limit)


def record_truncation(name: str, limit: int, number: int) -> None:
    """Count inputs that a model truncated at so many tokens."""
    counts = _COUNTS.get()
    if number and counts is not None:
        counts[name, limit] += number
