"""The report of the STS suite as a Markdown table, with published rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from condsim.evaluation.report import Cell, markdown_table
from condsim.evaluation.suite import AVERAGE, SuiteReport, SuiteRow
from condsim.evaluation.suite_tables import comparison_notes, escape_marks, figure_cell


@dataclass(frozen=True)
class PublishedRow:
    """A row of a published table."""

    name: str
    source: str
    figures: Mapping[str, float]


def _read_published() -> tuple[PublishedRow, ...]:
    """Read ``published.txt``; results of a name and source that occurs again are added."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    source, columns = "", [""]
    for line in Path(__file__).with_name("published.txt").read_text("utf-8").splitlines():
        words = line.split()
        if line.startswith("["):
            source, columns = words[0].strip("[]"), words[1:]
        elif not line.startswith("#"):
            name, texts = " ".join(words[: -len(columns)]), words[-len(columns) :]
            figures = zip(columns, texts, strict=True)
            numbers = {column: float(text) for column, text in figures if text != "-"}
            rows.setdefault((name, source), {}).update(numbers)
    return tuple(PublishedRow(*key, figures) for key, figures in rows.items())


PUBLISHED = _read_published()
"""Rows in the order of SSBC Table 2: without labels, then those trained on NLI; then MTEB's."""


def sts_markdown(report: SuiteReport) -> str:
    """Lay a report out as a Markdown table, published rows in italics, with the notes below it."""
    titles = _column_titles(report)
    rows = []
    for row in report.rows:
        name = escape_marks(row.name) if row.baseline else f"**{escape_marks(row.name)}**"
        rows.append([name, *(escape_marks(str(_main_cell(row, key))) for key in titles)])
    for published, figures in _published(report, list(titles)):
        name = f"*{escape_marks(published.name)} ({published.source})*"
        cells = ["" if math.isnan(figure) else f"*{figure:.2f}*" for figure in figures]
        rows.append([name, *cells])
    notes = [f"- {escape_marks(note)}" for note in _notes(report)]
    heads = ["Model", *map(escape_marks, titles.values())]
    return "\n".join([*markdown_table(heads, rows), "", *notes]) + "\n"


def _column_titles(report: SuiteReport) -> dict[str, str]:
    """The titles of the columns by key, the average after those it is of."""
    titles = [(column.key, column.title) for column in report.columns]
    if any(AVERAGE in row.figures for row in report.rows):
        keys = [key for key, _ in titles]
        after = [keys.index(key) + 1 for key in ("sts-b", "sick-r") if key in keys]
        titles.insert(max(after, default=len(keys)), (AVERAGE, "Avg."))
    return dict(titles)


def _notes(report: SuiteReport) -> Iterator[str]:
    """Describe the metrics, the subsets, the intervals and the data."""
    accuracy = [column.title for column in report.columns if column.figure == "accuracy"]
    if len(accuracy) < len(report.columns):
        yield "Spearman x 100 of raw similarities and gold" + (
            f"; {', '.join(accuracy)}: accuracy in %" if accuracy else ""
        )
    else:
        yield "Accuracy in %: the anchor is nearer to its positive"
    if any(column.subsets for column in report.columns):
        meaning = {
            "all": "the rows of all subsets together",
            "mean": "mean of the subsets",
            "wmean": "mean of the subsets, weighted by rows",
        }[report.aggregation]
        yield f"Subsets ({report.aggregation}): {meaning}"
    if report.condition is not None:
        yield f"Pairs without a condition are compared under {report.condition!r}"
    yield from comparison_notes(report)
    for number_format in ("bfloat16", "float16"):
        if names := [row.name for row in report.rows if row.numbers == number_format]:
            yield f"Computed in {number_format}: {', '.join(names)}"
    unpublished = [column.title for column in report.columns if not column.published]
    if unpublished:
        yield f"{', '.join(unpublished)}: other rows than published ones"
    yield "Data: " + ", ".join(
        f"{column.title} {column.revision} ({column.rows:,} rows)" for column in report.columns
    )


def _main_cell(row: SuiteRow, key: str) -> Cell:
    """Format the main metric."""
    return figure_cell(row, key, next(iter(row.figures.get(key, {})), ""), digits=2)


def _published(
    report: SuiteReport, keys: Sequence[str]
) -> Iterator[tuple[PublishedRow, list[float]]]:
    """Yield published rows with their results on columns with the same rows; NaN without one."""
    comparable = {column.key for column in report.columns if column.published} | {AVERAGE}
    for row in PUBLISHED:
        figures = [
            row.figures.get(key, math.nan) if key in comparable else math.nan for key in keys
        ]
        if not all(map(math.isnan, figures)):
            yield row, figures
