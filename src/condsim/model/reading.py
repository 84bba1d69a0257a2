"""Scorers that read texts as tokens: their chunks, and the words that they do not know."""

from __future__ import annotations

import logging
import reprlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from condsim.cache import VectorCache
from condsim.errors import InputError, check_at_least
from condsim.model.base import PairScorer, Rows, check_rows
from condsim.model.calibration import Calibration
from condsim.model.inputs import (
    Chunker,
    Chunks,
    Input,
    Order,
    check_order,
    conditional_sentences,
    pooled,
    record_truncation,
)
from condsim.model.legibility import Legibility, record_unread, suspects
from condsim.types import FloatArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# With more chunks of a text, which take a quarter of a minute, a line says so.
_MANY_CHUNKS = 250
_LOGGER = logging.getLogger(__name__)

Embed = Callable[[Sequence[Any]], FloatArray]
"""From inputs as a model takes them to their vectors."""


class Tokenized(NamedTuple):
    """Inputs as a model takes them, and the indices of those longer than the limit in tokens."""

    inputs: Sequence[Any]
    longer: Sequence[int] = ()
    limit: int = 0


class ReadingScorer(PairScorer):
    """Scorer that embeds texts, in chunks those that are longer than the model reads.

    Attributes:
        name: Short name, shown in tables.
        order: Order of condition and sentence, and whether conditions are bare.
        dimension: Length of an embedding.
        calibration: From cosine to a score in [0, 1]; if None, scores are the cosines.
    """

    _cache: VectorCache | None = None

    def __init__(
        self, *, name: str, order: Order, dimension: int, calibration: Calibration | None
    ) -> None:
        """Set the attributes; raises `InputError` if the order is unknown."""
        check_order(order)
        self.name = name
        self.order: Order = order
        self.dimension = dimension
        self.calibration = calibration

    @abstractmethod
    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embed texts, or pairs of texts in the model's order, (m, dimension)."""

    def reads(self, text: str) -> bool:
        """Check that the model has learned the words and the script of a text.

        Texts that it does not read become the same unknown tokens, so that ``Great 👍`` and
        ``Great 👎`` have a score of 1. `score` and `encode` then warn with a `ScoredWarning`, once
        a call. They look at texts with a character outside ASCII, or a word of more than 100
        characters, only.

        Returns:
            False if more than 0.3 of the words are unknown, or of a script of which the vocabulary
            has only single letters; True for a model without a vocabulary of tokens.

        Raises:
            InputError: If the text is empty or not a str.

        Example:
            >>> import condsim
            >>> model = condsim.load()
            >>> model.reads("The café is great."), model.reads("Great 👍")
            (True, False)
        """
        if not check_rows(None, text=text).single:
            raise InputError(f"'text' must be one text; got {reprlib.repr(text)}.")
        return self._legibility is None or self._legibility.reads(text)

    def unread_parts(self, texts: Iterable[str]) -> dict[str, str]:
        """Return the words that the model cannot read, of each text that has any.

        Returns:
            The words by text; the text itself where `reads` is False.
        """
        suspected = suspects(texts)
        if not suspected or self._legibility is None:
            return {}
        return self._legibility.unread_parts(suspected)

    def chunks(self, sentence: str, condition: str | None = None) -> list[str]:
        """Split a text into the chunks in which the model reads it.

        Args:
            condition: Its condition, which takes part of the model's limit.

        Returns:
            The text itself if the model reads it as a whole; else its chunks, each of which ends
            where a sentence does, if it can.

        Raises:
            InputError: If a text is empty or not a str.
        """
        check_rows(condition, sentence=sentence)
        inputs: Sequence[Input] = [sentence]
        if condition is not None:
            inputs = conditional_sentences([sentence], [condition], order=self.order)
        tokenized = self._tokenized(inputs)
        if not tokenized.longer or self._chunker is None:
            return [sentence]
        return self._chunker.texts(self._chunker.split(inputs, limit=tokenized.limit).inputs)

    def set_cache_size(self, size: int) -> None:
        """Cache the vectors of the most recent texts, so that a repeated text is not encoded again.

        Without a cache, a text is encoded once in a call, some 4,096 rows at a time.
        Not for several threads at once.

        Args:
            size: Number of vectors, 0 or more; 1.5 kB each for the default model.

        Raises:
            InputError: If the number is negative.
        """
        check_at_least(0, size=size)
        self._cache = VectorCache(size, self.dimension) if size else None

    def _record_unread(self, rows: Rows, block: slice) -> bool:
        """Count the texts of a block that the model cannot read; tell if any has unread words."""
        columns = (*rows.sentences, rows.conditions or ())
        parts = self.unread_parts(chain.from_iterable(column[block] for column in columns))
        record_unread(text for text, words in parts.items() if words == text)
        return bool(parts)

    def _embed_long(self, inputs: Sequence[Input], embed: Embed) -> FloatArray:
        """Embed n inputs, in chunks those that are longer than the model reads, ``(n, d)``."""
        tokenized = self._tokenized(inputs)
        longer, limit = tokenized.longer, tokenized.limit
        if not longer or self._chunker is None:
            record_truncation(self.name, limit, len(longer))
            return embed(tokenized.inputs)
        chunks = self._chunker.split([inputs[row] for row in longer], limit=limit)
        most = int(np.bincount(chunks.owner).max())
        if most > _MANY_CHUNKS:
            _LOGGER.warning(
                "A text is read in %d chunks of %d tokens, which may take minutes.", most, limit
            )
        prepared = self._tokenized(chunks.inputs)
        # A tri-encoder's condition may be too long by itself.
        truncated = {int(chunks.owner[chunk]) for chunk in prepared.longer}
        record_truncation(self.name, limit, len(truncated))
        vectors = np.empty((len(inputs), self.dimension), np.float32)
        parts = embed(prepared.inputs)
        vectors[longer] = pooled(parts, chunks.owner, self._chunk_weights(chunks, parts, embed))
        if short := sorted(set(range(len(inputs))).difference(longer)):
            vectors[short] = embed([tokenized.inputs[row] for row in short])
        return vectors

    def _chunk_weights(self, chunks: Chunks, vectors: FloatArray, embed: Embed) -> FloatArray:
        """Weights of chunks in the vector of their text, ``(chunks,)``: their lengths."""
        return chunks.tokens.astype(np.float32)

    def _tokenized(self, inputs: Sequence[Input]) -> Tokenized:
        """Prepare inputs as the model takes them; without a limit by default."""
        return Tokenized(inputs)

    @property
    def _backend_tokenizer(self) -> Tokenizer | None:
        """Tokenizer of the model; None if its tokens have no position in the text."""
        return None

    @property
    def _joint(self) -> bool:
        """True if the model reads condition and text together, which share its limit."""
        return True

    @cached_property
    def _unlimited_tokenizer(self) -> Tokenizer | None:
        """Copy of the tokenizer that neither truncates nor pads."""
        if self._backend_tokenizer is None:
            return None
        tokenizer = self._backend_tokenizer.from_str(self._backend_tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _legibility(self) -> Legibility | None:
        tokenizer = self._unlimited_tokenizer
        return tokenizer and Legibility(tokenizer)

    @cached_property
    def _chunker(self) -> Chunker | None:
        tokenizer = self._unlimited_tokenizer
        return tokenizer and Chunker(tokenizer, order=self.order, joint=self._joint)
