"""Texts longer than a model reads: split at the ends of sentences, read in pieces and pooled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from condsim.cutting import count_cut
from condsim.encoders import Order
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Input = str | list[str]
"""A text alone, or with its condition in the model's order."""

_PIECE = 48
"""Most tokens of a piece's text: models learn from short texts, and long pieces did worse than
short ones (docs/results/long-texts.md)."""
_LEAST = 16  # tokens of a piece's text, where a condition takes the rest

_LANGUAGE = "en"  # whose abbreviations end no sentence; marks of other scripts are known as well
_LINE, _SPACE = re.compile(r"\n"), re.compile(r"\s")

T = TypeVar("T")


@dataclass(frozen=True)
class Split:
    """Inputs in pieces."""

    pieces: list[Input]  # the pieces of all inputs, one after the other
    owner: IntArray  # which of the inputs each piece is of, ascending, (pieces,)
    tokens: IntArray  # tokens of each piece, without those of the condition, (pieces,)

    def pooled(self, vectors: FloatArray) -> FloatArray:
        """Pools vectors of the pieces, (pieces, d): those of the inputs, of length 1, (n, d)."""
        first = np.flatnonzero(np.diff(self.owner, prepend=-1))  # where each input begins
        weighted = vectors * self.tokens[:, None].astype(np.float32)
        sums: FloatArray = np.add.reduceat(weighted, first, axis=0)  # (n, d)
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        return sums


class Splitter:
    """Splits what is longer than a model reads."""

    def __init__(self, tokenizer: Tokenizer, *, order: Order, joint: bool) -> None:
        """Copies a tokenizer; ``joint``: the limit is for text and condition together."""
        self._tokenizer = tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._text = 1 if order == "condition-first" else 0  # place in a pair
        self._joint = joint

    def split(self, inputs: Sequence[Input], *, limit: int) -> Split:
        """Splits inputs of which the model reads ``limit`` tokens at most."""
        texts = self.texts(inputs)
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        pieces: list[Input] = []
        owner: list[int] = []
        tokens: list[int] = []
        for number, (one, text, encoding) in enumerate(zip(inputs, texts, encodings, strict=True)):
            for part, size in _parts(text, encoding, self._room(one, limit)):
                pieces.append(part if isinstance(one, str) else self._paired(one, part))
                owner.append(number)
                tokens.append(size)
        return Split(pieces, np.array(owner, np.int64), np.array(tokens, np.int64))

    def texts(self, inputs: Sequence[Input]) -> list[str]:
        """The texts of inputs, without their conditions."""
        return [one if isinstance(one, str) else one[self._text] for one in inputs]

    def _paired(self, one: list[str], part: str) -> list[str]:
        return [part if place == self._text else text for place, text in enumerate(one)]

    def _room(self, one: Input, limit: int) -> int:
        """Most tokens of a piece's text; the tokenizer cuts a condition that leaves no room."""
        if isinstance(one, str) or not self._joint:
            free = limit - self._tokenizer.num_special_tokens_to_add(is_pair=False)
        else:
            free = limit - self._tokenizer.num_special_tokens_to_add(is_pair=True)
            condition = self._tokenizer.encode(one[1 - self._text], add_special_tokens=False)
            free = max(free - len(condition), min(_LEAST, free // 2))
        return min(_PIECE, max(1, free))


def _parts(text: str, encoding: Encoding, room: int) -> Iterator[tuple[str, int]]:
    """Cuts a text into parts of at most ``room`` tokens: each part, and its tokens.

    Each part is as long as may be and ends where a sentence does, else a line, else a word, else
    anywhere.
    """
    if not len(encoding):
        yield text, 1
    starts = np.array([start for start, _ in encoding.offsets], np.int64)
    places = [np.searchsorted(starts, ends) for ends in _ends(text)]
    begin = 0
    while begin < len(starts):
        end = min(begin + room, len(starts))
        if end < len(starts):
            found = (some[np.searchsorted(some, end, side="right") - 1] for some in places)
            end = next((int(place) for place in found if begin < place <= end), end)
        first = starts[begin] if begin else 0
        if part := text[first : starts[end] if end < len(starts) else None].strip():
            yield part, end - begin
        begin = end


def _ends(text: str) -> tuple[list[int], list[int], list[int]]:
    """Where the sentences, lines and words of a text end, by characters; never empty."""
    from sentencex import segment

    sentences, at = [0], 0
    for sentence in segment(_LANGUAGE, text):
        sentences.append(at + len(sentence.rstrip()))
        at += len(sentence)
    lines = [0, *(found.start() for found in _LINE.finditer(text))]
    words = [0, *(found.start() for found in _SPACE.finditer(text))]
    return sentences, lines, words


@dataclass(frozen=True)
class Tokenised(Generic[T]):
    """What a model reads of inputs."""

    inputs: Sequence[T]  # the inputs as the model takes them, length n; what is too long is cut
    longer: Sequence[int] = ()  # which of them are too long, ascending
    limit: int = 0  # most tokens that the model reads


def read_all(
    inputs: Sequence[Input],
    tokenise: Callable[[Sequence[Input]], Tokenised[T]],
    read: Callable[[Sequence[T]], FloatArray],
    *,
    splitter: Callable[[], Splitter | None],
    name: str,
) -> FloatArray:
    """Embeds inputs, those in pieces that are longer than the model reads.

    Args:
        inputs: The inputs, length n.
        read: Gives their vectors, of length 1.
        splitter: Gives the splitter, where the model can have one; called at need.
        name: Name of the model, for the warning that something was cut in spite of all.

    Returns:
        Vectors of length 1, (n, d).
    """
    whole = tokenise(inputs)
    if not whole.longer:
        return read(whole.inputs)
    if (split := splitter()) is None:
        count_cut(name, whole.limit, len(whole.longer))
        return read(whole.inputs)
    found = split.split([inputs[number] for number in whole.longer], limit=whole.limit)
    pieces = tokenise(found.pieces)
    count_cut(name, whole.limit, len({int(found.owner[number]) for number in pieces.longer}))
    pooled = found.pooled(read(pieces.inputs))
    vectors = np.empty((len(inputs), pooled.shape[1]), np.float32)
    vectors[whole.longer] = pooled
    if rest := sorted(set(range(len(inputs))).difference(whole.longer)):
        vectors[rest] = read([whole.inputs[number] for number in rest])
    return vectors
