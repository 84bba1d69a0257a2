"""The finished data set: a folder that ``datasets`` loads and ``condsim train`` trains on."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from condsim import __version__
from condsim.annotation.agreement import report_ratings
from condsim.annotation.card import HISTOGRAM, DatasetFacts, Labelling, data_card, label_histogram
from condsim.annotation.labels import (
    Dropped,
    LabelledRow,
    LabelRules,
    collect_votes,
    decide_labels,
    unrated_conditions,
)
from condsim.annotation.splits import SPLITS, SplitRules, Splitting, find_leakage, split_rows
from condsim.data.csts import iter_csts, load_csts
from condsim.data.reading import iter_rows, stem_of
from condsim.data.statistics import describe
from condsim.errors import InputError
from condsim.evaluation.report import write_json
from condsim.io import check_folder, sha256_of, write_text
from condsim.rows.records import (
    HUMAN,
    Candidate,
    Condition,
    DatasetRow,
    Rating,
    pair_id_of,
    plain_values,
    read_rows,
    revisions_of,
    row_id_of,
    write_rows,
)

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Target:
    """Where a data set goes, and what its maker says of it."""

    folder: Path  # the folder; made if missing
    name: str | None = None  # name on the card; that of the folder if None
    # Licence as the Hub names it, such as ``cc-by-4.0``; None where it is not said.
    license: str | None = None
    # Where sentences are from and what its owners allow, each ``NAME=LICENCE``.
    sources: Sequence[str] = ()
    file_format: Literal["csv", "parquet"] = "csv"  # format of the split files
    overwrite: bool = False  # whether a data set that condsim wrote there may be replaced


def build_dataset(
    ratings: Path,
    target: Target,
    *,
    labels: LabelRules,
    splits: SplitRules,
    conditions: Path | None = None,
    candidates: Path | None = None,
) -> DatasetFacts:
    """Makes a data set of ratings: labels, splits, leakage report and card.

    Args:
        target: Where to write it, and what to say of it.
        conditions: File of all conditions: which a model proposed, and which were never rated.
        candidates: File of the candidates: which source a pair is from.

    Returns:
        What the card says; its ``summary()`` is a few lines.

    Raises:
        InputError: If a file breaks a rule, a split would be empty, or the folder holds anything
            but a data set to be replaced.
        MissingExtraError: If an optional library is not installed.
    """
    rated = collect_votes(read_rows(ratings, Rating))
    written = tuple(read_rows(conditions, Condition)) if conditions else ()
    decision = decide_labels(rated, labels)
    people = any(row.people for row in rated)
    return _write_dataset(
        _to_dataset_rows(decision.labelled, written),
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
    """Splits rows that have labels, with leakage report and card.

    Args:
        file: A file as `condsim.data.csts.iter_csts` reads it; columns ``pair_id`` and ``origin``
            are kept where it has them.
        target: Where to write the data set, and what to say of it.

    Returns:
        What the card says; its ``summary()`` is a few lines.

    Raises:
        InputError: As `build_dataset`.
        MissingExtraError: If an optional library is not installed.
    """
    rows, unlabelled = _read_labelled_file(file)
    labelling = Labelling(dropped=unlabelled)
    return _write_dataset(rows, target, splits, labelling, made_from=[file])


def _to_dataset_rows(
    rows: Iterable[LabelledRow], conditions: Iterable[Condition]
) -> list[DatasetRow]:
    """Makes rows of a data set, not yet in a split, with the models that had a hand in each."""
    written_by: dict[str, set[str]] = defaultdict(set)
    for condition in conditions:
        row_id = row_id_of(condition.pair_id, condition.condition)
        written_by[row_id] |= {condition.origin, condition.prefilled_by}
    made = []
    for one in rows:
        row = one.row
        origins = {*one.origins, *written_by.get(row.row_id, ())} - {HUMAN, ""}
        origin = ", ".join(sorted(origins)) or HUMAN
        texts = (row.sentence1, row.sentence2, row.condition)
        made.append(DatasetRow(*texts, one.label, row.pair_id, origin, split=""))
    return made


def _read_labelled_file(path: Path) -> tuple[tuple[DatasetRow, ...], tuple[Dropped, ...]]:
    """Reads the rows with a label, not yet in a split, and those without one."""
    rows, dropped = [], []
    more = iter_rows(path, columns=(), optional=("pair_id", "origin"))
    for row, extra in zip(iter_csts(path), more, strict=True):
        given = {name: str(cell) for name, cell in extra.cells.items() if cell not in (None, "")}
        pair_id = given.get("pair_id") or pair_id_of(stem_of(path), row.sentence1, row.sentence2)
        texts = (row.sentence1, row.sentence2, row.condition)
        if row.label is None:
            dropped.append(Dropped(pair_id, *texts, "no label"))
        else:
            rows.append(DatasetRow(*texts, row.label, pair_id, given.get("origin", HUMAN), ""))
    return tuple(rows), tuple(dropped)


def _assemble(
    rows: Sequence[DatasetRow], rules: SplitRules
) -> tuple[dict[str, list[DatasetRow]], list[Dropped], Splitting]:
    """Splits rows and shuffles them: the pairs of a split, and the rows of each pair."""
    if not rows:
        raise InputError("A data set needs labelled rows, and every row was dropped or unlabelled.")
    rows = sorted(rows, key=lambda row: (row.pair_id, row.condition, row.label, row.sentence1))
    made = split_rows([(row.sentence1, row.sentence2) for row in rows], rules)
    placed = list(zip(rows, made.split.tolist(), strict=True))
    splits = {}
    for number, name in enumerate(SPLITS):
        chosen = [replace(row, split=name) for row, split in placed if split == number]
        splits[name] = _shuffled(chosen, np.random.default_rng([rules.seed, number]))
    reason = "its sentences are in two splits"
    crossing = (row for row, split in placed if split == -1)
    return splits, [Dropped.of(row, reason, f"label {row.label:g}") for row in crossing], made


def _shuffled(rows: Sequence[DatasetRow], generator: np.random.Generator) -> list[DatasetRow]:
    # In the released C-STS the row of C-High is first, which gives labels away.
    pairs: Mapping[str, list[DatasetRow]] = defaultdict(list)
    for row in rows:
        pairs[row.pair_id].append(row)
    groups = list(pairs.values())
    return [
        groups[number][place]
        for number in generator.permutation(len(groups)).tolist()
        for place in generator.permutation(len(groups[number])).tolist()
    ]


def _prepare_folder(folder: Path, *, overwrite: bool, inputs: Iterable[Path]) -> list[str]:
    """Makes the folder of a data set and gives the files to be replaced in it."""
    check_folder(folder, what="data set", own=[_MANIFEST])
    for path in inputs:
        if path.resolve().parent == folder.resolve():
            raise InputError(f"{path} is an input and lies in {folder}. Give another --output.")
    manifest = folder / _MANIFEST
    earlier: list[str] = []
    if manifest.is_file():
        try:
            earlier = list(json.loads(manifest.read_text(encoding="utf-8"))["files"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{manifest} is not that of a data set ({error!r}); give another --output."
            ) from error
        if not overwrite:
            raise InputError(
                f"{folder} holds a data set; give another --output, or --overwrite to replace it."
            )
    folder.mkdir(parents=True, exist_ok=True)
    return earlier


def _write_dataset(
    rows: Sequence[DatasetRow],
    target: Target,
    rules: SplitRules,
    labelling: Labelling,
    *,
    made_from: Iterable[Path],
    candidates: Iterable[Candidate] = (),
) -> DatasetFacts:
    """Writes all files of a data set beside, then in place: never some old and some new."""
    splits, crossing, splitting = _assemble(rows, rules)
    sources = dict(map(_source, target.sources))
    made_from = list(made_from)
    earlier = _prepare_folder(target.folder, overwrite=target.overwrite, inputs=made_from)
    dropped = (*labelling.dropped, *crossing)
    kept = [row for split in splits.values() for row in split]
    origins = Counter(row.origin for row in kept)
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
            rows_by_origin=dict(sorted(origins.items(), key=lambda one: (one[0] != HUMAN, one))),
            pairs_by_source=_pairs_by_source(kept, candidates),
            dropped=dict(Counter(one.reason for one in dropped).most_common()),
            labelling=labelling,
            split_rules=rules,
            splitting=splitting,
            leakage=find_leakage(tasks, seed=rules.seed),
        )
        label_histogram(tasks, folder / HISTOGRAM)
        write_text(folder / "README.md", data_card(facts))
        write_json(_manifest(facts), folder / _MANIFEST)
        for name in earlier:
            (target.folder / Path(name).name).unlink(missing_ok=True)
        for path in folder.iterdir():
            path.replace(target.folder / path.name)
    return facts


def _pairs_by_source(rows: Iterable[DatasetRow], candidates: Iterable[Candidate]) -> dict[str, int]:
    pairs = {row.pair_id for row in rows}
    source = {one.pair_id: one.source for one in candidates if one.pair_id in pairs}
    if not source:
        return {}
    unknown = len(pairs - source.keys())
    counts = dict(sorted(Counter(source.values()).items()))
    return counts | ({"not known": unknown} if unknown else {})


def _source(text: str) -> tuple[str, str]:
    """Reads a source and its licence, such as ``"tickets=internal use only"``."""
    name, _, licence = map(str.strip, text.partition("="))
    if not name:
        raise InputError(f"A source is written NAME=LICENCE. Got {text!r}.")
    return name, licence


def _manifest(facts: DatasetFacts) -> dict[str, object]:
    """The manifest; annotators are not named in it."""
    made = facts.labelling
    ratings = plain_values(made.ratings) if made.ratings else None
    if ratings:
        del ratings["annotators"]
    return {
        "name": facts.name,
        "revision": facts.revision,
        "files": dict(facts.files),
        "made_from": dict(facts.made_from),
        "license": facts.license,
        "sources": [{"name": name, "licence": allows} for name, allows in facts.sources.items()],
        "settings": {
            "labels": made.rules.model_dump() if made.rules else None,
            "splits": facts.split_rules.model_dump(),
        },
        "counts": {
            "rows": {name: one.rows for name, one in facts.statistics.items()},
            "origins": dict(facts.rows_by_origin),
            "pairs_by_source": dict(facts.pairs_by_source),
            "dropped": dict(facts.dropped),
            "order": asdict(made.order) if made.order else None,
            "groups": facts.splitting.groups,
            "largest_group": facts.splitting.largest,
            "cut_groups": facts.splitting.cut,
        },
        "ratings": ratings,
        "leakage": plain_values(facts.leakage),
        "condsim": __version__,
    }
