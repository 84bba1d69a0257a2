"""Reports as tables of texts, for the card and for the terminal; the plot of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.construction.dataset.agreement import Kappa
from condsim.construction.dataset.labels import LABELS
from condsim.construction.dataset.leakage import LeakageReport
from condsim.construction.dataset.quality import RatingReport
from condsim.errors import require
from condsim.evaluation import Metric
from condsim.files import replacing
from condsim.types import Task

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")  # of Okabe and Ito


def label_histogram(splits: Mapping[str, Task], path: Path) -> None:
    """Draws the share of each label in each split."""
    require("matplotlib", extra="build")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    panel = figure.subplots()
    width = 0.8 / len(splits)
    for number, (name, task) in enumerate(splits.items()):
        labels = task.labels[task.valid]
        # A median between two labels counts for the lower and the upper one half each.
        shares = [100 * float(np.clip(1 - np.abs(labels - label), 0, 1).mean()) for label in LABELS]
        places = np.array(LABELS) + (number - (len(splits) - 1) / 2) * width
        colour = COLOURS[number % len(COLOURS)]
        panel.bar(places, shares, width * 0.92, color=colour, label=f"{name} ({len(labels):,})")
    panel.set_xticks(LABELS)
    panel.set_xlabel("similarity under the condition (1: different, 5: alike)")
    panel.set_ylabel("% of the rows of the split")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, title="split (rows)", alignment="left")
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)


class PlainTable(NamedTuple):
    """A table of texts; the first column names the rows."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str | None = None


def rating_tables(report: RatingReport) -> tuple[PlainTable, ...]:
    """Lays out how far people agree, how good each is, and how far models agree with them.

    Args:
        report: The report.

    Returns:
        Two tables, and a third where models have rated.
    """
    tables = (agreement_table(report), annotator_table(report))
    return (*tables, model_table(report)) if report.models else tables


def leakage_tables(report: LeakageReport) -> tuple[PlainTable, PlainTable]:
    """Lays out what the splits share, and what a model reaches that sees a part of each row.

    Args:
        report: The report.

    Returns:
        The two tables.
    """
    shared = [
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
    blind = [
        (
            f"{one.baseline}, {one.split}",
            f"{one.rows:,}",
            _interval(one.spearman),
            _interval(one.pair_accuracy),
        )
        for one in report.baselines
    ]
    return (
        PlainTable(
            "Texts in two splits",
            ("in both", "pairs", "sentences", "of rows", "conditions", "of rows"),
            shared,
            "of rows: rows of the second split that have a text of the first.",
        ),
        PlainTable("Blind baselines", ("", "rows", "Spearman", "pair accuracy"), blind),
    )


def agreement_table(report: RatingReport) -> PlainTable:
    """Lays out how far people agree, and how long they take."""
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
    return PlainTable("Agreement between people", ("", "value"), rows)


def annotator_table(report: RatingReport) -> PlainTable:
    """Lays out the work of each person."""
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
        for one in report.annotators
    ]
    return PlainTable(
        "Annotators",
        ("annotator", "ratings", "agrees", "within 1", "offset", "n/a", "seconds", "remarks"),
        rows,
        "Against the majority of the others; n/a: the condition does not apply.",
    )


def model_table(report: RatingReport) -> PlainTable:
    """Lays out how far models agree with people, and below them one person with the others."""
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
    agree = ("Spearman", "alpha", "equal", "within 1", "offset", "applies alike")
    return PlainTable(
        "Models and people",
        ("", "rows", *agree, "shown first"),
        rows,
        "Against the median of the people, of the other people for one person.",
    )


def number(value: float | None, digits: int = 1) -> str:
    """Writes a number; a hyphen where it does not exist."""
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def percent(share: float) -> str:
    """Writes a share in [0, 1] as a percentage; a hyphen for NaN."""
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
