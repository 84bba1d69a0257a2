"""Dataset card, tables of reports, and the histogram of labels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import yaml

from condsim.annotation.agreement import Kappa, RatingReport
from condsim.annotation.labels import LABELS, LabelRules, OrderCheck
from condsim.annotation.records import DatasetRow
from condsim.annotation.splits import LeakageReport, SplitRules, Splitting
from condsim.annotation.stages import page
from condsim.data.tasks import TaskStatistics
from condsim.errors import require
from condsim.evaluation.bootstrap import Metric
from condsim.evaluation.tables import markdown_table
from condsim.io import replacing
from condsim.rows.records import columns_of
from condsim.types import Task

HISTOGRAM = "label-histogram.png"
# The palette of Okabe and Ito.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")


@dataclass(frozen=True)
class Target:
    """Folder and description of a data set.

    Attributes:
        name: Name on the card; that of the folder if None.
        license: As the Hub names it, such as ``cc-by-4.0``; None if not stated.
        sources: Licence of each source of sentences; empty if not stated.
    """

    folder: Path
    name: str | None = None
    license: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    file_format: Literal["csv", "parquet"] = "csv"
    overwrite: bool = False

    @property
    def title(self) -> str:
        """Name on the card."""
        return self.name or self.folder.resolve().name


class Labelling(NamedTuple):
    """Origin of the labels; empty if they were in the input."""

    rules: LabelRules | None = None
    order: OrderCheck | None = None
    ratings: RatingReport | None = None


@dataclass(frozen=True)
class DatasetFacts:
    """Content of the card and the manifest.

    Attributes:
        made_from: Revisions of the input files.
        files: SHA-256 of each split file.
        statistics: Of each split (C-STS §3).
        rows_by_origin: People first.
        pairs_by_source: Empty if unknown.
        dropped: Rows left out by reason, the most frequent first.
    """

    target: Target
    made_from: dict[str, str]
    files: dict[str, str]
    statistics: dict[str, TaskStatistics]
    rows_by_origin: dict[str, int]
    pairs_by_source: dict[str, int]
    dropped: dict[str, int]
    labelling: Labelling
    split_rules: SplitRules
    splitting: Splitting
    leakage: LeakageReport

    @property
    def revision(self) -> str:
        """First 12 hexadecimal digits of the SHA-256 of the hashes of the split files."""
        return hashlib.sha256(" ".join(self.files.values()).encode()).hexdigest()[:12]


def fill_page(name: str, facts: DatasetFacts) -> str:
    """Fill in a page about a data set, the card or the summary; it names no annotator."""
    library = require("jinja2", extra="build")
    environment = library.Environment(undefined=library.StrictUndefined, autoescape=False)
    environment.filters |= {
        "cell": cell_text,
        "counts": lambda counts: ", ".join(f"{name} {count:,}" for name, count in counts.items()),
        "escaped": lambda text: text.replace("|", "\\|"),
    }
    ratings = facts.labelling.ratings
    histograms = chain(*(split.label_histogram for split in facts.statistics.values()))
    shared, blind = leakage_tables(facts.leakage)
    text: str = environment.from_string(page(name)).render(
        facts=facts,
        files=list(zip(facts.statistics, facts.files, strict=True)),
        columns=columns_of(DatasetRow),
        labels=sorted({label for label, _ in histograms}),
        sources=list(dict.fromkeys([*facts.target.sources, *facts.pairs_by_source])),
        agreement=agreement_table(ratings) if ratings else None,
        models=model_table(ratings) if ratings and ratings.models else None,
        shared=shared,
        blind=blind,
    )
    return text


class PlainTable(NamedTuple):
    """A table of texts; the first column has names."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str | None = None

    def markdown(self) -> str:
        """Format as a pipe table."""
        return "\n".join(markdown_table(self.head, self.rows))


def rating_tables(report: RatingReport) -> list[PlainTable]:
    """Lay out agreement, annotators and, if models have rated, their agreement with people."""
    tables = [agreement_table(report), _result_table("annotators", report.annotators)]
    return [*tables, model_table(report)] if report.models else tables


def model_table(report: RatingReport) -> PlainTable:
    """Lay out the agreement of models with people, and of one person with the others."""
    one_person = [report.one_person] if report.one_person else []
    return _result_table("models", [*report.models, *one_person])


