"""Finished data set: a folder with a card, for ``datasets`` and for ``condsim train``."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import numpy as np
import yaml

from condsim import __version__
from condsim.cache import check_folder
from condsim.data.csts import iter_csts, load_csts
from condsim.data.files import iter_rows
from condsim.data.tasks import TaskStatistics, describe
from condsim.errors import InputError, one_line, require
from condsim.evaluation.report import markdown_table
from condsim.evaluation.statistics import Metric
from condsim.io import replacing, write_json, write_text
from condsim.paths import sha256_of, stem_of
from condsim.rows.records import columns_of, revisions_of, write_rows
from condsim.types import Task
from condsim_annotation.agreement import Kappa, RatingReport, report_ratings
from condsim_annotation.pairs import Candidate, pair_id_of
from condsim_annotation.records import (
    HUMAN,
    LABELS,
    Condition,
    DatasetRow,
    Dropped,
    LabelRules,
    OrderCheck,
    Rating,
    collect_votes,
    decide_labels,
)
from condsim_annotation.splits import (
    SPLITS,
    LeakageReport,
    SplitRules,
    Splitting,
    find_leakage,
    split_rows,
)
from condsim_annotation.stages import page
from condsim_annotation.tables import read_rows

HISTOGRAM = "label-histogram.png"
# The palette of Okabe and Ito.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Target:
    """Folder and description of a data set.

    Attributes:
        name: Name on the card; the folder's if None.
        license: As the Hub names it, such as ``cc-by-4.0``; None if not stated.
        sources: License of each source of sentences; empty if not stated.
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


class Labeling(NamedTuple):
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
    labeling: Labeling
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
    ratings = facts.labeling.ratings
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


def build_dataset(
    ratings: Path,
    target: Target,
    *,
    labels: LabelRules,
    splits: SplitRules,
    conditions: Path | None = None,
    candidates: Path | None = None,
) -> DatasetFacts:
    """Build a data set from ratings: labels, splits, leakage report and card.

    The conditions say which of them a model proposed or were never rated, the candidates the source
    of each pair.
    """
    rated = collect_votes(read_rows(ratings, Rating))
    written = read_rows(conditions, Condition) if conditions else ()
    rows, dropped, order = decide_labels(rated, labels, conditions=written)
    report = report_ratings(rated) if any(row.people for row in rated) else None
    return _write_dataset(
        rows,
        dropped,
        target,
        splits,
        made_from=[path for path in (ratings, conditions, candidates) if path is not None],
        labeling=Labeling(labels, order, report),
        candidates=read_rows(candidates, Candidate) if candidates else (),
    )


def split_dataset(file: Path, target: Target, *, splits: SplitRules) -> DatasetFacts:
    """Split rows that have labels, with leakage report and card.

    The file is one that `iter_csts` reads; columns ``pair_id`` and ``origin`` are used if present.
    """
    rows, dropped = [], []
    extra_columns = iter_rows(file, columns=(), optional=("pair_id", "origin"))
    for row, extra in zip(iter_csts(file), extra_columns, strict=True):
        cells = {name: str(cell) for name, cell in extra.cells.items() if cell not in (None, "")}
        pair_id = cells.get("pair_id") or pair_id_of(stem_of(file), row.sentence1, row.sentence2)
        texts = (row.sentence1, row.sentence2, row.condition)
        if row.label is None:
            dropped.append(Dropped(pair_id, *texts, "no label"))
        else:
            rows.append(DatasetRow(*texts, row.label, pair_id, cells.get("origin", HUMAN)))
    return _write_dataset(rows, dropped, target, splits, made_from=[file])


