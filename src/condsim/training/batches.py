"""Batches of a mixture: whole units of several sources, each distinct input encoded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler

from condsim.errors import InputError
from condsim.training.mixture import Mixture, Units
from condsim.training.recipe import Recipe
from condsim.types import IntArray

if TYPE_CHECKING:
    from datasets import Dataset

    from condsim.training.data import TrainingSet

# Batches sorted together: enough to find rows of similar length, few enough to stay random.
_BATCHES_PER_WINDOW = 32


def group_rows(pair_ids: IntArray, *, batch_size: int) -> list[NDArray[np.int64]]:
    """Groups row indices by sentence pair, in the order of the first row of each.

    Args:
        pair_ids: Sentence pair of each row, ``(n,)``.
        batch_size: Largest group, so that every group fits into one batch; larger ones are split.
    """
    order = np.argsort(pair_ids, kind="stable")
    starts = np.flatnonzero(np.diff(pair_ids[order], prepend=-2))
    groups = np.split(order, starts[1:])
    pieces = [g[i : i + batch_size] for g in groups for i in range(0, len(g), batch_size)]
    return sorted(pieces, key=lambda group: int(group[0]))


class PairBatchSampler(DefaultBatchSampler):
    """Draws batches of whole sentence pairs (C-STS §4.1: Quad needs both conditions of a pair).

    An epoch shuffles the pairs, sorts each window of 32 batches by length, cuts batches and
    shuffles them, so padding is small and the order stays random. The same seed and epoch give the
    same batches, which is what lets an interrupted run be resumed exactly.

    Args:
        pair_ids: Sentence pair of each row, ``(n,)``.
        lengths: Length of each row in any unit, ``(n,)``.
        batch_size: Rows in a batch, at least 2 where rows come in pairs.
        length_grouped: Whether to sort by length at all.
        drop_last: Leave out the last round of batches that not every process gets.

    Raises:
        InputError: If there are no rows.
    """

    def __init__(
        self,
        pair_ids: IntArray,
        lengths: IntArray,
        *,
        batch_size: int,
        seed: int,
        length_grouped: bool = True,
        drop_last: bool = False,
    ) -> None:
        if len(pair_ids) == 0:
            raise InputError("There are no labelled rows to train on.")
        rows = range(len(pair_ids))
        super().__init__(rows, batch_size=batch_size, drop_last=drop_last, seed=seed)
        # accelerate would leave out every batch that is not of exactly this size.
        self.batch_size = None  # type: ignore[assignment]
        self._groups = group_rows(pair_ids, batch_size=batch_size)
        self._sizes = np.array([len(group) for group in self._groups])
        self._lengths = np.array([int(lengths[group].max()) for group in self._groups])
        self._window = _BATCHES_PER_WINDOW * batch_size if length_grouped else 0
        self._slots = self._plan(batch_size)

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[list[int]]:
        generator = np.random.default_rng((self.seed, self.epoch))
        order = self._order(generator)
        queues = {size: iter(order[self._sizes[order] == size]) for size in set(self._sizes)}
        batches = [
            [row for size in slot for row in self._groups[next(queues[size])].tolist()]
            for slot in self._slots
        ]
        for index in generator.permutation(len(batches)):
            yield batches[index]

    def _plan(self, batch_size: int) -> list[list[int]]:
        """Fixes the group sizes of each batch, so that every epoch has as many batches."""
        slots: list[list[int]] = [[]]
        for size in np.random.default_rng(self.seed).permutation(self._sizes).tolist():
            if sum(slots[-1]) + size > batch_size:
                slots.append([])
            slots[-1].append(size)
        return slots

    def _order(self, generator: np.random.Generator) -> NDArray[np.int64]:
        order = generator.permutation(len(self._groups))
        if not self._window:
            return order
        windows = np.split(order, range(self._window, len(order), self._window))
        return np.concatenate([w[np.argsort(self._lengths[w], kind="stable")] for w in windows])


def batch_sampler(
    rows: TrainingSet,
    dataset: Dataset,
    *,
    batch_size: int,
    drop_last: bool,
    seed: int,
    length_grouped: bool,
    valid_label_columns: list[str] | None = None,
    generator: torch.Generator | None = None,
) -> PairBatchSampler:
    """Makes the sampler as a sentence-transformers trainer asks for it.

    The order follows from seed and epoch alone, not from ``generator``.
    """
    return PairBatchSampler(
        rows.pair_ids,
        rows.lengths,
        batch_size=batch_size,
        seed=seed,
        length_grouped=length_grouped,
        drop_last=drop_last,
    )


ITEM = "item"
"""The one column of the data set that a trainer is given: numbers of items."""

# Tokens of a sub-batch with its padding. On a CPU small ones, in which the lengths are alike: on
# rows of criteria and C-STS that computes 1.2 times the tokens, and one batch for all 3 times.
_TOKENS = {"cpu": 768}
_TOKENS_ELSEWHERE = 8192


def batches_of(mixture: Mixture, recipe: Recipe, *, processes: int) -> int:
    """Batches of an epoch, those of all processes."""
    if recipe.steps is not None:
        steps = math.ceil(recipe.steps / recipe.epochs)
        return steps * recipe.gradient_accumulation * processes
    total = sum(one.share for one in mixture.units.values())
    own = recipe.batch_size * recipe.train_share / total  # inputs of `train` in a batch
    return max(1, round(float(mixture.units["train"].costs.sum()) / own))


class SourceBatchSampler(DefaultBatchSampler):
    """Draws batches to which every source adds its share of distinct inputs, in whole units.

    A source is drawn in a random order, anew each time it has been drawn whole. What it owes or is
    owed for a unit that does not fit is settled in the next batches. An epoch goes on where the one
    before stopped. The same seed and epoch give the same batches, so a run can be resumed exactly.
    """

    def __init__(self, mixture: Mixture, *, batch_size: int, batches: int, seed: int) -> None:
        """Makes the sampler; a batch has ``batch_size`` distinct inputs on average."""
        super().__init__(range(len(mixture)), batch_size=batch_size, drop_last=False, seed=seed)
        # accelerate would leave out every batch that is not of exactly this size.
        self.batch_size = None  # type: ignore[assignment]
        self._sources = tuple(mixture.units.values())
        shares = np.array([one.share for one in self._sources])
        self._quotas = batch_size * shares / shares.sum()  # (sources,)
        self._batches = batches

    def __len__(self) -> int:
        return self._batches

    def __iter__(self) -> Iterator[list[int]]:
        start = self.epoch * self._batches
        yield from islice(self._stream(), start, start + self._batches)

    def _stream(self) -> Iterator[list[int]]:
        """All batches from the first on."""
        drawn = [self._drawn(number, one) for number, one in enumerate(self._sources)]
        following = [next(units) for units in drawn]
        credit = np.zeros(len(drawn))
        while True:
            batch: list[int] = []
            credit += self._quotas
            for number, units in enumerate(drawn):
                # Rounded: a unit is taken once half of it is paid for.
                while credit[number] >= following[number][1] / 2:
                    items, cost = following[number]
                    batch += items.tolist()
                    credit[number] -= cost
                    following[number] = next(units)
            if batch:
                yield batch

    def _drawn(self, number: int, source: Units) -> Iterator[tuple[IntArray, int]]:
        """Units of a source and their costs, without end."""
        for turn in count():
            order = np.random.default_rng((self.seed, number, turn)).permutation(len(source.items))
            for place in order.tolist():
                yield source.items[place], int(source.costs[place])


def source_sampler(
    mixture: Mixture,
    recipe: Recipe,
    dataset: Dataset,
    *,
    batch_size: int,
    drop_last: bool,
    seed: int,
    processes: int,
    valid_label_columns: list[str] | None = None,
    generator: torch.Generator | None = None,
) -> SourceBatchSampler:
    """Makes the sampler as a sentence-transformers trainer asks for it."""
    batches = batches_of(mixture, recipe, processes=processes)
    return SourceBatchSampler(mixture, batch_size=batch_size, batches=batches, seed=seed)


class SourceCollator:
    """Turns items into the sub-batches and labels that ``MixedLoss`` takes.

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
        """Makes the collator; ``device`` is where the encoder is, ``cpu`` or ``cuda``."""
        self._mixture = mixture
        self._preprocess = preprocess
        self._tokens = _TOKENS.get(device, _TOKENS_ELSEWHERE)
        self._single = np.array([isinstance(one, str) for one in mixture.inputs])
        self._lengths = np.zeros(len(mixture.inputs), dtype=np.int64)  # 0: not counted yet

    def __call__(self, features: Sequence[dict[str, int]]) -> dict[str, Any]:
        """Collates items of the data set."""
        items = np.array([one[ITEM] for one in features])
        columns = {name: values[items] for name, values in self._mixture.columns.items()}
        used, place = np.unique([columns["first"], columns["second"]], return_inverse=True)
        chunks = self._chunks(used)
        position = np.empty(len(used), dtype=np.int64)
        position[np.concatenate(chunks)] = np.arange(len(used))
        columns["first"], columns["second"] = position[place.reshape(2, -1)]  # (items,) each
        batch: dict[str, Any] = {}
        for number, chunk in enumerate(chunks):
            texts = [self._mixture.inputs[one] for one in used[chunk]]
            for key, value in self._preprocess(texts).items():
                batch[f"inputs{number}_{key}"] = value
        batch["label"] = self._labels(columns)
        return batch

    def _chunks(self, used: IntArray) -> list[IntArray]:
        """Places in ``used`` of each sub-batch: of similar length, with or without a condition."""
        chunks: list[IntArray] = []
        for single in (False, True):
            places = np.flatnonzero(self._single[used] == single)
            self._count(used[places])
            places = places[np.argsort(self._lengths[used[places]], kind="stable")]
            while len(places):  # from the longest down
                size = max(1, self._tokens // int(self._lengths[used[places[-1]]]))
                chunks.append(places[-size:])
                places = places[:-size]
        return chunks

    def _count(self, numbers: IntArray) -> None:
        """Counts the tokens of inputs that are new."""
        new = numbers[self._lengths[numbers] == 0]
        if not len(new):
            return
        features = self._preprocess([self._mixture.inputs[one] for one in new])
        masks = [value for key, value in features.items() if key.endswith("_mask")]
        self._lengths[new] = sum(mask.sum(dim=1).numpy() for mask in masks)

    def _labels(self, columns: dict[str, Any]) -> dict[str, dict[str, torch.Tensor]]:
        """The tensors of each part."""
        labels = {}
        for number, name in enumerate(self._mixture.parts):
            rows = np.flatnonzero(columns["parts"] == number)
            if not len(rows):
                continue
            part = {key: torch.as_tensor(values[rows]) for key, values in columns.items()}
            if name in self._mixture.vectors:
                vectors = self._mixture.vectors[name][columns["vectors"][rows]]
                labels[name] = {
                    "inputs": part["first"],
                    "vectors": torch.from_numpy(vectors.astype(np.float32)),
                }
            else:
                del part["parts"], part["vectors"]
                labels[name] = part
        return labels
