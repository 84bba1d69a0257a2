"""What a recipe with sources trains on: rows and inputs of many files, in one table."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.data.load import load_task
from condsim.data.reading import column_names, iter_rows
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.model.conditions import Order, conditional_sentences
from condsim.training.recipe import Recipe, Source
from condsim.types import IntArray, Task

_LOGGER = logging.getLogger("condsim")
_NONE = -1  # where an item has no list or no vector


@dataclass(frozen=True)
class Units:
    """What is drawn of a source, whole: groups, sentence pairs, or inputs with a vector.

    Attributes:
        share: Parts of the inputs of a batch that come from here.
        items: Items of each unit.
        costs: Distinct inputs of each unit, ``(units,)``.
    """

    share: float
    items: tuple[IntArray, ...]
    costs: IntArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """The items of a run: rows of two inputs and a label, and inputs with a teacher's vector.

    Attributes:
        inputs: Distinct inputs as the encoder takes them: a sentence, or one with its condition.
        columns: By name, one value of each item, ``(items,)``: ``first`` and ``second`` (the same
            for an input with a vector) are numbers of inputs; ``gold``, ``weights``, ``pair_ids``
            and ``list_ids`` as in ``Targets``; ``parts`` numbers the parts;
            ``vectors`` is a row of the part's vectors, or -1.
        units: What is drawn, by source; ``train`` is the first.
        parts: Weight of each objective, by part.
        vectors: Embeddings of a teacher, by part, ``(inputs of it, its dimension)``.
        facts: File, revision and rows, by source.
    """

    inputs: tuple[str | list[str], ...]
    columns: Mapping[str, NDArray[Any]]
    units: Mapping[str, Units]
    parts: Mapping[str, Mapping[str, float]]
    vectors: Mapping[str, NDArray[np.floating[Any]]]
    facts: Mapping[str, Mapping[str, object]]

    def __len__(self) -> int:
        return len(self.columns["first"])


@dataclass
class _Table:
    """A mixture in the making."""

    order: Order
    batch_size: int
    inputs: dict[tuple[str | None, str], int] = field(default_factory=dict)
    columns: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    units: dict[str, Units] = field(default_factory=dict)
    parts: dict[str, dict[str, float]] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.floating[Any]]] = field(default_factory=dict)
    facts: dict[str, dict[str, object]] = field(default_factory=dict)
    ids: dict[Hashable, int] = field(default_factory=dict)

    def input_of(self, condition: str | None, sentence: str) -> int:
        """The number of an input."""
        return self.inputs.setdefault((condition, sentence), len(self.inputs))

    def id_of(self, key: Hashable) -> int:
        """The number of a pair or list."""
        return self.ids.setdefault(key, len(self.ids))

    def add(self, **values: float) -> int:
        """Adds an item and returns its number."""
        for name, value in values.items():
            self.columns[name].append(value)
        return len(self.columns["first"]) - 1

    def part_of(self, name: str, objective: Mapping[str, float] | None, *, weight: float) -> int:
        """The number of a source's part: that of ``train``, unless it has its own objective."""
        if objective is not None:
            self.parts[name] = {term: weight * value for term, value in objective.items() if value}
        return list(self.parts).index("train" if objective is None else name)

    def add_units(self, name: str, share: float, units: Sequence[Sequence[int]]) -> None:
        """Adds what is drawn of a source; a unit too large for a batch is cut."""
        if not units:
            raise InputError(
                f"The source {name!r} has nothing to train on: its file is empty, or its key "
                "'rows' is below the number of rows of the group drawn first."
            )
        pieces = [np.array(one) for unit in units for one in self._pieces(unit)]
        first, second = self.columns["first"], self.columns["second"]
        costs = [len({side[item] for item in one for side in (first, second)}) for one in pieces]
        self.units[name] = Units(share, tuple(pieces), np.array(costs, dtype=np.int64))

    def _pieces(self, unit: Sequence[int]) -> Iterator[list[int]]:
        piece: list[int] = []
        seen: set[float] = set()
        for item in unit:
            both = {self.columns["first"][item], self.columns["second"][item]}
            if piece and len(seen | both) > self.batch_size:
                yield piece
                piece, seen = [], set()
            piece.append(item)
            seen |= both
        yield piece

    def mixture(self) -> Mixture:
        """The finished mixture."""
        whole = {name: np.array(values) for name, values in self.columns.items()}
        floats = {name: whole[name].astype(np.float32) for name in ("gold", "weights")}
        return Mixture(
            inputs=tuple(
                sentence
                if condition is None
                else conditional_sentences([sentence], [condition], order=self.order)[0]
                for condition, sentence in self.inputs
            ),
            columns={name: values.astype(np.int64) for name, values in whole.items()} | floats,
            units=self.units,
            parts=self.parts,
            vectors=self.vectors,
            facts=self.facts,
        )


