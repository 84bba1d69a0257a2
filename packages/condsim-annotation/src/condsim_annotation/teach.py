"""Labels and answers by models, for a smaller model to learn (distillation)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.console import Progress
from condsim.data.batch import ROWS_PER_BATCH, in_blocks
from condsim.data.csts import CstsRow, iter_csts
from condsim.data.files import column_names, iter_rows
from condsim.errors import InputError
from condsim.io import check_not_input
from condsim.model.base import PairScorer
from condsim.rows.records import TableRow, counted, write_provenance, write_rows
from condsim_annotation.tables import TrainingRow

# Cosines may be rounded above 1.
_MAX_COSINE = 1.001


@dataclass(frozen=True, slots=True)
class TaughtPair(TableRow):
    """A pair without a condition that models scored, from 0 to 1."""

    sentence1: str
    sentence2: str
    score: float
    origin: str


def taught_rows(
    rows: Iterable[CstsRow], teachers: Sequence[PairScorer], *, given: float = 0.0
) -> Iterator[TrainingRow]:
    """Label rows by the mean score of teachers, in bounded memory; see `teach_file`."""
    origin = _origin_of_models(teachers)
    for block in in_blocks(rows, ROWS_PER_BATCH):
        *columns, labels = map(list, zip(*block, strict=True))
        scores = [teacher.score(*columns, scale="likert") for teacher in teachers]
        mean = np.clip(np.mean(scores, axis=0, dtype=np.float64), 1, 5)
        own = np.array(labels, np.float64)
        blended = np.where(np.isnan(own), mean, (1 - given) * mean + given * own)
        for row, label in zip(block, np.round(blended, 4).tolist(), strict=True):
            yield TrainingRow(row.sentence1, row.sentence2, row.condition, label, origin)


def teach_pairs(
    pairs: Iterable[tuple[str, str]], teachers: Sequence[PairScorer]
) -> Iterator[TaughtPair]:
    """Score pairs without a condition by the mean of teachers, in bounded memory."""
    origin = _origin_of_models(teachers)
    for block in in_blocks(pairs, ROWS_PER_BATCH):
        sentences1, sentences2 = map(list, zip(*block, strict=True))
        scores = [t.score(sentences1, sentences2, None, scale="raw") for t in teachers]
        for teacher, highest in zip(teachers, np.max(scores, axis=1), strict=True):
            if highest > _MAX_COSINE:
                raise InputError(
                    f"{teacher.name} gives scores up to {highest:.3g}, and pairs without a "
                    "condition need cosines, at most 1; name an encoder."
                )
        mean = np.round(np.clip(np.mean(scores, axis=0, dtype=np.float64), 0, 1), 4)
        for (sentence1, sentence2), score in zip(block, mean.tolist(), strict=True):
            yield TaughtPair(sentence1, sentence2, score, origin)


def _origin_of_models(teachers: Sequence[PairScorer]) -> str:
    return f"model:{'+'.join(teacher.name for teacher in teachers)}"


def teach_file(
    file: Path, output: Path, teachers: Sequence[PairScorer], *, given: float, progress: Progress
) -> int:
    """Label the rows of a file by the mean score of models, 1 to 5; return their number.

    Rows are in the columns of C-STS, or pairs without the column ``condition``, which are scored
    from 0 to 1. All are checked before any is labeled. ``given`` is the share of a row's own label
    in the new one, 0 to 1; 0 for pairs. The output is a ``.csv`` or ``.parquet`` file with a
    manifest.
    """
    check_not_input(output, file)
    columns = {name.casefold() for name in column_names(file)}
    if columns and columns.isdisjoint(("condition", "label")):
        if given:
            raise InputError(f"{file} has no column 'condition', so no label can be --given.")
        total = sum(1 for _ in _read_plain_pairs(file))
        scored = teach_pairs(_read_plain_pairs(file), teachers)
        written = write_rows(counted(scored, progress, total=total), output, kind=TaughtPair)
    else:
        total = sum(1 for _ in iter_csts(file))
        labeled = taught_rows(iter_csts(file), teachers, given=given)
        written = write_rows(counted(labeled, progress, total=total), output, kind=TrainingRow)
    facts = {"teachers": [t.name for t in teachers], "given": given, "rows": written}
    write_provenance(output, kind="taught labels", made_from=[file], facts=facts)
    return written


def _read_plain_pairs(file: Path) -> Iterator[tuple[str, str]]:
    for row in iter_rows(file, columns=("sentence1", "sentence2")):
        yield row.text("sentence1"), row.text("sentence2")
