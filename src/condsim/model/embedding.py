"""Scorers that compare two embeddings by cosine."""

from __future__ import annotations

import re
import reprlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from condsim.cache import RecentVectors
from condsim.errors import InputError, ModelError
from condsim.model.applicability import PROBE, ApplicabilityHead, Embedded
from condsim.model.base import PairScorer, Rows, Scale, Texts, check_rows, distinct, rescaled
from condsim.model.calibration import Calibration
from condsim.model.conditions import Order, as_read, check_order, conditional_sentences
from condsim.model.explanation import Occlusion
from condsim.model.truncation import count_cut, one_warning
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Input = str | list[str]
"""A text alone, or with its condition in the model's order."""

_PIECE = 48
"""Most tokens of a piece's text: models learn from short texts, and long pieces did worse than
short ones (docs/results/long-texts.md)."""
_LEAST = 16  # tokens that a condition must leave for a piece's text

_LANGUAGE = "en"  # whose abbreviations end no sentence; marks of other scripts are known as well
_LINE, _SPACE = re.compile(r"\n"), re.compile(r"\s")


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
        self._text = 0 if order == "sentence-first" else 1  # place in a pair
        self._joint = joint

    def split(self, inputs: Sequence[Input], *, limit: int) -> Split:
        """Splits inputs of which the model reads ``limit`` tokens at most."""
        texts = self.texts(inputs)
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        pieces: list[Input] = []
        owner: list[int] = []
        tokens: list[int] = []
        for number, (one, text, encoding) in enumerate(zip(inputs, texts, encodings, strict=True)):
            for part, size in _pieces_of(text, encoding, self._room(one, limit)):
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
        """Most tokens of a piece's text; refuses a condition that leaves no room for it."""
        if isinstance(one, str) or not self._joint:
            free = limit - self._tokenizer.num_special_tokens_to_add(is_pair=False)
        else:
            free = limit - self._tokenizer.num_special_tokens_to_add(is_pair=True)
            condition, most = one[1 - self._text], free - min(_LEAST, free // 2)
            size = len(self._tokenizer.encode(condition, add_special_tokens=False))
            if size > most:
                raise InputError(
                    f"The condition {reprlib.repr(condition)} has {size:,} tokens and leaves no "
                    f"room for the text; at most {most}. Shorten it."
                )
            free -= size
        return min(_PIECE, max(1, free))


def _pieces_of(text: str, encoding: Encoding, room: int) -> Iterator[tuple[str, int]]:
    """Cuts a text into parts of at most ``room`` tokens: each part, and its tokens."""
    # Each is as long as may be and ends with a sentence, else a line, else a word, else anywhere.
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
class Tokenised:
    """What a model reads of inputs."""

    inputs: Sequence[Any]  # the inputs as the model takes them, length n; what is too long is cut
    longer: Sequence[int] = ()  # which of them are too long, ascending
    limit: int = 0  # most tokens that the model reads


_ROWS = 4096  # scored at a time: bounds the memory, whatever the number of rows
_CHARACTERS = 512  # of the texts of a row; one that has more counts as several


class EmbeddingScorer(PairScorer):
    """Scores by the cosine of two conditional sentences, each distinct one encoded once.

    A text that with its condition is longer than the model reads is split at the ends of sentences.
    Its embedding is the mean of those of its `pieces`, weighted by their tokens. A condition that
    leaves fewer than 16 tokens for the text is refused with an `InputError`.

    Memory does not grow with the number of rows, apart from the result.

    Attributes:
        name: Short name, shown in tables.
        order: Order of condition and sentence, and whether conditions are bare.
        dimension: Length of an embedding.
        calibration: From cosine to a score in [0, 1]; if None, scores are the cosines.
        head: The fitted head that `applicability` needs, or None.
    """

    head: ApplicabilityHead | None = None
    _checked: ApplicabilityHead | None = None  # the head that was found to be this model's
    _recent: RecentVectors | None = None

    def __init__(
        self, *, name: str, order: Order, dimension: int, calibration: Calibration | None
    ) -> None:
        """Keeps the attributes; raises `InputError` if the order is unknown."""
        check_order(order)
        self.name = name
        self.order: Order = order
        self.dimension = dimension
        self.calibration = calibration

    @abstractmethod
    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embeds texts, or pairs of texts in the model's order."""

    def _in_pieces(
        self, inputs: Sequence[Input], read: Callable[[Sequence[Any]], FloatArray]
    ) -> FloatArray:
        """Embeds n inputs, those in pieces that are longer than the model reads, ``(n, d)``."""
        whole = self._tokenised(inputs)
        if not whole.longer or self._splitter is None:
            count_cut(self.name, whole.limit, len(whole.longer))
            return read(whole.inputs)
        found = self._splitter.split([inputs[row] for row in whole.longer], limit=whole.limit)
        pieces = self._tokenised(found.pieces)
        cut = len({int(found.owner[piece]) for piece in pieces.longer})  # in spite of all
        count_cut(self.name, whole.limit, cut)
        vectors = np.empty((len(inputs), self.dimension), np.float32)
        vectors[whole.longer] = found.pooled(read(pieces.inputs))
        if rest := sorted(set(range(len(inputs))).difference(whole.longer)):
            vectors[rest] = read([whole.inputs[row] for row in rest])
        return vectors

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        raw = np.empty(len(rows), dtype=np.float32)
        for part in _parts(rows):
            vectors, where = self._embed_rows(rows, part)
            raw[part] = np.einsum("nd,nd->n", vectors[where[0]], vectors[where[1]])
        np.clip(raw, -1, 1, out=raw)  # rounding may leave a cosine of 1.0000001
        return rescaled(raw, self.calibration, scale)

    def _occluded(
        self, first: Occlusion, second: Occlusion, condition: str | None, scale: Scale
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        vectors1, vectors2 = (self.encode(one.texts, condition) for one in (first, second))
        raw1, raw2 = vectors1 @ vectors2[1], vectors2 @ vectors1[1]  # row 1 is the whole text
        values1, values2 = (
            rescaled(np.clip(raw, -1, 1), self.calibration, scale) for raw in (raw1, raw2)
        )
        # A cosine is linear in each vector, so the shares of vectors give those of pairs of words.
        pairs = first.shares(vectors1) @ second.shares(vectors2).T
        return values1, values2, pairs.astype(np.float32)

    def encode(self, sentences: Texts, conditions: Texts | None = None) -> FloatArray:
        """Encodes sentences, each under its condition.

        The dot product of two embeddings is the raw score of the pair.

        Args:
            sentences: Sentences, length n, or one.
            conditions: Conditions, length n, or one for all; see `score` for None.

        Returns:
            Embeddings of length 1, ``(n, dimension)`` float32; ``(dimension,)`` for single texts.

        Raises:
            InputError: If a text is empty or no str, or lengths differ.
        """
        rows = check_rows(conditions, sentences=sentences)
        embeddings = np.empty((len(rows), self.dimension), dtype=np.float32)
        with one_warning():
            for part in _parts(rows):
                vectors, where = self._embed_rows(rows, part)
                embeddings[part] = vectors[where[0]]
        return embeddings[0] if rows.single else embeddings

    def keep_vectors(self, number: int) -> None:
        """Keeps the vectors of the last texts, so that one that comes again is not encoded again.

        Without this, a text is encoded once among those of a call, some 4,096 rows at a time. Not
        for several threads at once.

        Args:
            number: How many to keep, 0 or more; 1.5 kB each for the model that ships.

        Raises:
            InputError: If the number is negative.
        """
        if number < 0:
            raise InputError(f"The 'number' of vectors must be 0 or more. Got {number}.")
        self._recent = RecentVectors(number, self.dimension) if number else None

    def pieces(self, sentence: str, condition: str | None = None) -> list[str]:
        """Gives the pieces in which the model reads a text.

        Args:
            condition: Its condition, which takes part of what the model reads.

        Returns:
            The text itself where the model reads it whole; else its pieces, each of which ends
            where a sentence does, if it can.

        Raises:
            InputError: If a text is empty or no str.
        """
        check_rows(condition, sentence=sentence)
        one: Input = sentence
        if condition is not None:
            one = conditional_sentences([sentence], [condition], order=self.order)[0]
        whole = self._tokenised([one])
        if not whole.longer or self._splitter is None:
            return [sentence]
        return self._splitter.texts(self._splitter.split([one], limit=whole.limit).pieces)

    def _tokenised(self, inputs: Sequence[Input]) -> Tokenised:
        """Prepares inputs as the model reads them; this one has no limit."""
        return Tokenised(inputs)

    @cached_property
    def _splitter(self) -> Splitter | None:
        """Splits what is too long; None where the model's tokens have no place in the text."""
        return None

    @overload
    def applicability(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
        self, sentences1: str, sentences2: str, conditions: str
    ) -> float: ...

    @overload
    def applicability(
        self, sentences1: Texts, sentences2: Texts, conditions: Texts
    ) -> FloatArray: ...

    def applicability(
        self, sentences1: Texts, sentences2: Texts, conditions: Texts
    ) -> float | FloatArray:
        """Says how likely a condition applies to both sentences.

        Where it does not, a score means little: C-STS calls such rows invalid (label -1). A single
        text among sequences stands for every row.

        Args:
            sentences1: First sentences, length n, or one.
            sentences2: Second sentences, length n, or one.
            conditions: Conditions, length n, or one.

        Returns:
            A float for single texts, else ``(n,)`` float32, in [0, 1].

        Raises:
            InputError: If a text is empty or no str, or lengths differ.
            ModelError: If the model has no head, or that of another model.
        """
        if conditions is None:
            raise InputError("The 'conditions' must be one text or a sequence of texts. Got none.")
        rows = check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        if self.head is None:
            raise ModelError(
                f"{self.name!r} has no applicability head. Fit one with 'condsim applicability "
                "fit', and put it into the model's folder."
            )
        if self._checked is not self.head:
            self.head.check(self.encode(*PROBE), model=self.name)
            self._checked = self.head
        found = np.empty(len(rows), dtype=np.float32)
        with one_warning():
            for part in _parts(rows):
                found[part] = self.head.probability(self._embedded(rows, part))
        return float(found[0]) if rows.single else found

    def embedded(self, sentences1: Texts, sentences2: Texts, conditions: Texts) -> Embedded:
        """Embeds rows in the five ways an applicability head needs; see `applicability`."""
        rows = check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        return self._embedded(rows, slice(None))

    def _embedded(self, rows: Rows, part: slice) -> Embedded:
        vectors, where = self._embed_rows(rows, part)
        conditions = as_read(rows.conditions or (), order=self.order)
        alone = Rows((*rows.sentences, conditions), None, single=False)
        plain, index = self._embed_rows(alone, part)
        return Embedded(vectors[where[0]], vectors[where[1]], *(plain[one] for one in index))

    def _embed_rows(self, rows: Rows, part: slice) -> tuple[FloatArray, IntArray]:
        """Embeds each conditional sentence of some rows once; see `distinct` for the index."""
        columns = [column[part] for column in rows.sentences]
        conditions = None if rows.conditions is None else rows.conditions[part]
        sentences, conditions_of, where = distinct(columns, conditions)
        inputs: list[str] | list[list[str]] = sentences
        if conditions_of is not None:
            inputs = conditional_sentences(sentences, conditions_of, order=self.order)
        kept = self._recent
        vectors = self._embed(inputs) if kept is None else kept.embed(inputs, self._embed)
        if not np.isfinite(vectors).all():
            raise ModelError(
                f"{self.name!r} gives embeddings that are not finite numbers; the model is damaged."
            )
        return vectors, where


def _parts(rows: Rows) -> Iterator[slice]:
    """Cuts rows into blocks of so many rows, fewer where their texts are long."""
    start = size = 0
    for row, texts in enumerate(zip(*rows.sentences, strict=True)):
        size += max(1, sum(map(len, texts)) // _CHARACTERS)
        if size > _ROWS and row > start:
            yield slice(start, row)
            start, size = row, max(1, sum(map(len, texts)) // _CHARACTERS)
    if len(rows):
        yield slice(start, len(rows))
