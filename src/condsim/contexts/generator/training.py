"""Training the generators, and how probable they find documents they have not seen."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from condsim.config import Settings
from condsim.contexts.corpus.stored import Corpus, document_starts, held_out_documents
from condsim.contexts.corpus.vocabulary import CorpusTokens, Vocabulary
from condsim.contexts.generator.counts import FOLDER_KINDS, CountsGenerator
from condsim.contexts.generator.items import ItemBuilder, Items, Units
from condsim.contexts.generator.model import ContextGenerator, backbone_vocabulary, new_generator
from condsim.contexts.generator.translation import TranslationGenerator
from condsim.contexts.models import (
    REPORT,
    VOCABULARY,
    StepProgress,
    TrainingSummary,
    best_device,
    finish_folder,
    prepare_folder,
    read_report,
    train_model,
    write_json,
)
from condsim.contexts.settings import ALL, GENERATOR_TASKS, GeneratorSettings, GeneratorTask
from condsim.types import BoolArray, IntArray

_BUCKET = 4  # tokens of target length that count as equal when batches are shuffled
_EVALUATED = 128  # examples at a time
_COUNTED = 50_000  # training examples whose words the unigram model counts


class GeneratorData:
    """The tokens of a corpus, the documents to train on and those held out."""

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
        self.documents, self.held_out_documents = int((~held_out).sum()), int(held_out.sum())
        sizes = np.diff(starts)
        self.train = np.flatnonzero(np.repeat(~held_out & (sizes >= 2), sizes))
        self.counted: BoolArray = np.repeat(~held_out, sizes)  # documents of one sentence too
        rows = np.flatnonzero(~self.counted)
        drawn = np.random.default_rng((settings.seed, 4)).permutation(rows)
        self.held_out = drawn[: settings.held_out_examples]  # in no order: neighbours are strangers
        self.lengths = np.minimum(tokens.lengths, settings.max_tokens - 1) + 1

    def with_target(self, task: GeneratorTask, centres: IntArray) -> IntArray:
        """The centres that have anything to generate."""
        if task == "centre":
            return centres
        sides = self.corpus.neighbours(centres, left=1, right=1)
        found: IntArray = centres[sides[:, 0 if task == "left" else 1] >= 0]
        return found

    def items(self, tasks: tuple[GeneratorTask, ...], centres: IntArray) -> tuple[Units, Items]:
        """The examples of some centres, ``(k,)``."""
        settings = self.settings
        around = self.corpus.neighbours(centres, left=settings.left, right=settings.right)
        ids = np.unique(np.concatenate([centres, around.ravel()]))
        ids = ids[ids >= 0]
        texts = self.tokens.take(ids, most=settings.max_tokens - 1)
        sentences = dict(zip(ids.tolist(), texts, strict=True))
        builder = ItemBuilder(sentences, settings, self.vocabulary)
        for task in tasks:
            for centre, near in zip(centres.tolist(), around.tolist(), strict=True):
                builder.add(task, centre, near)
        return builder.units, builder.items

    def target_lengths(self, task: GeneratorTask) -> IntArray:
        """Tokens of each sentence's target, ``(n,)``; too many at the ends of a document."""
        if task == "centre":
            return self.lengths
        left, right = self.settings.left, self.settings.right
        return self.reach(left, -1) if task == "left" else self.reach(-1, right)

    def reach(self, left: int, right: int) -> IntArray:
        """Tokens from ``left`` sentences before each to ``right`` after; -1 leaves itself out."""
        n = len(self.lengths)
        sums = np.concatenate([[0], np.cumsum(self.lengths)])
        rows = np.arange(n)
        reached: IntArray = sums[np.clip(rows + right + 1, 0, n)] - sums[np.clip(rows - left, 0, n)]
        return reached


