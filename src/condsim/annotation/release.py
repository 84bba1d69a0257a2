"""Finished data set: a folder that ``datasets`` loads and ``condsim train`` trains on."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from condsim import __version__
from condsim.annotation.agreement import report_ratings
from condsim.annotation.card import (
    HISTOGRAM,
    DatasetFacts,
    Labelling,
    Target,
    fill_page,
    label_histogram,
)
from condsim.annotation.labels import LabelRules, collect_votes, decide_labels
from condsim.annotation.records import HUMAN, Condition, DatasetRow, Dropped, Rating
from condsim.annotation.splits import SPLITS, SplitRules, find_leakage, split_rows
from condsim.data.csts import iter_csts, load_csts
from condsim.data.files import iter_rows
from condsim.data.tasks import describe
from condsim.errors import InputError
from condsim.evaluation.report import write_json
from condsim.io import check_folder, sha256_of, stem_of, write_text
from condsim.rows.pairs import Candidate, pair_id_of
from condsim.rows.records import plain_values, read_rows, revisions_of, write_rows

_MANIFEST = "manifest.json"


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
    written = read_rows(conditions, Condition) if conditions else ()
    rows, dropped, order = decide_labels(rated, labels, conditions=written)
    report = report_ratings(rated) if any(row.people for row in rated) else None
    return _write_dataset(
        rows,
        dropped,
        target,
        splits,
        made_from=[path for path in (ratings, conditions, candidates) if path is not None],
        labelling=Labelling(labels, order, report),
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
    labelling: Labelling | None = None,
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
            labelling=labelling or Labelling(),
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
    check_folder(folder, what="data set", own=[_MANIFEST])
    for path in inputs:
        if path.resolve().parent == folder.resolve():
            raise InputError(f"{path} is an input and lies in {folder}. Give another --output.")
    folder.mkdir(parents=True, exist_ok=True)
    if not manifest.is_file():
        return []
    try:
        files = json.loads(manifest.read_text(encoding="utf-8"))["files"]
        if not isinstance(files, dict):
            raise TypeError("its 'files' are not a mapping")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{manifest} is not the manifest of a data set ({error!r}); give another --output."
        ) from error
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
    labelling = facts.labelling
    ratings = plain_values(labelling.ratings) if labelling.ratings else None
    if ratings:
        del ratings["annotators"]
    return {
        "name": facts.target.title,
        "revision": facts.revision,
        "files": facts.files,
        "made_from": facts.made_from,
        "license": facts.target.license,
        "sources": [{"name": name, "licence": text} for name, text in facts.target.sources.items()],
        "settings": {
            "labels": labelling.rules.model_dump() if labelling.rules else None,
            "splits": facts.split_rules.model_dump(),
        },
        "counts": {
            "rows": {name: split.rows for name, split in facts.statistics.items()},
            "origins": facts.rows_by_origin,
            "pairs_by_source": facts.pairs_by_source,
            "dropped": facts.dropped,
            "order": labelling.order._asdict() if labelling.order else None,
            "groups": facts.splitting.groups,
            "largest_group": facts.splitting.largest,
            "cut_groups": facts.splitting.cut,
        },
        "ratings": ratings,
        "leakage": plain_values(facts.leakage),
        "condsim": __version__,
    }
