"""The report of the STS suite as tables, as Markdown and as a heat map, with published rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from condsim.errors import require
from condsim.evaluation.plots import save_figure
from condsim.evaluation.report import Cell, markdown_table
from condsim.evaluation.suite import AVERAGE, SuiteReport, SuiteRow
from condsim.evaluation.suite_tables import comparison_notes, escape_marks, figure_cell

_PUBLISHED_STYLE = "bright_black"
_NAME_WIDTH = 21
# Space between two columns.
_COLUMN_SPACE = 2
# Share of the colour scale from which on text is black.
_DARK_SHARE = 0.45


@dataclass(frozen=True)
class PublishedRow:
    """A row of a published table.

    Attributes:
        name: Name of the model as printed.
        source: The paper.
        figures: Results by key of the data set, x 100, as printed.
    """

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


def column_keys(report: SuiteReport) -> tuple[str, ...]:
    """Return the keys of the columns of the table, the average after those it is of."""
    keys = [column.key for column in report.columns]
    if any(AVERAGE in row.figures for row in report.rows):
        after = [keys.index(key) + 1 for key in ("sts-b", "sick-r") if key in keys]
        keys.insert(max(after, default=len(keys)), AVERAGE)
    return tuple(keys)


def column_title(report: SuiteReport, key: str) -> str:
    """Return the name of a column."""
    return next((column.title for column in report.columns if column.key == key), "Avg.")


def sts_tables(report: SuiteReport, *, width: int = 80) -> list[Table]:
    """Lay a report out for the terminal: baselines, scorers, published rows.

    Args:
        report: The report.
        width: Characters in a line; columns that do not fit go into a further table.

    Returns:
        Rich tables with intervals below the figures, and the notes below the last table.
    """
    tables = [_table(report, keys) for keys in _packed(report, width - _NAME_WIDTH - _COLUMN_SPACE)]
    tables[-1].caption = Text("\n".join(sts_notes(report)))
    return tables


def sts_markdown(report: SuiteReport) -> str:
    """Lay a report out as a Markdown table, published rows in italics, with the notes below it."""
    keys = column_keys(report)
    rows = []
    for row in report.rows:
        name = escape_marks(row.name) if row.baseline else f"**{escape_marks(row.name)}**"
        rows.append([name, *(escape_marks(str(_main_cell(row, key))) for key in keys)])
    for published, figures in _published(report, keys):
        name = f"*{escape_marks(published.name)} ({published.source})*"
        rows.append([name, *_formatted(figures, "*{:.2f}*")])
    heads = [escape_marks(column_title(report, key)) for key in keys]
    notes = [f"- {escape_marks(note)}" for note in sts_notes(report)]
    return "\n".join([*markdown_table(["Model", *heads], rows), "", *notes]) + "\n"


def sts_notes(report: SuiteReport) -> Iterator[str]:
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


def heat_map(report: SuiteReport, path: Path) -> None:
    """Draw the results as colours with the numbers in them: a row a scorer, a column a data set."""
    require("matplotlib", extra="train")
    from matplotlib.figure import Figure

    keys = column_keys(report)
    cells = np.full((len(report.rows), len(keys)), np.nan)
    for row_number, row in enumerate(report.rows):
        for column, key in enumerate(keys):
            if key in row.figures:
                cells[row_number, column] = next(iter(row.figures[key].values())).value
    rows, columns = cells.shape
    figure = Figure(figsize=(2.8 + 0.72 * columns, 1.0 + 0.34 * rows), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(np.clip(cells, 0, 100), vmin=0, vmax=100, cmap="viridis", aspect="auto")
    axes.set_xticks(range(columns), [column_title(report, key) for key in keys], parse_math=False)
    axes.set_yticks(range(rows), [row.name for row in report.rows], parse_math=False)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    for (row_number, column), value in np.ndenumerate(cells):
        if not np.isnan(value):
            colour = "black" if value / 100 > _DARK_SHARE else "white"
            text = axes.text(column, row_number, f"{value:.1f}", ha="center", va="center")
            text.set(fontsize=8, color=colour)
    figure.colorbar(image, ax=axes, label="x 100", fraction=0.03, pad=0.01)
    save_figure(figure, path)


def _packed(report: SuiteReport, room: int) -> list[list[str]]:
    """Distribute the columns over tables that fit next to the names."""
    tables: list[list[str]] = [[]]
    used_width = 0
    for key in column_keys(report):
        texts = [column_title(report, key), *(_text(row, key) for row in report.rows)]
        for _, figures in _published(report, [key]):
            texts += _formatted(figures)
        lines = [line for text in texts for line in text.split("\n")]
        width = _COLUMN_SPACE + max(map(len, lines))
        if tables[-1] and used_width + width > room:
            tables.append([])
            used_width = 0
        tables[-1].append(key)
        used_width += width
    return tables


def _table(report: SuiteReport, keys: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    table.add_column("Model", overflow="fold", max_width=_NAME_WIDTH)
    for key in keys:
        table.add_column(column_title(report, key), justify="right", no_wrap=True)
    for baseline in (True, False):
        for row in report.rows:
            if row.baseline is baseline and any(key in row.figures for key in keys):
                style = "" if baseline else "bold"
                table.add_row(Text(row.name, style=style), *(_text(row, key) for key in keys))
        table.add_section()
    source = ""
    for published, figures in _published(report, keys):
        if published.source != source:
            source = published.source
            table.add_row(Text(f"published, {source}:", style=_PUBLISHED_STYLE))
        cells = (Text(text, style=_PUBLISHED_STYLE) for text in _formatted(figures))
        table.add_row(Text(f"  {published.name}", style=_PUBLISHED_STYLE), *cells)
    return table


def _main_cell(row: SuiteRow, key: str) -> Cell:
    """Format the main metric."""
    return figure_cell(row, key, next(iter(row.figures.get(key, {})), ""), digits=2)


def _text(row: SuiteRow, key: str) -> str:
    cell = _main_cell(row, key)
    return cell.text + ("" if cell.interval is None else f"\n{'…'.join(cell.interval)}")


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


def _formatted(figures: Sequence[float], form: str = "{:.2f}") -> list[str]:
    return ["" if math.isnan(figure) else form.format(figure) for figure in figures]
