"""Labels as people write them: numbers on a scale that is stated or told by the values, or words.

Every command reads labels by this rule.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from condsim.data.files import iter_rows
from condsim.data.row import Cell, Row, join_names, location, number_of, short_repr
from condsim.data.tasks import make_task
from condsim.data.text import DETECTED, FileFormat, log_form
from condsim.errors import InputError
from condsim.types import BoolArray, Float64Array, FloatArray, Task

Scale = tuple[float, float]
"""Lowest and highest label."""

ALIKE_WORDS = frozenset("alike same similar yes y true match duplicate".split())
DIFFERENT_WORDS = frozenset("different not_alike dissimilar no n false distinct".split())
LIKERT: Scale = (1.0, 5.0)
"""The scale of C-STS, and the scale of labels that are words."""

_UNIT: Scale = (0.0, 1.0)
_ZERO_TO_FIVE: Scale = (0.0, 5.0)
_COSINE: Scale = (-1.0, 1.0)
_PERCENT: Scale = (0.0, 100.0)
# Labels from 2 to 10 may be meant from 0 or 1 to 6, 7 or 10.
_LOWEST_PERCENT = 10.0
# A cosine that rounding brought above 1 does not turn a file into ratings.
_MAX_UNIT = 1.01
_NO_LABEL = -1
_DECIMAL_COMMA = re.compile(r"[0-9],[0-9]+")
_NUMBER = r"-?\d+(?:\.\d+)?"
_STATED_SCALE = re.compile(rf"({_NUMBER})(?:-|\.\.|:)({_NUMBER})")
# Labels from this point of a scale on count as alike: 4 of 1 to 5, 0.75 of 0 to 1.
_ALIKE_SHARE = 0.75


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a file."""

    # On their own scale; NaN where a row has none.
    values: FloatArray  # (n,)
    # Which rows are labeled alike.
    alike: BoolArray  # (n,)
    scale: Scale

    @property
    def present(self) -> BoolArray:
        """Mask of the rows that have a label, ``(n,)``."""
        return ~np.isnan(self.values)

    @property
    def likert(self) -> FloatArray:
        """Similarity from 1 to 5, ``(n,)``; NaN where a row has no label."""
        low, high = self.scale
        return (1 + 4 * (self.values.astype(np.float64) - low) / (high - low)).astype(np.float32)


def parse_scale(text: str) -> Scale:
    """Parse a scale such as ``1-5``, ``0..100`` or ``-1-1``."""
    match = _STATED_SCALE.fullmatch(text.replace(" ", ""))
    low, high = map(float, match.groups()) if match else (0.0, 0.0)
    if low >= high:
        raise InputError(f"--scale: must be LOWEST-HIGHEST, such as 1-5 or 0-100; got {text!r}.")
    return low, high


def read_labels(
    path: Path | str,
    column: str = "label",
    *,
    positive: str | None = None,
    scale: Scale | None = None,
    file_format: FileFormat = DETECTED,
) -> Labels:
    """Read the labels of a data file, of which one is needed at least; see `LabelCells.read`."""
    path = Path(path)
    cells = LabelCells(path, column)
    for row in iter_rows(path, columns=(column,), file_format=file_format):
        cells.add(row)
    labels = cells.read(positive=positive, scale=scale)
    if not labels.present.any():
        raise InputError(f"{path}: no row has a label in the column {column!r}.")
    return labels


