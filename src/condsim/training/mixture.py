"""Mixture of sources: rows and inputs of many files, in one table to train on."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from condsim.data.files import column_names, iter_rows
from condsim.data.load import load_task
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.model.conditions import Order, conditional_sentences
from condsim.training.recipe import Source
from condsim.types import IntArray, Task

logger = logging.getLogger("condsim")

# Id of an item without a list, or without a vector.
NO_ID = -1

Unit = TypeVar("Unit")


@dataclass(frozen=True)
class SourceUnits:
    """SourceUnits that are drawn of a source: groups, sentence pairs, or inputs with a vector.

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
    """Items of a run: rows of two inputs and a label, and inputs with a teacher's vector.

    Attributes:
        inputs: Distinct inputs as the encoder takes them: a sentence, or one with its condition.
        columns: By name, one value of each item, ``(items,)``: ``first`` and ``second`` (the same
            for an input with a vector) are numbers of inputs; ``gold``, ``weights``, ``pair_ids``
            and ``list_ids`` as in ``Targets``; ``parts`` numbers the parts; ``vectors`` is a row
            of the part's vectors, or -1.
        units: SourceUnits by source; ``train`` is the first.
        parts: Weight of each objective, by part.
        vectors: Embeddings of a teacher, by part, ``(inputs of the part, its dimension)``.
        facts: File, revision and rows, by source.
    """

    inputs: tuple[str | list[str], ...]
    columns: Mapping[str, NDArray[Any]]
    units: Mapping[str, SourceUnits]
    parts: Mapping[str, Mapping[str, float]]
    vectors: Mapping[str, NDArray[np.floating[Any]]]
    facts: Mapping[str, Mapping[str, object]]

    def __len__(self) -> int:
        return len(self.columns["first"])


class SourceRow(NamedTuple):
    """Row of a source: its task and number there, and the criterion it is ranked under."""

    task: Task
    number: int
    criterion: str | None


def read_mixture(
    train: Task,
    sources: Mapping[str, Source],
    *,
    order: Order,
    batch_size: int,
    dimension: int | None,
) -> Mixture:
    """Read the sources of a recipe and join them with its training data.

    Args:
        train: The training data.
        sources: The sources, of which the first, ``train``, stands for the training data; see
            `Recipe.mixed_sources`.
        order: Order of condition and sentence.
        batch_size: Distinct inputs in a batch.
        dimension: Dimension of the encoder's embeddings, which decides the default objective of a
            source with vectors.
    """
    builder = MixtureBuilder(batch_size)
    for name, source in sources.items():
        if name == "train":
            builder.add_rows(name, source, [train], source.objective)
        elif source.vectors is not None:
            builder.add_vectors(name, source, Path(source.vectors), dimension=dimension)
        else:
            tasks = [load_task(file, require_labels=True) for file in source.files]
            objective = source.objective
            if objective is None and any(task.conditions is None for task in tasks):
                objective = _plain_objective(builder.parts["train"])
            builder.add_rows(name, source, tasks, objective)
    for name, units in builder.units.items():
        items = sum(map(len, units.items))
        logger.info(
            "%s: %d items in %d units, share %g", name, items, len(units.items), units.share
        )
    return builder.build(order)


