"""The generators of a corpus: trained or counted, judged on held-out documents, and scored with.

Scores are log-probabilities per target token, the 1/|s| log p of Eq. 3. The end token is counted as
a token of the target: without it the probabilities of all sentences would not sum to one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from condsim.config import Settings
from condsim.errors import ModelError
from condsim.io import write_text
from condsim.model.precision import uses_bfloat16
from condsim.types import BoolArray, FloatArray, IntArray
from condsim_contexts.corpus import Corpus
from condsim_contexts.count_generators import CountsGenerator, TranslationGenerator, corpus_vectors
from condsim_contexts.generator import (
    ContextGenerator,
    StateStore,
    backbone_vocabulary,
    new_generator,
    saved_generator,
)
from condsim_contexts.recipe import (
    ALL,
    GENERATOR_TASKS,
    MODEL,
    REPORT,
    VOCABULARY,
    GeneratorKind,
    GeneratorSettings,
    GeneratorTask,
)
from condsim_contexts.tokens import CorpusTokens, EncoderUnits, ItemBuilder, Items, Vocabulary
from condsim_contexts.trainer import (
    StepProgress,
    Training,
    TrainingSummary,
    best_device,
    finish_folder,
    no_progress,
    open_finished,
    prepare_folder,
    read_report,
    restore_weights,
)

AnyGenerator = ContextGenerator | CountsGenerator

# Target lengths within so many tokens count as equal when batches are shuffled.
_TOKENS_PER_BUCKET = 4
_EXAMPLES_PER_EVALUATION = 128
# Training examples whose words the unigram model counts.
_UNIGRAM_EXAMPLES = 50_000
# Width of the model times the pairs whose encoder states are held at a time.
_VALUES_PER_SLAB = 1 << 20
# Sentences of the corpus whose tokens are cached, about 80 MB.
_CACHED_SENTENCES = 1 << 18


class GeneratorData:
    """The tokens of a corpus, the documents to train on and those held out."""

    def __init__(self, corpus: Corpus, vocabulary: Vocabulary, settings: GeneratorSettings) -> None:
        self.corpus, self.tokens = corpus, CorpusTokens.build(corpus, vocabulary)
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
        self.lengths = np.minimum(self.tokens.lengths, settings.max_tokens - 1) + 1

    def with_target(self, task: GeneratorTask, centers: IntArray) -> IntArray:
        """Choose the centers that have anything to generate."""
        if task == "center":
            return centers
        sides = self.corpus.neighbors(centers, left=1, right=1)
        chosen: IntArray = centers[sides[:, 0 if task == "left" else 1] >= 0]
        return chosen

    def items(
        self, tasks: tuple[GeneratorTask, ...], centers: IntArray
    ) -> tuple[EncoderUnits, Items]:
        """Build the examples of some centers, ``(k,)``."""
        settings = self.settings
        around = self.corpus.neighbors(centers, left=settings.left, right=settings.right)
        ids = np.unique(np.concatenate([centers, around.ravel()]))
        ids = ids[ids >= 0]
        tokens = self.tokens.take(ids, most=settings.max_tokens - 1)
        sentences = dict(zip(ids.tolist(), tokens, strict=True))
        builder = ItemBuilder(sentences, settings, self.vocabulary)
        for task in tasks:
            for center, near in zip(centers.tolist(), around.tolist(), strict=True):
                builder.add(task, center, near)
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
        # Each model reads its own encoding.
        self._model: Any = model
        self._data, self.tasks = data, tasks
        self._centers = data.with_target(tasks[0], data.train)
        self.tokens_seen = 0
        left, right = data.settings.left, data.settings.right
        sides = {"center": (0, 0), "left": (left, -1), "right": (-1, right)}
        targets = np.sum([data.window_lengths(*sides[task]) for task in tasks], axis=0)
        self._targets = targets[self._centers]
        self._costs = self._targets + data.window_lengths(left, right)[self._centers]

    def batches(self, epoch: int) -> list[IntArray]:
        """Shuffle the examples of an epoch into batches of similar target length."""
        settings = self._data.settings
        random = np.random.default_rng((settings.seed, 5, epoch))
        order = random.permutation(len(self._centers))
        order = order[np.argsort(self._targets[order] // _TOKENS_PER_BUCKET, kind="stable")]
        batch = (np.cumsum(self._costs[order]) - 1) // settings.batch_tokens
        batches = np.split(self._centers[order], np.flatnonzero(np.diff(batch)) + 1)
        return [batches[row] for row in random.permutation(len(batches))]

    def loss(self, batch: IntArray, random: np.random.Generator) -> Tensor:
        """Compute the mean negative log-probability of a target token."""
        units, items = self._data.items(self.tasks, batch)
        self.tokens_seen += sum(map(len, units.tokens)) + sum(map(len, items.targets))
        return -self._log_probability(units, items) / sum(map(len, items.targets))

    def _log_probability(self, units: EncoderUnits, items: Items) -> Tensor:
        """Sum the log-probabilities of all target tokens, a scalar."""
        total: Tensor = self._model.log_probabilities(self._model.encode(units), items).sum()
        return total

    def evaluate(self) -> float:
        """Compute the mean log-probability of a held-out target token, over the tasks."""
        return -float(np.mean([self.held_out_loss(task) for task in self.tasks]))

    def held_out_loss(self, task: GeneratorTask, *, shift: int = 0) -> float:
        """Compute the negative log-probability of a held-out target token, in nats.

        With a shift each target is generated from the inputs of the example that far further on.
        """
        centers = self._data.with_target(task, self._data.held_out)
        total, count = 0.0, 0
        for first in range(0, len(centers), _EXAMPLES_PER_EVALUATION):
            part = centers[first : first + _EXAMPLES_PER_EVALUATION]
            units, items = self._data.items((task,), part)
            items.units = items.units[shift:] + items.units[:shift]
            total -= float(self._log_probability(units, items))
            count += sum(map(len, items.targets))
        return total / count if count else float("nan")

    def unigram_loss(self, task: GeneratorTask) -> float:
        """Compute :meth:`held_out_loss` of a model that has word frequencies alone.

        Frequencies are counted in training targets, end and separator included, add-one smoothed.
        """
        centers = self._data.with_target(task, self._data.held_out)
        if not len(centers):
            return float("nan")
        step = -(-len(self._centers) // _UNIGRAM_EXAMPLES)
        _, counted = self._data.items((task,), self._centers[::step])
        counts = np.ones(len(self._data.vocabulary))
        counts += np.bincount(np.concatenate(counted.targets), minlength=len(counts))
        _, items = self._data.items((task,), centers)
        costs = -np.log(counts / counts.sum())
        return float(costs[np.concatenate(items.targets)].mean())


class TaskReport(Settings, allow_inf_nan=True):
    """Negative log-probability of a held-out token, in nats; lower is better.

    ``unigram_loss`` is the loss of word frequencies alone, ``other_context_loss`` the generator's
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


