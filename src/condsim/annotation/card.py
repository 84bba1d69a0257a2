"""Dataset card, tables of reports, and the histogram of labels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from condsim.data.statistics import TaskStatistics
from condsim.errors import require
from condsim.evaluation.bootstrap import Metric
from condsim.evaluation.tables import markdown_table
from condsim.io import replacing
from condsim.rows.records import columns_of
from condsim.types import Task

HISTOGRAM = "label-histogram.png"
_SPLIT_FACTS = (
    ("rows", "rows", ","),
    ("sentence pairs", "sentence_pairs", ","),
    ("pairs with a high and a low row", "high_low_pairs", ","),
    ("unique sentences", "unique_sentences", ","),
    ("distinct conditions", "distinct_conditions", ","),
    ("words in a sentence, mean", "sentence_words.mean", ".1f"),
    ("words in a condition, mean", "condition_words.mean", ".1f"),
    ("high minus low label, mean", "mean_gap", ".2f"),
)
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

    def summary(self) -> str:
        """Summarize the data set in a few lines."""
        counts = ", ".join(f"{name} {facts.rows:,}" for name, facts in self.statistics.items())
        lines = [
            f"revision {self.revision}; rows: {counts}",
            f"left out: {_join_counts(self.dropped) or 'none'}",
        ]
        order, ratings = self.labelling.order, self.labelling.ratings
        if order and order.pairs:
            lines.append(
                f"of {order.pairs:,} pairs the high condition is rated above the low one in "
                f"{order.as_intended:,}, alike in {order.ties:,}, below in {order.reversed:,}"
            )
        if ratings:
            agreement = ratings.agreement
            lines.append(
                f"agreement: Fleiss' kappa {cell_text(agreement.kappa.value, '.3f')}, "
                f"Krippendorff's alpha (ordinal) {cell_text(agreement.alpha, '.3f')}"
            )
        lines += [f"warning: {text}" for text in self.leakage.warnings]
        return "\n".join(lines)


def data_card(facts: DatasetFacts) -> str:
    """Fill in ``pages/dataset-card.md``; the card quotes no row and names no annotator."""
    shared_table, blind_table = leakage_tables(facts.leakage)
    warnings = facts.leakage.warnings
    verdict = "Nothing was found that gives labels away."
    if warnings:
        noun = "warning" if len(warnings) == 1 else "warnings"
        verdict = f"Mind the {len(warnings)} {noun} below."
    revisions = [(f"`{name}`", f"`{sha[:12]}`") for name, sha in facts.files.items()]
    revisions += [(f"made from `{name}`", f"`{sha}`") for name, sha in facts.made_from.items()]
    card = page("dataset-card.md").format(
        front=_front_matter(facts),
        name=facts.target.title,
        revision=facts.revision,
        verdict=verdict,
        split_table=_split_table(facts),
        sources=_source_table(facts),
        making="\n".join(f"- {line}" for line in _making(facts)),
        agreement=_agreement_section(facts),
        warnings="".join(f"**Warning.** {text}\n\n" for text in warnings),
        shared=shared_table.markdown(),
        blind=blind_table.markdown(),
        revisions=PlainTable("", ("file", "SHA-256, first 12"), revisions).markdown(),
    )
    return card + "\n"


def _front_matter(facts: DatasetFacts) -> str:
    """Return the YAML that ``datasets`` and the Hub read."""
    files = zip(facts.statistics, facts.files, strict=True)
    splits = [{"split": split, "path": file} for split, file in files]
    types = {name: "string" for name in columns_of(DatasetRow)} | {"label": "float32"}
    features = [{"name": name, "dtype": dtype} for name, dtype in types.items()]
    front = {
        **({"license": facts.target.license} if facts.target.license else {}),
        "language": ["en"],
        "pretty_name": facts.target.title,
        "task_categories": ["sentence-similarity"],
        "tags": ["condsim", "conditional-similarity", "c-sts"],
        "configs": [{"config_name": "default", "data_files": splits}],
        "dataset_info": {"features": features},
    }
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---"


def _split_table(facts: DatasetFacts) -> str:
    statistics = facts.statistics.values()
    rows = [
        (head, *(cell_text(attrgetter(name)(split), form) for split in statistics))
        for head, name, form in _SPLIT_FACTS
    ]
    for label in sorted({label for split in statistics for label, _ in split.label_histogram}):
        shares = [dict(split.label_histogram).get(label, 0) / split.rows for split in statistics]
        rows.append((f"label {label:g}", *(f"{share:.1%}" for share in shares)))
    return PlainTable("", ("", *facts.statistics), rows).markdown()


def _source_table(facts: DatasetFacts) -> str:
    licences, pairs = facts.target.sources, facts.pairs_by_source
    rows = [
        (name, f"{pairs[name]:,}" if name in pairs else "-", licences.get(name) or "not stated")
        for name in dict.fromkeys([*licences, *pairs])
    ]
    if not rows:
        return "Not stated. State the origin of the sentences before you publish this."
    return PlainTable("", ("source", "sentence pairs", "licence"), rows).markdown()


def _making(facts: DatasetFacts) -> Iterator[str]:
    rules, order, splits = facts.labelling.rules, facts.labelling.order, facts.split_rules
    if rules is None:
        yield "The labels were given."
    else:
        statistic = "median" if rules.how == "median" else "most frequent one"
        raters = "people and models" if rules.count_models else "people"
        yield (
            f"The label is the {statistic} of the ratings by {raters}, of which each row has at "
            f"least {rules.min_ratings}; a row is left out if {rules.invalid_share:.0%} of them or "
            "more say that the condition does not apply."
        )
    if order and order.pairs:
        yield (
            f"Of {order.pairs:,} pairs with both conditions rated, the one written for high "
            f"similarity got the higher label in {order.as_intended / order.pairs:.1%}, the "
            f"same in {order.ties / order.pairs:.1%} and the lower in "
            f"{order.reversed / order.pairs:.1%}."
        )
    unit = "no sentence" if splits.group == "sentence" else "no sentence pair"
    cut = f"; {facts.splitting.cut} were cut." if facts.splitting.cut else "."
    yield (
        f"Splits {':'.join(f'{ratio:g}' for ratio in splits.ratios)}, seed {splits.seed}, such "
        f"that {unit} is in two (letter case and punctuation ignored): "
        f"{facts.splitting.groups:,} groups, the largest of {facts.splitting.largest:,} rows{cut}"
    )
    yield f"Rows by origin: {_join_counts(facts.rows_by_origin)}."
    yield f"Rows left out, listed in `dropped.csv`: {_join_counts(facts.dropped) or 'none'}."


def _agreement_section(facts: DatasetFacts) -> str:
    report = facts.labelling.ratings
    if report is None:
        return ""
    text = f"## Agreement\n\n{agreement_table(report).markdown()}\n\n"
    if report.models:
        text += (
            "Models that rated, against the median of the people, and one person against the "
            f"others:\n\n{model_table(report).markdown()}\n\n"
        )
    return text


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


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
    annotators = _result_table(
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
    tables = [agreement_table(report), annotators]
    return [*tables, model_table(report)] if report.models else tables


def leakage_tables(report: LeakageReport) -> tuple[PlainTable, PlainTable]:
    """Lay out the texts that splits share, and the results of blind baselines."""
    shared_texts = _result_table(
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
    blind = _result_table(
        "Blind baselines",
        report.baselines,
        ("", "baseline split", ""),
        ("rows", "rows", ","),
        ("Spearman", "spearman", ""),
        ("pair accuracy", "pair_accuracy", ""),
    )
    return shared_texts, blind


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


def model_table(report: RatingReport) -> PlainTable:
    """Lay out the agreement of models with people, and of one person with the others."""
    return _result_table(
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


def _result_table(
    title: str,
    results: Sequence[object],
    *columns: tuple[str, str, str],
    caption: str | None = None,
) -> PlainTable:
    """Lay out results, one in each row; a column has a head, attributes and a format."""
    rows = [
        tuple(cell_text(attrgetter(*names.split())(result), form) for _, names, form in columns)
        for result in results
    ]
    return PlainTable(title, tuple(head for head, _, _ in columns), rows, caption)


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