class MixtureBuilder:
    """Collects the items of a mixture, source by source."""

    def __init__(self, batch_size: int) -> None:
        """Start a mixture without items."""
        self.batch_size = batch_size
        self.inputs: dict[tuple[str | None, str], int] = {}
        self.columns: dict[str, list[float]] = defaultdict(list)
        self.ids: dict[Hashable, int] = {}
        self.units: dict[str, SourceUnits] = {}
        self.parts: dict[str, dict[str, float]] = {}
        self.vectors: dict[str, NDArray[np.floating[Any]]] = {}
        self.facts: dict[str, dict[str, object]] = {}

    def build(self, order: Order) -> Mixture:
        """Make the mixture of what was added."""
        arrays = {name: np.array(values) for name, values in self.columns.items()}
        inputs = [
            sentence
            if condition is None
            else conditional_sentences([sentence], [condition], order=order)[0]
            for condition, sentence in self.inputs
        ]
        columns: dict[str, NDArray[Any]] = {}
        for name, values in arrays.items():
            columns[name] = values.astype(np.float32 if name in ("gold", "weights") else np.int64)
        return Mixture(tuple(inputs), columns, self.units, self.parts, self.vectors, self.facts)

    def add_rows(
        self,
        name: str,
        source: Source,
        tasks: Sequence[Task],
        objective: Mapping[str, float] | None,
    ) -> None:
        """Add the labelled rows of a source; None as objective joins them with ``train``."""
        part = self._part(name, objective, weight=source.weight)
        units: dict[tuple[str, ...], list[SourceRow]] = defaultdict(list)
        for file, task in zip(source.files, tasks, strict=True):
            groups = _groups_of(file, task)
            for row in np.flatnonzero(task.valid).tolist():
                group, criterion = groups[row] if groups else (None, None)
                key: tuple[str, ...] = (task.sentences1[row], task.sentences2[row])
                if group is not None:
                    key = (file, *group)
                units[key].append(SourceRow(task, row, criterion))
        chosen = _sample_units([(key, units[key]) for key in sorted(units)], source.rows)
        weight = source.weight if objective is None else 1.0
        items = [self._add_unit(key, rows, part, source.balance, weight) for key, rows in chosen]
        self._add_units(name, source.share, items)
        self.facts[name] = {
            "file": [task.name for task in tasks],
            "revision": [task.revision for task in tasks],
            "rows": sum(map(len, items)),
        }

    def add_vectors(self, name: str, source: Source, path: Path, *, dimension: int | None) -> None:
        """Add the inputs of a source with a teacher's vectors."""
        file = Path(source.files[0])
        vectors = _load_vectors(path)
        inputs = [
            self._input(str(row.cells["condition"] or "") or None, row.text("sentence"))
            for row in iter_rows(file, columns=("sentence",), optional=("condition",))
        ]
        if len(inputs) != len(vectors):
            raise InputError(
                f"{path} must have one vector for each row of {file}; got {len(vectors)} vectors "
                f"and {len(inputs)} rows."
            )
        same_dimension = vectors.shape[1] == dimension
        objective = source.objective or {"vectors" if same_dimension else "relations": 1.0}
        if objective.get("vectors") and not same_dimension:
            raise InputError(
                f"{path}: the objective 'vectors' needs vectors of the model's dimension, "
                f"{dimension}; got {vectors.shape[1]}. Use 'relations'."
            )
        part = self._part(name, objective, weight=source.weight)
        items = []
        for row, _ in _sample_units([(row, [row]) for row in range(len(inputs))], source.rows):
            item = self._add_item(
                first=inputs[row],
                second=inputs[row],
                gold=0.0,
                weights=1.0,
                pair_ids=NO_ID,
                list_ids=NO_ID,
                parts=part,
                vectors=row,
            )
            items.append([item])
        self._add_units(name, source.share, items)
        self.vectors[name] = vectors
        self.facts[name] = {
            "file": [file.name, path.name],
            "revision": [sha256_of(file)[:12], sha256_of(path)[:12]],
            "rows": len(items),
        }

    def _input(self, condition: str | None, sentence: str) -> int:
        """Number of an input."""
        return self.inputs.setdefault((condition, sentence), len(self.inputs))

    def _id(self, key: Hashable) -> int:
        """Number of a pair or list."""
        return self.ids.setdefault(key, len(self.ids))

    def _add_item(self, **values: float) -> int:
        """Add an item and return its number."""
        for name, value in values.items():
            self.columns[name].append(value)
        return len(self.columns["first"]) - 1

    def _part(self, name: str, objective: Mapping[str, float] | None, *, weight: float) -> int:
        """Number of a source's part: that of ``train``, unless it has an objective of its own."""
        if objective is None:
            return list(self.parts).index("train")
        self.parts[name] = {term: weight * value for term, value in objective.items() if value}
        return list(self.parts).index(name)

    def _add_unit(
        self,
        key: tuple[str, ...],
        rows: Sequence[SourceRow],
        part: int,
        balance: float,
        weight: float,
    ) -> list[int]:
        """Add the rows of a unit, with the two sides of a group's criterion balanced."""
        golds = [float(task.gold[row]) for task, row, _ in rows]
        sides = Counter(
            (criterion, gold > 0.5) for (*_, criterion), gold in zip(rows, golds, strict=True)
        )
        items = []
        for (task, row, criterion), gold in zip(rows, golds, strict=True):
            condition = task.conditions[row] if task.conditions else None
            sentence1, sentence2 = task.sentences1[row], task.sentences2[row]
            balanced, list_id = 1.0, NO_ID
            pair_id = self._id((part, key, sentence1, sentence2))
            if criterion is not None:
                balanced = sides[criterion, gold > 0.5] ** -balance
                list_id = self._id((part, key, criterion))
            item = self._add_item(
                first=self._input(condition, sentence1),
                second=self._input(condition, sentence2),
                gold=gold,
                weights=balanced * weight,
                pair_ids=pair_id,
                list_ids=list_id,
                parts=part,
                vectors=NO_ID,
            )
            items.append(item)
        return items

    def _add_units(self, name: str, share: float, units: Sequence[Sequence[int]]) -> None:
        """Add the units of a source; one that is too large for a batch is cut."""
        if not units:
            raise InputError(
                f"The source {name!r} has nothing to train on: its file is empty, or its key "
                "'rows' is below the number of rows of the group drawn first."
            )
        pieces = [piece for unit in units for piece in self._cut(unit)]
        costs = np.array([len(self._inputs_of(piece)) for piece in pieces], dtype=np.int64)
        self.units[name] = SourceUnits(share, tuple(map(np.array, pieces)), costs)

    def _inputs_of(self, items: Sequence[int]) -> set[float]:
        """Distinct inputs of items."""
        return {self.columns[side][item] for item in items for side in ("first", "second")}

    def _cut(self, unit: Sequence[int]) -> list[list[int]]:
        """Cut a unit into pieces that fit into a batch."""
        pieces: list[list[int]] = [[]]
        inputs: set[float] = set()
        for item in unit:
            inputs |= self._inputs_of([item])
            if pieces[-1] and len(inputs) > self.batch_size:
                pieces.append([])
                inputs = self._inputs_of([item])
            pieces[-1].append(item)
        return pieces


