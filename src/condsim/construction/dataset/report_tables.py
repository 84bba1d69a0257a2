"""Reports as tables of texts, for the card and for the terminal; the plot of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.construction.dataset.labels import LABELS
from condsim.construction.dataset.leakage import LeakageReport
from condsim.construction.dataset.quality import Kappa, RatingReport
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
    annotators = _table(
        "Annotators",
        report.annotators,
        ("annotator", "annotator", ""),
        ("ratings", "ratings", ","),
        ("agrees", "agrees", ".1%"),
        ("within 1", "within_one", ".1%"),
        ("offset", "offset", ".2f"),
        ("n/a", "does_not_apply", ".1%"),
        ("seconds", "seconds", ".1f"),
        ("remarks", "remarks", ""),
        caption="Against the majority of the others; n/a: the condition does not apply.",
    )
    tables = (agreement_table(report), annotators)
    return (*tables, model_table(report)) if report.models else tables


def leakage_tables(report: LeakageReport) -> tuple[PlainTable, PlainTable]:
    """Lays out what the splits share, and what a model reaches that sees a part of each row.

    Args:
        report: The report.

    Returns:
        The two tables.
    """
    shared = _table(
        "Texts in two splits",
        report.shared,
        ("in both", "splits", ""),
        ("pairs", "pairs", ","),
        ("sentences", "sentences", ","),
        ("of rows", "sentence_rows", ".1%"),
        ("conditions", "conditions", ","),
        ("of rows", "condition_rows", ".1%"),
        caption="of rows: rows of the second split that have a text of the first.",
    )
    blind = _table(
        "Blind baselines",
        report.baselines,
        ("", "scored", ""),
        ("rows", "rows", ","),
        ("Spearman", "spearman", ""),
        ("pair accuracy", "pair_accuracy", ""),
    )
    return shared, blind


def agreement_table(report: RatingReport) -> PlainTable:
    """Lays out how far people agree, and how long they take."""
    one, times = report.agreement, report.times
    per_row = ", ".join(f"{rows:,} with {ratings}" for ratings, rows in one.ratings_per_row)
    seconds = "-"
    if times.known:
        seconds = f"{times.median:.1f} ({times.tenth:.1f} to {times.ninetieth:.1f})"
    verdicts = one.kappa_verdicts
    rows = [
        ("rows rated by people", f"{one.rows:,}"),
        ("ratings", f"{one.ratings:,}"),
        ("annotators", f"{one.annotators:,}"),
        ("rows by number of ratings", per_row),
        ("ratings that the condition does not apply", f"{one.does_not_apply:,}"),
        (f"Fleiss' kappa of the labels{_of(one.kappa)}", cell(one.kappa.value, ".3f")),
        (f'Fleiss\' kappa with "does not apply"{_of(verdicts)}', cell(verdicts.value, ".3f")),
        (f"Krippendorff's alpha, ordinal ({one.alpha_rows:,} rows)", cell(one.alpha, ".3f")),
        ("Krippendorff's alpha of whether it applies", cell(one.alpha_applies, ".3f")),
        ("two labels of a row are equal", cell(one.exact, ".1%")),
        ("two labels of a row differ by 1 at most", cell(one.within_one, ".1%")),
        ("seconds for a rating, median (10 % to 90 %)", seconds),
        ("hours in all", f"{times.hours:.1f}" if times.known else "-"),
    ]
    return PlainTable("Agreement between people", ("", "value"), rows)


def model_table(report: RatingReport) -> PlainTable:
    """Lays out how far models agree with people, and below them one person with the others."""
    return _table(
        "Models and people",
        [*report.models, *([report.one_person] if report.one_person else [])],
        ("", "rater", ""),
        ("rows", "compared", ","),
        ("Spearman", "spearman", ".1f"),
        ("alpha", "alpha", ".3f"),
        ("equal", "exact", ".1%"),
        ("within 1", "within_one", ".1%"),
        ("offset", "offset", ".2f"),
        ("applies alike", "applies", ".1%"),
        ("shown first", "shown", ","),
        caption="Against the median of the people, of the other people for one person.",
    )


def _table(
    title: str,
    results: Sequence[object],
    *columns: tuple[str, str, str],
    caption: str | None = None,
) -> PlainTable:
    """Makes a row of each result; columns are head, attribute and format."""
    rows = [tuple(cell(getattr(one, name), form) for _, name, form in columns) for one in results]
    return PlainTable(title, tuple(head for head, _, _ in columns), rows, caption)


def cell(value: object, form: str) -> str:
    """Writes a value by a format such as ``.1f``; a hyphen where it does not exist."""
    if isinstance(value, Metric):
        interval = f"{value.value:.1f} [{value.low:.1f}, {value.high:.1f}]"
        return "-" if math.isnan(value.value) else interval
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return ", ".join(value) if isinstance(value, tuple) else format(value, form)


def _of(kappa: Kappa) -> str:
    if not kappa.rows:
        return ""
    left_out = f", {kappa.left_out:,} others left out" if kappa.left_out else ""
    return f" ({kappa.rows:,} rows with {kappa.raters} each{left_out})"