def read_mixture(train: Task, recipe: Recipe, *, dimension: int | None) -> Mixture:
    """Reads the sources of a recipe and joins them with its training data.

    Args:
        dimension: That of the encoder's embeddings, which decides what a source with vectors is
            trained on by default.

    Returns:
        The mixture; its first source is ``train``.

    Raises:
        InputError: If a file cannot be read, has no labelled row, or does not fit its source.
    """
    table = _Table(recipe.order, recipe.batch_size)
    table.parts["train"] = {term: recipe.objective[term] for term in recipe.terms}
    own = Source(file=recipe.train, share=recipe.train_share, rows=recipe.train_rows)
    _add_rows(table, "train", own, [train], recipe)
    for name, source in recipe.sources.items():
        if source.vectors is not None:
            _add_vectors(table, name, source, Path(source.vectors), dimension=dimension)
        else:
            tasks = [load_task(file, require_labels=True) for file in source.files]
            _add_rows(table, name, source, tasks, recipe)
    if recipe.encoder == "tri-encoder" and any(condition is None for condition, _ in table.inputs):
        raise InputError("A tri-encoder needs a condition in every row of every source.")
    for name, units in table.units.items():
        _LOGGER.info(
            "%s: %d items in %d units, share %g",
            *(name, sum(map(len, units.items)), len(units.items), units.share),
        )
    return table.mixture()


def _add_rows(
    table: _Table, name: str, source: Source, tasks: Sequence[Task], recipe: Recipe
) -> None:
    """Adds the labelled rows of a source."""
    objective = source.objective
    if objective is None and name != "train" and any(task.conditions is None for task in tasks):
        objective = _plain_objective(recipe)
    part = table.part_of(name, objective, weight=source.weight)
    units: dict[tuple[str, ...], list[tuple[Task, int, str | None]]] = defaultdict(list)
    for file, task in zip(source.files, tasks, strict=True):
        groups = _groups_of(file, task)
        for row in np.flatnonzero(task.valid).tolist():
            group, criterion = groups[row] if groups else (None, None)
            key = (task.sentences1[row], task.sentences2[row]) if group is None else (file, *group)
            units[key].append((task, row, criterion))
    chosen = _chosen([(key, units[key]) for key in sorted(units)], source.rows)
    made = [
        _add_unit(table, key, rows, part, source, own=objective is not None) for key, rows in chosen
    ]
    table.add_units(name, source.share, made)
    table.facts[name] = {
        "file": [task.name for task in tasks],
        "revision": [task.revision for task in tasks],
        "rows": sum(map(len, made)),
    }


def _chosen(units: list[tuple[Any, list[Any]]], rows: int | None) -> list[tuple[Any, list[Any]]]:
    """Draws units of so many rows at most, as ``used_rows`` does; a smaller draw is in a larger."""
    if rows is None:
        return units
    order = np.random.default_rng(0).permutation(len(units))
    taken = np.cumsum([len(units[place][1]) for place in order]) <= rows
    return [units[place] for place in sorted(order[taken].tolist())]


