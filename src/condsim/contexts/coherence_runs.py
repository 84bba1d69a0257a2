"""What the coherence model is trained on: runs of consecutive sentences, and their replacements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condsim.types import BoolArray, IntArray

__all__ = ["Batch", "Runs", "batch_of"]


@dataclass(frozen=True)
class Runs:
    """Consecutive centres of one document, and the sentences around them.

    Attributes:
        first: First centre of each run, ``(r,)``.
        last: One past the last centre, ``(r,)``.
        low: First sentence of the run: up to ``left`` before the first centre, ``(r,)``.
        high: One past its last sentence, ``(r,)``.
    """

    first: IntArray
    last: IntArray
    low: IntArray
    high: IntArray

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.first)

    @property
    def sizes(self) -> IntArray:
        """Sentences of each run, ``(r,)``."""
        return self.high - self.low

    @classmethod
    def of_documents(
        cls, starts: IntArray, chosen: BoolArray, *, most: int, left: int, right: int
    ) -> Runs:
        """Cuts documents into runs of about equal length.

        Args:
            starts: First sentence of each document, and n, ``(d + 1,)``.
            chosen: Which documents, ``(d,)``; those of one sentence are left out.
            most: Centres of a run at most.
            left: Sentences before a centre.
            right: Sentences after it.

        Returns:
            The runs, in order.
        """
        rows: list[tuple[int, int, int, int]] = []
        for document in np.flatnonzero(chosen & (np.diff(starts) >= 2)):
            begin, end = int(starts[document]), int(starts[document + 1])
            cuts = np.linspace(begin, end, -(-(end - begin) // most) + 1).round().astype(int)
            for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
                rows.append((first, last, max(begin, first - left), min(end, last + right)))
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        return cls(table[:, 0], table[:, 1], table[:, 2], table[:, 3])

    def batches(self, order: IntArray, *, sentences: int) -> list[IntArray]:
        """Puts runs together until a batch has enough sentences.

        Args:
            order: Numbers of the runs, in the order they are taken.
            sentences: Sentences of a batch, about.

        Returns:
            Numbers of the runs of each batch.
        """
        ends = np.cumsum(self.sizes[order])
        return [part for part in np.split(order, _cuts(ends, sentences)) if len(part)]


@dataclass(frozen=True)
class Batch:
    """Sentences of some runs, each once, and which of them make up examples.

    Attributes:
        sentences: Rows of the corpus, ``(b,)``.
        neighbours: For each centre the rows of ``sentences`` around it, ``(k, left + right)``; -1
            where the document ends.
        centres: Row of the centre, ``(k,)``.
        replacements: Row of the sentence put in its place, ``(k,)``.
        same_document: Whether the replacement is from the same document, ``(k,)``.
    """

    sentences: IntArray
    neighbours: IntArray
    centres: IntArray
    replacements: IntArray
    same_document: BoolArray


def batch_of(
    runs: Runs, chosen: IntArray, random: np.random.Generator, *, left: int, right: int
) -> Batch:
    """Makes one example and one counter-example of each centre of some runs.

    Half of the replacements are other sentences of the centre's run, so of its document; half are
    sentences of the other runs of the batch. As runs are drawn from the whole corpus, these are
    random sentences of it, now and then of another run of a long document, and every sentence is
    still encoded once only. A batch of one run has no others, and takes all replacements from it.

    Args:
        runs: The runs.
        chosen: Numbers of those in the batch.
        random: What the replacements are drawn with.
        left: Sentences before a centre.
        right: Sentences after it.

    Returns:
        The batch.
    """
    offsets = np.concatenate([[0], np.cumsum(runs.sizes[chosen])])
    total = int(offsets[-1])
    around = np.array([*range(-left, 0), *range(1, right + 1)])
    sentences, neighbours, centres, replacements, same = [], [], [], [], []
    for run, offset, after in zip(chosen, offsets[:-1], offsets[1:], strict=True):
        size = int(after - offset)
        sentences.append(np.arange(runs.low[run], runs.high[run]))
        inside = np.arange(runs.first[run], runs.last[run]) - runs.low[run]
        near = inside[:, None] + around
        neighbours.append(np.where((near >= 0) & (near < size), near + offset, -1))
        centres.append(inside + offset)
        from_document = (random.permutation(len(inside)) % 2 == 0) | (total == size)
        other = random.integers(0, size - 1, len(inside))
        other += (other >= inside) + offset  # any of the run but the centre
        elsewhere = random.integers(0, max(1, total - size), len(inside))
        elsewhere += np.where(elsewhere >= offset, size, 0)  # any but those of the run
        replacements.append(np.where(from_document, other, elsewhere))
        same.append(from_document)
    return Batch(
        sentences=np.concatenate(sentences),
        neighbours=np.concatenate(neighbours),
        centres=np.concatenate(centres),
        replacements=np.concatenate(replacements),
        same_document=np.concatenate(same),
    )


def _cuts(ends: IntArray, size: int) -> IntArray:
    """Where to cut a running total so that each part reaches a size."""
    cuts, reached = [], 0
    for row, end in enumerate(ends):
        if end - reached >= size:
            cuts.append(row + 1)
            reached = int(end)
    return np.array(cuts, dtype=np.int64)