class GeneratorWork:
    """What one generator is trained on; see `TrainingWork`."""

    def __init__(
        self,
        model: ContextGenerator | CountsGenerator,
        data: GeneratorData,
        tasks: tuple[GeneratorTask, ...],
    ) -> None:
        self._model, self._data, self.tasks = model, data, tasks
        self._centres = data.with_target(tasks[0], data.train)
        self.tokens_seen = 0
        targets = np.sum([data.target_lengths(task) for task in tasks], axis=0)
        window = data.reach(data.settings.left, data.settings.right)
        self._targets = targets[self._centres]
        self._costs = self._targets + window[self._centres]

    def batches(self, epoch: int) -> list[IntArray]:
        """Examples of near target length together, in an order drawn anew each epoch."""
        settings = self._data.settings
        random = np.random.default_rng((settings.seed, 5, epoch))
        order = random.permutation(len(self._centres))
        order = order[np.argsort(self._targets[order] // _BUCKET, kind="stable")]
        batch = (np.cumsum(self._costs[order]) - 1) // settings.batch_tokens
        batches = np.split(self._centres[order], np.flatnonzero(np.diff(batch)) + 1)
        return [batches[row] for row in random.permutation(len(batches))]

    def loss(self, batch: IntArray, random: np.random.Generator) -> Tensor:
        """Mean negative log-probability of a target token."""
        units, items = self._data.items(self.tasks, batch)
        self.tokens_seen += sum(map(len, units.tokens)) + sum(map(len, items.targets))
        model: Any = self._model  # counts alone have no loss: they are not trained
        loss: Tensor = model.loss(units, items)
        return loss

    def evaluate(self) -> float:
        """Mean log-probability of a target token of held-out documents, over the tasks."""
        return -float(np.mean([self.held_out_loss(task) for task in self.tasks]))

    def held_out_loss(self, task: GeneratorTask, *, shift: int = 0) -> float:
        """Negative log-probability of a target token of held-out documents, in nats."""
        # With a shift each is generated from the sentences given for an example so much further on.
        centres = self._data.with_target(task, self._data.held_out)
        total, count = 0.0, 0
        for first in range(0, len(centres), _EVALUATED):
            units, items = self._data.items((task,), centres[first : first + _EVALUATED])
            items.units = items.units[shift:] + items.units[:shift]
            model: Any = self._model  # each reads what it encoded itself
            scores = model.log_probabilities(model.encode(units), items)
            total -= float(scores.sum())
            count += sum(map(len, items.targets))
        return total / count if count else float("nan")

    def unigram_loss(self, task: GeneratorTask) -> float:
        """What :meth:`held_out_loss` would be for a model that knows word frequencies alone."""
        # Frequencies of training targets, end and separator tokens among them, add-one smoothed.
        centres = self._data.with_target(task, self._data.held_out)
        if not len(centres):
            return float("nan")
        step = -(-len(self._centres) // _COUNTED)
        _, counted = self._data.items((task,), self._centres[::step])
        counts = np.ones(len(self._data.vocabulary))
        counts += np.bincount(np.concatenate(counted.targets), minlength=len(counts))
        _, items = self._data.items((task,), centres)
        costs = -np.log(counts / counts.sum())
        return float(costs[np.concatenate(items.targets)].mean())


class TaskReport(Settings, allow_inf_nan=True):
    """Negative log-probability of a token of held-out documents, in nats; lower is better."""

    # Given other sentences, the loss is higher if the generator learned to use what it is given.

    loss: float
    unigram_loss: float  # of word frequencies alone
    other_context_loss: float  # of the generator, given the sentences of another example


class ModelReport(TrainingSummary, allow_inf_nan=True):
    """How one model was trained, and how good it is; evaluations are mean log-probabilities."""

    tasks: dict[GeneratorTask, TaskReport]
    parameters: int


class _DocumentCounts(Settings):
    documents: int
    held_out_documents: int


class GeneratorReport(_DocumentCounts):
    """The models of a folder.

    Attributes:
        models: The reports by name: the task, or ``all``.
    """

    models: dict[str, ModelReport]

    @classmethod
    def read(cls, folder: Path) -> GeneratorReport:
        """Reads the reports of a finished training.

        Raises:
            InputError: If there is none, or one is damaged.
        """
        trained = [name for name in (ALL, *GENERATOR_TASKS) if (folder / name / REPORT).is_file()]
        models = {name: read_report(ModelReport, folder / name) for name in trained}
        return cls(**dict(read_report(_DocumentCounts, folder)), models=models)

    @property
    def tasks(self) -> dict[GeneratorTask, TaskReport]:
        """Quality by task, whichever model does it."""
        return {task: part for model in self.models.values() for task, part in model.tasks.items()}

    def summary(self) -> str:
        """Says in one line how good the generators are."""
        parts = [
            f"{name} {task.loss:.2f} (words alone {task.unigram_loss:.2f}, another context "
            f"{task.other_context_loss:.2f})"
            for name, task in self.tasks.items()
        ]
        return f"generators, nats per held-out token: {'; '.join(parts)}"


def train_generators(
    corpus: Corpus,
    vocabulary: Vocabulary,
    folder: Path,
    settings: GeneratorSettings,
    *,
    tasks: Collection[str] = GENERATOR_TASKS,
    progress: StepProgress | None = None,
) -> GeneratorReport:
    """Trains or counts the generators, goes on with a killed training, or reads a finished one."""
    own = settings.backbone is None or settings.kind == "translation"  # vocabulary
    revision = vocabulary.revision if own else ""
    kind = FOLDER_KINDS[settings.kind]
    prepare_folder(folder, kind, settings, corpus=corpus.revision, vocabulary=revision)
    models = settings.models_for(tasks)
    if all((folder / part / REPORT).is_file() for part in (".", *models)):
        return GeneratorReport.read(folder)
    if own:
        vocabulary.save(folder / VOCABULARY)
    else:
        vocabulary = backbone_vocabulary(settings, folder / VOCABULARY)
    data = GeneratorData(corpus, CorpusTokens.build(corpus, vocabulary), vocabulary, settings)
    done = 0
    for place, (name, of_one) in enumerate(models.items()):
        counted = _counted(progress, done, left=len(models) - place)
        done += _train_model(folder / name, data, of_one, counted).steps
    counts = {"documents": data.documents, "held_out_documents": data.held_out_documents}
    write_json(folder / REPORT, counts)
    return GeneratorReport.read(folder)


def _train_model(
    folder: Path,
    data: GeneratorData,
    tasks: tuple[GeneratorTask, ...],
    progress: StepProgress | None,
) -> ModelReport:
    folder.mkdir(exist_ok=True)
    if (folder / REPORT).is_file():
        return read_report(ModelReport, folder)
    settings = data.settings
    model = _new_model(folder, data, progress)
    work = GeneratorWork(model, data, tasks)
    if settings.kind == "counts":
        summary = TrainingSummary(steps=0, seconds=0.0, tokens_per_second=0.0, evaluations=())
    else:
        summary = train_model(
            model, work, folder, settings, learning_rate=settings.peak, progress=progress
        )
    if isinstance(model, ContextGenerator):
        model.backbone.config.save_pretrained(folder)  # which `saved_generator` reads
    with torch.inference_mode():
        quality = {
            task: TaskReport(
                loss=work.held_out_loss(task),
                unigram_loss=work.unigram_loss(task),
                other_context_loss=work.held_out_loss(task, shift=1),
            )
            for task in tasks
        }
    parameters = sum(parameter.numel() for parameter in model.parameters())
    report = ModelReport(tasks=quality, parameters=parameters, **dict(summary))
    finish_folder(folder, model, report)
    if isinstance(model, TranslationGenerator):
        model.keep_normalisers(folder, progress=progress)
    return report


def _new_model(
    folder: Path, data: GeneratorData, progress: StepProgress | None
) -> ContextGenerator | CountsGenerator:
    """Makes a model; one of counts has counted."""
    settings = data.settings
    if settings.kind == "trained":
        return new_generator(settings, data.vocabulary).to(best_device())
    if settings.kind == "counts":
        model = CountsGenerator(settings, data.vocabulary)
    else:
        model = TranslationGenerator.new(settings, data.vocabulary)
        model.read(data.corpus, folder, progress=progress)
    model.count(data.tokens, data.counted)
    return model


def _counted(progress: StepProgress | None, done: int, *, left: int) -> StepProgress | None:
    """Counts the steps of all models together; those yet to come take about as many each."""
    if progress is None:
        return None
    return lambda step, steps: progress(done + step, done + left * steps)
