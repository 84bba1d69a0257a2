"""The result file of the suite, and the published rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from condsim.evaluation.report import ResultFile
from condsim.evaluation.statistics import Aggregation, Difference, Metric
from condsim.files import replacing


@dataclass(frozen=True)
class PublishedRow:
    """A row of a published table."""

    name: str  # of the model as printed
    source: str
    figures: Mapping[str, float]  # by key of the column, x 100; as printed


_COLUMNS = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r", "avg")

_TABLE_2 = """
Avg. GloVe                   55.14 70.66 59.73 68.25 63.66 58.02 53.76 61.32
Avg. Skip-Thought            57.11 71.98 61.30 70.13 65.21 59.42 55.50 62.95
InferSent-GloVe              52.86 66.75 62.15 72.77 66.87 68.03 65.65 65.01
Avg. BERT                    38.78 57.98 57.98 63.15 61.06 46.35 58.40 54.81
BERT [CLS]                   20.16 30.01 20.09 36.88 38.08 16.50 42.63 29.19
BERTScore                    54.60 50.11 57.74 70.79 64.58 57.58 51.37 58.11
DPR                          53.98 56.00 57.83 66.68 67.43 58.53 61.85 60.33
BLEURT                       70.16 64.97 57.41 72.91 70.01 69.81 58.46 66.25
Universal Sentence Encoder   64.49 67.80 64.61 76.83 73.18 74.92 76.69 71.22
Origin                       72.41 74.30 75.45 78.45 79.93 78.47 79.49 76.93
Surrogate base               70.62 72.14 72.72 76.34 75.24 74.19 77.20 74.06
Surrogate large              71.93 73.74 73.95 77.01 76.64 75.32 77.84 75.20
InferSent-NLI                50.48 67.75 62.15 72.77 66.87 68.03 65.65 64.81
BERT [CLS]-NLI               60.35 54.97 64.92 71.49 70.49 73.25 70.79 66.61
BERTScore-NLI                60.89 54.64 63.96 74.35 66.67 65.65 66.01 64.60
DPR-NLI                      61.36 56.71 65.49 71.80 71.03 74.08 70.86 67.33
BLEURT-NLI                   66.40 68.15 71.98 79.69 77.86 77.98 70.92 73.28
Universal Sentence Encoder-NLI 65.55 67.95 71.47 80.81 78.70 78.41 69.31 73.17
BERT-NLI base                71.07 76.81 73.29 79.56 74.58 77.10 72.65 75.01
SBERT-NLI base               70.97 76.53 73.19 79.09 74.30 77.03 72.91 74.86
SRoBERTa-NLI base            71.54 72.49 70.80 78.74 73.69 77.77 74.46 74.21
Surrogate-NLI base           74.15 76.50 72.23 81.24 78.75 79.32 78.56 77.25
BERT-NLI large               71.62 77.40 72.69 78.61 75.28 77.83 72.64 75.15
SBERT-NLI large              72.27 78.46 74.90 80.99 76.25 79.23 73.75 76.55
SRoBERTa-NLI large           74.53 77.00 73.18 81.85 76.82 79.10 74.29 76.68
Surrogate-NLI large          76.98 79.83 75.15 83.54 79.32 80.82 79.64 79.33
"""

_TABLES_4_AND_5 = """
Avg. GloVe                   34.00 60.94
Avg. Skip-Thought            23.24 61.54
InferSent-GloVe              25.83 63.39
Avg. BERT                    31.45 66.40
BERT [CLS]                    9.06 32.30
BERTScore                    33.56 67.29
DPR                          32.16 66.71
BLEURT                       44.12 67.39
Universal Sentence Encoder   43.47 65.18
Origin                       54.40 -
Surrogate base               52.50 71.40
Surrogate large              54.70 73.50
"""

_MTEB = "all-MiniLM-L6-v2 72.37 80.60 75.59 85.39 78.99 82.03"


def _parsed(table: str, columns: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Reads lines of a name and its figures; a dash is a missing one."""
    rows = {}
    for line in table.strip().splitlines():
        words = line.split()
        name, figures = words[: -len(columns)], words[-len(columns) :]
        rows[" ".join(name)] = {
            column: float(figure)
            for column, figure in zip(columns, figures, strict=True)
            if figure != "-"
        }
    return rows


_FURTHER = _parsed(_TABLES_4_AND_5, ("afs", "wiki-sections"))
PUBLISHED = (
    *(
        PublishedRow(name, "SSBC", figures | _FURTHER.get(name, {}))
        for name, figures in _parsed(_TABLE_2, _COLUMNS).items()
    ),
    *(PublishedRow(name, "MTEB", row) for name, row in _parsed(_MTEB, _COLUMNS[:6]).items()),
)
"""Rows in the order of SSBC Table 2: without labels, then those trained on NLI; then MTEB's."""


