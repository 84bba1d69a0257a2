"""The folders of trained models, and the loop that trains them: checkpoints and early stopping."""

# The batches of an epoch and the random numbers of a step follow from the seed alone, so a run that
# was killed and continued ends with the same weights as one that was not.

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from condsim.config import Settings, validated, validated_json
from condsim.contexts.corpus.vocabulary import Vocabulary
from condsim.contexts.settings import CoherenceSettings, GeneratorSettings
from condsim.errors import InputError, ModelError
from condsim.io import check_folder, replacing, write_text
from condsim.model.precision import uses_bfloat16
from condsim.types import IntArray

RECORD = "settings.json"  # written first
MODEL = "model.safetensors"
REPORT = "report.json"  # written last: with it the model is finished
VOCABULARY = "vocabulary"
CHECKPOINT = "checkpoint.safetensors"
BEST = "best.safetensors"

ModelSettings = TypeVar("ModelSettings", bound=Settings)


def best_device() -> torch.device:
    """The accelerator if there is one, else the processor."""
    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The tensors that make up a model, each once where several modules share it."""
    kept = model.state_dict().keys()
    buffers = {name: value for name, value in model.named_buffers() if name in kept}
    return {name: value.detach() for name, value in [*model.named_parameters(), *buffers.items()]}


def copy_weights(model: nn.Module, tensors: Mapping[str, Tensor], *, source: Path) -> None:
    """Copies tensors into a model."""
    own = weights_of(model)
    wrong = sorted(own.keys() ^ tensors.keys())
    wrong += [name for name in own.keys() & tensors if own[name].shape != tensors[name].shape]
    if wrong:
        raise ModelError(
            f"{source} does not fit the model its settings describe ({len(wrong)} tensors differ, "
            f"such as {wrong[0]}). Train it anew."
        )
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(tensors[name])


def load_weights(model: nn.Module, path: Path) -> None:
    """Copies the tensors of a file into a model."""
    copy_weights(model, read_tensors(path)[0], source=path)


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors to one file, in one step."""
    with replacing(path) as partial:
        save_file(
            {name: value.cpu().contiguous() for name, value in tensors.items()},
            partial,
            metadata=dict(metadata or {}),
        )


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Reads tensors and metadata."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"Cannot read the weights {path}: {error}. Train it anew.") from error


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Writes plain values, in one step."""
    write_text(path, json.dumps(dict(values), indent=2))


def prepare_folder(
    folder: Path, kind: str, settings: Settings, *, corpus: str, vocabulary: str
) -> None:
    """Makes the folder of a model, or checks that it holds one of the same settings."""
    record = {"corpus": corpus, "vocabulary": vocabulary, **settings.model_dump(), "kind": kind}
    path = folder / RECORD
    if not path.is_file():
        check_folder(folder, what="model", own=[RECORD])
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, record)
        return
    known = {**type(settings)().model_dump(), **_read_record(folder)}  # older ones lack new keys
    changed = [key for key in {**known, **record} if known.get(key) != record.get(key)]
    if changed:
        raise InputError(
            f"The model in {folder} was trained or started with another {', '.join(changed)}. "
            "Use the same, or another folder."
        )


def finish_folder(folder: Path, model: nn.Module, report: Settings) -> None:
    """Writes a trained model and its report, and removes its checkpoints."""
    write_tensors(folder / MODEL, weights_of(model))
    write_json(folder / REPORT, report.model_dump())
    for name in (CHECKPOINT, BEST):
        (folder / name).unlink(missing_ok=True)


def open_finished(
    folder: Path, kind: str, settings: type[ModelSettings], *, corpus: str
) -> tuple[ModelSettings, Vocabulary]:
    """Reads settings and vocabulary of a trained model, and checks what it was trained on."""
    record = _read_record(folder)
    if record.pop("kind", None) != kind or not (folder / REPORT).is_file():
        raise ModelError(f"{folder} holds no finished {kind} model. Train it first.")
    trained_on, revision = record.pop("corpus"), record.pop("vocabulary")
    if trained_on != corpus:
        raise InputError(
            f"The {kind} model in {folder} was trained on corpus {trained_on}. Got corpus "
            f"{corpus}; give that corpus, or train the model on this one."
        )
    vocabulary = Vocabulary.open(folder / VOCABULARY)
    if revision not in ("", vocabulary.revision):  # none was recorded for that of a backbone
        raise ModelError(
            f"The tokenizer in {folder / VOCABULARY} is not the one the {kind} model was trained "
            "with. Train the model anew."
        )
    return validated(settings, record, what=settings.what, source=str(folder)), vocabulary


def read_report(kind: type[ModelSettings], folder: Path) -> ModelSettings:
    """Reads the report of a finished training."""
    try:
        content = (folder / REPORT).read_bytes()
    except OSError as error:
        raise InputError(f"Cannot read the report in {folder}: {error}.") from error
    return validated_json(kind, content, what="report", source=str(folder / REPORT))


def _read_record(folder: Path) -> dict[str, Any]:
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} holds no model: {error}. Train it first.") from error
    if not isinstance(record, dict):
        raise ModelError(f"{folder / RECORD} is damaged. Train the model anew.")
    return record


StepProgress = Callable[[int, int], None]
"""Called after each step with the steps taken and their number."""

_CHECKPOINT_SECONDS = 120.0  # between checkpoints
_CHECKPOINT_SHARE = 0.05  # of the time at most, spent on writing checkpoints


class TrainingWork(Protocol):
    """What is trained on: batches, their loss and the held-out part."""

    tokens_seen: int
    """Tokens of the batches so far."""

    def batches(self, epoch: int) -> list[IntArray]:
        """The batches of an epoch, numbers of examples; equal at each call."""

    def loss(self, batch: IntArray, random: np.random.Generator) -> Tensor:
        """Mean loss of a batch, a scalar."""

    def evaluate(self) -> float:
        """Quality on the held-out part; higher is better, equal at each call for equal weights."""


class TrainingSummary(Settings, allow_inf_nan=True):
    """How a training went."""

    steps: int
    seconds: float  # of earlier processes too
    tokens_per_second: float  # of this process, evaluations included
    evaluations: tuple[tuple[int, float], ...]  # step and quality of each


def train_model(
    model: nn.Module,
    work: TrainingWork,
    folder: Path,
    settings: CoherenceSettings | GeneratorSettings,
    *,
    learning_rate: float,
    progress: StepProgress | None = None,
) -> TrainingSummary:
    """Trains a model, or goes on where a killed training of the same work stopped."""
    # The model ends with the weights of its best evaluation; checkpoints stay in the folder.
    with torch.random.fork_rng():
        return _Training(model, work, folder, settings, learning_rate).run(progress)


class _Training:
    """A training; its state is what a checkpoint holds."""

    def __init__(
        self,
        model: nn.Module,
        work: TrainingWork,
        folder: Path,
        settings: CoherenceSettings | GeneratorSettings,
        learning_rate: float,
    ) -> None:
        self.model, self.work, self.folder = model, work, folder
        self.settings, self.learning_rate = settings, learning_rate
        self.device = next(model.parameters()).device
        self.autocast = uses_bfloat16(settings.precision)
        matrices = [p for p in model.parameters() if p.ndim > 1]
        vectors = [p for p in model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": settings.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=learning_rate,
            fused=True,
        )
        sizes = [len(work.batches(epoch)) for epoch in range(settings.epochs)]
        self.starts = np.cumsum([0, *sizes])  # first step of each epoch
        self.steps = min(int(self.starts[-1]), settings.max_steps or int(self.starts[-1]))
        self.every = max(1, math.ceil(self.steps / settings.evaluations))
        self.step = 0
        self.seconds = 0.0
        self.evaluations: list[tuple[int, float]] = []
        self.epoch = -1  # that of `batches`
        self.batches: list[IntArray] = []

    def run(self, progress: StepProgress | None) -> TrainingSummary:
        """Takes the steps that are left."""
        self._resume()
        started = saved = time.monotonic()
        before = self.seconds
        interval = _CHECKPOINT_SECONDS
        while self.step < self.steps and not self._patience_is_over():
            self._take_step()
            if progress is not None:
                progress(self.step, self.steps)
            evaluated = self.step % self.every == 0 or self.step == self.steps
            if evaluated:
                self._evaluate()
            now = time.monotonic()
            self.seconds = before + now - started
            if evaluated or now - saved > interval:
                self._save()
                saved = time.monotonic()
                interval = max(interval, (saved - now) / _CHECKPOINT_SHARE)
        if self.evaluations:
            load_weights(self.model, self.folder / BEST)
        self.model.eval()
        rate = self.work.tokens_seen / max(self.seconds - before, 1e-9)
        return TrainingSummary(
            steps=self.step,
            seconds=self.seconds,
            tokens_per_second=rate,
            evaluations=tuple(self.evaluations),
        )

    def _take_step(self) -> None:
        epoch = int(np.searchsorted(self.starts, self.step, side="right")) - 1
        if epoch != self.epoch:
            self.epoch, self.batches = epoch, self.work.batches(epoch)
        batch = self.batches[self.step - self.starts[epoch]]
        key = (self.settings.seed, self.step)
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1)[0]))
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * self._rate()
        self.model.train()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            loss = self.work.loss(batch, np.random.default_rng(key))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise ModelError(
                f"The loss at step {self.step + 1} is {value}; lower learning_rate. Got "
                f"{self.learning_rate}."
            )
        self.optimizer.step()
        self.step += 1

    def _rate(self) -> float:
        """The learning rate as a share of its peak: a linear rise, then a linear fall to 0."""
        warm = max(1, round(self.settings.warmup * self.steps))
        if self.step < warm:
            return (self.step + 1) / warm
        return max(0.0, (self.steps - self.step) / max(1, self.steps - warm))

    def _patience_is_over(self) -> bool:
        values = [value for _, value in self.evaluations]
        since_best = len(values) - 1 - int(np.argmax(values)) if values else 0
        return since_best >= self.settings.patience

    def _evaluate(self) -> None:
        self.model.eval()
        with (
            torch.inference_mode(),
            torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast),
        ):
            value = self.work.evaluate()
        if all(value > other for _, other in self.evaluations):
            write_tensors(self.folder / BEST, weights_of(self.model))
        self.evaluations.append((self.step, value))

    def _save(self) -> None:
        tensors = {f"model.{name}": value for name, value in weights_of(self.model).items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{key}.{name}"] = value
        record = {"step": self.step, "seconds": self.seconds, "evaluations": self.evaluations}
        write_tensors(self.folder / CHECKPOINT, tensors, {"state": json.dumps(record)})

    def _resume(self) -> None:
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return
        tensors, metadata = read_tensors(path)
        own = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
        copy_weights(self.model, own, source=path)
        for name, parameter in self.model.named_parameters():
            parts = {key: f"optimizer.{key}.{name}" for key in ("step", "exp_avg", "exp_avg_sq")}
            if parts["step"] in tensors:  # a parameter that no loss reached has no state
                self.optimizer.state[parameter] = {
                    key: tensors[full].to(self.device) for key, full in parts.items()
                }
        record = json.loads(metadata["state"])
        self.step, self.seconds = int(record["step"]), float(record["seconds"])
        self.evaluations = [(int(step), float(value)) for step, value in record["evaluations"]]
