"""Labelled rows to the rows of each split, shuffled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condsim.construction.labels import Dropped, LabelledRow
from condsim.construction.rows import HUMAN, Condition, DatasetRow, pair_id_of, row_id_of
from condsim.construction.splits import SPLITS, SplitRules, Splitting, split_rows
from condsim.errors import InputError
from condsim.tasks import iter_csts
from condsim.tasks.files import scan_rows, stem_of
from condsim.types import IntArray

__all__ = ["Assembled", "assemble", "read_labelled_file", "to_dataset_rows"]


@dataclass(frozen=True)
class Assembled:
    """The rows of a data set.

    Attributes:
        splits: The rows of each split by its name.
        dropped: Rows whose two sentences would be in different splits.
        splitting: How the splits came about.
    """

    splits: dict[str, tuple[DatasetRow, ...]]
    dropped: tuple[Dropped, ...]
    splitting: Splitting


def to_dataset_rows(
    rows: Iterable[LabelledRow], *, conditions: Iterable[Condition] = ()
) -> tuple[DatasetRow, ...]:
    """Makes rows of a data set, with the models that had a hand in each.

    Args:
        rows: Rows with their labels.
        conditions: Where the conditions are from; the ratings may name models, too.

    Returns:
        The rows, not yet in a split.
    """
    written_by: dict[str, set[str]] = defaultdict(set)
    for condition in conditions:
        row_id = row_id_of(condition.pair_id, condition.condition)
        written_by[row_id] |= {condition.origin, condition.prefilled_by}
    made = []
    for one in rows:
        origins = {*one.origins, *written_by.get(one.row.row_id, ())} - {HUMAN, ""}
        row = one.row
        made.append(
            DatasetRow(
                row.sentence1,
                row.sentence2,
                row.condition,
                one.label,
                row.pair_id,
                origin=", ".join(sorted(origins)) or HUMAN,
                split="",
            )
        )
    return tuple(made)


def read_labelled_file(path: Path) -> tuple[tuple[DatasetRow, ...], tuple[Dropped, ...]]:
    """Reads a C-STS file that is to be split.

    Args:
        path: A file as `condsim.tasks.iter_csts` reads it; columns ``pair_id`` and ``origin`` are
            kept where it has them.

    Returns:
        The rows with a label, not yet in a split, and those without one.

    Raises:
        InputError: If the file breaks a rule.
    """
    rows, dropped = [], []
    more = scan_rows(path, columns=(), optional=("pair_id", "origin"))
    for row, extra in zip(iter_csts(path), more, strict=True):
        given = {name: str(cell) for name, cell in extra.cells.items() if cell not in (None, "")}
        pair_id = given.get("pair_id") or pair_id_of(stem_of(path), row.sentence1, row.sentence2)
        texts = (row.sentence1, row.sentence2, row.condition)
        if row.label is None:
            dropped.append(Dropped(pair_id, *texts, "no label"))
        else:
            rows.append(DatasetRow(*texts, row.label, pair_id, given.get("origin", HUMAN), ""))
    return tuple(rows), tuple(dropped)


def assemble(rows: Sequence[DatasetRow], rules: SplitRules) -> Assembled:
    """Splits rows and shuffles them: the pairs of a split, and the rows of each pair.

    The released C-STS has the row of C-High first, which gives labels away to whatever sees the
    order. Rows of a pair stay next to each other.

    Args:
        rows: The rows, in any order: the result is the same.
        rules: How to split; its seed is that of the shuffle, too.

    Returns:
        The rows of each split.

    Raises:
        InputError: If there are no rows or a split would have none.
        MissingExtraError: If scipy, or networkx for cutting, is not installed.
    """
    if not rows:
        raise InputError("A data set needs labelled rows, and every row was dropped or unlabelled.")
    rows = sorted(rows, key=lambda row: (row.pair_id, row.condition, row.label, row.sentence1))
    made = split_rows([(row.sentence1, row.sentence2) for row in rows], rules)
    splits = {}
    for number, name in enumerate(SPLITS):
        chosen = [rows[place] for place in np.flatnonzero(made.split == number).tolist()]
        generator = np.random.default_rng([rules.seed, number])
        splits[name] = tuple(replace(row, split=name) for row in _shuffled(chosen, generator))
    dropped = tuple(
        Dropped(
            row.pair_id,
            row.sentence1,
            row.sentence2,
            row.condition,
            "its sentences are in two splits",
            f"label {row.label:g}",
        )
        for row in (rows[place] for place in np.flatnonzero(made.split == -1).tolist())
    )
    return Assembled(splits, dropped, made)


def _shuffled(rows: Sequence[DatasetRow], generator: np.random.Generator) -> list[DatasetRow]:
    pairs: Mapping[str, list[DatasetRow]] = defaultdict(list)
    for row in rows:
        pairs[row.pair_id].append(row)
    names = list(pairs)
    order: IntArray = generator.permutation(len(names))
    return [
        pairs[name][place]
        for name in (names[number] for number in order.tolist())
        for place in generator.permutation(len(pairs[name])).tolist()
    ]
