"""Sources of candidates: items with captions, or plain texts, each an item with one caption."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from condsim.data.reading import iter_rows, stem_of
from condsim.data.row import Row, shown
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.rows.pairs import item_name
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


def _caption(row: Row, column: str, item: str) -> str:
    if row.cells[column] in (None, ""):
        raise InputError(
            f"{row.place(column)}: the item {shown(item)} has no caption here. Every row must have "
            "one; write it, or remove the row."
        )
    return row.text(column)
