"""The report of a suite as tables: a row for each data set, two columns for each scorer."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from condsim.evaluation.report import BELOW_CHANCE, Cell, markdown_table
from condsim.evaluation.suite import AVERAGE, SuiteColumn, SuiteReport, SuiteRow, group_average

HEADS = {"spearman": "Spearman", "pair_accuracy": "pair acc.", "points": "points"}
"""The metrics and their heads."""

MAX_P_VALUE = 0.05
"""A figure is marked if the p-value of its difference from the reference is below this."""

_PAIR_NOTE = (
    "Spearman x 100 of raw similarities and gold; pair accuracy: % of the pairs of conditions of "
    "one text pair with different labels that are ranked as the labels are (chance: 50)"
)

_TITLE_WIDTH = 17
# Width of the columns with the number of rows and of conditions.
_FACTS_WIDTH = 14
_FIGURE_WIDTH = 12


class _Line(NamedTuple):
    """A line of the table: a data set, or a heading or a mean without one."""

    title: str
    column: SuiteColumn | None = None
    key: str | None = None

    @property
    def facts(self) -> list[str]:
        if self.column is None:
            return ["", ""]
        return [f"{self.column.rows:,}", str(self.column.conditions)]


def suite_tables(report: SuiteReport, *, width: int = 80) -> list[Table]:
    """Lay a report out for the terminal, with intervals below the figures.

    Scorers that do not fit into the width go into a further table; notes are below the last one.
    """
    room = max(
        1, (width - _TITLE_WIDTH - _FACTS_WIDTH) // (_FIGURE_WIDTH * len(report_heads(report)))
    )
    parts = [report.rows[start : start + room] for start in range(0, len(report.rows), room)]
    tables = [_suite_table(report, rows) for rows in parts]
    tables[-1].caption = Text("\n".join(suite_notes(report)))
    return tables


def suite_markdown(report: SuiteReport) -> str:
    """Lay a report out as a Markdown table with the notes below it, ending in a newline."""
    metrics = report_heads(report)
    heads = [f"{row.name}: {head}" for row in report.rows for head in metrics.values()]
    rows = []
    for line in _table_lines(report):
        title = line.title if line.column else f"**{line.title}**"
        cells = [figure_cell(row, line.key, metric) for row in report.rows for metric in metrics]
        rows.append([title, *line.facts, *(escape_marks(str(cell)) for cell in cells)])
    head = ["Set", "rows", "conditions", *map(escape_marks, heads)]
    notes = [f"- {escape_marks(note)}" for note in suite_notes(report)]
    return "\n".join([*markdown_table(head, rows), "", *notes]) + "\n"


def report_heads(report: SuiteReport) -> dict[str, str]:
    """Return the metrics of a report and their heads."""
    metrics = {metric for row in report.rows for names in row.figures.values() for metric in names}
    return {metric: head for metric, head in HEADS.items() if metric in metrics}


def suite_notes(report: SuiteReport) -> Iterator[str]:
    """Describe the figures, the intervals and the data."""
    metrics = report_heads(report)
    if "points" in metrics:
        yield "Points: the measure of each set, x 100; see the table of the suite 'natural'"
    else:
        yield _PAIR_NOTE
    left_out = []
    for metric, head in metrics.items():
        titles = [column.title for column in report.columns if metric in column.undefined]
        if titles:
            left_out.append(f"{head} of {', '.join(titles)}")
    if left_out:
        yield f"Not in the means, as labels to compare do not differ: {'; '.join(left_out)}"
    if any(row.name == "condition-only" for row in report.rows):
        yield f"condition-only is fitted on the other folds; {BELOW_CHANCE}"
    yield from comparison_notes(report)
    yield f"Data: {', '.join(dict.fromkeys(column.revision for column in report.columns))}"


def comparison_notes(report: SuiteReport) -> Iterator[str]:
    """Describe the intervals and the marks, if there are any."""
    if report.resamples:
        yield (
            f"95 % intervals from {report.resamples} resamples of the sentence pairs; * differs "
            f"from {report.against}, p < {MAX_P_VALUE:g} (paired, for each cell alone)"
        )


def figure_cell(row: SuiteRow, key: str | None, metric: str, *, digits: int = 1) -> Cell:
    """Format a metric, with a mark and an interval; empty if the scorer does not have it."""
    figures = row.figures.get(key or "", {})
    if metric not in figures:
        return Cell("")
    value, low, high = figures[metric].value, figures[metric].low, figures[metric].high
    text = "-" if math.isnan(value) else f"{value:.{digits}f}"
    difference = row.comparison.get(key or "")
    if metric == next(iter(figures)) and difference and difference.p_value < MAX_P_VALUE:
        text += "*"
    return Cell(text) if math.isnan(low) else Cell(text, (f"{low:.1f}", f"{high:.1f}"))


def escape_marks(text: str) -> str:
    """Escape text that would be emphasized in Markdown."""
    return text.replace("*", "\\*").replace("\n", " ")


def _suite_table(report: SuiteReport, rows: Sequence[SuiteRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    table.add_column("Set", overflow="fold", max_width=_TITLE_WIDTH)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("cond.", justify="right", no_wrap=True)
    names = {row.name: textwrap.wrap(row.name, _FIGURE_WIDTH - 1) for row in rows}
    height = max(map(len, names.values()))
    metrics = report_heads(report)
    for row in rows:
        # The name of the scorer is above its first column.
        for number, head in enumerate(metrics.values()):
            name_lines = names[row.name] if number == 0 else []
            lines = [*name_lines, *[""] * (height - len(name_lines)), head]
            table.add_column(Text("\n".join(lines)), justify="right", no_wrap=True)
    for line in _table_lines(report):
        if line.key is None:
            table.add_section()
        cells = [figure_cell(row, line.key, metric) for row in rows for metric in metrics]
        texts = [
            cell.text + ("" if cell.interval is None else f"\n{'…'.join(cell.interval)}")
            for cell in cells
        ]
        table.add_row(Text(line.title), *line.facts, *texts, style="" if line.column else "bold")
    return table


def _table_lines(report: SuiteReport) -> Iterator[_Line]:
    figures = report.rows[0].figures if report.rows else {}
    groups: dict[str, list[SuiteColumn]] = {}
    for column in report.columns:
        groups.setdefault(column.group or "", []).append(column)
    for group, columns in groups.items():
        if group:
            yield _Line(group)
        for column in columns:
            yield _Line(column.title, column, column.key)
        key = group_average(group)
        if key in figures and len(columns) > 1:
            yield _Line(f"mean of {_defined(columns)}", key=key)
    with_mean = [group for group in groups if group_average(group) in figures or not group]
    several = len(with_mean) > 1 or (with_mean == [""] and len(report.columns) > 1)
    if AVERAGE in figures and several:
        averaged = [column for group in with_mean for column in groups[group]]
        yield _Line(f"mean of all {_defined(averaged)}", key=AVERAGE)


def _defined(columns: Sequence[SuiteColumn]) -> int:
    """Count the data sets whose labels define the main metric."""
    return sum(column.figure not in column.undefined for column in columns)
