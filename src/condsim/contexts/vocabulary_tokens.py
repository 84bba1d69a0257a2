"""The tokens of a whole corpus on disk, so that training reads no text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from condsim.contexts.vocabulary import SentenceCorpus, Vocabulary
from condsim.files import replacing
from condsim.types import IntArray

__all__ = ["CorpusTokens"]

_BLOCK = 10_000  # sentences at a time


class CorpusTokens:
    """Token ids of each sentence, memory-mapped; no special tokens."""

    def __init__(self, tokens: NDArray[np.unsignedinteger], starts: IntArray) -> None:
        """Takes the tokens of all sentences one after the other, and where each starts.

        Args:
            tokens: Token ids, ``(t,)``.
            starts: First token of each sentence, and t, ``(n + 1,)``.
        """
        self._tokens = tokens
        self._starts = starts

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self._starts) - 1

    @property
    def lengths(self) -> IntArray:
        """Number of tokens of each sentence, ``(n,)``."""
        return np.diff(self._starts)

    def take(self, ids: IntArray | Sequence[int], *, most: int) -> list[IntArray]:
        """Reads some sentences.

        Args:
            ids: Rows of the corpus, length k.
            most: Tokens kept of each; the rest of a longer sentence is cut off.

        Returns:
            Token ids of each, k arrays of at most ``most``.
        """
        starts, tokens = self._starts, self._tokens
        return [
            np.asarray(tokens[starts[i] : min(starts[i + 1], starts[i] + most)], dtype=np.int64)
            for i in ids
        ]

    def stretch(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Reads consecutive sentences as one run of tokens.

        Args:
            first: Row of the first sentence.
            last: Row after the last one.

        Returns:
            Token ids and the sentence that each belongs to, both ``(t,)``.
        """
        begin, end = self._starts[first], self._starts[last]
        sentences = np.repeat(np.arange(first, last), np.diff(self._starts[first : last + 1]))
        return np.asarray(self._tokens[begin:end], dtype=np.int64), sentences

    @classmethod
    def build(cls, corpus: SentenceCorpus, vocabulary: Vocabulary) -> CorpusTokens:
        """Splits the corpus into tokens, or opens what was split before.

        Args:
            corpus: The corpus; read in blocks.
            vocabulary: The tokenizer; the files are in its folder.

        Returns:
            The tokens.
        """
        folder = vocabulary.folder
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {"corpus": corpus.revision, "vocabulary": vocabulary.revision}
        record, data, offsets = (
            folder / name for name in ("tokens.json", "tokens.bin", "token_starts.npy")
        )
        kind = np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32
        if not (record.is_file() and json.loads(record.read_text(encoding="utf-8")) == wanted):
            record.unlink(missing_ok=True)
            _split(corpus, vocabulary, data, offsets, kind)
            with replacing(record) as partial:  # last: without it the files are made anew
                partial.write_text(json.dumps(wanted), encoding="utf-8")
        starts = np.load(offsets, mmap_mode="r")
        if not starts[-1]:  # an empty file cannot be mapped
            return cls(np.empty(0, dtype=kind), starts)
        return cls(np.memmap(data, dtype=kind, mode="r"), starts)


def _split(
    corpus: SentenceCorpus,
    vocabulary: Vocabulary,
    data: Path,
    offsets: Path,
    kind: type[np.unsignedinteger],
) -> None:
    starts = np.zeros(len(corpus) + 1, dtype=np.int64)
    with replacing(data) as partial, partial.open("wb") as stream:
        for first in range(0, len(corpus), _BLOCK):
            last = min(first + _BLOCK, len(corpus))
            encoded = vocabulary.encode(corpus.sentences(np.arange(first, last, dtype=np.int64)))
            starts[first + 1 : last + 1] = [len(ids) for ids in encoded]
            stream.write(np.concatenate(encoded).astype(kind).tobytes())
    np.cumsum(starts, out=starts)
    with replacing(offsets) as partial, partial.open("wb") as stream:
        np.save(stream, starts)
