"""The finished data set: a folder that ``datasets`` loads and ``condsim train`` trains on."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from condsim.construction.dataset.card import (
    HISTOGRAM,
    DatasetFacts,
    Description,
    data_card,
    origins,
    pairs_by_source,
    reasons,
)
from condsim.construction.dataset.figures import label_histogram
from condsim.construction.dataset.labels import Dropped, LabelledRow, LabelRules, OrderCheck
from condsim.construction.dataset.leakage import find_leakage
from condsim.construction.dataset.quality import RatingReport
from condsim.construction.dataset.splits import SPLITS, SplitRules, Splitting, split_rows
from condsim.construction.rows import HUMAN, Candidate, Condition, DatasetRow, pair_id_of, row_id_of
from condsim.construction.tables import write_rows
from condsim.errors import InputError
from condsim.files import replacing, sha256_of
from condsim.tasks import describe, iter_csts, iter_rows, load_csts, stem_of
from condsim.types import IntArray, Task


@dataclass(frozen=True)
class Assembled:
    """The rows of a data set.

    Attributes:
        splits: The rows of each split by its name.
        dropped: Rows whose two sentences would be in different splits.
        splitting: How the splits came about.
    """

    splits: dict[str, tuple[DatasetRow, ...]]
    dropped: tuple[Dropped, ...]
    splitting: Splitting


def to_dataset_rows(
    rows: Iterable[LabelledRow], *, conditions: Iterable[Condition] = ()
) -> tuple[DatasetRow, ...]:
    """Makes rows of a data set, with the models that had a hand in each.

    Args:
        rows: Rows with their labels.
        conditions: Where the conditions are from; the ratings may name models, too.

    Returns:
        The rows, not yet in a split.
    """
    written_by: dict[str, set[str]] = defaultdict(set)
    for condition in conditions:
        row_id = row_id_of(condition.pair_id, condition.condition)
        written_by[row_id] |= {condition.origin, condition.prefilled_by}
    made = []
    for one in rows:
        origins = {*one.origins, *written_by.get(one.row.row_id, ())} - {HUMAN, ""}
        row = one.row
        made.append(
            DatasetRow(
                row.sentence1,
                row.sentence2,
                row.condition,
                one.label,
                row.pair_id,
                origin=", ".join(sorted(origins)) or HUMAN,
                split="",
            )
        )
    return tuple(made)


def read_labelled_file(path: Path) -> tuple[tuple[DatasetRow, ...], tuple[Dropped, ...]]:
    """Reads a C-STS file that is to be split.

    Args:
        path: A file as `condsim.tasks.iter_csts` reads it; columns ``pair_id`` and ``origin`` are
            kept where it has them.

    Returns:
        The rows with a label, not yet in a split, and those without one.

    Raises:
        InputError: If the file breaks a rule.
    """
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


def assemble(rows: Sequence[DatasetRow], rules: SplitRules) -> Assembled:
    """Splits rows and shuffles them: the pairs of a split, and the rows of each pair.

    The released C-STS has the row of C-High first, which gives labels away to whatever sees the
    order. Rows of a pair stay next to each other.

    Args:
        rows: The rows, in any order: the result is the same.
        rules: How to split; its seed is that of the shuffle, too.

    Returns:
        The rows of each split.

    Raises:
        InputError: If there are no rows or a split would have none.
        MissingExtraError: If scipy, or networkx for cutting, is not installed.
    """
    if not rows:
        raise InputError("A data set needs labelled rows, and every row was dropped or unlabelled.")
    rows = sorted(rows, key=lambda row: (row.pair_id, row.condition, row.label, row.sentence1))
    made = split_rows([(row.sentence1, row.sentence2) for row in rows], rules)
    splits = {}
    for number, name in enumerate(SPLITS):
        chosen = [rows[place] for place in np.flatnonzero(made.split == number).tolist()]
        generator = np.random.default_rng([rules.seed, number])
        splits[name] = tuple(replace(row, split=name) for row in _shuffled(chosen, generator))
    dropped = tuple(
        Dropped(
            row.pair_id,
            row.sentence1,
            row.sentence2,
            row.condition,
            "its sentences are in two splits",
            f"label {row.label:g}",
        )
        for row in (rows[place] for place in np.flatnonzero(made.split == -1).tolist())
    )
    return Assembled(splits, dropped, made)


def _shuffled(rows: Sequence[DatasetRow], generator: np.random.Generator) -> list[DatasetRow]:
    pairs: Mapping[str, list[DatasetRow]] = defaultdict(list)
    for row in rows:
        pairs[row.pair_id].append(row)
    names = list(pairs)
    order: IntArray = generator.permutation(len(names))
    return [
        pairs[name][place]
        for name in (names[number] for number in order.tolist())
        for place in generator.permutation(len(pairs[name])).tolist()
    ]


MANIFEST = "manifest.json"
DROPPED = "dropped.csv"
CARD = "README.md"
_STAGE = ".writing-"  # a folder in which files wait until all are written; a kill leaves it behind


@dataclass(frozen=True)
class Making:
    """How the rows of a data set came about, as far as it is known.

    Attributes:
        label_rules: How ratings became labels; None if the labels were given.
        order: Whether conditions turned out as meant.
        ratings: Agreement and quality.
        dropped: Rows left out before the split.
    """

    label_rules: LabelRules | None = None
    order: OrderCheck | None = None
    ratings: RatingReport | None = None
    dropped: tuple[Dropped, ...] = ()


def prepare_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Makes the folder of a data set, or checks that nothing of another kind is lost.

    Args:
        folder: The folder.
        overwrite: Whether a data set that condsim wrote there may be replaced.

    Raises:
        InputError: If it is a file, or holds anything else than a data set to be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --output must be a folder.")
    if folder.is_dir() and any(not path.name.startswith(_STAGE) for path in folder.iterdir()):
        if not (folder / MANIFEST).is_file():
            raise InputError(f"{folder} is not empty and holds no data set; give another --output.")
        if not overwrite:
            raise InputError(
                f"{folder} holds a data set; give another --output, or --overwrite to replace it."
            )
    folder.mkdir(parents=True, exist_ok=True)


def write_dataset(
    folder: Path,
    assembled: Assembled,
    description: Description,
    rules: SplitRules,
    *,
    making: Making | None = None,
    candidates: Iterable[Candidate] = (),
    file_format: Literal["csv", "parquet"] = "csv",
    resamples: int = 1000,
) -> DatasetFacts:
    """Writes a data set: a file a split, ``dropped.csv``, plot, card and manifest.

    All is written beside and moved in place at the end, so that the files of a data set that is
    replaced never mix with those of the new one.

    Args:
        folder: A folder that exists, as `prepare_folder` made it.
        assembled: The rows of each split.
        description: What the maker says.
        rules: How they were split.
        making: How their labels came about.
        candidates: The candidates the pairs are from, for the table of sources.
        file_format: Of the split files.
        resamples: Bootstrap resamples for the intervals of the leakage report.

    Returns:
        What the card and the manifest tell.

    Raises:
        InputError: If a file cannot be written.
        MissingExtraError: If matplotlib, or pyarrow for Parquet, is not installed.
    """
    making = making or Making()
    dropped = (*making.dropped, *assembled.dropped)
    rows = [row for split in assembled.splits.values() for row in split]
    with TemporaryDirectory(prefix=_STAGE, dir=folder) as stage:
        paths = {name: Path(stage) / f"{name}.{file_format}" for name in assembled.splits}
        for name, path in paths.items():
            write_rows(assembled.splits[name], path, kind=DatasetRow)
        _write_dropped(dropped, Path(stage) / DROPPED)
        tasks = {name: load_csts(path, name=name) for name, path in paths.items()}
        files = {path.name: sha256_of(path) for path in paths.values()}
        facts = DatasetFacts(
            description=description,
            revision=hashlib.sha256(" ".join(files.values()).encode()).hexdigest()[:12],
            files=files,
            statistics={name: describe(task, top=0) for name, task in tasks.items()},
            rows_by_origin=origins(rows),
            pairs_by_source=pairs_by_source(rows, candidates),
            dropped=reasons(dropped),
            label_rules=making.label_rules,
            order=making.order,
            ratings=making.ratings,
            split_rules=rules,
            splitting=assembled.splitting,
            leakage=find_leakage(tasks, resamples=resamples, seed=rules.seed),
        )
        _write_about(Path(stage), facts, tasks)
        _move_in_place(Path(stage), folder)
    return facts


def _write_about(folder: Path, facts: DatasetFacts, tasks: Mapping[str, Task]) -> None:
    label_histogram(tasks, folder / HISTOGRAM)
    with replacing(folder / CARD) as partial:
        partial.write_text(data_card(facts), encoding="utf-8")
    with replacing(folder / MANIFEST) as partial:
        text = json.dumps(_manifest(facts), indent=2, ensure_ascii=False)
        partial.write_text(text + "\n", encoding="utf-8")


def _manifest(facts: DatasetFacts) -> dict[str, object]:
    """The manifest; annotators are not named in it."""
    ratings = None
    if facts.ratings:
        ratings = facts.ratings.to_dict()
        del ratings["annotators"]
    return {
        "name": facts.description.name,
        "revision": facts.revision,
        "files": dict(facts.files),
        "made_from": dict(facts.description.made_from),
        "license": facts.description.license,
        "sources": [asdict(source) for source in facts.description.sources],
        "settings": {
            "labels": asdict(facts.label_rules) if facts.label_rules else None,
            "splits": asdict(facts.split_rules),
        },
        "counts": {
            "rows": {name: one.rows for name, one in facts.statistics.items()},
            "origins": dict(facts.rows_by_origin),
            "pairs_by_source": dict(facts.pairs_by_source),
            "dropped": dict(facts.dropped),
            "order": asdict(facts.order) if facts.order else None,
            "groups": facts.splitting.groups,
            "largest_group": facts.splitting.largest,
            "cut_groups": facts.splitting.cut,
        },
        "ratings": ratings,
        "leakage": facts.leakage.to_dict(),
        "condsim": metadata.version("condsim"),
    }


def _write_dropped(dropped: Iterable[Dropped], path: Path) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([field.name for field in fields(Dropped)])
        writer.writerows(map(astuple, dropped))


def _move_in_place(stage: Path, folder: Path) -> None:
    """Moves the files of a data set to its folder, and removes those of the one before."""
    old = folder / MANIFEST
    if old.is_file():
        try:
            files = list(json.loads(old.read_text(encoding="utf-8"))["files"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{old} cannot be read ({error}); give another --output.") from error
        for name in files:
            (folder / Path(name).name).unlink(missing_ok=True)
    for path in stage.iterdir():
        path.replace(folder / path.name)