AVERAGE = "avg"
"""Key of the mean over the columns of SSBC Table 2, or over all sets of a suite with groups."""


def group_average(group: str) -> str:
    """Key of the mean over the sets of a group."""
    return f"{AVERAGE}:{group}"


@dataclass(frozen=True)
class Column:
    """A data set that was measured on."""

    key: str  # such as ``sts12``
    title: str
    figure: str  # the metric in tables: ``spearman``, or ``accuracy`` of triplets
    revision: str
    rows: int  # labelled rows, or triplets
    subsets: Mapping[str, int]  # rows by name; empty if it has none
    published: bool  # whether it has the rows that published numbers are of
    group: str | None = None  # the heading it stands under, such as ``left out of training``
    conditions: int | None = None  # distinct ones
    pairs: int | None = None  # two rows of one text pair with different labels


@dataclass(frozen=True)
class SuiteRow:
    """What one scorer reached.

    ``figures`` has metrics x 100 by key of the column, then by name, the one in tables first. The
    mean over the columns of SSBC Table 2, if all are there, has the key ``avg``; so has that over
    all sets with a group, beside ``avg:GROUP`` for each. Columns that do not suit the scorer are
    missing.
    """

    name: str
    baseline: bool  # whether it is one of the baselines that are always there
    revision: str | None
    figures: Mapping[str, Mapping[str, Metric]]
    comparison: Mapping[str, Difference]  # by key, the metric in tables less the reference's
    seconds: float | None  # to load and score; None if all scores were kept from before
    versions: Mapping[str, str]  # of the libraries that scored
    numbers: Literal["float32", "bfloat16"] | None = None  # of sentence-transformers encoders


class SuiteReport(ResultFile):
    """The result of an evaluation on a suite.

    Attributes:
        format: Version of the file format.
        columns: The data sets.
        rows: The scorers, baselines first.
        against: Name of the scorer that the others are compared with; None without a bootstrap.
        aggregation: How the subsets of a year became one number.
        condition: What pairs without a condition were compared with respect to, if anything.
        resamples: Number of bootstrap resamples; 0 for no intervals.
        seed: Seed of the resamples and the folds.
        versions: Version of condsim.
        created: When, in UTC, ISO 8601.
    """

    _kind: ClassVar[str] = "report of a suite"

    format: Literal[1] = 1
    columns: tuple[Column, ...]
    rows: tuple[SuiteRow, ...]
    against: str | None
    aggregation: Aggregation
    condition: str | None
    resamples: int
    seed: int
    versions: Mapping[str, str]
    created: str

    def main_metric(self, row: SuiteRow, key: str) -> Metric | None:
        """The metric in tables."""
        found = row.figures.get(key)
        return None if found is None else next(iter(found.values()))

    @property
    def by_set(self) -> bool:
        """Whether the data sets have groups, and pair accuracy beside Spearman."""
        return any(column.group is not None for column in self.columns)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the columns of a table, the average after those it is of."""
        keys = [column.key for column in self.columns]
        if any(AVERAGE in row.figures for row in self.rows):
            place = max((keys.index(key) + 1 for key in _COLUMNS[5:7] if key in keys), default=None)
            keys.insert(len(keys) if place is None else place, AVERAGE)
        return tuple(keys)

    def title(self, key: str) -> str:
        """Name of a column in tables."""
        return next((column.title for column in self.columns if column.key == key), "Avg.")

    def to_csv(self, path: Path | str) -> None:
        """Writes a line for every metric; an earlier file is replaced in one step."""
        head = ["model", "task", "figure", "value", "low", "high", "difference", "p_value"]
        with (
            replacing(Path(path)) as partial,
            partial.open("w", encoding="utf-8", newline="") as stream,
        ):
            csv.writer(stream, lineterminator="\n").writerows([head, *self._lines()])

    def _lines(self) -> Iterator[list[str]]:
        for row in self.rows:
            for key, found in row.figures.items():
                for number, (name, metric) in enumerate(found.items()):
                    numbers = [metric.value, metric.low, metric.high]
                    compared = None if number else row.comparison.get(key)
                    if compared is not None:
                        numbers += [compared.value, compared.p_value]
                    cells = ["" if math.isnan(value) else f"{value:.4f}" for value in numbers]
                    yield [row.name, key, name, *cells, *[""] * (5 - len(cells))]
