"""The report of a suite as tables, as Markdown and as a heat map."""

# With groups the tables have a row for each data set and two columns for each scorer.

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from condsim.errors import require
from condsim.evaluation.suite.result import (
    AVERAGE,
    PUBLISHED,
    Column,
    PublishedRow,
    SuiteReport,
    SuiteRow,
    group_average,
)
from condsim.evaluation.tables import markdown_table
from condsim.io import replacing

METRICS = {"spearman": "Spearman", "pair_accuracy": "pair acc."}
"""The metrics of a set with a group, and their heads."""

_SIGNIFICANT = 0.05  # a mark is set where the p-value of the difference is below it
_MARK = "*"
_BELOW, _BESIDE = "\n{0.low:.1f}…{0.high:.1f}", " [{0.low:.1f}, {0.high:.1f}]"  # intervals
_TITLE_WIDTH = 17
_FACTS_WIDTH = 14  # of the columns with rows and conditions
_FIGURE_WIDTH = 12


def by_set_tables(report: SuiteReport, *, width: int) -> list[Table]:
    """Tables for the terminal; scorers that do not fit go into a table of their own."""
    room = max(1, (width - _TITLE_WIDTH - _FACTS_WIDTH) // (_FIGURE_WIDTH * len(METRICS)))
    return [
        _table_by_set(report, report.rows[start : start + room])
        for start in range(0, len(report.rows), room)
    ]


def by_set_lines(report: SuiteReport) -> list[str]:
    """The lines of a Markdown table."""
    heads = [f"{row.name}: {head}" for row in report.rows for head in METRICS.values()]
    rows = []
    for title, column, key in _places(report):
        cells = [
            _cell(row, key, _BESIDE, metric=metric, digits=1)
            for row in report.rows
            for metric in METRICS
        ]
        facts = ["", ""] if column is None else [f"{column.rows:,}", str(column.conditions)]
        rows.append([title if column else f"**{title}**", *facts, *map(_escaped, cells)])
    return markdown_table(["Set", "rows", "conditions", *map(_escaped, heads)], rows)


def by_set_notes(report: SuiteReport) -> Iterator[str]:
    """What the figures are."""
    yield (
        "Spearman x 100 of raw similarities and gold; pair accuracy: % of the pairs of conditions "
        "of one text pair with different labels that are ranked as the labels are (chance: 50)"
    )
    left_out = [
        f"{head} of {', '.join(titles)}"
        for metric, head in METRICS.items()
        if (titles := [column.title for column in report.columns if metric in column.undefined])
    ]
    if left_out:
        yield f"Not in the means, as labels to compare do not differ: {'; '.join(left_out)}"
    if any(row.name == "condition-only" for row in report.rows):
        yield (
            "condition-only learns from the other folds; below 0 (or 50 %) it tells nothing: where "
            "a condition is as often alike as different, what is left over says the opposite"
        )


def _table_by_set(report: SuiteReport, rows: Sequence[SuiteRow]) -> Table:
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
            table.add_column(Text("\n".join(lines)), justify="right", no_wrap=True)
    for title, column, key in _places(report):
        if column is None and key is None:
            table.add_section()
        facts = ["", ""] if column is None else [f"{column.rows:,}", str(column.conditions)]
        cells = [
            _cell(row, key, _BELOW, metric=metric, digits=1) for row in rows for metric in METRICS
        ]
        table.add_row(Text(title), *facts, *cells, style="" if column else "bold")
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
            yield f"mean of {_counted(columns)}", None, key
    averaged = _counted(
        [one for one in report.columns if group_average(one.group or "") in figures]
    )
    if len([group for group in groups if group_average(group) in figures]) > 1:
        yield f"mean of all {averaged}", None, AVERAGE


def _counted(columns: Sequence[Column]) -> int:
    """How many data sets the mean of the metric in tables is over."""
    return sum(column.figure not in column.undefined for column in columns)


_GREY = "bright_black"
_NAME_WIDTH = 21
_SPACE = 2  # beside a column


def suite_tables(report: SuiteReport, *, width: int = 80) -> list[Table]:
    """Lays a report out for the terminal.

    Args:
        width: Characters in a line; columns that do not fit go into a table of their own.

    Returns:
        Rich tables: baselines, scorers, published rows; intervals below the figures. Of a suite
        with groups: a row for each data set, two columns for each scorer. The notes are below the
        last.
    """
    if report.by_set:
        tables = by_set_tables(report, width=width)
    else:
        room = width - _NAME_WIDTH - _SPACE
        tables = [_table(report, keys) for keys in _packed(report, room)]
    tables[-1].caption = Text("\n".join(suite_notes(report)))
    return tables


def suite_markdown(report: SuiteReport) -> str:
    """Lays a report out as Markdown.

    Returns:
        A pipe table, published rows in italics, and the notes below it, ending in a newline.
    """
    notes = ["", *(f"- {_escaped(note)}" for note in suite_notes(report))]
    if report.by_set:
        return "\n".join([*by_set_lines(report), *notes]) + "\n"
    rows = []
    for row in report.rows:
        name = _escaped(row.name) if row.baseline else f"**{_escaped(row.name)}**"
        cells = (_cell(row, key, _BESIDE) for key in report.keys)
        rows.append([name, *map(_escaped, cells)])
    for line, figures in _published(report, report.keys):
        name = f"*{_escaped(line.name)} ({line.source})*"
        rows.append([name, *_shown(figures, "*{:.2f}*")])
    heads = (_escaped(report.title(key)) for key in report.keys)
    return "\n".join([*markdown_table(["Model", *heads], rows), *notes]) + "\n"


def _packed(report: SuiteReport, room: int) -> list[list[str]]:
    """Cuts the columns into tables that are no wider than there is room beside the names."""
    tables: list[list[str]] = [[]]
    used = 0
    for key in report.keys:
        texts = [report.title(key), *(_cell(row, key, _BELOW) for row in report.rows)]
        texts += [text for _, figures in _published(report, [key]) for text in _shown(figures)]
        wide = _SPACE + max(len(line) for text in texts for line in text.split("\n"))
        if tables[-1] and used + wide > room:
            tables.append([])
            used = 0
        tables[-1].append(key)
        used += wide
    return tables


def _table(report: SuiteReport, keys: Sequence[str]) -> Table:
    """The table of some of the columns."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    table.add_column("Model", overflow="fold", max_width=_NAME_WIDTH)
    for key in keys:
        table.add_column(report.title(key), justify="right", no_wrap=True)
    for baseline in (True, False):
        for row in report.rows:
            if row.baseline is baseline and any(key in row.figures for key in keys):
                style = "" if baseline else "bold"
                ours = (_cell(row, key, _BELOW) for key in keys)
                table.add_row(Text(row.name, style=style), *ours)
        table.add_section()
    source = ""
    for line, figures in _published(report, keys):
        if line.source != source:
            source = line.source
            table.add_row(Text(f"published, {source}:", style=_GREY))
        cells = (Text(text, style=_GREY) for text in _shown(figures))
        table.add_row(Text(f"  {line.name}", style=_GREY), *cells)
    return table


def _cell(
    row: SuiteRow, key: str | None, interval: str, *, metric: str = "", digits: int = 2
) -> str:
    """A metric, by default that in tables, with its mark and its interval; empty if it has none."""
    found = row.figures.get(key or "", {})
    main = next(iter(found), "")
    if (figure := found.get(metric or main)) is None:
        return ""
    compared = row.comparison.get(key or "") if metric in ("", main) else None
    mark = _MARK if compared is not None and compared.p_value < _SIGNIFICANT else ""
    value = "-" if math.isnan(figure.value) else f"{figure.value:.{digits}f}"
    return value + mark + ("" if math.isnan(figure.low) else interval.format(figure))


def _published(
    report: SuiteReport, keys: Sequence[str]
) -> Iterator[tuple[PublishedRow, list[float]]]:
    """Rows and figures of columns whose rows are the published ones; NaN where there is none."""
    comparable = {column.key for column in report.columns if column.published} | {AVERAGE}
    for row in PUBLISHED:
        found = [row.figures.get(key, math.nan) if key in comparable else math.nan for key in keys]
        if not all(map(math.isnan, found)):
            yield row, found


def _shown(figures: Sequence[float], form: str = "{:.2f}") -> list[str]:
    return ["" if math.isnan(figure) else form.format(figure) for figure in figures]


def suite_notes(report: SuiteReport) -> Iterator[str]:
    """The lines below a table: metrics, subsets, intervals and data."""
    accuracy = [column.title for column in report.columns if column.figure == "accuracy"]
    if report.by_set:
        yield from by_set_notes(report)
    elif len(accuracy) < len(report.columns):
        yield "Spearman x 100 of raw similarities and gold" + (
            f"; {', '.join(accuracy)}: accuracy in %" if accuracy else ""
        )
    else:
        yield "Accuracy in %: the anchor is nearer to its positive"
    several = [column for column in report.columns if column.subsets]
    if several:
        how = {
            "all": "the rows of all subsets together",
            "mean": "mean of the subsets",
            "wmean": "mean of the subsets, weighted by rows",
        }[report.aggregation]
        yield f"Subsets ({report.aggregation}): {how}"
    if report.condition is not None:
        yield f"Pairs without a condition are compared under {report.condition!r}"
    if report.resamples:
        yield (
            f"95 % intervals from {report.resamples} resamples of the sentence pairs; {_MARK} "
            f"differs from {report.against}, p < {_SIGNIFICANT:g} (paired, for each cell alone)"
        )
    for kind in ("bfloat16", "float16"):
        if halved := [row.name for row in report.rows if row.numbers == kind]:
            yield f"Computed in {kind}: {', '.join(halved)}"
    other = [column.title for column in report.columns if not column.published]
    if other:
        yield f"{', '.join(other)}: other rows than published ones"
    if report.by_set:
        revisions = dict.fromkeys(column.revision for column in report.columns)
        yield f"Data: {', '.join(revisions)}"
        return
    yield "Data: " + ", ".join(
        f"{column.title} {column.revision} ({column.rows:,} rows)" for column in report.columns
    )


def _escaped(text: str) -> str:
    """Text that is no emphasis in Markdown."""
    return text.replace("*", "\\*").replace("\n", " ")


_DARK = 0.45  # share of the colour scale from which on text is black


def heat_map(report: SuiteReport, path: Path) -> None:
    """Draws metrics as colours with the numbers in them: a row a scorer, a column a data set.

    Of a suite with groups it is the other way round, and the metric is Spearman.

    Raises:
        InputError: If the file cannot be written there.
        MissingExtraError: If matplotlib is not installed.
    """
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    names = [row.name for row in report.rows]
    ours = ([report.main_metric(row, key) for key in report.keys] for row in report.rows)
    values = [[np.nan if metric is None else metric.value for metric in row] for row in ours]
    cells = np.array(values, dtype=np.float64)  # (rows, columns)
    heads = [report.title(key) for key in report.keys]
    if report.by_set:
        cells, heads, names = cells.T, names, heads
    rows, columns = cells.shape
    figure = Figure(figsize=(2.8 + 0.72 * columns, 1.0 + 0.34 * rows), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(np.clip(cells, 0, 100), vmin=0, vmax=100, cmap="viridis", aspect="auto")
    turn, side = (45, "left") if report.by_set else (0, "center")
    axes.set_xticks(range(columns), heads, parse_math=False, rotation=turn, ha=side)
    axes.set_yticks(range(rows), names, parse_math=False)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    for (row_number, column), value in np.ndenumerate(cells):
        if not np.isnan(value):
            colour = "black" if value / 100 > _DARK else "white"
            text = axes.text(column, row_number, f"{value:.1f}", ha="center", va="center")
            text.set(fontsize=8, color=colour)
    figure.colorbar(image, ax=axes, label="x 100", fraction=0.03, pad=0.01)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)
