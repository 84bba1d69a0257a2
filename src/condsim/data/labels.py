"""Labels as people write them: numbers on several scales, or two words."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.files import iter_rows
from condsim.data.row import Cell, join_names, number_of, short_repr
from condsim.data.text import DETECTED, FileFormat, log_form
from condsim.errors import InputError
from condsim.types import BoolArray, Float64Array, FloatArray

ALIKE_WORDS = frozenset("alike same similar yes y true match duplicate".split())
DIFFERENT_WORDS = frozenset("different not_alike dissimilar no n false distinct".split())

_NO_LABEL = -1
_DECIMAL_COMMA = re.compile(r"[0-9],[0-9]+")
_SCALES = ((0.0, 1.0), (1.0, 5.0), (0.0, 5.0))
# The scale of C-STS is not logged.
_USUAL_SCALE = (1.0, 5.0)
# Labels from this point of a scale on count as alike: 4 of 1 to 5, 0.75 of 0 to 1.
_ALIKE_SHARE = 0.75


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a file."""

    # Similarity from 1 to 5; NaN where a row has the label -1 or none.
    values: FloatArray  # (n,)
    # Which rows are labeled alike.
    alike: BoolArray  # (n,)
    # Lowest and highest label of the scale they were read on; None for words.
    scale: tuple[float, float] | None = None

    @property
    def present(self) -> BoolArray:
        """Mask of the rows that have a label, ``(n,)``."""
        present: BoolArray = ~np.isnan(self.values)
        return present


def read_labels(
    path: Path | str,
    column: str = "label",
    *,
    positive: str | None = None,
    scale: tuple[float, float] | None = None,
    file_format: FileFormat = DETECTED,
) -> Labels:
    """Read the labels of a data file.

    Labels are numbers from 0 to 1, from 1 to 5 or from 0 to 5, or two words. The decimal mark may
    be a comma. -1, NaN and an empty cell mean that the row has no label. The scale is logged, and
    whether the labels fit another one, as those of a file of only 1s do.

    Args:
        positive: The lowest number that counts as alike, or the word that means alike; by default
            three quarters of the scale, or a word such as ``alike``, ``same``, ``yes`` or ``true``.
        scale: Lowest and highest number of the scale; by default the first of the three above that
            the labels fit.
    """
    path = Path(path)
    rows = list(iter_rows(path, columns=(column,), file_format=file_format))
    cells = [row.cells[column] for row in rows]
    texts = ["" if cell is None else str(cell).strip().casefold() for cell in cells]
    numbers = np.array([_label_number(cell) for cell in cells], np.float64)
    # NaN is how pandas writes an empty cell to Parquet.
    labeled = np.array([text not in ("", "nan") for text in texts]) & (numbers != _NO_LABEL)
    if not labeled.any():
        raise InputError(f"{path}: no row has a label in the column {column!r}.")
    if np.isnan(numbers[labeled]).all():
        scale, rule = None, "a label must be a number, or a word such as 'alike' and 'different'"
        alike_words: Collection[str] = ALIKE_WORDS
        all_words: Collection[str] = ALIKE_WORDS | DIFFERENT_WORDS
        if positive is not None:
            all_words = dict.fromkeys(texts[row] for row in np.flatnonzero(labeled))
            alike_words = _checked_word(positive, all_words)
        alike = np.array([text in alike_words for text in texts])
        is_right = np.array([text in all_words for text in texts])
        values = np.where(alike, 5.0, 1.0)
    else:
        low, high = scale = scale or _detect_scale(path, numbers[labeled])
        rule = f"labels must be numbers from {low:g} to {high:g} and -1 for none, or two words"
        alike = numbers >= _minimum(scale, positive)
        # NaN, the number of a word, is not within the range either.
        is_right = (numbers >= low) & (numbers <= high)
        values = 1 + 4 * (numbers - low) / (high - low)
    wrong_rows = np.flatnonzero(labeled & ~is_right)
    if wrong_rows.size:
        row = rows[wrong_rows[0]]
        advice = " Name another word with --positive." if scale is None else ""
        raise InputError(
            f"{row.location(column)}: {rule}; got {short_repr(row.cells[column])}.{advice}"
        )
    values[~labeled] = np.nan
    return Labels(values.astype(np.float32), alike & labeled, scale)


def _label_number(cell: Cell) -> float | None:
    """Convert a label to a number; None for a word. Spreadsheets may write 4,5 for 4.5."""
    if isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell.strip()):
        cell = cell.replace(",", ".")
    return number_of(cell)


def _detect_scale(path: Path, numbers: Float64Array) -> tuple[float, float]:
    """Choose the first scale that the numbers fit, and log it; the widest one if there is none."""
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    fitting = [scale for scale in _SCALES if scale[0] <= low and high <= scale[1]]
    if not fitting:
        return _SCALES[-1]
    names = [f"from {first:g} to {last:g}" for first, last in fitting]
    # Labels that are all 1 fit both 0 to 1 and 1 to 5. Those from 1 to 5 also fit the rare 0 to 5.
    doubt = (
        f", although {names[1]} is possible (--scale 1-5)"
        if fitting[:2] == [(0, 1), (1, 5)]
        else ""
    )
    if doubt or fitting[0] != _USUAL_SCALE:
        log_form(path, f"labels are read as numbers {names[0]}{doubt}")
    return fitting[0]


def _minimum(scale: tuple[float, float], positive: str | None) -> float:
    """Return the lowest number that counts as alike."""
    low, high = scale
    minimum = low + _ALIKE_SHARE * (high - low) if positive is None else number_of(positive)
    if minimum is None:
        raise InputError(f"--positive must be a number, as the labels are; got {positive!r}.")
    return minimum


def _checked_word(positive: str, words: Collection[str]) -> frozenset[str]:
    """Return the word that means alike, which must be one of two."""
    word = positive.strip().casefold()
    if len(words) > 2 or word not in words:
        raise InputError(
            f"--positive {positive!r} must be one of the two words of the labels; the labels are "
            f"{join_names([*words])}."
        )
    return frozenset([word])
