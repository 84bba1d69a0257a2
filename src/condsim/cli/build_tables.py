"""Agreement and leakage as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from condsim.construction.figures import (
    Cells,
    agreement_cells,
    blind_cells,
    model_cells,
    number,
    percent,
    shared_cells,
)

if TYPE_CHECKING:
    from condsim.construction.leakage import LeakageReport
    from condsim.construction.quality import AnnotatorQuality
    from condsim.construction.rating_report import RatingReport

__all__ = ["annotator_table", "leakage_tables", "rating_tables"]


def rating_tables(report: RatingReport) -> list[Table]:
    """Lays out how far people agree with each other, and models with them.

    Args:
        report: The report.

    Returns:
        The tables.
    """
    tables = [
        _table("Agreement between people", agreement_cells(report)),
        annotator_table(report.annotators),
    ]
    if report.models:
        caption = "Against the median of the people, of the other people for one person."
        tables.append(_table("Models and people", model_cells(report), caption))
    return tables


def annotator_table(annotators: Sequence[AnnotatorQuality]) -> Table:
    """Lays out the work of each person.

    Args:
        annotators: The annotators.

    Returns:
        A row each.
    """
    rows = [
        (
            one.annotator,
            f"{one.ratings:,}",
            percent(one.agrees),
            percent(one.within_one),
            number(one.offset, 2),
            percent(one.does_not_apply),
            number(one.seconds),
            ", ".join(one.remarks),
        )
        for one in annotators
    ]
    head = ("annotator", "ratings", "agrees", "within 1", "offset", "n/a", "seconds", "remarks")
    caption = "Against the majority of the others; n/a: the condition does not apply."
    return _table("Annotators", Cells(head, rows), caption)


def leakage_tables(report: LeakageReport) -> list[Table]:
    """Lays out what the splits share, and what a model reaches that sees a part of each row.

    Args:
        report: The report.

    Returns:
        The tables.
    """
    caption = "of rows: rows of the second split that have a text of the first."
    return [
        _table("Texts in two splits", shared_cells(report), caption),
        _table("Blind baselines", blind_cells(report)),
    ]


def _table(title: str, cells: Cells, caption: str | None = None) -> Table:
    table = Table(
        title=title,
        caption=caption,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        collapse_padding=True,
        pad_edge=False,
    )
    for place, name in enumerate(cells.head):
        first = place == 0
        table.add_column(name, justify="left" if first else "right", overflow="fold")
    # A name is not broken, however narrow the terminal; a long text may be.
    table.columns[0].min_width = min(24, max((len(row[0]) for row in cells.rows), default=0))
    for row in cells.rows:
        table.add_row(*map(Text, row))
    return table