def _add_unit(
    table: _Table,
    key: tuple[str, ...],
    rows: list[tuple[Task, int, str | None]],
    part: int,
    source: Source,
    *,
    own: bool,
) -> list[int]:
    """Adds the rows of a unit, the sides of a condition of a group balanced."""
    gold = [float(task.gold[row]) for task, row, _ in rows]
    lists = [None if criterion is None else (part, key, criterion) for _, _, criterion in rows]
    sides = Counter((one, value > 0.5) for one, value in zip(lists, gold, strict=True))
    items = []
    for (task, row, _), value, one in zip(rows, gold, lists, strict=True):
        condition = task.conditions[row] if task.conditions else None
        balance = 1.0 if one is None else sides[one, value > 0.5] ** -source.balance
        pair = (part, key, task.sentences1[row], task.sentences2[row])
        items.append(
            table.add(
                first=table.input_of(condition, task.sentences1[row]),
                second=table.input_of(condition, task.sentences2[row]),
                gold=value,
                weights=balance * (1.0 if own else source.weight),
                pair_ids=table.id_of(pair),
                list_ids=_NONE if one is None else table.id_of(one),
                parts=part,
                vectors=_NONE,
            )
        )
    return items


def _groups_of(file: str, task: Task) -> list[tuple[tuple[str, str] | None, str | None]]:
    """Set and group of each row, and what it is compared under; empty where there is no column."""
    path = Path(file)
    if "group" not in column_names(path):
        return []
    found: list[tuple[tuple[str, str] | None, str | None]] = []
    for row in iter_rows(path, columns=("group",), optional=("set", "criterion")):
        if row.cells["group"] in (None, ""):
            found.append((None, None))
            continue
        condition = task.conditions[len(found)] if task.conditions else ""
        group = (str(row.cells["set"] or ""), str(row.cells["group"]))
        found.append((group, str(row.cells["criterion"] or condition)))
    if len(found) != len(task):
        raise InputError(
            f"{path}: each row must be a sentence pair where there is a column 'group'. Got "
            f"{len(found)} rows and {len(task)} pairs."
        )
    return found


def _plain_objective(recipe: Recipe) -> dict[str, float]:
    """``mse`` and ``correlation`` as the recipe weighs them; ``{"mse": 1.0}`` if it has neither."""
    weights = {term: recipe.objective.get(term, 0.0) for term in ("mse", "correlation")}
    return {term: weight for term, weight in weights.items() if weight} or {"mse": 1.0}


def _add_vectors(
    table: _Table, name: str, source: Source, path: Path, *, dimension: int | None
) -> None:
    """Adds the inputs of a source with a teacher's vectors."""
    file = Path(source.files[0])
    vectors = _load_vectors(path)
    inputs = [
        table.input_of(str(row.cells["condition"] or "") or None, row.text("sentence"))
        for row in iter_rows(file, columns=("sentence",), optional=("condition",))
    ]
    if len(inputs) != len(vectors):
        raise InputError(
            f"{path} must hold one vector for each row of {file}. Got {len(vectors)} vectors and "
            f"{len(inputs)} rows; encode the file again."
        )
    agree = vectors.shape[1] == dimension
    objective = source.objective or {"vectors" if agree else "relations": 1.0}
    if objective.get("vectors") and not agree:
        raise InputError(
            f"{path}: the objective 'vectors' needs vectors of the model's dimension, {dimension}. "
            f"Got {vectors.shape[1]}; use 'relations'."
        )
    part = table.part_of(name, objective, weight=source.weight)
    chosen = _chosen([(row, [row]) for row in range(len(inputs))], source.rows)
    items = [
        table.add(
            first=inputs[row],
            second=inputs[row],
            gold=0.0,
            weights=1.0,
            pair_ids=_NONE,
            list_ids=_NONE,
            parts=part,
            vectors=row,
        )
        for row, _ in chosen
    ]
    table.add_units(name, source.share, [[item] for item in items])
    table.vectors[name] = vectors
    table.facts[name] = {
        "file": [file.name, path.name],
        "revision": [sha256_of(one)[:12] for one in (file, path)],
        "rows": len(items),
    }


def _load_vectors(path: Path) -> NDArray[np.floating[Any]]:
    """Opens a teacher's vectors; they stay on disk until they are asked for."""
    try:
        vectors: NDArray[Any] = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as an array (.npy): {error}") from None
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise InputError(
            f"{path}: vectors must be an array of floats, (rows, dimension). Got {vectors.dtype} "
            f"of shape {vectors.shape}."
        )
    return vectors