def _kind_of_folder(kind: GeneratorKind) -> str:
    return "generators" if kind == "trained" else kind


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
    kind, revision = _kind_of_folder(settings.kind), vocabulary.revision if own_vocabulary else ""
    prepare_folder(folder, kind, settings, corpus=corpus.revision, vocabulary=revision)
    models = settings.models_for(tasks)
    if all((folder / part / REPORT).is_file() for part in (".", *models)):
        return GeneratorReport.read(folder)
    if not own_vocabulary:
        vocabulary = backbone_vocabulary(str(settings.backbone))
    vocabulary.save(folder / VOCABULARY)
    data = GeneratorData(corpus, vocabulary, settings)
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
    settings, summary = data.settings, TrainingSummary()
    model: AnyGenerator
    if settings.kind == "trained":
        model = new_generator(settings, data.vocabulary).to(best_device())
    else:
        model = _counting_model(settings, data.vocabulary, data.corpus, folder, progress)
        model.prepare(data.tokens, data.counted)
    work = GeneratorWork(model, data, tasks)
    if settings.kind != "counts":
        summary = Training(model, work, folder, settings, settings.peak).run(progress)
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


def _counting_model(
    settings: GeneratorSettings,
    vocabulary: Vocabulary,
    corpus: Corpus,
    folder: Path,
    progress: StepProgress = no_progress,
) -> CountsGenerator:
    if settings.kind == "counts":
        return CountsGenerator(settings, vocabulary)
    sentences = corpus_vectors(str(settings.backbone), corpus, folder, progress)
    return TranslationGenerator(settings, vocabulary, sentences)


