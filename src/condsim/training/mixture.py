"""Mixture of sources: rows and inputs of many files in one table, and its batches."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler

from condsim.cache import open_array
from condsim.data.files import column_names, iter_rows
from condsim.data.load import load_task
from condsim.errors import InputError
from condsim.model.inputs import (
    ACCELERATOR_TOKENS,
    CPU_TOKENS,
    Order,
    conditional_sentences,
    token_batches,
)
from condsim.training.data import file_revisions, sample_units
from condsim.training.recipe import Source
from condsim.types import IntArray, Task

ITEM = "item"
"""The one column of the data set of a mixture: numbers of items."""

# Id of an item without a list, or without a vector.
NO_ID = -1

Weights = Mapping[str, float]
SourceRow = tuple[Task, int, str | None]
"""Row of a source: its task and number there, and the criterion it is ranked under."""

logger = logging.getLogger("condsim")


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


@dataclass(frozen=True)
class SourceUnits:
    """Units that are drawn of a source: groups, sentence pairs, or inputs with a vector.

    ``costs`` has the number of distinct inputs of each, ``(units,)``.
    """

    share: float
    items: tuple[IntArray, ...]
    costs: IntArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """Items of a run.

    Attributes:
        inputs: Distinct inputs as the encoder takes them: a sentence, or one with its condition.
        columns: Values of all items by the fields of ``MixtureItem``, ``(items,)`` each.
        units: Units by source; ``train`` is the first.
        parts: Weight of each objective, by part.
        vectors: Embeddings of a teacher, by part, ``(inputs of the part, its dimension)``.
        facts: File, revision and rows, by source.
    """

    inputs: tuple[str | list[str], ...]
    columns: Mapping[str, NDArray[Any]]
    units: Mapping[str, SourceUnits]
    parts: Mapping[str, Weights]
    vectors: Mapping[str, NDArray[np.floating[Any]]]
    facts: Mapping[str, Mapping[str, object]]

    def __len__(self) -> int:
        return len(self.columns["first"])


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
        units: dict[tuple[str, ...], list[SourceRow]] = defaultdict(list)
        for file, task in zip(source.files, tasks, strict=True):
            groups = _groups_of(file, task)
            for row in np.flatnonzero(task.valid).tolist():
                group, criterion = groups[row] if groups else (None, None)
                key: tuple[str, ...] = (task.sentences1[row], task.sentences2[row])
                if group is not None:
                    key = (file, *group)
                units[key].append((task, row, criterion))
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
        rows: Sequence[SourceRow],
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


class SourceBatchSampler(DefaultBatchSampler):
    """Sampler of batches to which every source adds its share of distinct inputs, in whole units.

    A source is drawn in a random order, and again in another once it is used up. A balance of
    inputs is carried over for a unit that does not fit. An epoch continues where the one before
    stopped. The same seed and epoch give the same batches, so a run can be resumed exactly.
    """

    def __init__(
        self,
        mixture: Mixture,
        *_: object,
        batches: int,
        batch_size: int,
        drop_last: bool = False,
        seed: int,
        **__: object,
    ) -> None:
        """Make the sampler; an epoch has ``batches`` batches. A trainer gives more arguments.

        ``drop_last`` is as in `PairBatchSampler`.
        """
        indices = range(len(mixture))
        super().__init__(indices, batch_size=batch_size, drop_last=drop_last, seed=seed)
        # accelerate would leave out every batch that is not of exactly this size.
        self.batch_size = None  # type: ignore[assignment]
        self._sources = tuple(mixture.units.values())
        shares = np.array([units.share for units in self._sources])
        self._quotas = batch_size * shares / shares.sum()  # (sources,)
        self._batches = batches

    def __len__(self) -> int:
        return self._batches

    def __iter__(self) -> Iterator[list[int]]:
        start = self.epoch * self._batches
        yield from islice(self._stream(), start, start + self._batches)

    def _stream(self) -> Iterator[list[int]]:
        """Draw batches without end, from the first of the run on."""
        draws = [self._draw(number, units) for number, units in enumerate(self._sources)]
        upcoming = [next(units) for units in draws]
        credit = np.zeros(len(draws))
        while True:
            batch: list[int] = []
            credit += self._quotas
            for number, units in enumerate(draws):
                # Rounded: a unit is taken once half of it is paid for.
                while credit[number] >= upcoming[number][1] / 2:
                    items, cost = upcoming[number]
                    batch += items.tolist()
                    credit[number] -= cost
                    upcoming[number] = next(units)
            if batch:
                yield batch

    def _draw(self, number: int, source: SourceUnits) -> Iterator[tuple[IntArray, int]]:
        """Draw units of a source with their costs, without end."""
        for turn in count():
            order = np.random.default_rng((self.seed, number, turn)).permutation(len(source.items))
            for index in order.tolist():
                yield source.items[index], int(source.costs[index])


class SourceCollator:
    """Collator of items into the sub-batches and labels that ``MixedLoss`` takes.

    Each distinct input of the batch is in one sub-batch, with inputs of similar length.
    """

    valid_label_columns = ("label",)

    def __init__(
        self,
        mixture: Mixture,
        preprocess: Callable[[list[Any]], dict[str, Any]],
        *,
        device: str = "cpu",
    ) -> None:
        """Make the collator; ``device`` is the type of the encoder's device."""
        self._mixture = mixture
        self._preprocess = preprocess
        self._tokens = CPU_TOKENS if device == "cpu" else ACCELERATOR_TOKENS
        self._is_single = np.array([isinstance(text, str) for text in mixture.inputs])
        # Tokens of each input; 0 until they are counted.
        self._lengths = np.zeros(len(mixture.inputs), dtype=np.int64)

    def __call__(self, features: Sequence[dict[str, int]]) -> dict[str, Any]:
        """Collate items of the data set."""
        items = np.array([row[ITEM] for row in features])
        columns = {name: values[items] for name, values in self._mixture.columns.items()}
        sides = [columns["first"], columns["second"]]
        inputs, indices = np.unique(sides, return_inverse=True)
        chunks = self._chunks(inputs)
        position = np.empty(len(inputs), dtype=np.int64)
        position[np.concatenate(chunks)] = np.arange(len(inputs))
        columns["first"], columns["second"] = position[indices.reshape(2, -1)]  # (items,) each
        batch: dict[str, Any] = {"label": self._labels(columns)}
        for number, chunk in enumerate(chunks):
            texts = [self._mixture.inputs[index] for index in inputs[chunk]]
            for key, value in self._preprocess(texts).items():
                batch[f"inputs{number}_{key}"] = value
        return batch

    def _chunks(self, inputs: IntArray) -> list[IntArray]:
        """Indices into ``inputs`` by sub-batch: of similar length, with or without condition."""
        chunks: list[IntArray] = []
        for single in (False, True):
            indices = np.flatnonzero(self._is_single[inputs] == single)
            self._count_tokens(inputs[indices])
            lengths = self._lengths[inputs[indices]]
            chunks += [indices[rows] for rows in token_batches(lengths, tokens=self._tokens)]
        return chunks

    def _count_tokens(self, numbers: IntArray) -> None:
        """Count the tokens of inputs that are new."""
        new = numbers[self._lengths[numbers] == 0]
        if len(new):
            features = self._preprocess([self._mixture.inputs[index] for index in new])
            masks = [value for key, value in features.items() if key.endswith("_mask")]
            self._lengths[new] = sum(mask.sum(dim=1).numpy() for mask in masks)

    def _labels(self, columns: dict[str, Any]) -> dict[str, dict[str, torch.Tensor]]:
        """Tensors of each part in the batch, as `MixedLoss` takes them."""
        labels = {}
        for number, name in enumerate(self._mixture.parts):
            rows = np.flatnonzero(columns["parts"] == number)
            if not len(rows):
                continue
            part = {key: torch.as_tensor(values[rows]) for key, values in columns.items()}
            if name in self._mixture.vectors:
                vectors = self._mixture.vectors[name][columns["vectors"][rows]].astype(np.float32)
                part = {"inputs": part["first"], "vectors": torch.from_numpy(vectors)}
            else:
                # Its presence marks a part with a teacher.
                del part["vectors"]
            labels[name] = part
        return labels
