"""Training the generators, and how probable they find documents they have not seen."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from condsim.contexts.corpus import Corpus, CorpusTokens, Vocabulary
from condsim.contexts.generator.backbone import backbone_vocabulary, new_generator, write_config
from condsim.contexts.generator.data import GeneratorData, GeneratorWork
from condsim.contexts.generator.items import TASKS, Task3
from condsim.contexts.generator.settings import ALL, GeneratorSettings
from condsim.contexts.model_training import LoopOptions, Progress, train_model
from condsim.contexts.model_weights import (
    REPORT,
    VOCABULARY,
    best_device,
    finish_folder,
    prepare_folder,
    write_json,
)
from condsim.errors import InputError


@dataclass(frozen=True)
class TaskReport:
    """Negative log-probability of a target token of held-out documents, in nats; lower is better.

    Attributes:
        loss: The generator's.
        unigram_loss: That of word frequencies alone.
        other_context_loss: The generator's when it is given the sentences of another example: if
            that is no higher than ``loss``, it has learned nothing from what it is given.
    """

    loss: float
    unigram_loss: float
    other_context_loss: float


@dataclass(frozen=True)
class ModelReport:
    """How one model was trained, and how good it is.

    Attributes:
        tasks: Its quality by task.
        parameters: Its weights.
        steps: Training steps.
        seconds: Time of the training.
        tokens_per_second: Tokens, given and generated, trained on in a second.
        evaluations: Step and mean held-out log-probability of each evaluation.
    """

    tasks: dict[Task3, TaskReport]
    parameters: int
    steps: int
    seconds: float
    tokens_per_second: float
    evaluations: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class GeneratorReport:
    """The models of a folder.

    Attributes:
        models: Their reports by name: the task, or ``all``.
        documents: Documents trained on.
        held_out_documents: Documents held out.
    """

    models: dict[str, ModelReport]
    documents: int
    held_out_documents: int

    @classmethod
    def read(cls, folder: Path) -> GeneratorReport:
        """Reads the reports of a finished training.

        Args:
            folder: The folder of the models.

        Returns:
            The reports of those that are trained.
        """
        values = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        trained = [name for name in (ALL, *TASKS) if (folder / name / REPORT).is_file()]
        return cls({name: _read_model_report(folder / name) for name in trained}, **values)

    @property
    def tasks(self) -> dict[Task3, TaskReport]:
        """Quality by task, whichever model does it."""
        return {task: part for model in self.models.values() for task, part in model.tasks.items()}

    @property
    def seconds(self) -> float:
        """Time of the training of all models."""
        return sum(model.seconds for model in self.models.values())

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
    settings: GeneratorSettings | None = None,
    *,
    tasks: Collection[str] = TASKS,
    progress: Progress | None = None,
) -> GeneratorReport:
    """Trains the generators, goes on with a killed training, or reads a finished one."""
    settings = settings or GeneratorSettings()
    if settings.backbone is None and vocabulary.corpus_revision != corpus.revision:
        raise InputError("The vocabulary was learned from another corpus; learn it from this one.")
    own = vocabulary if settings.backbone is None else None
    prepare_folder(folder, _record(corpus, own, settings))
    models = settings.models_for(tasks)
    if all((folder / part / REPORT).is_file() for part in (".", *models)):
        return GeneratorReport.read(folder)
    if own is not None:
        own.save(folder / VOCABULARY)
    else:
        vocabulary = backbone_vocabulary(settings, folder / VOCABULARY)
    tokens = CorpusTokens.build(corpus, vocabulary)
    data = GeneratorData(corpus, tokens, vocabulary, settings)
    reports: dict[str, ModelReport] = {}
    for name, of_one in models.items():
        done = sum(report.steps for report in reports.values())
        counted = _counted(progress, done, left=len(models) - len(reports))
        reports[name] = _train_model(folder / name, data, of_one, counted)
    write_json(
        folder / REPORT,
        {"documents": data.documents, "held_out_documents": data.held_out},
    )
    return GeneratorReport.read(folder)


def _train_model(
    folder: Path, data: GeneratorData, tasks: tuple[Task3, ...], progress: Progress | None
) -> ModelReport:
    folder.mkdir(exist_ok=True)
    if (folder / REPORT).is_file():
        return _read_model_report(folder)
    settings = data.settings
    model = new_generator(settings, data.vocabulary).to(best_device())
    work = GeneratorWork(model, data, tasks)
    course = train_model(model, work, folder, options=_options(settings), progress=progress)
    with torch.inference_mode():
        quality = {
            task: TaskReport(
                loss=work.held_out_loss(task),
                unigram_loss=work.unigram_loss(task),
                other_context_loss=work.held_out_loss(task, shift=1),
            )
            for task in tasks
        }
    report = ModelReport(
        tasks=quality,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        steps=course.steps,
        seconds=course.seconds,
        tokens_per_second=work.tokens_seen / max(course.own_seconds, 1e-9),
        evaluations=course.evaluations,
    )
    write_config(model, folder)
    finish_folder(folder, model, asdict(report))
    return report


def _counted(progress: Progress | None, done: int, *, left: int) -> Progress | None:
    """Counts the steps of all models together; those yet to come take about as many each."""
    if progress is None:
        return None
    return lambda step, steps, loss: progress(done + step, done + left * steps, loss)


def _options(settings: GeneratorSettings) -> LoopOptions:
    return LoopOptions(
        epochs=settings.epochs,
        max_steps=settings.max_steps,
        learning_rate=settings.peak,
        warmup=settings.warmup,
        weight_decay=settings.weight_decay,
        evaluations=settings.evaluations,
        patience=settings.patience,
        seed=settings.seed,
        precision=settings.precision,
    )


def _record(
    corpus: Corpus, vocabulary: Vocabulary | None, settings: GeneratorSettings
) -> dict[str, object]:
    revision = vocabulary.revision if vocabulary is not None else ""
    identity = {"kind": "generators", "corpus": corpus.revision, "vocabulary": revision}
    return {**identity, **settings.model_dump()}


def _read_model_report(folder: Path) -> ModelReport:
    values = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    tasks = {task: TaskReport(**part) for task, part in values.pop("tasks").items()}
    evaluations = tuple((int(step), value) for step, value in values.pop("evaluations"))
    return ModelReport(tasks=tasks, evaluations=evaluations, **values)
