"""The result file of the suite, and the published rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from condsim.evaluation.bootstrap import Difference, Metric
from condsim.evaluation.correlation import Aggregation
from condsim.evaluation.report import ResultFile
from condsim.io import replacing


@dataclass(frozen=True)
class PublishedRow:
    """A row of a published table."""

    name: str  # of the model as printed
    source: str
    figures: Mapping[str, float]  # by key of the column, x 100; as printed


def _published() -> tuple[PublishedRow, ...]:
    """Reads ``published.txt``; figures of a name and source that comes again are added."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    source, columns = "", [""]
    for line in Path(__file__).with_name("published.txt").read_text("utf-8").splitlines():
        words = line.split()
        if line.startswith("["):
            source, columns = words[0].strip("[]"), words[1:]
        elif not line.startswith("#"):
            name, figures = " ".join(words[: -len(columns)]), words[-len(columns) :]
            found = zip(columns, figures, strict=True)
            known = {column: float(figure) for column, figure in found if figure != "-"}
            rows.setdefault((name, source), {}).update(known)
    return tuple(PublishedRow(*key, figures) for key, figures in rows.items())


PUBLISHED = _published()
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
    undefined: tuple[str, ...] = ()  # metrics that its labels admit none of; not in the means


@dataclass(frozen=True)
class SuiteRow:
    """What one scorer reached; columns that do not suit it are missing."""

    name: str
    baseline: bool  # whether it is one of the baselines that are always there
    revision: str | None
    # Metrics x 100 by key of the column, then by name, the one in tables first. ``avg`` is the mean
    # over the columns of SSBC Table 2, if all are there, or over all sets with a group, beside
    # ``avg:GROUP`` for each.
    figures: Mapping[str, Mapping[str, Metric]]
    comparison: Mapping[str, Difference]  # by key, the metric in tables less the reference's
    seconds: float | None  # to load and score; None if all scores were kept from before
    versions: Mapping[str, str]  # of the libraries that scored
    numbers: Literal["float32", "bfloat16", "float16"] | None = None  # of encoders


class SuiteReport(ResultFile):
    """The result of an evaluation on a suite."""

    _kind: ClassVar[str] = "report of a suite"

    format: Literal[1] = 1  # version of the file format
    columns: tuple[Column, ...]  # the data sets
    rows: tuple[SuiteRow, ...]  # the scorers, baselines first
    # Name of the scorer that the others are compared with; None without a bootstrap.
    against: str | None
    aggregation: Aggregation  # how the subsets of a year became one number
    # What pairs without a condition were compared with respect to, if anything.
    condition: str | None
    resamples: int  # number of bootstrap resamples; 0 for no intervals
    seed: int  # seed of the resamples and the folds
    versions: Mapping[str, str]  # version of condsim
    created: str  # when, in UTC, ISO 8601

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
            place = max(
                (keys.index(key) + 1 for key in ("sts-b", "sick-r") if key in keys), default=None
            )
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