def _sample_units(
    units: list[tuple[Unit, list[Any]]], most: int | None
) -> list[tuple[Unit, list[Any]]]:
    """Draw units of at most ``most`` rows, as `sample_rows` does; a smaller draw is in a larger."""
    if most is None:
        return units
    order = np.random.default_rng(0).permutation(len(units))
    fits = np.cumsum([len(units[index][1]) for index in order]) <= most
    return [units[index] for index in sorted(order[fits].tolist())]


def _groups_of(file: str, task: Task) -> list[tuple[tuple[str, str] | None, str | None]]:
    """Group and criterion of each row; empty where the file has no column ``group``."""
    path = Path(file)
    if "group" not in column_names(path):
        return []
    groups: list[tuple[tuple[str, str] | None, str | None]] = []
    for row in iter_rows(path, columns=("group",), optional=("set", "criterion")):
        if row.cells["group"] in (None, ""):
            groups.append((None, None))
            continue
        condition = task.conditions[len(groups)] if task.conditions else ""
        group = (str(row.cells["set"] or ""), str(row.cells["group"]))
        groups.append((group, str(row.cells["criterion"] or condition)))
    if len(groups) != len(task):
        raise InputError(
            f"{path}: with a column 'group', each row must be a sentence pair; got {len(groups)} "
            f"rows and {len(task)} pairs."
        )
    return groups


def _plain_objective(objective: Mapping[str, float]) -> dict[str, float]:
    """``mse`` and ``correlation`` of an objective; ``{"mse": 1.0}`` if it has neither."""
    return {term: objective[term] for term in ("mse", "correlation") if term in objective} or {
        "mse": 1.0
    }


def _load_vectors(path: Path) -> NDArray[np.floating[Any]]:
    """Open a teacher's vectors; they stay on disk until they are read."""
    try:
        vectors: NDArray[Any] = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as an array (.npy): {error}") from None
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise InputError(
            f"{path}: vectors must be an array of floats, (rows, dimension); got {vectors.dtype} "
            f"of shape {vectors.shape}."
        )
    return vectors
