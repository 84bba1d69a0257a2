"""Labels by models: what teachers say of rows, for a smaller student to learn.

Knowledge distillation (Hinton et al., 2015) with the teachers' scores as labels. The student is
trained by `condsim train` as on any other file, so teachers may be of any kind: cross-encoders,
runs of several seeds, a prompted language model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol

import numpy as np

from condsim.construction.rows import TableRow
from condsim.construction.tables import counted, in_blocks, revisions_of, write_manifest, write_rows
from condsim.errors import InputError
from condsim.files import check_not_input, sha256_of
from condsim.progress import Progress
from condsim.scorers import Scale
from condsim.tasks import CstsRow, column_names, iter_csts, scan_rows
from condsim.types import FloatArray

_HIGHEST = 1.001  # a cosine, rounded


class Teacher(Protocol):
    """A model that labels."""

    @property
    def name(self) -> str:
        """Short name, kept with the rows."""

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: Scale,
    ) -> FloatArray:
        """Scores pairs; see `condsim.scorers.inputs.PairScorer`."""


@dataclass(frozen=True, slots=True)
class TaughtRow(TableRow):
    """A row that models labelled.

    Attributes:
        sentence1: The first sentence.
        sentence2: The second.
        condition: The condition.
        label: 1 to 5.
        origin: ``model:`` and the names of the teachers, joined by ``+``.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float
    origin: str


@dataclass(frozen=True, slots=True)
class TaughtPair(TableRow):
    """A pair without a condition that models scored.

    Attributes:
        sentence1: The first sentence.
        sentence2: The second.
        score: 0 to 1.
        origin: As in `TaughtRow`.
    """

    sentence1: str
    sentence2: str
    score: float
    origin: str


def teach(
    rows: Iterable[CstsRow], teachers: Sequence[Teacher], *, given: float = 0.0
) -> Iterator[TaughtRow]:
    """Labels rows by the mean score of teachers; of any number of rows, in bounded memory."""
    if not 0 <= given < 1:
        raise InputError(f"The share of given labels must be from 0 to below 1. Got {given:g}.")
    origin = _origin(teachers)
    for block in in_blocks(rows):
        for row, label in zip(block, _labels(block, teachers, given), strict=True):
            yield TaughtRow(row.sentence1, row.sentence2, row.condition, label, origin)


def teach_pairs(
    pairs: Iterable[tuple[str, str]], teachers: Sequence[Teacher]
) -> Iterator[TaughtPair]:
    """Scores pairs without a condition by the mean of teachers; in bounded memory."""
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


def _labels(block: Sequence[CstsRow], teachers: Sequence[Teacher], given: float) -> list[float]:
    columns = (
        [row.sentence1 for row in block],
        [row.sentence2 for row in block],
        [row.condition for row in block],
    )
    scores = [teacher.score(*columns, scale="likert") for teacher in teachers]
    mean = np.clip(np.mean(scores, axis=0, dtype=np.float64), 1, 5)
    own = np.array([np.nan if row.label is None else row.label for row in block])
    blended = np.where(np.isnan(own), mean, (1 - given) * mean + given * own)
    labels: list[float] = np.round(blended, 4).tolist()
    return labels


def teach_file(
    file: Path, output: Path, teachers: Sequence[Teacher], *, given: float, progress: Progress
) -> int:
    """Labels the rows of a file into another, with a manifest beside it.

    Args:
        file: Rows in the columns of C-STS, or pairs without the column ``condition``; all are
            checked before any is labelled.
        output: A ``.csv`` or ``.parquet`` file.
        teachers: See `teach`.
        given: See `teach`; 0 for pairs without conditions.
        progress: Told of the stage, the rows done and their number.

    Returns:
        Rows written.

    Raises:
        InputError: If a row breaks a rule, the output is the input, given labels are asked for of
            pairs without conditions, or see `teach`.
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
        written = write_rows(counted(taught, total, progress), output, kind=TaughtRow)
    content = {
        "kind": "taught labels",
        "sha256": sha256_of(output),
        "made_from": revisions_of([file]),
        "teachers": [teacher.name for teacher in teachers],
        "given": given,
        "rows": written,
        "condsim": metadata.version("condsim"),
    }
    write_manifest(output, content)
    return written


def _pairs(file: Path) -> Iterator[tuple[str, str]]:
    for row in scan_rows(file, columns=("sentence1", "sentence2")):
        yield row.text("sentence1"), row.text("sentence2")
