"""Inputs of a model: sentences joined with conditions, each once, in batches, long ones in chunks.

A bi- or tri-encoder reads a long text in chunks. A bi-encoder refuses a condition that leaves no
room for them; a tri-encoder truncates one that is longer than it reads, and a cross-encoder
truncates anything. What was truncated is counted in one warning.
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
from itertools import chain
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from condsim.errors import InputError, check_name
from condsim.model.conditions import named_aspect
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Input = str | list[str]
"""A text alone, or with its condition in the model's order."""

Order = Literal["condition-first", "sentence-first", "bare-condition-first"]
"""Order of condition and sentence in the pair that a tokenizer joins. The last one reads
what a condition names: "the place", "the place?" and "Compare the texts by the place." are one."""

Layout = Literal["released", "pair"]
"""Layout of a cross-encoder's texts: one text, each but the last followed by a space and one
separator, or a pair, joined and typed as the tokenizer joins pairs."""

Inputs = Literal["both", "condition", "sentences"]
"""The part of a row that a cross-encoder reads."""

# Blocks of rows bound the memory; a row with more characters counts as several rows.
ROWS_PER_BLOCK = 4096
CHARACTERS_PER_ROW = 512


def check_order(order: str) -> None:
    """Refuse an unknown order."""
    check_name("order", order, get_args(Order))


def conditional_sentences(
    sentences: Sequence[str], conditions: Sequence[str], *, order: Order
) -> list[list[str]]:
    """Pair each of n sentences with its condition, the input of a bi- or tri-encoder.

    Example:
        >>> conditional_sentences(["A dog runs."], ["the animal"], order="condition-first")
        [['the animal', 'A dog runs.']]
    """
    conditions = as_read(conditions, order=order)
    columns = (sentences, conditions) if order == "sentence-first" else (conditions, sentences)
    return [list(pair) for pair in zip(*columns, strict=True)]


def as_read(conditions: Sequence[str], *, order: Order) -> list[str]:
    """Leave of conditions what they name, if a model of that order reads them bare."""
    if order != "bare-condition-first":
        return list(conditions)
    return [named_aspect(condition) for condition in conditions]


def card_texts(order: Order) -> tuple[str, str]:
    """Name the two texts of a conditional sentence for a model card, in their order."""
    if order == "sentence-first":
        return "sentence", "condition"
    if order == "bare-condition-first":
        return "condition, without the marks at its end", "sentence"
    return "condition", "sentence"


def cross_encoder_inputs(
    sentences1: Sequence[str],
    sentences2: Sequence[str],
    conditions: Sequence[str] | None,
    *,
    separator: str,
    order: Order = "sentence-first",
    layout: Layout = "released",
    inputs: Inputs = "both",
) -> list[str | list[str]]:
    """Join two sentences and a condition of each of n rows, the input of a cross-encoder.

    The separators are written into the text, where the tokenizer reads them as its special token.
    The paper leaves them open; ``released`` is the form in the code of C-STS. The
    separator is the result of ``condsim.model.builders.separator_of(tokenizer, layout)``.
    Parts that are not read (C-STS Table 10) have none.

    Example:
        >>> cross_encoder_inputs(["A dog."], ["A cat."], ["the animal"], separator=" [SEP] ")
        ['A dog. [SEP] A cat. [SEP] the animal']
    """
    if inputs == "condition":
        if conditions is None:
            raise InputError("This cross-encoder reads only conditions, and the rows have none.")
        return [*as_read(conditions, order=order)]
    pairs = [list(pair) for pair in zip(sentences1, sentences2, strict=True)]
    if conditions is not None and inputs == "both":
        joined = [separator.join(pair) for pair in pairs]
        pairs = conditional_sentences(joined, conditions, order=order)
    return [separator.join(pair) if layout == "released" else pair for pair in pairs]


def row_blocks(columns: Sequence[Sequence[str]]) -> Iterator[slice]:
    """Cut rows of texts into blocks, which have fewer rows where texts are long."""
    start = size = row = 0
    for row, texts in enumerate(zip(*columns, strict=True), start=1):
        row_size = max(1, sum(map(len, texts)) // CHARACTERS_PER_ROW)
        size += row_size
        if size > ROWS_PER_BLOCK and row - 1 > start:
            yield slice(start, row - 1)
            start, size = row - 1, row_size
    if row:
        yield slice(start, row)


def deduplicate_inputs(
    columns: Sequence[Sequence[str]], conditions: Sequence[str] | None
) -> tuple[list[str], list[str] | None, IntArray]:
    """List each conditional sentence once, in an order that depends on the texts alone.

    So swapped columns are embedded in the same batches, and scores are symmetric to the last bit,
    although the contents of a batch affect the last bits of an embedding. Returns the m sentences,
    their conditions or None, and the index of each text of the columns, ``(columns, n)``.
    """
    keys = conditions if conditions is not None else [""] * len(columns[0])
    texts = [list(zip(keys, column, strict=True)) for column in columns]
    index_of = {key: number for number, key in enumerate(sorted(set(chain(*texts))))}
    rows = [[index_of[key] for key in row] for row in texts]
    sentences = [sentence for _, sentence in index_of]
    index = np.array(rows, dtype=np.int64).reshape(len(columns), -1)
    return sentences, None if conditions is None else [key for key, _ in index_of], index


CPU_TOKENS, ACCELERATOR_TOKENS = 768, 8192
"""Tokens of a batch in training, padding included. On a CPU few, so that lengths are similar: that
computes 1.2 times the tokens of rows of criteria and C-STS, and one batch for all 3 times."""


def token_batches(lengths: IntArray, *, tokens: int) -> Iterator[IntArray]:
    """Cut texts into batches of at most ``tokens`` tokens, padding included.

    Yields the indices of the texts of a batch, ascending by length, the longest texts first; a text
    above the limit is alone.
    """
    order = np.argsort(lengths, kind="stable")
    while len(order):
        size = max(1, tokens // max(1, int(lengths[order[-1]])))
        yield order[-size:]
        order = order[:-size]


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
    """The chunks of all inputs, one input after the other, (chunks,).

    ``owner`` has the index of the input of each, ascending; ``tokens`` its tokens, except those in
    the condition.
    """

    inputs: list[Input]
    owner: IntArray
    tokens: IntArray


def pooled(vectors: FloatArray, owner: IntArray, weights: FloatArray) -> FloatArray:
    """Pool vectors (parts, d) by weights (parts,) to unit vectors of their owners, (n, d).

    Args:
        vectors: Vectors of the parts, in the order of their owners.
        owner: Number of the owner of each part, from 0 on, ``(parts,)``.
        weights: Weights of the parts, ``(parts,)``.
    """
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    sums: FloatArray = np.add.reduceat(vectors * weights[:, None], starts, axis=0)
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    return sums


class Chunker:
    """Splitter of inputs that are longer than a model reads."""

    def __init__(self, tokenizer: Tokenizer, *, order: Order, joint: bool) -> None:
        """Take a tokenizer without a limit; ``joint``: text and condition share a model's."""
        self._tokenizer = tokenizer
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
