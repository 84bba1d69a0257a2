"""The report of a suite with groups as tables: a row for each data set, two columns a scorer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table

from condsim.evaluation.suite.result import (
    AVERAGE,
    Column,
    SuiteReport,
    SuiteRow,
    escaped,
    figure_text,
    group_average,
)

METRICS = {"spearman": "Spearman", "pair_accuracy": "pair acc."}
"""The metrics of a set with a group, and their heads."""

_TITLE_WIDTH = 17
_FACTS_WIDTH = 14  # of the columns with rows and conditions
_FIGURE_WIDTH = 12


def by_set_tables(report: SuiteReport, *, width: int) -> list[Table]:
    """Tables for the terminal; scorers that do not fit go into a table of their own."""
    room = max(1, (width - _TITLE_WIDTH - _FACTS_WIDTH) // (_FIGURE_WIDTH * len(METRICS)))
    return [
        _table(report, report.rows[start : start + room])
        for start in range(0, len(report.rows), room)
    ]


def by_set_lines(report: SuiteReport) -> list[str]:
    """The lines of a Markdown table."""
    heads = [f"{row.name}: {head}" for row in report.rows for head in METRICS.values()]
    lines = [_line(["Set", "rows", "conditions", *heads])]
    lines.append("|---|" + "---:|" * (len(heads) + 2))
    for title, column, key in _places(report):
        cells = [_cell(row, key, name) for row in report.rows for name in METRICS]
        facts = ["", ""] if column is None else [f"{column.rows:,}", str(column.conditions)]
        lines.append(_line([title, *facts, *cells], bold=column is None))
    return lines


def by_set_notes(report: SuiteReport) -> Iterator[str]:
    """What the figures are."""
    yield (
        "Spearman x 100 of raw similarities and gold; pair accuracy: % of the pairs of conditions "
        "of one text pair with different labels that are ranked as the labels are (chance: 50)"
    )
    if any(row.name == "condition-only" for row in report.rows):
        yield (
            "condition-only learns from the other folds; below 0 (or 50 %) it tells nothing: where "
            "a condition is as often alike as different, what is left over says the opposite"
        )


def _table(report: SuiteReport, rows: Sequence[SuiteRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    table.add_column("Set", overflow="fold", max_width=_TITLE_WIDTH)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("cond.", justify="right", no_wrap=True)
    names = {row.name: textwrap.wrap(row.name, _FIGURE_WIDTH - 1) for row in rows}
    deepest = max(map(len, names.values()))
    for row in rows:
        for number, head in enumerate(METRICS.values()):
            named = names[row.name] if number == 0 else []
            lines = [*named, *[""] * (deepest - len(named)), head]
            table.add_column("\n".join(lines), justify="right", no_wrap=True)
    for title, column, key in _places(report):
        if column is None and key is None:
            table.add_section()
        facts = ["", ""] if column is None else [f"{column.rows:,}", str(column.conditions)]
        interval = "\n{0.low:.1f}…{0.high:.1f}"
        cells = [_cell(row, key, name, interval) for row in rows for name in METRICS]
        table.add_row(title, *facts, *cells, style="" if column else "bold")
    return table


def _places(report: SuiteReport) -> Iterator[tuple[str, Column | None, str | None]]:
    """Title, data set and key of each line: a heading has neither, a mean has no data set."""
    figures = report.rows[0].figures if report.rows else {}
    groups = list(dict.fromkeys(column.group or "" for column in report.columns))
    for group in groups:
        columns = [column for column in report.columns if (column.group or "") == group]
        yield group, None, None
        for column in columns:
            yield column.title, column, column.key
        if (key := group_average(group)) in figures and len(columns) > 1:
            yield f"mean of {len(columns)}", None, key
    averaged = sum(group_average(column.group or "") in figures for column in report.columns)
    if len([group for group in groups if group_average(group) in figures]) > 1:
        yield f"mean of all {averaged}", None, AVERAGE


def _cell(
    row: SuiteRow, key: str | None, name: str, interval: str = " [{0.low:.1f}, {0.high:.1f}]"
) -> str:
    metric = row.figures.get(key or "", {}).get(name)
    compared = row.comparison.get(key or "") if name == "spearman" else None
    return figure_text(metric, compared, digits=1, interval=interval)


def _line(cells: Sequence[str], *, bold: bool = False) -> str:
    first, *others = map(escaped, cells)
    return f"| {' | '.join([f'**{first}**' if bold else first, *others])} |"
