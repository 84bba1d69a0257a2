"""Batches: whole sentence pairs of one file, or whole units of a mixture of sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler

from condsim.types import IntArray

# Batches sorted together: enough to find rows of similar length, few enough to stay random.
BATCHES_PER_WINDOW = 32

ITEM = "item"
"""The one column of the data set of a mixture: numbers of items."""

# Tokens of a sub-batch with its padding. On a CPU small ones, in which the lengths are similar: on
# rows of criteria and C-STS that computes 1.2 times the tokens, and one batch for all 3 times.
CPU_TOKENS = 768
ACCELERATOR_TOKENS = 8192

Weights = Mapping[str, float]


@dataclass(frozen=True)
class TrainingSet:
    """Rows as a sentence-transformers trainer and `PairBatchSampler` take them.

    ``pair_ids`` has the sentence pair of each row, ``(n,)``, whose rows share a batch, and
    ``lengths`` the characters of its longest text.
    """

    dataset: Dataset
    pair_ids: IntArray
    lengths: IntArray


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


def group_rows(pair_ids: IntArray, *, batch_size: int) -> list[IntArray]:
    """Group row indices by sentence pair, in the order of the first row; split large groups."""
    order = np.argsort(pair_ids, kind="stable")
    starts = np.flatnonzero(np.diff(pair_ids[order], prepend=-2))
    groups = np.split(order, starts[1:])
    pieces = [g[i : i + batch_size] for g in groups for i in range(0, len(g), batch_size)]
    return sorted(pieces, key=lambda group: int(group[0]))


class PairBatchSampler(DefaultBatchSampler):
    """Sampler of whole sentence pairs (C-STS §4.1: Quad needs both conditions of a pair).

    An epoch shuffles the pairs, sorts each window of 32 batches by length, cuts batches and
    shuffles them, so padding is small and the order stays random. The order follows from seed and
    epoch alone, which is what lets an interrupted run be resumed exactly.

    The arguments after ``rows`` are those that a sentence-transformers trainer gives.
    """

    def __init__(
        self,
        rows: TrainingSet,
        dataset: Dataset | None = None,
        *,
        batch_size: int,
        drop_last: bool = False,
        seed: int,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Group the rows by pair and fix the sizes of the batches."""
        indices = range(len(rows.pair_ids))
        super().__init__(indices, batch_size=batch_size, drop_last=drop_last, seed=seed)
        # accelerate would leave out every batch that is not of exactly this size.
        self.batch_size = None  # type: ignore[assignment]
        self._groups = group_rows(rows.pair_ids, batch_size=batch_size)
        self._sizes = np.array([len(group) for group in self._groups])
        self._lengths = np.array([int(rows.lengths[group].max()) for group in self._groups])
        self._window = BATCHES_PER_WINDOW * batch_size
        self._slots = self._plan(batch_size)

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[list[int]]:
        generator = np.random.default_rng((self.seed, self.epoch))
        order = self._order(generator)
        queues = {size: iter(order[self._sizes[order] == size]) for size in set(self._sizes)}
        batches = []
        for slot in self._slots:
            groups = [self._groups[next(queues[size])] for size in slot]
            batches.append(np.concatenate(groups).tolist())
        for index in generator.permutation(len(batches)):
            yield batches[index]

    def _plan(self, batch_size: int) -> list[list[int]]:
        """Fix the group sizes of each batch, so that every epoch has as many batches."""
        slots: list[list[int]] = [[]]
        for size in np.random.default_rng(self.seed).permutation(self._sizes).tolist():
            if sum(slots[-1]) + size > batch_size:
                slots.append([])
            slots[-1].append(size)
        return slots

    def _order(self, generator: np.random.Generator) -> IntArray:
        """Order of the groups in an epoch: random, within each window by length."""
        order = generator.permutation(len(self._groups))
        windows = np.split(order, range(self._window, len(order), self._window))
        return np.concatenate([w[np.argsort(self._lengths[w], kind="stable")] for w in windows])


class SourceBatchSampler(DefaultBatchSampler):
    """Sampler of batches to which every source adds its share of distinct inputs, in whole units.

    A source is drawn in a random order, and again in another once it is used up. A balance of
    inputs is carried over for a unit that does not fit. An epoch continues where the one before
    stopped. The same seed and epoch give the same batches, so a run can be resumed exactly.

    The arguments after ``batches`` are those that a sentence-transformers trainer gives.
    """

    def __init__(
        self,
        mixture: Mixture,
        dataset: Dataset | None = None,
        *,
        batches: int,
        batch_size: int,
        drop_last: bool = False,
        seed: int,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Make the sampler; an epoch has ``batches`` batches."""
        super().__init__(range(len(mixture)), batch_size=batch_size, drop_last=False, seed=seed)
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
            indices = indices[np.argsort(self._lengths[inputs[indices]], kind="stable")]
            # The longest inputs are taken first.
            while len(indices):
                size = max(1, self._tokens // int(self._lengths[inputs[indices[-1]]]))
                chunks.append(indices[-size:])
                indices = indices[:-size]
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