class GeneratorScorer:
    """Log-probability of sentences in contexts, and of contexts around sentences (Eq. 2)."""

    def __init__(
        self,
        models: Mapping[GeneratorTask, AnyGenerator],
        vocabulary: Vocabulary,
        corpus: Corpus,
        settings: GeneratorSettings,
        *,
        memory_gb: float = 2.0,
    ) -> None:
        """Take the model of each task, one and the same or three; see :meth:`open`."""
        self._models, self._vocabulary = models, vocabulary
        self._corpus, self._settings = corpus, settings
        self._corpus_tokens: dict[int, IntArray] = {}
        distinct = set(models.values())
        self._stores: dict[AnyGenerator, StateStore] = {
            model: StateStore(memory_gb / len(distinct)) for model in distinct
        }

    @classmethod
    def open(
        cls,
        folder: Path,
        corpus: Corpus,
        *,
        kind: GeneratorKind = "trained",
        tasks: Collection[str] = GENERATOR_TASKS,
        memory_gb: float = 2.0,
    ) -> GeneratorScorer:
        """Open the finished generators of some tasks, trained on the corpus."""
        settings, vocabulary = open_finished(
            folder, _kind_of_folder(kind), GeneratorSettings, corpus=corpus.revision
        )
        # The folder's record has a name in its place.
        settings = settings.replaced(kind=kind)
        models: dict[GeneratorTask, AnyGenerator] = {}
        for name, model_tasks in settings.models_for(tasks).items():
            if not (folder / name / REPORT).is_file():
                raise ModelError(
                    f"The generators in {folder} were trained without '{name}', which the recipe's "
                    "weights need. Run 'condsim contexts run' with it again to train it."
                )
            model: AnyGenerator
            if kind == "trained":
                model = saved_generator(settings, vocabulary, folder / name)
            else:
                model = _counting_model(settings, vocabulary, corpus, folder / name)
            restore_weights(model, folder / name / MODEL)
            if kind == "trained":
                # About twice as fast where the processor has it; changes a score by thousandths.
                half = uses_bfloat16(settings.precision)
                model.to(best_device(), torch.bfloat16 if half else torch.float32)
            models.update(dict.fromkeys(model_tasks, model.eval()))
        return cls(models, vocabulary, corpus, settings, memory_gb=memory_gb)

    def scores(
        self, tasks: Sequence[GeneratorTask], sentences: Sequence[str], centers: Sequence[IntArray]
    ) -> dict[GeneratorTask, list[FloatArray]]:
        """Score each of m sentences in its own contexts, m arrays of their centers.

        ``center`` is log p(s | context), ``left`` and ``right`` log p of a side given the
        sentence and the other side. Returns by task, for each sentence, the log-probability per
        target token in each of its contexts; NaN where that side has no sentence.
        """
        numbers: dict[str, int] = {}
        rows = [numbers.setdefault(sentence, len(numbers)) for sentence in sentences]
        lengths = [len(contexts) for contexts in centers]
        if not sum(lengths):
            return {task: [np.empty(0, np.float32) for _ in sentences] for task in tasks}
        pairs = np.stack([np.concatenate(list(centers)), np.repeat(rows, lengths)], axis=1)
        # Contexts in the order of the corpus.
        pairs, back = np.unique(pairs, axis=0, return_inverse=True)
        values = {task: np.full(len(pairs), np.nan, dtype=np.float32) for task in tasks}
        tokens = self._tokens(list(numbers))
        model, by_context = next(iter(self._models.values())), np.arange(len(pairs))
        size = max(256, _VALUES_PER_SLAB // model.places.shape[1])
        orders = [(tasks, by_context)]
        if isinstance(model, CountsGenerator):
            # Equal targets together.
            by_sentence = np.argsort(pairs[:, 1], kind="stable")
            orders = [([task], by_sentence if task == "center" else by_context) for task in tasks]
        for order_tasks, order in orders:
            for first in range(0, len(pairs), size):
                slab = order[first : first + size]
                for task, chosen, scores in self._score(order_tasks, pairs[slab], tokens):
                    values[task][slab[chosen]] = scores
        cuts = np.cumsum(lengths)[:-1]
        return {task: np.split(values[task][back.reshape(-1)], cuts) for task in tasks}

    def _score(
        self, tasks: Sequence[GeneratorTask], pairs: IntArray, tokens: Sequence[IntArray]
    ) -> Iterator[tuple[GeneratorTask, IntArray, FloatArray]]:
        """Score pairs of center and sentence: for each task the pairs that have it, and scores."""
        settings = self._settings
        around = self._corpus.neighbors(pairs[:, 0], left=settings.left, right=settings.right)
        ids = np.unique(around)
        by_number = self._tokens_of_corpus(ids[ids >= 0])
        # Sentences that are scored have numbers below the corpus's: -2, -3 ...
        by_number |= {-2 - int(number): tokens[number] for number in np.unique(pairs[:, 1])}
        rows = list(zip((-2 - pairs[:, 1]).tolist(), around.tolist(), strict=True))
        for model, store in self._stores.items():
            builder = ItemBuilder(by_number, settings, self._vocabulary)
            chosen = {
                task: np.flatnonzero([builder.add(task, number, near) for number, near in rows])
                for task in tasks
                if self._models[task] is model
            }
            if not len(builder.items):
                continue
            with torch.inference_mode():
                memory = model.encode(builder.units, store)
                sums = model.log_probabilities(memory, builder.items)  # type: ignore[arg-type]
            lengths = [len(target) for target in builder.items.targets]
            means = (sums.cpu().numpy() / lengths).astype(np.float32)
            cuts = np.cumsum([*map(len, chosen.values())])[:-1]
            yield from zip(chosen, chosen.values(), np.split(means, cuts), strict=True)

    def _tokens_of_corpus(self, ids: IntArray) -> dict[int, IntArray]:
        """Read tokens by row of the corpus; contexts overlap, so the latest are cached."""
        if len(self._corpus_tokens) > _CACHED_SENTENCES:
            self._corpus_tokens.clear()
        new = np.array([row for row in ids.tolist() if row not in self._corpus_tokens], np.int64)
        tokens = self._tokens(self._corpus.sentences(new))
        self._corpus_tokens.update(zip(new.tolist(), tokens, strict=True))
        return {row: self._corpus_tokens[row] for row in ids.tolist()}

    def _tokens(self, sentences: Sequence[str]) -> list[IntArray]:
        most = self._settings.max_tokens - 1
        return [tokens[:most] for tokens in self._vocabulary.encode(sentences)]
