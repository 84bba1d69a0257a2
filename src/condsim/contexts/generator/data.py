"""What a generator is trained on: every sentence of the training documents as a centre."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from condsim.contexts.corpus import (
    Corpus,
    CorpusTokens,
    Vocabulary,
    document_starts,
    held_out_documents,
)
from condsim.contexts.generator.items import ItemBuilder, Items, Task3, Units
from condsim.contexts.generator.model import ContextGenerator
from condsim.contexts.generator.settings import GeneratorSettings
from condsim.types import IntArray

_BUCKET = 4  # tokens of target length that count as equal when batches are shuffled
_JUDGED = 128  # examples evaluated at a time
_COUNTED = 50_000  # training examples whose words the unigram model counts


class GeneratorData:
    """A corpus split into tokens, documents to train on and documents held out."""

    def __init__(
        self,
        corpus: Corpus,
        tokens: CorpusTokens,
        vocabulary: Vocabulary,
        settings: GeneratorSettings,
    ) -> None:
        self.corpus, self.tokens = corpus, tokens
        self.vocabulary, self.settings = vocabulary, settings
        starts = document_starts(corpus)
        held_out = held_out_documents(starts, share=settings.held_out, seed=settings.seed)
        self.documents, self.held_out = int((~held_out).sum()), int(held_out.sum())
        sizes = np.diff(starts)
        self.train = np.flatnonzero(np.repeat(~held_out & (sizes >= 2), sizes))
        rows = np.flatnonzero(np.repeat(held_out, sizes))
        drawn = np.random.default_rng((settings.seed, 4)).permutation(rows)
        self.judged = drawn[: settings.held_out_examples]  # in no order: the next is another's
        self.lengths = np.minimum(tokens.lengths, settings.max_tokens - 1) + 1

    def has_target(self, task: Task3, centres: IntArray) -> IntArray:
        """Those of the centres that have anything to generate."""
        if task == "centre":
            return centres
        documents = np.asarray(self.corpus.documents)
        other = centres + (-1 if task == "left" else 1)
        inside = (other >= 0) & (other < len(documents))
        other = np.where(inside, other, centres)
        found: IntArray = centres[inside & (documents[other] == documents[centres])]
        return found

    def items(self, tasks: tuple[Task3, ...], centres: IntArray) -> tuple[Units, Items]:
        """Builds the examples of some centres.

        Args:
            centres: Rows of the corpus, ``(k,)``.
        """
        settings, vocabulary = self.settings, self.vocabulary
        around = self.corpus.neighbours(centres, left=settings.left, right=settings.right)
        ids = np.unique(np.concatenate([centres, around.ravel()]))
        ids = ids[ids >= 0]
        texts = self.tokens.take(ids, most=settings.max_tokens - 1)
        builder = ItemBuilder(
            dict(zip(ids.tolist(), texts, strict=True)),
            left=settings.left,
            joint=settings.encoder == "joint",
            end=vocabulary.end_id,
            separator=vocabulary.separator_id,
        )
        for task in tasks:
            for centre, near in zip(centres.tolist(), around.tolist(), strict=True):
                builder.add(task, centre, near)
        return builder.units, builder.items


class GeneratorWork:
    """Batches of one generator's examples; see `condsim.contexts.model_training.TrainingWork`."""

    def __init__(
        self, model: ContextGenerator, data: GeneratorData, tasks: tuple[Task3, ...]
    ) -> None:
        self._model, self._data, self.tasks = model, data, tasks
        self._centres = data.has_target(tasks[0], data.train)
        self.tokens_seen = 0
        target = sum(self._target_lengths(task) for task in tasks)
        window = self._reach(data.settings.left, data.settings.right)
        self._targets = np.asarray(target)[self._centres]
        self._costs = self._targets + window[self._centres]

    def batches(self, epoch: int) -> list[IntArray]:
        """Examples of near target length together, in an order drawn anew each epoch."""
        settings = self._data.settings
        random = np.random.default_rng((settings.seed, 5, epoch))
        order = random.permutation(len(self._centres))
        order = order[np.argsort(self._targets[order] // _BUCKET, kind="stable")]
        batch = (np.cumsum(self._costs[order]) - 1) // settings.batch_tokens
        cuts = np.flatnonzero(np.diff(batch)) + 1
        batches = np.split(self._centres[order], cuts)
        return [batches[row] for row in random.permutation(len(batches))]

    def loss(self, batch: IntArray, random: np.random.Generator) -> Tensor:
        """Mean negative log-probability of a target token."""
        units, items = self._data.items(self.tasks, batch)
        self.tokens_seen += sum(map(len, units.tokens)) + sum(map(len, items.targets))
        return self._model.loss(units, items)

    def evaluate(self) -> float:
        """Mean log-probability of a target token of held-out documents, over the tasks."""
        return -float(np.mean([self.held_out_loss(task) for task in self.tasks]))

    def held_out_loss(self, task: Task3, *, shift: int = 0) -> float:
        """Negative log-probability of a target token of held-out documents, in nats."""
        centres = self._data.has_target(task, self._data.judged)
        total, count = 0.0, 0
        for first in range(0, len(centres), _JUDGED):
            units, items = self._data.items((task,), centres[first : first + _JUDGED])
            items.units = items.units[shift:] + items.units[:shift]
            scores = self._model.log_probabilities(self._model.encode(units), items)
            total -= float(scores.sum())
            count += sum(map(len, items.targets))
        return total / count if count else float("nan")

    def unigram_loss(self, task: Task3) -> float:
        """What :meth:`held_out_loss` would be for a model that knows word frequencies alone.

        Frequencies are those of training targets, end and separator tokens among them, add-one
        smoothed.
        """
        centres = self._data.has_target(task, self._data.judged)
        if not len(centres):
            return float("nan")
        step = -(-len(self._centres) // _COUNTED)
        _, counted = self._data.items((task,), self._centres[::step])
        counts = np.ones(len(self._data.vocabulary))
        counts += np.bincount(np.concatenate(counted.targets), minlength=len(counts))
        _, items = self._data.items((task,), centres)
        costs = -np.log(counts / counts.sum())
        return float(costs[np.concatenate(items.targets)].mean())

    def _target_lengths(self, task: Task3) -> IntArray:
        """Tokens of each sentence's target; too many at the ends of a document."""
        settings = self._data.settings
        if task == "centre":
            return self._data.lengths
        if task == "left":
            return self._reach(settings.left, -1)
        return self._reach(-1, settings.right)

    def _reach(self, left: int, right: int) -> IntArray:
        """Tokens from ``left`` sentences before each to ``right`` after; -1 leaves itself out."""
        n = len(self._data.lengths)
        sums = np.concatenate([[0], np.cumsum(self._data.lengths)])
        rows = np.arange(n)
        reached: IntArray = sums[np.clip(rows + right + 1, 0, n)] - sums[np.clip(rows - left, 0, n)]
        return reached