def _write_dataset(
    rows: Sequence[DatasetRow],
    dropped: Sequence[Dropped],
    target: Target,
    rules: SplitRules,
    *,
    made_from: Sequence[Path],
    labeling: Labeling | None = None,
    candidates: Iterable[Candidate] = (),
) -> DatasetFacts:
    """Write all files into a temporary folder, then move them: never some old and some new."""
    if not rows:
        raise InputError("A data set needs labeled rows; all rows were dropped or have no label.")
    rows = sorted(rows, key=lambda row: (row.pair_id, row.condition, row.label, row.sentence1))
    splitting = split_rows([(row.sentence1, row.sentence2) for row in rows], rules)
    members: dict[int, list[DatasetRow]] = defaultdict(list)
    for row, number in zip(rows, splitting.split.tolist(), strict=True):
        members[number].append(row)
    lost = [
        Dropped.of(row, "its sentences are in two splits", f"label {row.label:g}")
        for row in members.pop(-1, ())
    ]
    all_dropped = [*dropped, *lost]
    replaced = _prepare_folder(target, inputs=made_from)
    with TemporaryDirectory(".partial", dir=target.folder) as unfinished:
        folder = Path(unfinished)
        paths = {name: folder / f"{name}.{target.file_format}" for name in SPLITS}
        for number, (name, path) in enumerate(paths.items()):
            shuffled = _shuffle_rows(members[number], np.random.default_rng([rules.seed, number]))
            write_rows((replace(row, split=name) for row in shuffled), path, kind=DatasetRow)
        write_rows(all_dropped, folder / "dropped.csv", kind=Dropped)
        tasks = {name: load_csts(path, name=name) for name, path in paths.items()}
        placed = [row for split in members.values() for row in split]
        origins = Counter(row.origin for row in placed)
        facts = DatasetFacts(
            target=target,
            made_from=revisions_of(made_from),
            files={path.name: sha256_of(path) for path in paths.values()},
            statistics={name: describe(task, top=0) for name, task in tasks.items()},
            rows_by_origin=dict(sorted(origins.items(), key=lambda item: (item[0] != HUMAN, item))),
            pairs_by_source=_pairs_by_source(placed, candidates),
            dropped=dict(Counter(row.reason for row in all_dropped).most_common()),
            labeling=labeling or Labeling(),
            split_rules=rules,
            splitting=splitting,
            leakage=find_leakage(tasks, seed=rules.seed),
        )
        label_histogram(tasks, folder / HISTOGRAM)
        write_text(folder / "README.md", fill_page("dataset-card.md", facts) + "\n")
        write_json(_manifest(facts), folder / _MANIFEST)
        for name in replaced:
            (target.folder / Path(name).name).unlink(missing_ok=True)
        for path in folder.iterdir():
            path.replace(target.folder / path.name)
    return facts


def _shuffle_rows(rows: Sequence[DatasetRow], generator: np.random.Generator) -> list[DatasetRow]:
    """Shuffle the pairs, and the rows of each pair."""
    # In the released C-STS the row of C-High is first, which gives labels away.
    by_pair: dict[str, list[DatasetRow]] = defaultdict(list)
    for row in rows:
        by_pair[row.pair_id].append(row)
    groups = list(by_pair.values())
    shuffled = []
    for number in generator.permutation(len(groups)).tolist():
        group = groups[number]
        shuffled += [group[index] for index in generator.permutation(len(group)).tolist()]
    return shuffled


def _prepare_folder(target: Target, *, inputs: Iterable[Path]) -> list[str]:
    """Create the folder of a data set, and return the files to replace in it."""
    folder, manifest = target.folder, target.folder / _MANIFEST
    check_folder(folder, subject="data set", own=[_MANIFEST])
    for path in inputs:
        if path.resolve().parent == folder.resolve():
            raise InputError(f"{path} is an input and lies in {folder}. Give another --output.")
    folder.mkdir(parents=True, exist_ok=True)
    if not manifest.is_file():
        return []
    message, advice = f"{manifest} is not the manifest of a data set", "Give another --output."
    with one_line(message, OSError, ValueError, KeyError, TypeError, advice=advice):
        files = dict(json.loads(manifest.read_text(encoding="utf-8"))["files"])
    if not target.overwrite:
        raise InputError(
            f"{folder} contains a data set; use another --output, or --overwrite to replace it."
        )
    return list(files)


def _pairs_by_source(rows: Iterable[DatasetRow], candidates: Iterable[Candidate]) -> dict[str, int]:
    pairs = {row.pair_id for row in rows}
    sources = {pair.pair_id: pair.source for pair in candidates if pair.pair_id in pairs}
    if not sources:
        return {}
    unknown = len(pairs - sources.keys())
    counts = dict(sorted(Counter(sources.values()).items()))
    return counts | ({"not known": unknown} if unknown else {})


def _manifest(facts: DatasetFacts) -> dict[str, object]:
    """Return the manifest, without names of annotators."""
    labeling = facts.labeling
    ratings = asdict(labeling.ratings) if labeling.ratings else None
    if ratings:
        del ratings["annotators"]
    return {
        "name": facts.target.title,
        "revision": facts.revision,
        "files": facts.files,
        "made_from": facts.made_from,
        "license": facts.target.license,
        "sources": [{"name": name, "license": text} for name, text in facts.target.sources.items()],
        "settings": {
            "labels": labeling.rules.model_dump() if labeling.rules else None,
            "splits": facts.split_rules.model_dump(),
        },
        "counts": {
            "rows": {name: split.rows for name, split in facts.statistics.items()},
            "origins": facts.rows_by_origin,
            "pairs_by_source": facts.pairs_by_source,
            "dropped": facts.dropped,
            "order": labeling.order._asdict() if labeling.order else None,
            "groups": facts.splitting.groups,
            "largest_group": facts.splitting.largest,
            "cut_groups": facts.splitting.cut,
        },
        "ratings": ratings,
        "leakage": facts.leakage,
        "condsim": __version__,
    }