def leakage_tables(report: LeakageReport) -> tuple[PlainTable, PlainTable]:
    """Lay out the texts that splits share, and the results of blind baselines."""
    return _result_table("shared", report.shared), _result_table("blind", report.baselines)


def _result_table(name: str, results: Sequence[object]) -> PlainTable:
    """Lay out results, one in each row, as ``pages/tables.yaml`` says."""
    layout = yaml.safe_load(page("tables.yaml"))[name]
    heads, names, forms = zip(*layout["columns"], strict=True)
    getters = [attrgetter(*name.split()) for name in names]
    rows = []
    for result in results:
        values = [getter(result) for getter in getters]
        rows.append(tuple(map(cell_text, values, forms)))
    return PlainTable(layout["title"], heads, rows, layout["caption"])


def agreement_table(report: RatingReport) -> PlainTable:
    """Lay out the agreement of people, and the times of ratings."""
    agreement, times = report.agreement, report.times
    per_row = [f"{rows:,} with {ratings}" for ratings, rows in agreement.ratings_per_row]
    seconds = hours = "-"
    if times.known:
        seconds = f"{times.median:.1f} ({times.tenth:.1f} to {times.ninetieth:.1f})"
        hours = f"{times.hours:.1f}"
    kappa, kappa_verdicts = agreement.kappa, agreement.kappa_verdicts
    alpha_head = f"Krippendorff's alpha, ordinal ({agreement.alpha_rows:,} rows)"
    values: tuple[tuple[str, object, str], ...] = (
        ("rows rated by people", agreement.rows, ","),
        ("ratings", agreement.ratings, ","),
        ("annotators", agreement.annotators, ","),
        ("rows by number of ratings", ", ".join(per_row), ""),
        ("ratings that the condition does not apply", agreement.does_not_apply, ","),
        (_kappa_head("of the labels", kappa), kappa.value, ".3f"),
        (_kappa_head('with "does not apply"', kappa_verdicts), kappa_verdicts.value, ".3f"),
        (alpha_head, agreement.alpha, ".3f"),
        ("Krippendorff's alpha of whether it applies", agreement.alpha_applies, ".3f"),
        ("two labels of a row are equal", agreement.exact, ".1%"),
        ("two labels of a row differ by 1 at most", agreement.within_one, ".1%"),
        ("seconds for a rating, median (10 % to 90 %)", seconds, ""),
        ("hours in all", hours, ""),
    )
    rows = [(head, cell_text(value, form)) for head, value, form in values]
    return PlainTable("Agreement between people", ("", "value"), rows)


def _kappa_head(subject: str, kappa: Kappa) -> str:
    left_out = f", {kappa.left_out:,} others left out" if kappa.left_out else ""
    rows = f" ({kappa.rows:,} rows with {kappa.raters} each{left_out})" if kappa.rows else ""
    return f"Fleiss' kappa {subject}{rows}"


def cell_text(value: object, form: str) -> str:
    """Format a value, such as by ``.1f``; a hyphen for a missing value."""
    if isinstance(value, Metric):
        interval = f"{value.value:.1f} [{value.low:.1f}, {value.high:.1f}]"
        return "-" if math.isnan(value.value) else interval
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return ", ".join(value) if isinstance(value, tuple) else format(value, form)


def label_histogram(splits: Mapping[str, Task], path: Path) -> None:
    """Draw the share of each label in each split."""
    require("matplotlib", extra="build")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    panel = figure.subplots()
    width = 0.8 / len(splits)
    for number, (name, task) in enumerate(splits.items()):
        labels = task.labels[task.valid]
        # A median between two labels counts for the lower and the upper one half each.
        shares = [100 * float(np.clip(1 - np.abs(labels - label), 0, 1).mean()) for label in LABELS]
        positions = np.array(LABELS) + (number - (len(splits) - 1) / 2) * width
        color = _COLORS[number % len(_COLORS)]
        panel.bar(positions, shares, width * 0.92, color=color, label=f"{name} ({len(labels):,})")
    panel.set_xticks(LABELS)
    panel.set_xlabel("similarity under the condition (1: different, 5: alike)")
    panel.set_ylabel("% of the rows of the split")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, title="split (rows)", alignment="left")
    with replacing(path) as partial:
        figure.savefig(partial, format="png", dpi=120)
