"""Labels as people write them: numbers on several scales, or two words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.dialect import DETECTED, FileFormat
from condsim.data.files import iter_rows
from condsim.data.row import Cell, location, number_of, short_repr
from condsim.errors import InputError
from condsim.types import BoolArray, Float64Array, FloatArray

ALIKE_WORDS = frozenset("alike same similar yes y true match duplicate".split())
DIFFERENT_WORDS = frozenset("different not_alike dissimilar no n false distinct".split())

_NO_LABEL = -1
_SCALES = ((0.0, 1.0), (1.0, 5.0), (0.0, 5.0))
# Labels from this point of a scale on count as alike: 4 of 1 to 5, 0.75 of 0 to 1.
_ALIKE_SHARE = 0.75


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a file.

    Attributes:
        values: Similarity from 1 to 5, ``(n,)``; NaN where a row has the label -1 or none.
        alike: Which rows are labelled alike, ``(n,)``.
    """

    values: FloatArray
    alike: BoolArray

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
    file_format: FileFormat = DETECTED,
) -> Labels:
    """Read the labels of a data file.

    Labels are numbers from 1 to 5, from 0 to 1 or from 0 to 5, or two words. -1 and an empty cell
    mean that the row has no label.

    Args:
        path: The file.
        column: The column of the labels.
        positive: The lowest number that counts as alike, or the word that means alike; by default
            three quarters of the scale, or a word such as ``alike``, ``same``, ``yes`` or ``true``.
        file_format: As for `read_batches`.

    Raises:
        InputError: If the file cannot be read, or a label is not on the scale of the others.
    """
    path = Path(path)
    cells: list[Cell] = []
    locations: list[tuple[int, int | None]] = []
    for row in iter_rows(path, columns=(column,), file_format=file_format):
        cells.append(row.cells[column])
        locations.append((row.number, row.line))

    def locate(index: int) -> str:
        number, line = locations[index]
        return location(path, row=number, line=line, column=column)

    texts = ["" if cell is None else str(cell).strip().casefold() for cell in cells]
    numbers = np.array([_number(cell) for cell in cells])
    labelled = np.array([bool(text) for text in texts]) & (numbers != _NO_LABEL)
    if not labelled.any():
        raise InputError(f"{path}: no row has a label in the column {column!r}.")
    if np.isnan(numbers[labelled]).all():
        alike = _alike_words(texts, labelled, positive, locate=locate)
        values = np.where(alike, 5.0, 1.0)
    else:
        values, alike = _on_scale(numbers, labelled, positive, cells, locate=locate)
    values[~labelled] = np.nan
    return Labels(values.astype(np.float32), alike & labelled)


def _number(cell: Cell) -> float:
    number = number_of(cell)
    return np.nan if number is None else number


def _on_scale(
    numbers: Float64Array,
    labelled: BoolArray,
    positive: str | None,
    cells: Sequence[Cell],
    *,
    locate: Callable[[int], str],
) -> tuple[Float64Array, BoolArray]:
    """Return numbers moved to the scale from 1 to 5, and which of them are alike."""
    for index in np.flatnonzero(labelled & ~np.isfinite(numbers))[:1]:
        raise InputError(
            f"{locate(int(index))}: must be a number as in other rows; got "
            f"{short_repr(cells[index])}."
        )
    low, high = numbers[labelled].min(), numbers[labelled].max()
    scale = next((scale for scale in _SCALES if scale[0] <= low and high <= scale[1]), None)
    if scale is None:
        outside = (numbers < 0) | (numbers > 5)
        index = int(np.flatnonzero(labelled & outside)[0])
        raise InputError(
            f"{locate(index)}: labels must be from 1 to 5, from 0 to 1, or two words; got "
            f"{numbers[index]:g}."
        )
    least = scale[0] + _ALIKE_SHARE * (scale[1] - scale[0])
    if positive is not None:
        least = _positive_number(positive)
    return 1 + 4 * (numbers - scale[0]) / (scale[1] - scale[0]), numbers >= least


def _positive_number(positive: str) -> float:
    number = number_of(positive)
    if number is None:
        raise InputError(f"--positive must be a number, as the labels are; got {positive!r}.")
    return number


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
                f"are {', '.join(map(repr, distinct[:5]))}."
            )
    else:
        for row in rows:
            if words[row] not in ALIKE_WORDS | DIFFERENT_WORDS:
                raise InputError(
                    f"{locate(row)}: a label must be a number, or a word such as 'alike' and "
                    f"'different'; got {short_repr(words[row])}. Name another word with --positive."
                )
    return np.array([word in alike_words for word in words], np.bool_)
