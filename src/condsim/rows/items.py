"""Sources of candidates: items with captions, or plain texts, each an item with one caption."""

# IOU is of the sets of words, without stop words and whatever the case; 0 where neither sentence
# has a content word. The ratio is words of the shorter by words of the longer, where words are what
# white space separates: so counted, 94.6 % of the C-STS pairs reach 0.7 (93.6 % where marks are no
# words). The length is in characters of the shorter.

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Sequence, Set as AbstractSet
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.data.reading import iter_rows, stem_of
from condsim.data.row import Row, shown
from condsim.errors import InputError, require
from condsim.io import sha256_of
from condsim.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Collection:
    """Items and their captions."""

    source: str  # name of the collection
    revision: str  # first 12 hex digits of the SHA-256 of the file
    item_ids: tuple[str, ...]  # in the order of their first row, length n
    captions: tuple[str, ...]  # those of an item side by side in file order, length m
    starts: IntArray  # where the captions of each item start, and m at the end, (n + 1,)
    repeated: int  # rows left out since their item, or a plain text before, has the same text

    def __len__(self) -> int:
        return len(self.item_ids)

    def fingerprint(self) -> str:
        """Hashes the items and captions, whatever the format they were read from."""
        digest = hashlib.sha256()
        for item, (start, stop) in zip(self.item_ids, pairwise(self.starts), strict=True):
            digest.update("\0".join([item, *self.captions[start:stop], "\n"]).encode())
        return digest.hexdigest()[:16]


def read_items(
    path: Path | str,
    *,
    item_column: str | None = "item_id",
    caption_column: str = "caption",
    source: str | None = None,
) -> Collection:
    """Reads items with captions, or plain texts.

    Args:
        path: File with one row a caption; formats as `condsim.data.reading.iter_rows` reads them.
        item_column: The column that names the item. If None, each distinct text is an item, named
            ``row-1`` and so on by the first row that has it.
        source: Name of the collection; the file's stem by default.

    Raises:
        InputError: If the file cannot be read, a caption or an item's name is empty, or there are
            fewer than two items.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    captions: dict[str, dict[str, None]] = {}
    first: dict[str, str] = {}  # row of a plain text
    columns = [caption_column] if item_column is None else [item_column, caption_column]
    rows = 0
    for rows, row in enumerate(iter_rows(path, columns=columns), start=1):
        if item_column is None:
            text = row.text(caption_column)
            item = first.setdefault(text, f"row-{rows}")
        else:
            item = item_name(row, item_column)
            text = _caption(row, caption_column, item)
        captions.setdefault(item, {})[text] = None
    if len(captions) < 2:
        raise InputError(
            f"{path}: pairs need at least two items with different texts, got {len(captions)}. "
            "Add rows, or check which column names the item."
        )
    sizes = [0, *map(len, captions.values())]
    texts = tuple(text for some in captions.values() for text in some)
    return Collection(
        source=stem_of(path) if source is None else source,
        revision=sha256_of(path)[:12],
        item_ids=tuple(captions),
        captions=texts,
        starts=np.cumsum(sizes, dtype=np.int64),
        repeated=rows - len(texts),
    )


def item_name(row: Row, column: str) -> str:
    """Reads what a caption describes."""
    value = row.cells[column]
    if value is None or value == "":
        raise InputError(f"{row.place(column)}: must not be empty. Name the item of the caption.")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _caption(row: Row, column: str, item: str) -> str:
    if row.cells[column] in (None, ""):
        raise InputError(
            f"{row.place(column)}: the item {shown(item)} has no caption here. Every row must have "
            "one; write it, or remove the row."
        )
    return row.text(column)


def read_stop_words(path: Path | None = None) -> frozenset[str]:
    """Reads a list of stop words.

    Args:
        path: UTF-8 text, words separated by white space; an empty file means none. An English list
            if None.

    Raises:
        InputError: If the file cannot be read.
    """
    own = resources.files("condsim.rows") / "stop_words.txt"
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
    """What is counted once for each of n texts."""

    bags: Any  # 1 where a text has a content word, sparse, (n, vocabulary)
    sizes: IntArray  # number of its content words, (n,)
    word_counts: IntArray  # words that white space separates, (n,)
    lengths: IntArray  # characters, (n,)
    text_ids: IntArray  # the same number for equal texts, (n,)

    def product(self, rows: slice, others: IntArray, *, vectors: FloatArray | None) -> Measures:
        """Measures every pair of r texts with c others, ``(r, c)``; vectors are of length 1."""
        common = (self.bags[rows] @ self.bags[others].T).toarray()
        cosine = None if vectors is None else np.asarray(vectors[rows]) @ vectors[others].T
        return self._measures(np.arange(rows.start, rows.stop)[:, None], others, common, cosine)

    def paired(self, first: IntArray, second: IntArray, *, vectors: FloatArray | None) -> Measures:
        """Measures pairs of texts one by one: numbers of both, ``(p,)``, to shape ``(p,)``."""
        common = self.bags[first].multiply(self.bags[second]).sum(axis=1)
        cosine = None
        if vectors is not None:
            cosine = np.einsum("pd,pd->p", vectors[first], vectors[second])
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
            text_cosine=None if cosine is None else np.clip(cosine, -1, 1),
            length_ratio=np.minimum(counts, others) / np.maximum(counts, others),
            min_length=np.minimum(self.lengths[first], self.lengths[second]),
        )


def bag_of_words(text: str, stop_words: AbstractSet[str]) -> frozenset[str]:
    """Gives the content words of a text."""
    words = (word.replace("\u2019", "'") for word in _WORD.findall(text.casefold()))
    return frozenset(words) - stop_words


def text_facts(texts: Sequence[str], *, stop_words: AbstractSet[str] | None = None) -> TextFacts:
    """Counts what the filters need of each text; the stop words are English ones if None."""
    stop_words = read_stop_words() if stop_words is None else stop_words
    vocabulary: dict[str, int] = {}
    known: dict[str, int] = {}
    words = array("i")
    facts: list[tuple[int, ...]] = []
    for text in texts:
        bag = bag_of_words(text, stop_words)
        words.extend(vocabulary.setdefault(word, len(vocabulary)) for word in bag)
        number = known.setdefault(text, len(known))
        facts.append((len(bag), len(text.split()), len(text), number))
    columns = np.array(facts, np.int64).reshape(-1, 4).T
    sizes, counts, lengths, ids = np.ascontiguousarray(columns)
    bags = require("scipy.sparse", extra="build").csr_array(
        (np.ones(len(words), np.int32), np.array(words), np.append(0, np.cumsum(sizes))),
        shape=(len(texts), max(1, len(vocabulary))),
    )
    return TextFacts(bags, sizes, word_counts=counts, lengths=lengths, text_ids=ids)
