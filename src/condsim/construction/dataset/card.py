"""The card of a data set: what it is, how it was made, how good it is, what it gives away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import yaml

from condsim.construction.dataset.labels import Dropped, LabelRules, OrderCheck
from condsim.construction.dataset.leakage import LeakageReport
from condsim.construction.dataset.quality import RatingReport
from condsim.construction.dataset.report_tables import (
    PlainTable,
    agreement_table,
    cell,
    leakage_tables,
    model_table,
)
from condsim.construction.dataset.splits import SplitRules, Splitting
from condsim.construction.rows import HUMAN, Candidate, DatasetRow, columns_of
from condsim.tasks import TaskStatistics


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


def pairs_by_source(rows: Iterable[DatasetRow], candidates: Iterable[Candidate]) -> dict[str, int]:
    """Counts the sentence pairs of a data set by their source."""
    pairs = {row.pair_id for row in rows}
    source = {one.pair_id: one.source for one in candidates if one.pair_id in pairs}
    if not source:
        return {}
    counts = dict(sorted(Counter(source.values()).items()))
    unknown = len(pairs - source.keys())
    return counts | ({"not known": unknown} if unknown else {})


def rows_by_origin(rows: Iterable[DatasetRow]) -> dict[str, int]:
    """Counts rows by origin, people first."""
    counts = Counter(row.origin for row in rows)
    return {name: counts[name] for name in sorted(counts, key=lambda one: (one != HUMAN, one))}


HISTOGRAM = "label-histogram.png"  # the plot beside the card
_SPLIT_ROWS: tuple[tuple[str, str, Callable[[TaskStatistics], object]], ...] = (
    ("rows", ",", lambda one: one.rows),
    ("sentence pairs", ",", lambda one: one.sentence_pairs),
    ("pairs with a high and a low row", ",", lambda one: one.high_low_pairs),
    ("unique sentences", ",", lambda one: one.unique_sentences),
    ("distinct conditions", ",", lambda one: one.distinct_conditions),
    ("words in a sentence, mean", ".1f", lambda one: one.sentence_words.mean),
    (
        "words in a condition, mean",
        ".1f",
        lambda one: one.condition_words and one.condition_words.mean,
    ),
    ("high minus low label, mean", ".2f", lambda one: one.mean_gap),
)
_NOTHING_FOUND = "Nothing was found that gives labels away."
_COLUMNS = (
    "Columns: `sentence1`, `sentence2`, `condition`, `label` as in the release of C-STS; "
    "`pair_id`, the sentence pair; `origin`, `human` or the models that had a hand in the row: "
    "proposed its condition, or gave a rating that counts or that a person was shown first; "
    "`split`. Rows of a pair stand together in random order."
)


def data_card(facts: DatasetFacts) -> str:
    """Writes a data card in Markdown, with the front matter that ``datasets`` and the Hub read.

    No row is quoted and no annotator named.
    """
    warnings = len(facts.leakage.warnings)
    found = f"Mind the {warnings} {'warning' if warnings == 1 else 'warnings'} below."
    revisions = [(f"`{name}`", f"`{sha[:12]}`") for name, sha in facts.files.items()]
    revisions += [(f"made from `{name}`", f"`{sha}`") for name, sha in facts.made_from.items()]
    sections = [
        _front_matter(facts),
        f"# {facts.name}",
        "Conditional similarity: two sentences, a condition, and how similar the sentences are "
        "with respect to it, from 1 (different) to 5 (alike). Made with condsim, the way C-STS "
        "(Deshpande et al., 2023) was.",
        f"Revision {facts.revision}. {found if warnings else _NOTHING_FOUND}",
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
        *_leakage(facts),
        "## Revisions",
        _markdown(PlainTable("", ("file", "SHA-256, first 12"), revisions)),
    ]
    return "\n\n".join(sections) + "\n"


def _markdown(table: PlainTable) -> str:
    """Lays out a table in Markdown, without its title and caption."""
    lines = [table.head, ["---", *["---:"] * (len(table.head) - 1)], *table.rows]
    cells = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _front_matter(facts: DatasetFacts) -> str:
    kinds = {"label": "float32"}
    front = {
        **({"license": facts.license} if facts.license else {}),
        "language": ["en"],
        "pretty_name": facts.name,
        "task_categories": ["sentence-similarity"],
        "tags": ["condsim", "conditional-similarity", "c-sts"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [
                    {"split": split, "path": file}
                    for split, file in zip(facts.statistics, facts.files, strict=True)
                ],
            }
        ],
        "dataset_info": {
            "features": [
                {"name": name, "dtype": kinds.get(name, "string")}
                for name in columns_of(DatasetRow)
            ]
        },
    }
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---"


def _split_table(facts: DatasetFacts) -> str:
    per_split = facts.statistics.values()
    rows = [
        (what, *(cell(value_of(one), form) for one in per_split))
        for what, form, value_of in _SPLIT_ROWS
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
        return "Not stated. Whoever publishes this must say where its sentences are from."
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
    dropped = _counted(facts.dropped) if facts.dropped else "none"
    lines.append(f"Rows left out, listed in `dropped.csv`: {dropped}.")
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


def _leakage(facts: DatasetFacts) -> list[str]:
    shared, blind = leakage_tables(facts.leakage)
    return [
        *(f"**Warning.** {text}" for text in facts.leakage.warnings),
        "Texts in two splits; `of rows`: rows of the second that have one of the first:",
        _markdown(shared),
        "What a ridge regression reaches that sees only a part of each row, fitted on train:",
        _markdown(blind),
    ]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
