"""What the suite found, with its provenance: a file that can be read back."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from condsim.errors import InputError
from condsim.evaluation.aggregation import Aggregation
from condsim.evaluation.report import Difference, Metric, read_json, write_json
from condsim.files import replacing
from condsim.scorers.precision import Numbers

__all__ = ["AVERAGE", "Column", "SuiteReport", "SuiteRow"]

FORMAT = 1

AVERAGE = "avg"
"""Key of the mean over the columns of SSBC Table 2."""


@dataclass(frozen=True)
class Column:
    """A data set that was measured on.

    Attributes:
        key: Short name, such as ``sts12``.
        title: Name in tables.
        figure: What tables show: ``spearman``, or ``accuracy`` of triplets.
        revision: Version of the data.
        rows: Labelled rows; triplets where accuracy is measured.
        subsets: Names and rows of its subsets; empty if it has none.
        published: Whether published figures are of the same rows.
    """

    key: str
    title: str
    figure: str
    revision: str
    rows: int
    subsets: Mapping[str, int]
    published: bool


@dataclass(frozen=True)
class SuiteRow:
    """What one scorer reached.

    Attributes:
        name: Name of the scorer.
        baseline: Whether it is one of the baselines that are always there.
        revision: Version of the model, if it can be told.
        figures: By key of the column, then by name of the figure: ``spearman`` and ``pearson``, or
            ``accuracy``; x 100. The mean over the columns of SSBC Table 2, if all are there, has
            the key ``avg``. A column the scorer is not for is missing.
        comparison: By key, the figure in tables less that of the scorer it is compared with.
        seconds: What it took to load and score; None if all scores were kept from before.
        versions: Versions of the libraries that scored.
        numbers: The number format that an encoder of sentence-transformers scored in; None for
            other scorers.
    """

    name: str
    baseline: bool
    revision: str | None
    figures: Mapping[str, Mapping[str, Metric]]
    comparison: Mapping[str, Difference]
    seconds: float | None
    versions: Mapping[str, str]
    numbers: Numbers | None = None


@dataclass(frozen=True)
class SuiteReport:
    """The result of an evaluation on a suite.

    Attributes:
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

    columns: tuple[Column, ...]
    rows: tuple[SuiteRow, ...]
    against: str | None
    aggregation: Aggregation
    condition: str | None
    resamples: int
    seed: int
    versions: Mapping[str, str]
    created: str

    def main_figure(self, row: SuiteRow, key: str) -> Metric | None:
        """The figure that tables show.

        Args:
            row: The scorer.
            key: Key of a column, or `AVERAGE`.

        Returns:
            The figure; None if the scorer has none there.
        """
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
        """Name of a column in tables.

        Args:
            key: Key of a column, or `AVERAGE`.

        Returns:
            The name.
        """
        return next((column.title for column in self.columns if column.key == key), "Avg.")

    def to_json(self, path: Path | str) -> None:
        """Writes the report; an earlier file of that name is replaced in one step.

        Args:
            path: The file to write. NaN is written as null.

        Raises:
            InputError: If the folder does not exist.
        """
        # JSON has no NaN: it is read back as None.
        text = json.dumps({"format": FORMAT, **asdict(self)})
        write_json(json.loads(text, parse_constant=lambda _: None), Path(path))

    @classmethod
    def from_json(cls, path: Path | str) -> SuiteReport:
        """Reads a report that :meth:`to_json` wrote.

        Args:
            path: The file to read.

        Returns:
            The same report.

        Raises:
            InputError: If the file is missing, not such a report, or of an unknown format.
        """
        content = read_json(Path(path))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f"{path} is not a report of a suite in format {FORMAT}.")
        try:
            fields = {name: value for name, value in content.items() if name != "format"}
            fields["columns"] = tuple(Column(**column) for column in content["columns"])
            fields["rows"] = tuple(_row(row) for row in content["rows"])
            return cls(**fields)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a whole report of a suite: {error!r}.") from error

    def to_csv(self, path: Path | str) -> None:
        """Writes a line for every figure; an earlier file is replaced in one step.

        Args:
            path: The file to write.

        Raises:
            InputError: If the folder does not exist.
        """
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


def _row(content: Mapping[str, Any]) -> SuiteRow:
    fields = dict(content)
    fields["figures"] = {
        key: {name: Metric(**_with_nan(metric)) for name, metric in found.items()}
        for key, found in content["figures"].items()
    }
    fields["comparison"] = {
        key: Difference(**_with_nan(found)) for key, found in content["comparison"].items()
    }
    return SuiteRow(**fields)


def _with_nan(figure: Mapping[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else value for name, value in figure.items()}