class LabelCells:
    """Cells of a column of labels, collected while the rows of a file stream by."""

    def __init__(self, path: Path, column: str) -> None:
        self.path = path
        self.column = column
        self._cells: list[Cell] = []
        # Number and line of each row, for messages.
        self._places = array("q")

    def add(self, row: Row) -> None:
        """Take the label of the next row."""
        self._cells.append(row.cells[self.column])
        self._places.extend((row.number, row.line or 0))

    def read(self, *, positive: str | None = None, scale: Scale | None = None) -> Labels:
        """Read the cells as numbers on one scale, or as two words.

        An empty cell and NaN mean that the row has no label, and so does -1 unless other labels
        are between -1 and 0, or ``scale`` has it. The decimal mark may be a comma. The scale is
        told by the values if they are all from 0 to 1, 1 to 5, 0 to 5, -1 to 1 or, with one above
        10, 0 to 100; a scale other than C-STS's is logged.

        Args:
            positive: The lowest number that counts as alike, or the word that means alike; by
                default three quarters of the scale, or a word such as ``alike`` or ``yes``.
            scale: Lowest and highest number.
        """
        texts = ["" if cell is None else str(cell).strip().casefold() for cell in self._cells]
        numbers = np.array([_label_number(cell) for cell in self._cells], np.float64)
        # NaN is how pandas writes an empty cell to Parquet.
        labeled = np.array([text not in ("", "nan") for text in texts], np.bool_)
        if not (_is_cosine(numbers) if scale is None else scale[0] <= _NO_LABEL):
            labeled &= numbers != _NO_LABEL
        if labeled.any() and np.isnan(numbers[labeled]).all():
            return self._words(texts, labeled, positive)
        advice = "" if scale else " Name another scale with --scale, such as 0-10."
        low, high = scale = scale or self._told_scale(numbers, labeled)
        # NaN, the number of a word, is not within the range either.
        is_right = (numbers >= low) & (numbers <= high)
        none = "" if low <= _NO_LABEL else ", or -1 for no label"
        rule = f"be a number from {low:g} to {high:g}{none}"
        self._check(labeled & ~is_right, rule, advice=advice)
        minimum = _minimum(scale, positive)
        values = np.where(labeled, numbers, np.nan)
        return Labels(values.astype(np.float32), labeled & (numbers >= minimum), scale)

    def _words(self, texts: list[str], labeled: BoolArray, positive: str | None) -> Labels:
        alike_words: Collection[str] = ALIKE_WORDS
        all_words: Collection[str] = ALIKE_WORDS | DIFFERENT_WORDS
        if positive is not None:
            all_words = dict.fromkeys(
                text for text, present in zip(texts, labeled, strict=True) if present
            )
            alike_words = _checked_word(positive, all_words)
        alike = np.array([text in alike_words for text in texts], np.bool_)
        is_right = np.array([text in all_words for text in texts], np.bool_)
        rule = "be a number, or a word such as 'alike' or 'different'"
        self._check(labeled & ~is_right, rule, advice=" Name the word for alike with --positive.")
        values = np.where(labeled, np.where(alike, LIKERT[1], LIKERT[0]), np.nan)
        return Labels(values.astype(np.float32), alike & labeled, LIKERT)

    def _told_scale(self, numbers: Float64Array, labeled: BoolArray) -> Scale:
        """Tell the scale by the labels, and log it; C-STS's scale if they fit none."""
        given = numbers[labeled & ~np.isnan(numbers)]
        if not given.size:
            return LIKERT
        low, high = given.min(), given.max()
        is_percent = low >= 0 and _LOWEST_PERCENT < high <= _PERCENT[1]
        # Labels that are all 1 are on the usual scale.
        candidates = (_UNIT, LIKERT, _ZERO_TO_FIVE, _COSINE, _PERCENT if is_percent else LIKERT)
        fitting = [
            scale for scale in candidates if scale[0] <= low and high <= max(scale[1], _MAX_UNIT)
        ]
        scale = LIKERT if low == high == 1 or not fitting else fitting[0]
        notes = ["; for 0 to 1, give --scale 0-1"] if low == high == 1 else []
        if high <= _MAX_UNIT and (unlabeled := int((numbers == _NO_LABEL).sum())):
            notes.append(f"; {unlabeled} of -1 are left out: give --scale -1-1 to read them")
        # The usual scale in the usual column goes without saying.
        if notes or (fitting and (scale != LIKERT or self.column != "label")):
            text = f"labels are read as numbers from {scale[0]:g} to {scale[1]:g}"
            log_form(self.path, "".join([text, *notes]))
        return scale

    def _check(self, wrong: BoolArray, rule: str, *, advice: str = "") -> None:
        """Reject the first of the wrong labels."""
        for index in np.flatnonzero(wrong):
            number, line = self._places[2 * index : 2 * index + 2]
            where = location(self.path, row=number, line=line or None, column=self.column)
            cell = short_repr(self._cells[index])
            raise InputError(f"{where}: must {rule}, got {cell}.{advice}")


def _is_cosine(numbers: Float64Array) -> bool:
    """Tell cosines by a number between -1 and 0; all others are from -1 to 1."""
    given = numbers[~np.isnan(numbers)]
    between = (given > -1) & (given < 0)
    return bool(between.any() and (np.abs(given) <= _MAX_UNIT).all())


def _label_number(cell: Cell) -> float | None:
    """Convert a label to a number; None for a word. Spreadsheets may write 4,5 for 4.5."""
    if isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell.removeprefix("-")):
        cell = cell.replace(",", ".")
    return number_of(cell)


def _minimum(scale: Scale, positive: str | None) -> float:
    """Return the lowest number that counts as alike."""
    low, high = scale
    minimum = low + _ALIKE_SHARE * (high - low) if positive is None else number_of(positive)
    if minimum is None:
        raise InputError(f"--positive must be a number, as the labels are; got {positive!r}.")
    return minimum


def _checked_word(positive: str, words: Iterable[str]) -> frozenset[str]:
    """Return the word that means alike, which must be one of two."""
    word, known = positive.strip().casefold(), list(words)
    if len(known) > 2 or word not in known:
        raise InputError(
            f"--positive {positive!r} must be one of the two words of the labels; the labels are "
            f"{join_names(known)}."
        )
    return frozenset([word])


def make_labeled_task(
    path: Path,
    rows: Iterable[Row],
    texts: Sequence[str],
    label: str,
    *,
    name: str | None,
    scale: Scale | None = None,
    positive: str | None = None,
) -> Task:
    """Make a task of the rows of a file, whose labels may be on any scale.

    ``texts`` are the columns of the two texts and perhaps of the condition.
    """
    cells = LabelCells(path, label)
    texts1, texts2, *conditions = texts

    def pairs() -> Iterator[tuple[str, str, str | None, float]]:
        for row in rows:
            cells.add(row)
            condition = row.text(conditions[0], is_condition=True) if conditions else None
            yield row.text(texts1), row.text(texts2), condition, math.nan

    task = make_task(path, pairs(), label_range=LIKERT, name=name)
    labels = cells.read(scale=scale, positive=positive)
    return replace(task, labels=labels.values, label_range=labels.scale)
