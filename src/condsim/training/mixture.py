"""Mixture of sources: rows and inputs of many files, in one table to train on."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from condsim.cache import open_array
from condsim.data.files import column_names, iter_rows
from condsim.data.load import load_task
from condsim.errors import InputError
from condsim.model.inputs import Order, conditional_sentences
from condsim.training.batches import Mixture, SourceUnits, Weights
from condsim.training.data import file_revisions, sample_units
from condsim.training.recipe import Source
from condsim.types import Task

logger = logging.getLogger("condsim")

# Id of an item without a list, or without a vector.
NO_ID = -1


class MixtureItem(NamedTuple):
    """A row of two inputs and a label, or an input with a teacher's vector.

    ``first`` and ``second`` are numbers of inputs, equal for one with a vector; ``parts`` is the
    number of the part, and ``vectors`` a row of the part's vectors.
    """

    first: int
    second: int
    parts: int
    gold: float = 0.0
    weights: float = 1.0
    pair_ids: int = NO_ID
    list_ids: int = NO_ID
    vectors: int = NO_ID


def read_mixture(
    train: Task,
    sources: Mapping[str, Source],
    *,
    order: Order,
    batch_size: int,
    dimension: int | None,
) -> Mixture:
    """Read the sources of a recipe, of which the first, ``train``, is the data that was loaded.

    The dimension of the encoder decides the default objective of a source with vectors.
    """
    builder = MixtureBuilder(batch_size)
    for name, source in sources.items():
        if source.vectors is not None:
            builder.add_vectors(name, source, Path(source.vectors), dimension=dimension)
            continue
        tasks = [train]
        if name != "train":
            tasks = [load_task(file, require_labels=True) for file in source.files]
        builder.add_rows(name, source, tasks)
    columns: dict[str, NDArray[Any]] = {}
    for name, values in zip(MixtureItem._fields, zip(*builder.items, strict=True), strict=True):
        columns[name] = np.array(values, np.float32 if name in ("gold", "weights") else np.int64)
    inputs: list[str | list[str]] = []
    for condition, sentence in builder.inputs:
        if condition is None:
            inputs.append(sentence)
        else:
            inputs += conditional_sentences([sentence], [condition], order=order)
    return Mixture(
        tuple(inputs), columns, builder.units, builder.parts, builder.vectors, builder.facts
    )


class MixtureBuilder:
    """Collection of the items of a mixture, source by source."""

    def __init__(self, batch_size: int) -> None:
        """Start a mixture without items."""
        self.batch_size = batch_size
        self.inputs: dict[tuple[str | None, str], int] = {}
        self.items: list[MixtureItem] = []
        self.ids: dict[Hashable, int] = {}
        self.units: dict[str, SourceUnits] = {}
        self.parts: dict[str, Weights] = {}
        self.vectors: dict[str, NDArray[np.floating[Any]]] = {}
        self.facts: dict[str, dict[str, object]] = {}

    def add_rows(self, name: str, source: Source, tasks: Sequence[Task]) -> None:
        """Add the labeled rows of a source, to the part of ``train`` if it has no objective."""
        objective = source.objective
        if objective is None and any(task.conditions is None for task in tasks):
            weights = self.parts["train"]
            plain_terms = {
                term: weights[term] for term in ("mse", "correlation") if term in weights
            }
            objective = plain_terms or {"mse": 1.0}
        part, weight = self._part("train", None), source.weight
        if objective is not None:
            part, weight = self._part(name, objective, weight=weight), 1.0
        units: dict[tuple[str, ...], list[_SourceRow]] = defaultdict(list)
        for file, task in zip(source.files, tasks, strict=True):
            groups = _groups_of(file, task)
            for row in np.flatnonzero(task.valid).tolist():
                group, criterion = groups[row] if groups else (None, None)
                key: tuple[str, ...] = (task.sentences1[row], task.sentences2[row])
                if group is not None:
                    key = (file, *group)
                units[key].append(_SourceRow(task, row, criterion))
        keys = sorted(units)
        sizes = np.array([len(units[key]) for key in keys], dtype=np.int64)
        items = [
            self._unit(keys[index], units[keys[index]], part, source.balance, weight)
            for index in sample_units(sizes, source.rows).tolist()
        ]
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
        chosen = sample_units(np.ones(len(inputs), np.int64), source.rows).tolist()
        items = [[self._item(inputs[row], inputs[row], part, vectors=row)] for row in chosen]
        self._add_units(name, source.share, items)
        self.vectors[name] = vectors
        self.facts[name] = {
            "file": [file.name, path.name],
            "revision": [*file_revisions([file, path]).values()],
            "rows": len(items),
        }

    def _input(self, condition: str | None, sentence: str) -> int:
        return self.inputs.setdefault((condition, sentence), len(self.inputs))

    def _id(self, *key: Hashable) -> int:
        return self.ids.setdefault(key, len(self.ids))

    def _item(self, first: int, second: int, part: int, **values: Any) -> int:  # noqa: ANN401
        """Add an item and return its number."""
        self.items.append(MixtureItem(first, second, part, **values))
        return len(self.items) - 1

    def _part(self, name: str, objective: Weights | None, *, weight: float = 1.0) -> int:
        """Number of a part, which is added where an objective is given."""
        if objective is not None:
            self.parts[name] = {term: weight * value for term, value in objective.items() if value}
        return [*self.parts, name].index(name)

    def _unit(
        self,
        key: tuple[str, ...],
        rows: Sequence[_SourceRow],
        part: int,
        balance: float,
        weight: float,
    ) -> list[int]:
        """Add the rows of a unit, with the two sides of a group's criterion balanced."""
        sides = [(criterion, bool(task.gold[row] > 0.5)) for task, row, criterion in rows]
        counts = Counter(sides)
        items = []
        for (task, row, criterion), side in zip(rows, sides, strict=True):
            condition = task.conditions[row] if task.conditions else None
            pair = task.sentences1[row], task.sentences2[row]
            has_list = criterion is not None
            item = self._item(
                self._input(condition, pair[0]),
                self._input(condition, pair[1]),
                part,
                gold=float(task.gold[row]),
                weights=weight * (counts[side] ** -balance if has_list else 1.0),
                pair_ids=self._id(part, key, *pair),
                list_ids=self._id(part, key, criterion) if has_list else NO_ID,
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
        pieces: list[list[int]] = []
        costs: list[int] = []
        for unit in units:
            inputs: set[int] = set()
            pieces.append([])
            costs.append(0)
            for number in unit:
                item = self.items[number]
                inputs |= {item.first, item.second}
                if pieces[-1] and len(inputs) > self.batch_size:
                    inputs = {item.first, item.second}
                    pieces.append([])
                    costs.append(0)
                pieces[-1].append(number)
                costs[-1] = len(inputs)
        self.units[name] = SourceUnits(share, tuple(map(np.array, pieces)), np.array(costs))
        items = sum(map(len, units))
        logger.info("%s: %d items in %d units, share %g", name, items, len(pieces), share)


class _SourceRow(NamedTuple):
    """Row of a source: its task and number there, and the criterion it is ranked under."""

    task: Task
    number: int
    criterion: str | None


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


def _load_vectors(path: Path) -> NDArray[np.floating[Any]]:
    """Open a teacher's vectors; they stay on disk until they are read."""
    vectors = open_array(path)
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise InputError(
            f"{path}: vectors must be an array of floats, (rows, dimension); got {vectors.dtype} "
            f"of shape {vectors.shape}."
        )
    return vectors
