"""What the suite found, with its provenance: a file that can be read back."""

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

AVERAGE = "avg"
"""Key of the mean over the columns of SSBC Table 2."""


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


@dataclass(frozen=True)
class SuiteRow:
    """What one scorer reached.

    ``figures`` has metrics x 100 by key of the column, then by name, the one in tables first. The
    mean over the columns of SSBC Table 2, if all are there, has the key ``avg``. Columns that do
    not suit the scorer are missing.
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
    def keys(self) -> tuple[str, ...]:
        """Keys of the columns of a table, the average after those it is of."""
        keys = [column.key for column in self.columns]
        if any(AVERAGE in row.figures for row in self.rows):
            place = max(keys.index(key) for key in ("sts-b", "sick-r")) + 1
            keys.insert(place, AVERAGE)
        return tuple(keys)

    def title(self, key: str) -> str:
        """Name of a column in tables."""
        return next((column.title for column in self.columns if column.key == key), "Avg.")

    def to_csv(self, path: Path | str) -> None:
        """Writes a line for every metric; an earlier file is replaced in one step."""
        with (
            replacing(Path(path)) as partial,
            partial.open("w", encoding="utf-8", newline="") as stream,
        ):
            lines = csv.writer(stream, lineterminator="\n")
            lines.writerow(
                ["model", "task", "figure", "value", "low", "high", "difference", "p_value"]
            )
            lines.writerows(self._lines())

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
