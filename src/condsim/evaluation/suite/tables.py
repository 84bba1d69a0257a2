"""The report of a suite as tables, as Markdown and as a heat map."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from condsim.errors import require
from condsim.evaluation.suite.by_set import by_set_lines, by_set_notes, by_set_tables
from condsim.evaluation.suite.result import (
    AVERAGE,
    MARK,
    PUBLISHED,
    SIGNIFICANT,
    PublishedRow,
    SuiteReport,
    SuiteRow,
    escaped,
    figure_text,
)
from condsim.files import replacing

_GREY = "bright_black"
_NAME_WIDTH = 21
_SPACE = 2  # beside a column


def suite_tables(report: SuiteReport, *, width: int = 80, published: bool = True) -> list[Table]:
    """Lays a report out for the terminal.

    Args:
        width: Characters in a line; columns that do not fit go into a table of their own.
        published: Whether the published rows follow ours, greyed.

    Returns:
        Rich tables: baselines, scorers, published rows; intervals below the figures. Of a suite
        with groups: a row for each data set, two columns for each scorer. The notes are below the
        last.
    """
    if report.by_set:
        tables = by_set_tables(report, width=width)
    else:
        tables = [
            _table(report, keys, published=published)
            for keys in _packed(report, width - _NAME_WIDTH - _SPACE, published=published)
        ]
    tables[-1].caption = "\n".join(suite_notes(report))
    return tables


def suite_markdown(report: SuiteReport, *, published: bool = True) -> str:
    """Lays a report out as Markdown.

    Args:
        published: Whether the published rows follow ours, in italics.

    Returns:
        A pipe table and the notes below it, ending in a newline.
    """
    notes = ["", *(f"- {escaped(note)}" for note in suite_notes(report))]
    if report.by_set:
        return "\n".join([*by_set_lines(report), *notes]) + "\n"
    heads = [escaped(report.title(key)) for key in report.keys]
    lines = [f"| Model | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for row in report.rows:
        name = escaped(row.name) if row.baseline else f"**{escaped(row.name)}**"
        cells = [
            escaped(_cell(report, row, key, " [{0.low:.1f}, {0.high:.1f}]")) for key in report.keys
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if published:
        for line, figures in _published(report, report.keys):
            shown = " | ".join(_shown(figures, "*{:.2f}*"))
            lines.append(f"| *{escaped(line.name)} ({line.source})* | {shown} |")
    return "\n".join([*lines, *notes]) + "\n"


def _packed(report: SuiteReport, room: int, *, published: bool) -> list[list[str]]:
    """Cuts the columns into tables that are no wider than there is room beside the names."""
    tables: list[list[str]] = [[]]
    used = 0
    for key in report.keys:
        texts = [report.title(key), *(_cell(report, row, key) for row in report.rows)]
        if published:
            texts += [text for _, figures in _published(report, [key]) for text in _shown(figures)]
        wide = _SPACE + max(len(line) for text in texts for line in text.split("\n"))
        if tables[-1] and used + wide > room:
            tables.append([])
            used = 0
        tables[-1].append(key)
        used += wide
    return tables


def _table(report: SuiteReport, keys: Sequence[str], *, published: bool) -> Table:
    """The table of some of the columns."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    table.add_column("Model", overflow="fold", max_width=_NAME_WIDTH)
    for key in keys:
        table.add_column(report.title(key), justify="right", no_wrap=True)
    for baseline in (True, False):
        for row in report.rows:
            if row.baseline is baseline and any(key in row.figures for key in keys):
                style = "" if baseline else "bold"
                ours = (_cell(report, row, key) for key in keys)
                table.add_row(Text(row.name, style=style), *ours)
        table.add_section()
    source = ""
    for line, figures in _published(report, keys) if published else ():
        if line.source != source:
            source = line.source
            table.add_row(Text(f"published, {source}:", style=_GREY))
        cells = (Text(text, style=_GREY) for text in _shown(figures))
        table.add_row(Text(f"  {line.name}", style=_GREY), *cells)
    return table


def _cell(
    report: SuiteReport, row: SuiteRow, key: str, interval: str = "\n{0.low:.1f}…{0.high:.1f}"
) -> str:
    """The metric of a row with its mark and its interval."""
    metric = report.main_metric(row, key)
    return figure_text(metric, row.comparison.get(key), digits=2, interval=interval)


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
            f"95 % intervals from {report.resamples} resamples of the sentence pairs; {MARK} "
            f"differs from {report.against}, p < {SIGNIFICANT:g} (paired, for each cell alone)"
        )
    halved = [row.name for row in report.rows if row.numbers == "bfloat16"]
    if halved:
        yield f"Computed in bfloat16: {', '.join(halved)}"
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


_DARK = 0.45  # share of the colour scale from which on text is black


def heat_map(report: SuiteReport, path: Path, *, published: bool = False) -> None:
    """Draws metrics as colours with the numbers in them: a row a scorer, a column a data set.

    Of a suite with groups it is the other way round, and the metric is Spearman.

    Args:
        published: Whether the published rows are drawn below ours, where they can be compared.

    Raises:
        InputError: If the file cannot be written there.
        MissingExtraError: If matplotlib is not installed.
    """
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    names = [row.name for row in report.rows]
    ours = ([report.main_metric(row, key) for key in report.keys] for row in report.rows)
    values = [[np.nan if metric is None else metric.value for metric in row] for row in ours]
    if published and not report.by_set:
        for line, figures in _published(report, report.keys):
            names.append(f"{line.name} ({line.source})")
            values.append(figures)
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
    if published and not report.by_set:
        axes.axhline(len(report.rows) - 0.5, color="white", linewidth=3)
    figure.colorbar(image, ax=axes, label="x 100", fraction=0.03, pad=0.01)
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)
