"""Rewordings: one condition in several wordings, each for the same sentence pairs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.reading import iter_rows, stem_of
from condsim.data.row import Row, shown
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.types import IntArray

REWORDING_COLUMNS = ("sentence1", "sentence2", "condition_group", "condition")
"""The columns of a file of rewordings."""

BUNDLED_REWORDINGS = Path(__file__).resolve().parent.parent / "assets" / "rewordings.csv"
"""The set that ships: 48 pairs of sentences of our own, 12 conditions in 6 wordings each."""


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


def load_rewordings(path: Path | str = BUNDLED_REWORDINGS) -> Rewordings:
    """Loads a file of rewordings.

    Args:
        path: File with the columns ``sentence1``, ``sentence2``, ``condition_group`` and
            ``condition``; formats as `iter_rows` reads them. By default the set that ships.

    Returns:
        The rows in file order.

    Raises:
        InputError: See `iter_rows`; also if a cell is empty, or a pair has a wording twice or only
            one.
        MissingExtraError: See `iter_rows`.
    """
    path = Path(path)
    rows: dict[tuple[str, ...], Row] = {}
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in iter_rows(path, columns=REWORDING_COLUMNS):
        texts = tuple(row.text(column) for column in REWORDING_COLUMNS)
        earlier = rows.setdefault(texts, row)
        if earlier is not row:
            raise InputError(
                f"{row.place('condition')}: a pair must have each wording once, got "
                f"{shown(texts[-1])}, which row {earlier.number} has too. Remove one of the rows."
            )
        groups[texts[:-1]].append(row)
    for row, *others in groups.values():
        if not others:
            raise InputError(
                f"{row.place()}: a pair must have two or more wordings of a condition_group, got 1 "
                f"of {shown(row.cells['condition_group'])}. Add a wording for the same two "
                "sentences, or remove the row."
            )
    number_of = {group: number for number, group in enumerate(groups)}
    sentences1, sentences2, condition_groups, conditions = zip(*rows, strict=True)
    return Rewordings(
        name=stem_of(path),
        revision=sha256_of(path)[:12],
        sentences1=sentences1,
        sentences2=sentences2,
        condition_groups=condition_groups,
        conditions=conditions,
        group_ids=np.array([number_of[texts[:-1]] for texts in rows], np.int64),
    )
