"""Reports: the results of an evaluation with their provenance, as JSON files and as tables."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from html import escape
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from pydantic import SerializerFunctionWrapHandler, model_serializer

from condsim.config import Settings, validated_json
from condsim.data.writers import escape_markdown, markdown_row
from condsim.evaluation.metrics import METRICS, OverEstimation
from condsim.evaluation.statistics import Difference, Metric
from condsim.io import read_text, write_json
from condsim.types import html_table

if TYPE_CHECKING:
    from rich.table import Table

# Modules of libraries with another name.
_MODULE_OF = {"scikit-learn": "sklearn", "bert-score": "bert_score"}

# Earlier versions of condsim read a report without these keys.
_OPTIONAL_KEYS = ("over_estimation", "scored_by")

OVER_ESTIMATION_HEADS = ("Eq. 16", "Eq. 17", "Either", "% of pairs", "High error", "Low error")

BELOW_CHANCE = (
    "below 0 (or 50 %) it carries no information: where a condition is alike and different equally "
    "often, the remaining rows suggest the opposite"
)
"""How to read a condition-only baseline below chance."""


class ResultFile(Settings):
    """A result stored as JSON; NaN is null in the file."""

    subject = "report"

    def to_json(self, path: str | Path) -> None:
        """Write the report; an earlier file of that name is replaced in one step."""
        write_json(self.to_dict(), Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, NaN as None."""
        values: dict[str, Any] = json.loads(self.model_dump_json())
        return values

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Read a report that `to_json` wrote."""
        return validated_json(cls, read_text(Path(path)), subject=cls.subject, source=str(path))


@dataclass(frozen=True)
class ModelResult:
    """The result of one scorer.

    Attributes:
        metrics: By name: ``spearman``, ``pearson`` and ``partial_spearman`` (x 100), ``mse`` (of
            gold in [0, 1]; lower is better), ``pair_accuracy`` (in %).
        fitted_on: For a fitted baseline, the rows it was fitted on.
        scored_by: Further settings that decide its scores, such as λ of an origin model (SSBC).
    """

    name: str
    metrics: Mapping[str, Metric]
    revision: str | None = None
    fitted_on: str | None = None
    over_estimation: OverEstimation | None = None
    scored_by: Mapping[str, Any] | None = None

    @model_serializer(mode="wrap")
    def _without_empty_options(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = handler(self)
        for key in _OPTIONAL_KEYS:
            if values[key] is None:
                del values[key]
        return dict(values)


class Report(ResultFile):
    """The result of an evaluation.

    Attributes:
        task_revision: First 12 hex digits of the SHA-256 of its file.
        valid_rows: Rows with a label, on which every metric is computed.
        invalid_rows: Rows without a label; neither scored nor counted.
        pairs: Distinct sentence pairs among the valid rows: the unit of the bootstrap.
        contrasting_pairs: Pairs whose two labels differ: those that pair accuracy counts.
        baselines: Results of the baselines, the condition-only one first.
        against: Result of the model it is compared with, if any.
        comparison: By metric, model minus ``against``; empty without ``against``.
        versions: Versions of condsim, Python and the libraries that were loaded.
        created: Time of the evaluation, in UTC, ISO 8601.
    """

    format: Literal[1] = 1
    task: str
    task_revision: str
    rows: int
    valid_rows: int
    invalid_rows: int
    pairs: int
    contrasting_pairs: int
    model: ModelResult
    baselines: tuple[ModelResult, ...]
    against: ModelResult | None
    comparison: Mapping[str, Difference]
    seed: int
    resamples: int
    versions: Mapping[str, str]
    created: str

    def __repr__(self) -> str:
        """Name the task and the model, with its Spearman correlation."""
        spearman = self.model.metrics["spearman"].value
        return f"Report({self.task!r}, {self.model.name!r}, spearman={spearman:.1f})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        title = f"{self.task} ({self.task_revision})"
        table = html_table(title, ["", *METRICS.values()], _report_rows(self))
        return table + "".join(f"<p>{escape(note)}</p>\n" for note in _report_notes(self))


def loaded_versions(*libraries: str) -> dict[str, str]:
    """Return the versions of those libraries that are loaded."""
    versions = {}
    for library in libraries:
        if _MODULE_OF.get(library, library) in sys.modules:
            try:
                versions[library] = metadata.version(library)
            except metadata.PackageNotFoundError:
                # The library runs from a source tree.
                versions[library] = "not installed"
    return versions


class Cell(NamedTuple):
    """A figure of a table, with its interval and the p-value of a difference."""

    text: str
    interval: tuple[str, str] | None = None
    p_value: str | None = None

    def __str__(self) -> str:
        """Format the cell on one line, for Markdown."""
        text = self.text
        if self.interval is not None:
            text += f" [{self.interval[0]}, {self.interval[1]}]"
        return text if self.p_value is None else f"{text}, p = {self.p_value}"


def metric_cell(metric: Metric | Difference, form: str = ".1f") -> Cell:
    """Format a metric and its interval; "-" for NaN."""
    value, low, high, *p_value = astuple(metric)
    if math.isnan(value):
        return Cell("-")
    text = format(value, form if isinstance(metric, Metric) else f"+{form}")
    if math.isnan(low):
        return Cell(text)
    interval = (format(low, form), format(high, form))
    return Cell(text, interval, f"{p_value[0]:.3f}" if p_value else None)


def rich_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str | Cell]],
    *,
    title: str = "",
    notes: Iterable[str] = (),
    bold: int | None = None,
    section: int | None = None,
) -> Table:
    """Lay a table out for the terminal: names in the first column, figures in the others.

    The row of the number ``bold`` is in bold; a line is drawn before the row ``section``.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title),
        caption=Text("\n".join(notes)),
        caption_justify="left",
        title_justify="left",
        box=box.SIMPLE,
        padding=(0, 1),
        collapse_padding=True,
        pad_edge=False,
    )
    for column, name in enumerate(head):
        table.add_column(name, justify="right" if column else "left", no_wrap=column > 0)
    for number, (label, *contents) in enumerate(rows):
        if number == section:
            table.add_section()
        texts = [Text(str(label), style="bold" if number == bold else "")]
        for content in contents:
            cell = content if isinstance(content, Cell) else Cell(content)
            text = Text(cell.text)
            if cell.interval is not None:
                text.append(f"\n{'…'.join(cell.interval)}", "dim")
            if cell.p_value is not None:
                text.append(f"\np = {cell.p_value}")
            texts.append(text)
        table.add_row(*texts)
    return table


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str | Cell]]) -> list[str]:
    """Lay a table out as the lines of a pipe table; figures are aligned right."""
    marks = "|---|" + "---:|" * (len(head) - 1)
    first, *lines = (markdown_row(map(str, row)) for row in (head, *rows))
    return [first, marks, *lines]


