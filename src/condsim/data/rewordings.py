"""Rewordings: one condition in several wordings, each for the same sentence pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.batch import BlankRows
from condsim.data.files import iter_rows, never_empty
from condsim.data.row import Row, short_repr
from condsim.data.text import DETECTED, FileFormat
from condsim.errors import InputError
from condsim.paths import asset, sha256_of, stem_of
from condsim.types import IntArray

REWORDING_COLUMNS = ("sentence1", "sentence2", "condition_group", "condition")
"""The columns of a file of rewordings."""

BUNDLED_REWORDINGS = asset("rewordings.csv").resolve()
"""48 sentence pairs written for condsim, 12 conditions in 6 wordings each."""


@dataclass(frozen=True, eq=False)
class Rewordings:
    """Validated rewordings.

    Attributes:
        name: The file's stem.
        revision: First 12 hex digits of the SHA-256 of the file.
        sentences1: First sentence of each row, length n.
        sentences2: Second sentence of each row, length n.
        condition_groups: Name of each row's condition, whatever its wording, length n.
        conditions: The wording of each row, length n.
        group_ids: Id of each row's pair and condition, from 0, ``(n,)``; two or more rows each.
    """

    name: str
    revision: str
    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    condition_groups: tuple[str, ...]
    conditions: tuple[str, ...]
    group_ids: IntArray

    def __len__(self) -> int:
        return len(self.conditions)


def load_rewordings(
    path: Path | str = BUNDLED_REWORDINGS,
    *,
    columns: Sequence[str] = REWORDING_COLUMNS,
    file_format: FileFormat = DETECTED,
    blank: BlankRows | None = None,
) -> Rewordings:
    """Load a file of rewordings.

    Args:
        path: File in one of the formats that `condsim.data.files.iter_rows` reads.
        columns: Columns of the two texts, of the group of a condition, and of its wording.
        file_format: Separator and character set.
        blank: Counts rows without text, which are left out; by default they are rejected.

    Returns:
        The rows in file order.

    Raises:
        InputError: If the file cannot be read, a cell is empty, or a pair has a wording twice or
            only one.
        MissingExtraError: If the file is Parquet and pyarrow is missing.
    """
    path = Path(path)
    blank = blank or BlankRows(strict=True)
    rows: dict[tuple[str, ...], Row] = {}
    all_rows = iter_rows(path, columns=tuple(columns), file_format=file_format)
    present_rows = blank.present(all_rows, columns, condition=columns[3])
    for _, row in never_empty(path, present_rows):
        texts = tuple(map(row.text, columns))
        first = rows.setdefault(texts, row)
        if first is not row:
            raise InputError(
                f"{row.location(columns[-1])}: a pair must have each wording once, got "
                f"{short_repr(texts[-1])} again after row {first.number}."
            )
    counts = Counter(texts[:-1] for texts in rows)
    for texts, row in rows.items():
        if counts[texts[:-1]] == 1:
            raise InputError(
                f"{row.location()}: a pair must have two or more wordings of a condition_group, "
                f"got 1 of {short_repr(texts[2])}."
            )
    ids = {group: number for number, group in enumerate(counts)}
    sentences1, sentences2, condition_groups, conditions = zip(*rows, strict=True)
    return Rewordings(
        name=stem_of(path),
        revision=sha256_of(path)[:12],
        sentences1=sentences1,
        sentences2=sentences2,
        condition_groups=condition_groups,
        conditions=conditions,
        group_ids=np.array([ids[texts[:-1]] for texts in rows], np.int64),
    )
