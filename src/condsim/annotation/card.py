"""What is told of a data set: its card, reports as tables of texts, the plot of its labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from condsim.annotation.agreement import Kappa, RatingReport
from condsim.annotation.labels import LABELS, Dropped, LabelRules, OrderCheck
from condsim.annotation.splits import LeakageReport, SplitRules, Splitting
from condsim.data.statistics import TaskStatistics
from condsim.errors import require
from condsim.evaluation.bootstrap import Metric
from condsim.evaluation.tables import markdown_table
from condsim.io import replacing
from condsim.rows.records import DatasetRow, columns_of
from condsim.types import Task


@dataclass(frozen=True)
class Labelling:
    """How the labels of a data set came about; all empty if they were given."""

    rules: LabelRules | None = None
    order: OrderCheck | None = None  # whether conditions turned out as meant
    ratings: RatingReport | None = None  # agreement and quality
    dropped: tuple[Dropped, ...] = ()  # rows left out before the split


@dataclass(frozen=True)
class DatasetFacts:
    """All that the card and the manifest say."""

    name: str
    license: str | None  # as the Hub names it; None where it was not said
    sources: Mapping[str, str]  # what the owners of each allow; empty where it was not said
    made_from: Mapping[str, str]  # revisions of the input files
    revision: str  # first 12 hex digits of the SHA-256 of the hashes of the split files
    files: Mapping[str, str]  # SHA-256 of each split file
    statistics: Mapping[str, TaskStatistics]  # of each split (C-STS §3)
    rows_by_origin: Mapping[str, int]  # people first
    pairs_by_source: Mapping[str, int]  # empty if not known
    dropped: Mapping[str, int]  # rows left out by reason, the most frequent first
    labelling: Labelling
    split_rules: SplitRules
    splitting: Splitting
    leakage: LeakageReport

    def summary(self) -> str:
        """Says what was made."""
        counts = ", ".join(f"{name} {one.rows:,}" for name, one in self.statistics.items())
        lines = [
            f"revision {self.revision}; rows: {counts}",
            f"left out: {_counted(self.dropped) or 'none'}",
        ]
        order, ratings = self.labelling.order, self.labelling.ratings
        if order and order.pairs:
            lines.append(
                f"of {order.pairs:,} pairs the high condition is rated above the low one in "
                f"{order.as_intended:,}, alike in {order.ties:,}, below in {order.reversed:,}"
            )
        if ratings:
            one = ratings.agreement
            lines.append(
                f"agreement: Fleiss' kappa {cell(one.kappa.value, '.3f')}, Krippendorff's alpha "
                f"(ordinal) {cell(one.alpha, '.3f')}"
            )
        lines += [f"warning: {text}" for text in self.leakage.warnings]
        return "\n".join(lines)


HISTOGRAM = "label-histogram.png"  # the plot beside the card
_SPLIT_ROWS = (
    ("rows", "rows", ","),
    ("sentence pairs", "sentence_pairs", ","),
    ("pairs with a high and a low row", "high_low_pairs", ","),
    ("unique sentences", "unique_sentences", ","),
    ("distinct conditions", "distinct_conditions", ","),
    ("words in a sentence, mean", "sentence_words.mean", ".1f"),
    ("words in a condition, mean", "condition_words.mean", ".1f"),
    ("high minus low label, mean", "mean_gap", ".2f"),
)
_COLUMNS = (
    "Columns: `sentence1`, `sentence2`, `condition`, `label` as in the release of C-STS; "
    "`pair_id`, the sentence pair; `origin`, `human` or the models that had a hand in the row: "
    "proposed its condition, or gave a rating that counts or that a person was shown first; "
    "`split`. Rows of a pair stand together in random order."
)


def data_card(facts: DatasetFacts) -> str:
    """Writes a data card in Markdown that quotes no row and names no annotator."""
    shared, blind = leakage_tables(facts.leakage)
    warnings = len(facts.leakage.warnings)
    found = "Nothing was found that gives labels away."
    if warnings:
        found = f"Mind the {warnings} {'warning' if warnings == 1 else 'warnings'} below."
    revisions = [(f"`{name}`", f"`{sha[:12]}`") for name, sha in facts.files.items()]
    revisions += [(f"made from `{name}`", f"`{sha}`") for name, sha in facts.made_from.items()]
    sections = [
        _front_matter(facts),
        f"# {facts.name}",
        "Conditional similarity: two sentences, a condition, and how similar the sentences are "
        "with respect to it, from 1 (different) to 5 (alike). Made with condsim, the way C-STS "
        "(Deshpande et al., 2023) was.",
        f"Revision {facts.revision}. {found}",
        "## Rows",
        _split_table(facts),
        f"![Share of each label in each split]({HISTOGRAM})",
        _COLUMNS,
        "## Sources",
        _sources(facts),
        "## How it was made",
        _making(facts),
        *_agreement(facts),
        "## What it gives away",
        *(f"**Warning.** {text}" for text in facts.leakage.warnings),
        "Texts in two splits; `of rows`: rows of the second that have one of the first:",
        _markdown(shared),
        "What a ridge regression reaches that sees only a part of each row, fitted on train:",
        _markdown(blind),
        "## Revisions",
        _markdown(PlainTable("", ("file", "SHA-256, first 12"), revisions)),
    ]
    return "\n\n".join(sections) + "\n"


def _markdown(table: PlainTable) -> str:
    """Lays out a table in Markdown, without its title and caption."""
    return "\n".join(markdown_table(table.head, table.rows))


def _front_matter(facts: DatasetFacts) -> str:
    """What ``datasets`` and the Hub read."""
    files = zip(facts.statistics, facts.files, strict=True)
    splits = [{"split": split, "path": file} for split, file in files]
    types = {name: "string" for name in columns_of(DatasetRow)} | {"label": "float32"}
    features = [{"name": name, "dtype": plain} for name, plain in types.items()]
    front = {
        **({"license": facts.license} if facts.license else {}),
        "language": ["en"],
        "pretty_name": facts.name,
        "task_categories": ["sentence-similarity"],
        "tags": ["condsim", "conditional-similarity", "c-sts"],
        "configs": [{"config_name": "default", "data_files": splits}],
        "dataset_info": {"features": features},
    }
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---"


def _split_table(facts: DatasetFacts) -> str:
    per_split = facts.statistics.values()
    rows = [
        (what, *(cell(attrgetter(name)(one), form) for one in per_split))
        for what, name, form in _SPLIT_ROWS
    ]
    labels = sorted({label for one in per_split for label, _ in one.label_histogram})
    for label in labels:
        shares = [dict(one.label_histogram).get(label, 0) / one.rows for one in per_split]
        rows.append((f"label {label:g}", *(f"{share:.1%}" for share in shares)))
    return _markdown(PlainTable("", ("", *facts.statistics), rows))


def _sources(facts: DatasetFacts) -> str:
    licence, pairs = facts.sources, facts.pairs_by_source
    names = list(dict.fromkeys([*licence, *pairs]))
    if not names:
        return "Not stated. Say where the sentences are from before you publish this."
    rows = [
        (name, f"{pairs[name]:,}" if name in pairs else "-", licence.get(name) or "not stated")
        for name in names
    ]
    return _markdown(PlainTable("", ("source", "sentence pairs", "licence"), rows))


def _making(facts: DatasetFacts) -> str:
    made, order = facts.labelling.rules, facts.labelling.order
    lines = [_label_rules(made) if made else "The labels were given."]
    if order and order.pairs:
        lines.append(
            f"Of {order.pairs:,} pairs with both conditions rated, the one written for high "
            f"similarity got the higher label in {order.as_intended / order.pairs:.1%}, the "
            f"same in {order.ties / order.pairs:.1%} and the lower in "
            f"{order.reversed / order.pairs:.1%}."
        )
    rules = facts.split_rules
    kept = "no sentence" if rules.group == "sentence" else "no sentence pair"
    lines.append(
        f"Splits {':'.join(f'{ratio:g}' for ratio in rules.ratios)}, seed {rules.seed}, such that "
        f"{kept} is in two (letter case and punctuation ignored): {facts.splitting.groups:,} "
        f"groups, the largest of {facts.splitting.largest:,} rows"
        + (f"; {facts.splitting.cut} were cut." if facts.splitting.cut else ".")
    )
    lines.append("Rows by origin: " + _counted(facts.rows_by_origin) + ".")
    lines.append(f"Rows left out, listed in `dropped.csv`: {_counted(facts.dropped) or 'none'}.")
    return "\n".join(f"- {line}" for line in lines)


def _label_rules(rules: LabelRules) -> str:
    how = "median" if rules.how == "median" else "most frequent one"
    who = "people and models" if rules.count_models else "people"
    return (
        f"The label is the {how} of the ratings by {who}, of which each row has at least "
        f"{rules.min_ratings}; a row is left out if {rules.invalid_share:.0%} of them or more say "
        "that the condition does not apply."
    )


def _agreement(facts: DatasetFacts) -> list[str]:
    report = facts.labelling.ratings
    if report is None:
        return []
    sections = ["## Agreement", _markdown(agreement_table(report))]
    if report.models:
        sections += [
            "Models that rated, against the median of the people, and beside them one person "
            "against the others:",
            _markdown(model_table(report)),
        ]
    return sections


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


class PlainTable(NamedTuple):
    """A table of texts; the first column names the rows."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str | None = None


def rating_tables(report: RatingReport) -> tuple[PlainTable, ...]:
    """Lays out how far people agree, how good each is, and how far models agree with them.

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
    """Lays out what the splits share, and what a model reaches that sees a part of each row."""
    shared = _table(
        "Texts in two splits",
        report.shared,
        ("in both", "first second", ""),
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
        ("", "baseline split", ""),
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
    """Makes a row of each result; columns are head, attribute (or several) and format."""
    rows = [
        tuple(cell(attrgetter(*names.split())(one), form) for _, names, form in columns)
        for one in results
    ]
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
