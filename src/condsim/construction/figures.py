"""Figures as cells of tables, the same for the card and for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from condsim.construction.agreement import Kappa
from condsim.construction.leakage import LeakageReport
from condsim.construction.rating_report import RatingReport
from condsim.evaluation.report import Metric

__all__ = [
    "Cells",
    "agreement_cells",
    "blind_cells",
    "model_cells",
    "number",
    "percent",
    "shared_cells",
]


class Cells(NamedTuple):
    """A table.

    Attributes:
        head: Heads of the columns.
        rows: Cells, as many in each row.
    """

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def agreement_cells(report: RatingReport) -> Cells:
    """How far people agree, and how long they take.

    Args:
        report: The report.

    Returns:
        Two columns.
    """
    one, times = report.agreement, report.times
    per_row = ", ".join(f"{rows:,} with {ratings}" for ratings, rows in one.ratings_per_row)
    seconds = "-"
    if times.known:
        seconds = f"{times.median:.1f} ({times.tenth:.1f} to {times.ninetieth:.1f})"
    rows = [
        ("rows rated by people", f"{one.rows:,}"),
        ("ratings", f"{one.ratings:,}"),
        ("annotators", f"{one.annotators:,}"),
        ("rows by number of ratings", per_row),
        ("ratings that the condition does not apply", f"{one.does_not_apply:,}"),
        (f"Fleiss' kappa of the labels{_of(one.kappa)}", number(one.kappa.value, 3)),
        (
            f'Fleiss\' kappa with "does not apply"{_of(one.kappa_verdicts)}',
            number(one.kappa_verdicts.value, 3),
        ),
        (f"Krippendorff's alpha, ordinal ({one.alpha_rows:,} rows)", number(one.alpha, 3)),
        ("Krippendorff's alpha of whether it applies", number(one.alpha_applies, 3)),
        ("two labels of a row are equal", percent(one.exact)),
        ("two labels of a row differ by 1 at most", percent(one.within_one)),
        ("seconds for a rating, median (10 % to 90 %)", seconds),
        ("hours in all", f"{times.hours:.1f}" if times.known else "-"),
    ]
    return Cells(("", "value"), rows)


def model_cells(report: RatingReport) -> Cells:
    """How far models agree with people.

    Args:
        report: The report.

    Returns:
        A row a model, a second one where people were shown its ratings, and below them one person
        against the others.
    """
    raters = [*report.models, *([report.one_person] if report.one_person else [])]
    rows = [
        (
            one.rater,
            f"{one.compared:,}",
            number(one.spearman),
            number(one.alpha, 3),
            percent(one.exact),
            percent(one.within_one),
            number(one.offset, 2),
            percent(one.applies),
            f"{one.shown:,}",
        )
        for one in raters
    ]
    head = (
        *("", "rows", "Spearman", "alpha", "equal", "within 1", "offset", "applies alike"),
        "shown first",
    )
    return Cells(head, rows)


def shared_cells(report: LeakageReport) -> Cells:
    """What the splits share.

    Args:
        report: The report.

    Returns:
        A row for every two splits; ``of rows`` are the rows of the second that have such a text.
    """
    rows = [
        (
            f"{one.first}, {one.second}",
            f"{one.pairs:,}",
            f"{one.sentences:,}",
            percent(one.sentence_rows),
            f"{one.conditions:,}",
            percent(one.condition_rows),
        )
        for one in report.shared
    ]
    head = ("in both", "pairs", "sentences", "of rows", "conditions", "of rows")
    return Cells(head, rows)


def blind_cells(report: LeakageReport) -> Cells:
    """What models reach that see only a part of each row.

    Args:
        report: The report.

    Returns:
        A row for each of them and each split.
    """
    rows = [
        (
            f"{one.baseline}, {one.split}",
            f"{one.rows:,}",
            _interval(one.spearman),
            _interval(one.pair_accuracy),
        )
        for one in report.baselines
    ]
    return Cells(("", "rows", "Spearman", "pair accuracy"), rows)


def number(value: float | None, digits: int = 1) -> str:
    """Writes a number.

    Args:
        value: The number; NaN or None where it does not exist.
        digits: Digits after the point.

    Returns:
        The text, ``-`` where it does not exist.
    """
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def percent(share: float) -> str:
    """Writes a share as a percentage.

    Args:
        share: In [0, 1], or NaN.

    Returns:
        The text, ``-`` where it does not exist.
    """
    return "-" if math.isnan(share) else f"{share:.1%}"


def _of(kappa: Kappa) -> str:
    if not kappa.rows:
        return ""
    left_out = f", {kappa.left_out:,} others left out" if kappa.left_out else ""
    return f" ({kappa.rows:,} rows with {kappa.raters} each{left_out})"


def _interval(metric: Metric) -> str:
    if math.isnan(metric.value):
        return "-"
    return f"{metric.value:.1f} [{metric.low:.1f}, {metric.high:.1f}]"