def to_table(report: Report) -> Table:
    """Lay a report out for the terminal, 80 columns wide or less for short names."""
    return rich_table(
        ["", *METRICS.values()],
        _report_rows(report),
        title=f"{report.task} ({report.task_revision})",
        notes=_report_notes(report),
        bold=0,
        section=None if report.against is None else len(report.baselines) + 2,
    )


def over_estimation_table(report: Report) -> Table | None:
    """Lay the over-estimation of a report out for the terminal; None if it was not counted."""
    if report.model.over_estimation is None:
        return None
    return rich_table(
        ["", *OVER_ESTIMATION_HEADS],
        _over_estimation_rows(report),
        title="Over-estimation",
        notes=_over_estimation_notes(report),
        bold=0,
    )


def to_markdown(report: Report) -> str:
    """Lay a report out in Markdown: a table, notes, and the same for over-estimation if counted."""
    (name, *cells), *rows = _report_rows(report)
    lines = markdown_table(["", *METRICS.values()], [[f"**{name}**", *cells], *rows])
    lines += ["", f"{escape_markdown(report.task)} ({report.task_revision}).", ""]
    lines += [f"- {escape_markdown(note)}" for note in _report_notes(report)]
    if report.model.over_estimation is not None:
        counted = _over_estimation_rows(report)
        counted[0][0] = f"**{counted[0][0]}**"
        lines += ["", *markdown_table(["Over-estimation", *OVER_ESTIMATION_HEADS], counted)]
        lines += ["", *(f"- {escape_markdown(note)}" for note in _over_estimation_notes(report))]
    return "\n".join(lines) + "\n"


def _report_results(report: Report) -> list[ModelResult]:
    compared = [] if report.against is None else [report.against]
    return [report.model, *compared, *report.baselines]


def _report_rows(report: Report) -> list[list[str | Cell]]:
    """Format the results, the model first, and the comparison last."""
    forms = {name: ".3f" if name == "mse" else ".1f" for name in METRICS}
    rows: list[list[str | Cell]] = [
        [result.name, *(metric_cell(result.metrics[name], forms[name]) for name in METRICS)]
        for result in _report_results(report)
    ]
    if report.against is not None:
        cells = [metric_cell(report.comparison[name], forms[name]) for name in METRICS]
        rows.append([f"difference from {report.against.name}", *cells])
    return rows


def _report_notes(report: Report) -> Iterator[str]:
    yield (
        f"{report.valid_rows} rows with a label in {report.pairs} sentence pairs, "
        f"{report.invalid_rows} without one left out"
    )
    metrics = "Spearman, Pearson and Partial x 100; MSE of similarity in 0..1, lower is better"
    if report.contrasting_pairs:
        metrics += f"; Pair acc. in % of the {report.contrasting_pairs} pairs whose labels differ"
    yield metrics
    partials = [result.metrics["partial_spearman"].value for result in _report_results(report)]
    if not all(map(math.isnan, partials)):
        yield "Partial: Spearman once the condition-only prediction is held fixed"
    for result in report.baselines:
        if result.fitted_on is not None:
            yield f"{result.name} is fitted on {result.fitted_on}"
        if result.name == "condition-only" and result.metrics["spearman"].value < 0:
            yield f"{result.name}: {BELOW_CHANCE}"
    yield (
        f"95 % intervals{' and p-values' if report.comparison else ''}: bootstrap of sentence "
        f"pairs, {report.resamples} resamples, seed {report.seed}"
    )


def _over_estimation_rows(report: Report) -> list[list[str]]:
    rows = []
    for result in _report_results(report):
        cells = ["-"] * len(OVER_ESTIMATION_HEADS)
        if (counts := result.over_estimation) is not None:
            cells = [
                *(str(count) for count in (counts.equation_16, counts.equation_17, counts.either)),
                f"{100 * counts.rate:.1f}",
                *(f"{error:+.3f}" for error in (counts.high_error, counts.low_error)),
            ]
        rows.append([result.name, *cells])
    return rows


def _over_estimation_notes(report: Report) -> Iterator[str]:
    if (counts := report.model.over_estimation) is not None:
        yield f"{counts.pairs} pairs of rows with the same two sentences and different labels"
        yield (
            f"Eq. 16: the high row more than {counts.margin:g} above gold, the low row below gold; "
            "Eq. 17: the mirror"
        )
        yield "Of raw similarities, not calibrated ones; error: mean of raw similarity minus gold"
