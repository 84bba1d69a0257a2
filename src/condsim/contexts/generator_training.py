"""Training of the generators, and the probability they give to held-out documents."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from condsim.config import Settings
from condsim.contexts.corpus import Corpus
from condsim.contexts.count_generators import CountsGenerator, TranslationGenerator, corpus_vectors
from condsim.contexts.generator import ContextGenerator, backbone_vocabulary, new_generator
from condsim.contexts.generator_scorer import FOLDER_KINDS, AnyGenerator
from condsim.contexts.recipe import (
    ALL,
    GENERATOR_TASKS,
    REPORT,
    VOCABULARY,
    GeneratorSettings,
    GeneratorTask,
)
from condsim.contexts.tokens import CorpusTokens, EncoderUnits, ItemBuilder, Items, Vocabulary
from condsim.contexts.trainer import (
    StepProgress,
    Training,
    TrainingSummary,
    best_device,
    finish_folder,
    no_progress,
    prepare_folder,
    read_report,
)
from condsim.io import write_text
from condsim.types import BoolArray, IntArray

# Target lengths within so many tokens count as equal when batches are shuffled.
_TOKENS_PER_BUCKET = 4
_EXAMPLES_PER_EVALUATION = 128
# Training examples whose words the unigram model counts.
_UNIGRAM_EXAMPLES = 50_000


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
        held_out = corpus.held_out_documents(share=settings.held_out, seed=settings.seed)
        self.documents, self.held_out_documents = int((~held_out).sum()), int(held_out.sum())
        sizes = np.diff(corpus.document_starts)
        self.train = np.flatnonzero(np.repeat(~held_out & (sizes >= 2), sizes))
        # Documents of one sentence are counted too.
        self.counted: BoolArray = np.repeat(~held_out, sizes)
        rows = np.flatnonzero(~self.counted)
        # Shuffled, so that neighbors are from different contexts.
        shuffled = np.random.default_rng((settings.seed, 4)).permutation(rows)
        self.held_out = shuffled[: settings.held_out_examples]
        self.lengths = np.minimum(tokens.lengths, settings.max_tokens - 1) + 1

    def with_target(self, task: GeneratorTask, centres: IntArray) -> IntArray:
        """Choose the centers that have anything to generate."""
        if task == "centre":
            return centres
        sides = self.corpus.neighbours(centres, left=1, right=1)
        chosen: IntArray = centres[sides[:, 0 if task == "left" else 1] >= 0]
        return chosen

    def items(
        self, tasks: tuple[GeneratorTask, ...], centres: IntArray
    ) -> tuple[EncoderUnits, Items]:
        """Build the examples of some centers, ``(k,)``."""
        settings = self.settings
        around = self.corpus.neighbours(centres, left=settings.left, right=settings.right)
        ids = np.unique(np.concatenate([centres, around.ravel()]))
        ids = ids[ids >= 0]
        tokens = self.tokens.take(ids, most=settings.max_tokens - 1)
        sentences = dict(zip(ids.tolist(), tokens, strict=True))
        builder = ItemBuilder(sentences, settings, self.vocabulary)
        for task in tasks:
            for centre, near in zip(centres.tolist(), around.tolist(), strict=True):
                builder.add(task, centre, near)
        return builder.units, builder.items

    def window_lengths(self, left: int, right: int) -> IntArray:
        """Count tokens from ``left`` sentences before each to ``right`` after; -1 leaves it out.

        Too many where a document ends.
        """
        n = len(self.lengths)
        sums = np.concatenate([[0], np.cumsum(self.lengths)])
        rows = np.arange(n)
        counts: IntArray = sums[np.clip(rows + right + 1, 0, n)] - sums[np.clip(rows - left, 0, n)]
        return counts


class GeneratorWork:
    """Examples to train one generator on, and held-out ones; see `TrainingWork`."""

    def __init__(
        self, model: AnyGenerator, data: GeneratorData, tasks: tuple[GeneratorTask, ...]
    ) -> None:
        # Counts alone have no loss: they are not trained. Each model reads its own encoding.
        self._model: Any = model
        self._data, self.tasks = data, tasks
        self._centres = data.with_target(tasks[0], data.train)
        self.tokens_seen = 0
        left, right = data.settings.left, data.settings.right
        sides = {"centre": (0, 0), "left": (left, -1), "right": (-1, right)}
        targets = np.sum([data.window_lengths(*sides[task]) for task in tasks], axis=0)
        self._targets = targets[self._centres]
        self._costs = self._targets + data.window_lengths(left, right)[self._centres]

    def batches(self, epoch: int) -> list[IntArray]:
        """Shuffle the examples of an epoch into batches of similar target length."""
        settings = self._data.settings
        random = np.random.default_rng((settings.seed, 5, epoch))
        order = random.permutation(len(self._centres))
        order = order[np.argsort(self._targets[order] // _TOKENS_PER_BUCKET, kind="stable")]
        batch = (np.cumsum(self._costs[order]) - 1) // settings.batch_tokens
        batches = np.split(self._centres[order], np.flatnonzero(np.diff(batch)) + 1)
        return [batches[row] for row in random.permutation(len(batches))]

    def loss(self, batch: IntArray, random: np.random.Generator) -> Tensor:
        """Compute the mean negative log-probability of a target token."""
        units, items = self._data.items(self.tasks, batch)
        self.tokens_seen += sum(map(len, units.tokens)) + sum(map(len, items.targets))
        loss: Tensor = self._model.loss(units, items)
        return loss

    def evaluate(self) -> float:
        """Compute the mean log-probability of a held-out target token, over the tasks."""
        return -float(np.mean([self.held_out_loss(task) for task in self.tasks]))

    def held_out_loss(self, task: GeneratorTask, *, shift: int = 0) -> float:
        """Compute the negative log-probability of a held-out target token, in nats.

        With a shift each target is generated from the inputs of the example that far further on.
        """
        centres = self._data.with_target(task, self._data.held_out)
        total, count = 0.0, 0
        for first in range(0, len(centres), _EXAMPLES_PER_EVALUATION):
            part = centres[first : first + _EXAMPLES_PER_EVALUATION]
            units, items = self._data.items((task,), part)
            items.units = items.units[shift:] + items.units[:shift]
            total -= float(self._model.log_probabilities(self._model.encode(units), items).sum())
            count += sum(map(len, items.targets))
        return total / count if count else float("nan")

    def unigram_loss(self, task: GeneratorTask) -> float:
        """Compute :meth:`held_out_loss` of a model that has word frequencies alone.

        Frequencies are those of training targets, end and separator included, add-one smoothed.
        """
        centres = self._data.with_target(task, self._data.held_out)
        if not len(centres):
            return float("nan")
        step = -(-len(self._centres) // _UNIGRAM_EXAMPLES)
        _, counted = self._data.items((task,), self._centres[::step])
        counts = np.ones(len(self._data.vocabulary))
        counts += np.bincount(np.concatenate(counted.targets), minlength=len(counts))
        _, items = self._data.items((task,), centres)
        costs = -np.log(counts / counts.sum())
        return float(costs[np.concatenate(items.targets)].mean())


class TaskReport(Settings, allow_inf_nan=True):
    """Negative log-probability of a held-out token, in nats; lower is better.

    ``unigram_loss`` is that of word frequencies alone, ``other_context_loss`` that of the generator
    given the sentences of another example: it is higher if the generator uses its inputs.
    """

    loss: float
    unigram_loss: float
    other_context_loss: float


class ModelReport(TrainingSummary, allow_inf_nan=True):
    """Training and quality of one model; evaluations are mean log-probabilities."""

    tasks: dict[GeneratorTask, TaskReport]
    parameters: int


class GeneratorReport(Settings):
    """Reports of the models of a folder by name: the task, or ``all``."""

    documents: int
    held_out_documents: int
    models: dict[str, ModelReport] = Field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> GeneratorReport:
        """Read the reports of a finished training."""
        names = [name for name in (ALL, *GENERATOR_TASKS) if (folder / name / REPORT).is_file()]
        models = {name: read_report(ModelReport, folder / name) for name in names}
        return read_report(cls, folder).replaced(models=models)

    @property
    def tasks(self) -> dict[GeneratorTask, TaskReport]:
        """Quality by task, of any model."""
        return {task: part for model in self.models.values() for task, part in model.tasks.items()}

    def summary(self) -> str:
        """Describe the quality in one line."""
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
    progress: StepProgress = no_progress,
) -> GeneratorReport:
    """Train or count the generators, continue a killed training, or read a finished one."""
    own_vocabulary = settings.backbone is None or settings.kind == "translation"
    kind, revision = FOLDER_KINDS[settings.kind], vocabulary.revision if own_vocabulary else ""
    prepare_folder(folder, kind, settings, corpus=corpus.revision, vocabulary=revision)
    models = settings.models_for(tasks)
    if all((folder / part / REPORT).is_file() for part in (".", *models)):
        return GeneratorReport.read(folder)
    if not own_vocabulary:
        vocabulary = backbone_vocabulary(str(settings.backbone))
    vocabulary.save(folder / VOCABULARY)
    data = GeneratorData(corpus, CorpusTokens.build(corpus, vocabulary), vocabulary, settings)
    done = 0
    for number, (name, model_tasks) in enumerate(models.items()):

        def report_steps(step: int, steps: int, done: int = done, number: int = number) -> None:
            # As many steps are assumed for each remaining model.
            progress(done + step, done + (len(models) - number) * steps)

        if not (folder / name / REPORT).is_file():
            _train_model(folder / name, data, model_tasks, report_steps)
        done += read_report(ModelReport, folder / name).steps
    counts = {"documents": data.documents, "held_out_documents": data.held_out_documents}
    write_text(folder / REPORT, json.dumps(counts, indent=2))
    return GeneratorReport.read(folder)


def _train_model(
    folder: Path, data: GeneratorData, tasks: tuple[GeneratorTask, ...], progress: StepProgress
) -> None:
    folder.mkdir(exist_ok=True)
    model = _new_model(folder, data, progress)
    work, summary = GeneratorWork(model, data, tasks), TrainingSummary()
    if data.settings.kind != "counts":
        summary = Training(model, work, folder, data.settings, data.settings.peak).run(progress)
    if isinstance(model, ContextGenerator):
        # `saved_generator` reads it.
        model.backbone.config.save_pretrained(folder)
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


def _new_model(folder: Path, data: GeneratorData, progress: StepProgress) -> AnyGenerator:
    """Make a model to train; one of counts is finished."""
    settings = data.settings
    if settings.kind == "trained":
        return new_generator(settings, data.vocabulary).to(best_device())
    if settings.kind == "counts":
        model = CountsGenerator(settings, data.vocabulary)
    else:
        sentences = corpus_vectors(str(settings.backbone), data.corpus, folder, progress)
        model = TranslationGenerator(settings, data.vocabulary, sentences)
        model.read_vocabulary()
    model.count(data.tokens, data.counted)
    return model
