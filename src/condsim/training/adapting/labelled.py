"""A user's labelled pairs: read, checked, and split so that no text is on both sides."""

from __future__ import annotations

import csv
import io
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.errors import InputError
from condsim.files import write_text
from condsim.tasks import Row, column_names, iter_rows, shown

FEWEST = 20
"""Labelled pairs that an adaptation needs."""

_COLUMNS = ("sentence1", "sentence2", "condition", "label")
_KEPT = ("set", "group", "criterion")  # columns that a recipe with sources heeds
_WORDS = {"alike": 5.0, "different": 1.0}
_NO_LABEL = "-1"
_ONE_SIDED = 10  # rows of a condition, all with one label, that would be learnt as its answer
_DRAWS = 20
_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A labelled pair.

    Attributes:
        sentence1: The first text, not empty.
        sentence2: The second text, not empty.
        condition: The condition, not empty.
        label: Similarity from 1 to 5.
        kept: Columns ``set``, ``group`` and ``criterion``, where the file has a group.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float
    kept: tuple[str, ...] = ()

    @property
    def pair(self) -> tuple[str, str]:
        """The two texts in a fixed order."""
        return min(self.sentence1, self.sentence2), max(self.sentence1, self.sentence2)


def read_labelled(path: Path | str, *, fewest: int = FEWEST) -> list[LabelledRow]:
    """Reads labelled pairs.

    Args:
        path: A file with the columns ``sentence1``, ``sentence2``, ``condition`` and ``label``, in
            a format that `condsim.tasks.iter_rows` reads. Labels are numbers from 1 to 5, numbers
            from 0 to 1, or the words ``alike`` and ``different``; rows labelled -1 are left out.
            Rows of a column ``group`` stay together, as `condsim.training.Recipe` says.

    Returns:
        The rows, with labels from 1 to 5.

    Raises:
        InputError: If the file cannot be read, a cell is empty, labels are of no such kind, there
            are too few rows, or all rows of a condition that has many, or of the file, have one
            label.
    """
    path = Path(path)
    grouped = "group" in column_names(path)
    found = list(iter_rows(path, columns=_COLUMNS, optional=_KEPT if grouped else ()))
    given = [row for row in found if str(row.cells["label"]).strip() not in (_NO_LABEL, "-1.0")]
    labels = _labels(path, given)
    rows = [
        LabelledRow(
            row.text("sentence1"),
            row.text("sentence2"),
            row.text("condition"),
            label,
            tuple(str(row.cells[name] or "") for name in _KEPT) if grouped else (),
        )
        for row, label in zip(given, labels, strict=True)
    ]
    _check(path, rows, fewest=fewest)
    return rows


def _labels(path: Path, rows: Sequence[Row]) -> list[float]:
    """Labels from 1 to 5, whichever way they were written."""
    words = {str(row.cells["label"]).strip().casefold() for row in rows}
    if words and words <= {*_WORDS}:
        return [_WORDS[str(row.cells["label"]).strip().casefold()] for row in rows]
    values = [_number(row) for row in rows]
    low, high = min(values, default=1.0), max(values, default=1.0)
    if 0 <= low and high <= 1:
        return [1 + 4 * value for value in values]
    if 1 <= low and high <= 5:
        return values
    raise InputError(
        f"{path}: labels must all be from 1 to 5, or all from 0 to 1. Got {low:g} to {high:g}; "
        "bring them to one scale."
    )


def _number(row: Row) -> float:
    cell = row.cells["label"]
    try:
        value = math.nan if cell is None else float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"{row.place('label')}: must be a number from 1 to 5 or from 0 to 1, or, in all rows, "
            f"alike or different, got {shown(cell)}. Label the row, or remove it."
        )
    return value


