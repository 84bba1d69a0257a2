"""Sources of candidates: items with captions, or plain texts.

A file of captions has one row a caption and names its item, such as an image; the captions of an
item need not be adjacent. In a plain text collection each text is an item with one caption, itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.files import sha256_of
from condsim.tasks import Row, iter_rows, shown, stem_of
from condsim.types import IntArray


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
    item_column: str = "item_id",
    caption_column: str = "caption",
    source: str | None = None,
) -> Collection:
    """Reads items with captions.

    Args:
        path: File with one row a caption; formats as `condsim.tasks.iter_rows` reads them.
        item_column: The column that names the item.
        source: Name of the collection; the file's stem by default.

    Raises:
        InputError: If the file cannot be read, a caption or an item's name is empty, or there are
            fewer than two items.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    captions: dict[str, dict[str, None]] = {}
    rows = 0
    for row in iter_rows(path, columns=(item_column, caption_column)):
        item = _item_name(row, item_column)
        captions.setdefault(item, {})[_caption(row, caption_column, item)] = None
        rows += 1
    return _collected(path, source, {item: list(texts) for item, texts in captions.items()}, rows)


def read_texts(
    path: Path | str, *, text_column: str = "sentence", source: str | None = None
) -> Collection:
    """Reads a plain text collection: each distinct text is an item.

    Args:
        path: File with one row a text; formats as `condsim.tasks.iter_rows` reads them.
        source: Name of the collection; the file's stem by default.

    Returns:
        Items named ``row-1`` and so on by the first row that has the text.

    Raises:
        InputError: If the file cannot be read, a text is empty, or fewer than two are distinct.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    first: dict[str, int] = {}
    rows = 0
    for rows, row in enumerate(iter_rows(path, columns=(text_column,)), start=1):
        first.setdefault(row.text(text_column), rows)
    return _collected(path, source, {f"row-{row}": [text] for text, row in first.items()}, rows)


def _item_name(row: Row, column: str) -> str:
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


def _collected(
    path: Path, source: str | None, captions: dict[str, list[str]], rows: int
) -> Collection:
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
