"""Labels by models: scores of teachers for a smaller student to learn.

Knowledge distillation (Hinton et al., 2015) with the teachers' scores as labels. The student is
trained by `condsim train` as on any other file, so teachers may be of any kind: cross-encoders,
runs of several seeds, a prompted language model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from condsim.construction.row_files import (
    TrainingRow,
    counted,
    in_blocks,
    write_provenance,
    write_rows,
)
from condsim.construction.rows import TableRow
from condsim.errors import InputError
from condsim.files import check_not_input
from condsim.progress import Progress
from condsim.scorers import Scale
from condsim.tasks import CstsRow, column_names, iter_csts, iter_rows
from condsim.types import FloatArray

_HIGHEST = 1.001  # a cosine, rounded


class Teacher(Protocol):
    """A scorer that labels; its name is kept with the rows."""

    @property
    def name(self) -> str:
        """Short name."""

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: Scale,
    ) -> FloatArray:
        """Scores pairs."""


@dataclass(frozen=True, slots=True)
class TaughtPair(TableRow):
    """A pair without a condition that models scored, from 0 to 1."""

    sentence1: str
    sentence2: str
    score: float
    origin: str


def teach(
    rows: Iterable[CstsRow], teachers: Sequence[Teacher], *, given: float = 0.0
) -> Iterator[TrainingRow]:
    """Labels rows by the mean score of teachers, in bounded memory; see `teach_file`."""
    if not 0 <= given < 1:
        raise InputError(f"The share of given labels must be from 0 to below 1. Got {given:g}.")
    origin = _origin(teachers)
    for block in in_blocks(rows):
        sentences1, sentences2, conditions, labels = map(list, zip(*block, strict=True))
        scores = [t.score(sentences1, sentences2, conditions, scale="likert") for t in teachers]
        mean = np.clip(np.mean(scores, axis=0, dtype=np.float64), 1, 5)
        own = np.array([np.nan if label is None else label for label in labels])
        blended = np.where(np.isnan(own), mean, (1 - given) * mean + given * own)
        for row, label in zip(block, np.round(blended, 4).tolist(), strict=True):
            yield TrainingRow(row.sentence1, row.sentence2, row.condition, label, origin)


def teach_pairs(
    pairs: Iterable[tuple[str, str]], teachers: Sequence[Teacher]
) -> Iterator[TaughtPair]:
    """Scores pairs without a condition by the mean of teachers, in bounded memory."""
    origin = _origin(teachers)
    for block in in_blocks(pairs):
        first, second = (list(column) for column in zip(*block, strict=True))
        scores = [teacher.score(first, second, None, scale="raw") for teacher in teachers]
        for teacher, found in zip(teachers, scores, strict=True):
            if found.max() > _HIGHEST:
                raise InputError(
                    f"{teacher.name} gives scores up to {found.max():.3g}, and pairs without a "
                    "condition need cosines, at most 1. Name an encoder."
                )
        mean = np.clip(np.mean(scores, axis=0, dtype=np.float64), 0, 1)
        for one, two, score in zip(first, second, np.round(mean, 4).tolist(), strict=True):
            yield TaughtPair(one, two, score, origin)


def _origin(teachers: Sequence[Teacher]) -> str:
    if not teachers:
        raise InputError("Labels come from models: name at least one teacher.")
    return f"model:{'+'.join(teacher.name for teacher in teachers)}"


def teach_file(
    file: Path, output: Path, teachers: Sequence[Teacher], *, given: float, progress: Progress
) -> int:
    """Labels the rows of a file into another, with a manifest beside it.

    Args:
        file: Rows in the columns of C-STS, or pairs without the column ``condition``, which are
            scored from 0 to 1. All are checked before any is labelled.
        output: A ``.csv`` or ``.parquet`` file.
        teachers: The models; labels are the mean of their scores, 1 to 5.
        given: Share of a row's own label in the new one, 0 to below 1; 0 for pairs.
        progress: Called with the stage, the rows done and their number.

    Returns:
        Number of rows written.

    Raises:
        InputError: If a row breaks a rule, the output is the input, there is no teacher, ``given``
            is out of its range, or pairs without conditions are to keep labels.
    """
    check_not_input(output, file)
    columns = {name.casefold() for name in column_names(file)}
    if columns and columns.isdisjoint(("condition", "label")):
        if given:
            raise InputError(f"{file} has no column 'condition', so no label can be --given.")
        total = sum(1 for _ in _pairs(file))
        scored = teach_pairs(_pairs(file), teachers)
        written = write_rows(counted(scored, total, progress), output, kind=TaughtPair)
    else:
        total = sum(1 for _ in iter_csts(file))
        taught = teach(iter_csts(file), teachers, given=given)
        written = write_rows(counted(taught, total, progress), output, kind=TrainingRow)
    names = [teacher.name for teacher in teachers]
    facts = {"teachers": names, "given": given, "rows": written}
    write_provenance(output, kind="taught labels", made_from=[file], facts=facts)
    return written


def _pairs(file: Path) -> Iterator[tuple[str, str]]:
    for row in iter_rows(file, columns=("sentence1", "sentence2")):
        yield row.text("sentence1"), row.text("sentence2")
