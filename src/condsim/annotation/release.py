"""Finished data set: a folder that ``datasets`` loads and ``condsim train`` trains on."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from condsim import __version__
from condsim.annotation.agreement import report_ratings
from condsim.annotation.card import HISTOGRAM, DatasetFacts, Labelling, data_card, label_histogram
from condsim.annotation.labels import (
    DecidedRow,
    Dropped,
    LabelRules,
    collect_votes,
    decide_labels,
    unrated_conditions,
)
from condsim.annotation.records import HUMAN, Condition, DatasetRow, Rating, row_id_of
from condsim.annotation.splits import SPLITS, SplitRules, Splitting, find_leakage, split_rows
from condsim.data.csts import iter_csts, load_csts
from condsim.data.files import iter_rows, stem_of
from condsim.data.statistics import describe
from condsim.errors import InputError
from condsim.evaluation.report import write_json
from condsim.io import check_folder, sha256_of, write_text
from condsim.rows.pairs import Candidate, pair_id_of
from condsim.rows.records import plain_values, read_rows, revisions_of, write_rows

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Target:
    """Folder and description of a data set.

    Attributes:
        name: Name on the card; that of the folder if None.
        license: As the Hub names it, such as ``cc-by-4.0``; None if not stated.
        sources: Sources of sentences and their licences, each ``NAME=LICENCE``.
    """

    folder: Path
    name: str | None = None
    license: str | None = None
    sources: Sequence[str] = ()
    file_format: Literal["csv", "parquet"] = "csv"
    overwrite: bool = False


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

    Args:
        conditions: File of all conditions: which a model proposed, and which were never rated.
        candidates: File of the candidates, for the source of each pair.
    """
    rated = collect_votes(read_rows(ratings, Rating))
    written = tuple(read_rows(conditions, Condition)) if conditions else ()
    decision = decide_labels(rated, labels)
    people = any(row.people for row in rated)
    return _write_dataset(
        _dataset_rows(decision.labelled, written),
        target,
        splits,
        Labelling(
            rules=labels,
            order=decision.order,
            ratings=report_ratings(rated) if people else None,
            dropped=(*decision.dropped, *unrated_conditions(written, rated)),
        ),
        candidates=read_rows(candidates, Candidate) if candidates else (),
        made_from=[path for path in (ratings, conditions, candidates) if path is not None],
    )


def split_dataset(file: Path, target: Target, *, splits: SplitRules) -> DatasetFacts:
    """Split rows that have labels, with leakage report and card.

    The file is one that `iter_csts` reads; columns ``pair_id`` and ``origin`` are used if present.
    """
    rows, dropped = _read_labelled_file(file)
    return _write_dataset(rows, target, splits, Labelling(dropped=dropped), made_from=[file])


def _dataset_rows(
    labelled: Iterable[DecidedRow], conditions: Iterable[Condition]
) -> list[DatasetRow]:
    """Convert labeled rows, not yet in a split, with the models that took part in each."""
    authors: dict[str, set[str]] = defaultdict(set)
    for condition in conditions:
        row_id = row_id_of(condition.pair_id, condition.condition)
        authors[row_id] |= {condition.origin, condition.prefilled_by}
    rows = []
    for decided in labelled:
        row = decided.row
        models = {*decided.origins, *authors.get(row.row_id, ())} - {HUMAN, ""}
        origin = ", ".join(sorted(models)) or HUMAN
        texts = (row.sentence1, row.sentence2, row.condition)
        rows.append(DatasetRow(*texts, decided.label, row.pair_id, origin, split=""))
    return rows


def _read_labelled_file(path: Path) -> tuple[list[DatasetRow], tuple[Dropped, ...]]:
    """Read the rows with a label, not yet in a split, and those without one."""
    rows, dropped = [], []
    extra_columns = iter_rows(path, columns=(), optional=("pair_id", "origin"))
    for row, extra in zip(iter_csts(path), extra_columns, strict=True):
        cells = {name: str(cell) for name, cell in extra.cells.items() if cell not in (None, "")}
        pair_id = cells.get("pair_id") or pair_id_of(stem_of(path), row.sentence1, row.sentence2)
        texts = (row.sentence1, row.sentence2, row.condition)
        if row.label is None:
            dropped.append(Dropped(pair_id, *texts, "no label"))
        else:
            rows.append(DatasetRow(*texts, row.label, pair_id, cells.get("origin", HUMAN), ""))
    return rows, tuple(dropped)


def _assemble_splits(
    rows: Sequence[DatasetRow], rules: SplitRules
) -> tuple[dict[str, list[DatasetRow]], list[Dropped], Splitting]:
    """Split rows, and shuffle the pairs of a split and the rows of each pair."""
    if not rows:
        raise InputError("A data set needs labeled rows; all rows were dropped or have no label.")
    rows = sorted(rows, key=lambda row: (row.pair_id, row.condition, row.label, row.sentence1))
    splitting = split_rows([(row.sentence1, row.sentence2) for row in rows], rules)
    numbered = list(zip(rows, splitting.split.tolist(), strict=True))
    splits = {}
    for number, name in enumerate(SPLITS):
        members = [replace(row, split=name) for row, split in numbered if split == number]
        splits[name] = _shuffle_rows(members, np.random.default_rng([rules.seed, number]))
    crossing = [
        Dropped.of(row, "its sentences are in two splits", f"label {row.label:g}")
        for row, split in numbered
        if split == -1
    ]
    return splits, crossing, splitting