def _check(path: Path, rows: Sequence[LabelledRow], *, fewest: int) -> None:
    if len(rows) < fewest:
        raise InputError(
            f"{path}: at least {fewest} labelled pairs are needed, and 50 to 2,000 are a good "
            f"number. Got {len(rows)}; label more."
        )
    if len({row.label for row in rows}) == 1:
        raise InputError(
            f"{path}: the labels must differ, and all {len(rows)} rows have the same. Add pairs of "
            "the other kind."
        )
    of_condition: dict[str, Counter[float]] = defaultdict(Counter)
    for row in rows:
        of_condition[row.condition.casefold()][row.label] += 1
    for condition, counts in sorted(of_condition.items()):
        if len(counts) == 1 and counts.total() >= _ONE_SIDED:
            raise InputError(
                f"{path}: the condition {shown(condition)} has {counts.total()} rows, all with the "
                "same label, so it would be learnt as the answer. Add pairs of the other kind, or "
                "remove these rows."
            )


def split_labelled(
    rows: Sequence[LabelledRow], *, share: float, seed: int
) -> tuple[list[LabelledRow], list[LabelledRow]]:
    """Splits rows into those to train on and those to measure on.

    Texts that occur in one pair together go to the same side, and so do texts that are linked by
    several pairs. Where that leaves too few rows on a side, since most texts are linked, whole
    pairs (of rows with a group: whole groups) are drawn instead, and the log says so.

    Args:
        share: Share of the rows to measure on, in (0, 1).
        seed: Seed of the draw.

    Returns:
        The rows to train on and the rows to measure on, in the order given.

    Raises:
        InputError: If the rows to measure on, or those to train on, would all have one label.
    """
    pairs: list[Hashable] = [row.kept[:2] if row.kept else row.pair for row in rows]
    for keys, linked in ((_linked(rows), True), (pairs, False)):
        for draw in range(_DRAWS):
            chosen = _drawn(keys, wanted=share * len(rows), seed=(seed, draw))
            dev = [row for row, is_dev in zip(rows, chosen, strict=True) if is_dev]
            train = [row for row, is_dev in zip(rows, chosen, strict=True) if not is_dev]
            if len(dev) < 0.6 * share * len(rows):
                break  # one block of linked texts is nearly everything
            if all(len({row.label for row in part}) > 1 for part in (train, dev)):
                if not linked:
                    _LOGGER.info("some texts are in rows to train on and to measure on")
                return train, dev
    raise InputError(
        f"The rows cannot be split: of {len(rows)}, a share of {share:g} to measure on has one "
        "label only. Give more rows, another share, or a file to measure on."
    )


def _linked(rows: Sequence[LabelledRow]) -> list[Hashable]:
    """A key of each row, the same for rows whose texts are linked."""
    parent: dict[str, str] = {}

    def root(text: str) -> str:
        while parent.setdefault(text, text) != text:
            parent[text] = text = parent[parent[text]]
        return text

    for row in rows:
        parent[root(row.sentence1)] = root(row.sentence2)
    return [root(row.sentence1) for row in rows]


def _drawn(keys: Sequence[Hashable], *, wanted: float, seed: tuple[int, int]) -> list[bool]:
    """Draws whole keys until about so many rows are drawn, none of them far too large."""
    sizes = Counter(keys)
    names = list(sizes)
    chosen: set[Hashable] = set()
    rows = 0
    for place in np.random.default_rng(seed).permutation(len(names)).tolist():
        if rows < wanted and rows + sizes[names[place]] <= 1.2 * wanted + 1:
            chosen.add(names[place])
            rows += sizes[names[place]]
    return [key in chosen for key in keys]


def write_labelled(rows: Sequence[LabelledRow], path: Path) -> None:
    """Writes rows as a training file in CSV."""
    grouped = any(row.kept for row in rows)
    cells = (
        (row.sentence1, row.sentence2, row.condition, f"{row.label:g}", *row.kept) for row in rows
    )
    write_csv(path, (*_COLUMNS, *_KEPT) if grouped else _COLUMNS, cells)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Writes a table in one step."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_text(path, stream.getvalue())
