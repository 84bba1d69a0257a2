"""Labels as people write them: numbers on several scales, or two words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
_SCALES = ((0.0, 1.0), (1.0, 5.0), (0.0, 5.0))
# The scale of C-STS is not logged.
_USUAL_SCALE = (1.0, 5.0)
# Labels from this point of a scale on count as alike: 4 of 1 to 5, 0.75 of 0 to 1.
_ALIKE_SHARE = 0.75


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a file.

    Attributes:
        values: Similarity from 1 to 5, ``(n,)``; NaN where a row has the label -1 or none.
        alike: Which rows are labeled alike, ``(n,)``.
        scale: Lowest and highest label of the scale they were read on; None for words.
    """

    values: FloatArray
    alike: BoolArray
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

    Labels are numbers from 0 to 1, from 1 to 5 or from 0 to 5, or two words. -1, NaN and an empty
    cell mean that the row has no label. The scale is logged, and whether the labels fit another
    one, as those of a file of only 1s do.

    Args:
        path: The file.
        column: The column of the labels.
        positive: The lowest number that counts as alike, or the word that means alike; by default
            three quarters of the scale, or a word such as ``alike``, ``same``, ``yes`` or ``true``.
        scale: Lowest and highest number of the scale; by default the first of the three above that
            the labels fit.
        file_format: As for `condsim.data.files.read_batches`.

    Raises:
        InputError: If the file cannot be read, or a label is not on the scale of the others.
    """
    path = Path(path)
    rows = list(iter_rows(path, columns=(column,), file_format=file_format))

    def locate(index: int) -> str:
        return rows[index].location(column)

    cells = [row.cells[column] for row in rows]
    texts = ["" if cell is None else str(cell).strip().casefold() for cell in cells]
    numbers = np.array([number_of(cell) for cell in cells], np.float64)
    # NaN is how pandas writes an empty cell to Parquet.
    labelled = np.array([text not in ("", "nan") for text in texts]) & (numbers != _NO_LABEL)
    if not labelled.any():
        raise InputError(f"{path}: no row has a label in the column {column!r}.")
    if np.isnan(numbers[labelled]).all():
        scale = None
        alike = _alike_words(texts, labelled, positive, locate=locate)
        values = np.where(alike, 5.0, 1.0)
    else:
        scale = scale or _detect_scale(path, numbers[labelled])
        values, alike = _on_scale(cells, numbers, labelled, positive, scale, locate=locate)
    values[~labelled] = np.nan
    return Labels(values.astype(np.float32), alike & labelled, scale)


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


def _on_scale(
    cells: Sequence[Cell],
    numbers: Float64Array,
    labelled: BoolArray,
    positive: str | None,
    scale: tuple[float, float],
    *,
    locate: Callable[[int], str],
) -> tuple[Float64Array, BoolArray]:
    """Return numbers moved to the scale from 1 to 5, and which of them are alike."""
    low, high = scale
    # NaN, the number of a word, is not within the range either.
    wrong_rows = np.flatnonzero(labelled & ~((numbers >= low) & (numbers <= high)))
    if wrong_rows.size:
        row = int(wrong_rows[0])
        raise InputError(
            f"{locate(row)}: labels must be numbers from {low:g} to {high:g} and -1 for "
            f"none, or two words; got {short_repr(cells[row])}."
        )
    minimum = low + _ALIKE_SHARE * (high - low) if positive is None else number_of(positive)
    if minimum is None:
        raise InputError(f"--positive must be a number, as the labels are; got {positive!r}.")
    return 1 + 4 * (numbers - low) / (high - low), numbers >= minimum


def _alike_words(
    words: Sequence[str],
    labelled: BoolArray,
    positive: str | None,
    *,
    locate: Callable[[int], str],
) -> BoolArray:
    """Return which words mean alike."""
    rows = np.flatnonzero(labelled).tolist()
    distinct = list(dict.fromkeys(words[row] for row in rows))
    alike_words: frozenset[str] = ALIKE_WORDS
    if positive is not None:
        alike_words = frozenset([positive.strip().casefold()])
        if len(distinct) > 2 or not alike_words & set(distinct):
            raise InputError(
                f"--positive {positive!r} must be one of the two words of the labels; the labels "
                f"are {join_names(distinct)}."
            )
    else:
        for row in rows:
            if words[row] not in ALIKE_WORDS | DIFFERENT_WORDS:
                raise InputError(
                    f"{locate(row)}: a label must be a number, or a word such as 'alike' and "
                    f"'different'; got {short_repr(words[row])}. Name another word with --positive."
                )
    return np.array([word in alike_words for word in words], np.bool_)