def _shuffle_rows(rows: Sequence[DatasetRow], generator: np.random.Generator) -> list[DatasetRow]:
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


def _prepare_folder(folder: Path, *, overwrite: bool, inputs: Iterable[Path]) -> list[str]:
    """Create the folder of a data set, and return the files to replace in it."""
    check_folder(folder, what="data set", own=[_MANIFEST])
    for path in inputs:
        if path.resolve().parent == folder.resolve():
            raise InputError(f"{path} is an input and lies in {folder}. Give another --output.")
    manifest = folder / _MANIFEST
    replaced: list[str] = []
    if manifest.is_file():
        try:
            replaced = list(json.loads(manifest.read_text(encoding="utf-8"))["files"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{manifest} is not the manifest of a data set ({error!r}); give another --output."
            ) from error
        if not overwrite:
            raise InputError(
                f"{folder} contains a data set; use another --output, or --overwrite to replace it."
            )
    folder.mkdir(parents=True, exist_ok=True)
    return replaced


def _write_dataset(
    rows: Sequence[DatasetRow],
    target: Target,
    rules: SplitRules,
    labelling: Labelling,
    *,
    made_from: Sequence[Path],
    candidates: Iterable[Candidate] = (),
) -> DatasetFacts:
    """Write all files into a temporary folder, then move them: never some old and some new."""
    splits, crossing, splitting = _assemble_splits(rows, rules)
    sources = dict(_parse_source(source) for source in target.sources)
    replaced = _prepare_folder(target.folder, overwrite=target.overwrite, inputs=made_from)
    dropped = (*labelling.dropped, *crossing)
    placed = [row for split in splits.values() for row in split]
    origins = Counter(row.origin for row in placed)
    with TemporaryDirectory(".partial", dir=target.folder) as unfinished:
        folder = Path(unfinished)
        paths = {name: folder / f"{name}.{target.file_format}" for name in splits}
        for name, path in paths.items():
            write_rows(splits[name], path, kind=DatasetRow)
        write_rows(dropped, folder / "dropped.csv", kind=Dropped)
        tasks = {name: load_csts(path, name=name) for name, path in paths.items()}
        files = {path.name: sha256_of(path) for path in paths.values()}
        facts = DatasetFacts(
            name=target.name or target.folder.resolve().name,
            license=target.license,
            sources=sources,
            made_from=revisions_of(made_from),
            revision=hashlib.sha256(" ".join(files.values()).encode()).hexdigest()[:12],
            files=files,
            statistics={name: describe(task, top=0) for name, task in tasks.items()},
            rows_by_origin=dict(sorted(origins.items(), key=lambda item: (item[0] != HUMAN, item))),
            pairs_by_source=_pairs_by_source(placed, candidates),
            dropped=dict(Counter(row.reason for row in dropped).most_common()),
            labelling=labelling,
            split_rules=rules,
            splitting=splitting,
            leakage=find_leakage(tasks, seed=rules.seed),
        )
        label_histogram(tasks, folder / HISTOGRAM)
        write_text(folder / "README.md", data_card(facts))
        write_json(_manifest(facts), folder / _MANIFEST)
        for name in replaced:
            (target.folder / Path(name).name).unlink(missing_ok=True)
        for path in folder.iterdir():
            path.replace(target.folder / path.name)
    return facts


def _parse_source(text: str) -> tuple[str, str]:
    """Read a source and its licence, such as ``"tickets=internal use only"``."""
    name, _, licence = map(str.strip, text.partition("="))
    if not name:
        raise InputError(f"A source must be NAME=LICENCE; got {text!r}.")
    return name, licence


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
    labelling = facts.labelling
    ratings = plain_values(labelling.ratings) if labelling.ratings else None
    if ratings:
        del ratings["annotators"]
    return {
        "name": facts.name,
        "revision": facts.revision,
        "files": dict(facts.files),
        "made_from": dict(facts.made_from),
        "license": facts.license,
        "sources": [{"name": name, "licence": text} for name, text in facts.sources.items()],
        "settings": {
            "labels": labelling.rules.model_dump() if labelling.rules else None,
            "splits": facts.split_rules.model_dump(),
        },
        "counts": {
            "rows": {name: split.rows for name, split in facts.statistics.items()},
            "origins": dict(facts.rows_by_origin),
            "pairs_by_source": dict(facts.pairs_by_source),
            "dropped": dict(facts.dropped),
            "order": asdict(labelling.order) if labelling.order else None,
            "groups": facts.splitting.groups,
            "largest_group": facts.splitting.largest,
            "cut_groups": facts.splitting.cut,
        },
        "ratings": ratings,
        "leakage": plain_values(facts.leakage),
        "condsim": __version__,
    }
