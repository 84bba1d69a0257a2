"""Batches that keep the rows of a sentence pair together and hold rows of similar length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler

from condsim.errors import InputError
from condsim.types import IntArray

if TYPE_CHECKING:
    import torch
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
        seed: Seed of the order.
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
        super().__init__(range(len(pair_ids)), batch_size=batch_size, drop_last=drop_last)
        # accelerate would leave out every batch that is not of exactly this size.
        self.batch_size = None  # type: ignore[assignment]
        self.seed = seed
        self.epoch = 0
        self._groups = group_rows(pair_ids, batch_size=batch_size)
        self._sizes = np.array([len(group) for group in self._groups])
        self._lengths = np.array([int(lengths[group].max()) for group in self._groups])
        self._window = _BATCHES_PER_WINDOW * batch_size if length_grouped else 0
        self._slots = self._plan(batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch that the next iteration draws."""
        self.epoch = epoch

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
