"""Batches of a mixture: whole units of several sources, each distinct input encoded once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers.base.sampler import DefaultBatchSampler

from condsim.training.mixture import Mixture, Units
from condsim.training.recipe import Recipe
from condsim.types import IntArray

if TYPE_CHECKING:
    from datasets import Dataset

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
        """Makes the sampler.

        Args:
            batch_size: Distinct inputs of a batch, on average.
            seed: Seed of the order.
        """
        super().__init__(range(len(mixture)), batch_size=batch_size, drop_last=False)
        # accelerate would leave out every batch that is not of exactly this size.
        self.batch_size = None  # type: ignore[assignment]
        self.epoch = 0
        self._sources = tuple(mixture.units.values())
        shares = np.array([one.share for one in self._sources])
        self._quotas = batch_size * shares / shares.sum()  # (sources,)
        self._batches = batches
        self._seed = seed

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch that the next iteration draws."""
        self.epoch = epoch

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
            order = np.random.default_rng((self._seed, number, turn)).permutation(len(source.items))
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
    """Turns items into the sub-batches and labels that ``condsim.losses.MixedLoss`` takes.

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
        """Makes the collator.

        Args:
            preprocess: That of the encoder.
            device: Kind of device that the encoder is on, ``cpu`` or ``cuda``.
        """
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
