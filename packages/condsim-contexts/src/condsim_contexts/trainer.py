"""Folders of trained models, and the loop that trains them, with checkpoints and early stopping.

The batches of an epoch and the random numbers of a step follow from the seed alone, so a training
that was killed and continued ends with the same weights as one that was not.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_file
from torch import Tensor, nn

from condsim.cache import changed_keys, check_folder, check_unchanged, record_inputs
from condsim.config import Settings, validated, validated_json
from condsim.errors import ModelError, one_line
from condsim.io import replacing, write_text
from condsim.model.precision import uses_bfloat16
from condsim.types import IntArray
from condsim_contexts.recipe import MODEL, REPORT, VOCABULARY, TrainingSettings
from condsim_contexts.tokens import Vocabulary

# The record of a model's settings is written first, its report last: with it a model is finished.
_RECORD = "settings.json"
_CHECKPOINT = "checkpoint.safetensors"
_BEST = "best.safetensors"

_SECONDS_PER_CHECKPOINT = 120.0
# Largest share of the time that may be spent on writing checkpoints.
_MAX_CHECKPOINT_SHARE = 0.05

StepProgress = Callable[[int, int], None]
"""Called after each step with the steps taken and their number."""

SettingsType = TypeVar("SettingsType", bound=Settings)


def no_progress(step: int, steps: int) -> None:
    """Report nothing."""


def best_device() -> torch.device:
    """Return the accelerator if there is one, else the processor."""
    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights of a model, in one step; tensors that modules share are written once.

    The file has no metadata, where `save_model` of safetensors lists shared tensors in an order
    that changes from run to run. `load_model` does not read it.
    """
    weights: dict[str, Tensor] = {}
    written: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in written:
            weights[name] = tensor.detach().contiguous()
            written.add(id(tensor))
    with replacing(path) as partial:
        save_file(weights, partial)


def restore_weights(model: nn.Module, path: Path) -> None:
    """Read the weights of a model."""
    causes = (OSError, SafetensorError, RuntimeError)
    with one_line(f"The weights {path} cannot be read", *causes, kind=ModelError):
        load_model(model, path)


def prepare_folder(
    folder: Path, kind: str, settings: Settings, *, corpus: str, vocabulary: str
) -> None:
    """Make the folder of a model, or check that an existing one has the same settings."""
    record = {"corpus": corpus, "vocabulary": vocabulary, **settings.model_dump(), "kind": kind}
    check_folder(folder, subject="model", own=[_RECORD])
    record_inputs(folder / _RECORD, record, subject="a model")


def finish_folder(folder: Path, model: nn.Module, report: Settings) -> None:
    """Write a trained model and its report, and remove its checkpoints."""
    save_weights(model, folder / MODEL)
    write_text(folder / REPORT, json.dumps(report.model_dump(), indent=2))
    for name in (_CHECKPOINT, _BEST):
        (folder / name).unlink(missing_ok=True)


def open_finished(
    folder: Path, kind: str, settings: type[SettingsType], *, corpus: str
) -> tuple[SettingsType, Vocabulary]:
    """Read settings and vocabulary of a trained model, and check the corpus it was trained on."""
    record = _read_settings(folder)
    check_unchanged(
        folder, changed_keys({"kind": kind, "corpus": corpus}, record), subject="a model"
    )
    for key in ("kind", "corpus", "vocabulary"):
        del record[key]
    vocabulary = Vocabulary.open(folder / VOCABULARY)
    return validated(settings, record, subject=settings.subject, source=str(folder)), vocabulary


def read_report(kind: type[SettingsType], folder: Path) -> SettingsType:
    """Read the report of a finished training."""
    path = folder / REPORT
    return validated_json(kind, path.read_bytes(), subject="report", source=str(path))


def _read_settings(folder: Path) -> dict[str, Any]:
    with one_line(f"{folder} contains no model", OSError, ValueError, kind=ModelError):
        record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    return record


class TrainingWork(Protocol):
    """The batches to train on, their loss and the held-out part."""

    # Of the batches so far.
    tokens_seen: int

    def batches(self, epoch: int) -> list[IntArray]:
        """List the batches of an epoch, numbers of examples; equal at each call."""

    def loss(self, batch: IntArray, random: np.random.Generator) -> Tensor:
        """Compute the mean loss of a batch, a scalar."""

    def evaluate(self) -> float:
        """Measure the held-out part; higher is better, and equal weights give equal values."""


class TrainingSummary(Settings, allow_inf_nan=True):
    """Steps, time and evaluations of a training."""

    steps: int = 0
    # Of all processes that trained the model.
    seconds: float = 0.0
    # Of the last process, evaluations included.
    tokens_per_second: float = 0.0
    # Step and quality of each evaluation.
    evaluations: tuple[tuple[int, float], ...] = ()


class Training:
    """A training of a model that ends with the best evaluated weights.

    Its state is the content of a checkpoint, with which a killed training is continued.
    """

    def __init__(
        self,
        model: nn.Module,
        work: TrainingWork,
        folder: Path,
        settings: TrainingSettings,
        learning_rate: float,
    ) -> None:
        self.model, self.work, self.folder = model, work, folder
        self.settings, self.learning_rate = settings, learning_rate
        self.device = next(model.parameters()).device
        autocast = uses_bfloat16(settings.precision)
        self.autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=autocast)
        matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
        vectors = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": settings.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=learning_rate, fused=True)
        sizes = [len(work.batches(epoch)) for epoch in range(settings.epochs)]
        # First step of each epoch.
        self.starts = np.cumsum([0, *sizes])
        self.steps = min(int(self.starts[-1]), settings.max_steps or int(self.starts[-1]))
        self.steps_per_evaluation = max(1, math.ceil(self.steps / settings.evaluations))
        self.step = 0
        self.seconds = 0.0
        self.evaluations: list[tuple[int, float]] = []
        self.epoch = -1
        self.batches: list[IntArray] = []

    def run(self, progress: StepProgress) -> TrainingSummary:
        """Take the remaining steps."""
        self._resume()
        started = saved = time.monotonic()
        before = self.seconds
        interval = _SECONDS_PER_CHECKPOINT
        with torch.random.fork_rng():
            while self.step < self.steps and not self._patience_is_over():
                self._take_step()
                progress(self.step, self.steps)
                evaluated = self.step % self.steps_per_evaluation == 0 or self.step == self.steps
                if evaluated:
                    self._evaluate()
                now = time.monotonic()
                self.seconds = before + now - started
                if evaluated or now - saved > interval:
                    self._save()
                    saved = time.monotonic()
                    interval = max(interval, (saved - now) / _MAX_CHECKPOINT_SHARE)
        if self.evaluations:
            restore_weights(self.model, self.folder / _BEST)
        self.model.eval()
        return TrainingSummary(
            steps=self.step,
            seconds=self.seconds,
            tokens_per_second=self.work.tokens_seen / max(self.seconds - before, 1e-9),
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
            group["lr"] = self.learning_rate * self._warmup_factor()
        self.model.train()
        with self.autocast:
            loss = self.work.loss(batch, np.random.default_rng(key))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise ModelError(
                f"The loss at step {self.step + 1} is {value}; lower learning_rate from "
                f"{self.learning_rate}."
            )
        self.optimizer.step()
        self.step += 1

    def _warmup_factor(self) -> float:
        """Share of the peak learning rate: a linear rise, then a linear fall to 0."""
        rise = max(1, round(self.settings.warmup * self.steps))
        if self.step < rise:
            return (self.step + 1) / rise
        return max(0.0, (self.steps - self.step) / max(1, self.steps - rise))

    def _patience_is_over(self) -> bool:
        values = [value for _, value in self.evaluations]
        since_best = len(values) - 1 - int(np.argmax(values)) if values else 0
        return since_best >= self.settings.patience

    def _evaluate(self) -> None:
        self.model.eval()
        with torch.inference_mode(), self.autocast:
            value = self.work.evaluate()
        if all(value > earlier for _, earlier in self.evaluations):
            save_weights(self.model, self.folder / _BEST)
        self.evaluations.append((self.step, value))

    def _save(self) -> None:
        tensors: dict[str, Tensor] = {}
        for name, parameter in self.model.named_parameters():
            tensors[f"model.{name}"] = parameter.detach()
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"{key}.{name}"] = value
        record = {"step": self.step, "seconds": self.seconds, "evaluations": self.evaluations}
        with replacing(self.folder / _CHECKPOINT) as partial:
            save_file(tensors, partial, metadata={"state": json.dumps(record)})

    def _resume(self) -> None:
        path = self.folder / _CHECKPOINT
        if not path.is_file():
            return
        parameters = dict(self.model.named_parameters())
        with safe_open(path, framework="pt", device=str(self.device)) as file, torch.no_grad():
            for key in file.keys():
                kind, _, name = key.partition(".")
                if kind == "model":
                    parameters[name].copy_(file.get_tensor(key))
                else:
                    self.optimizer.state[parameters[name]][kind] = file.get_tensor(key)
            record = json.loads(file.metadata()["state"])
        self.step, self.seconds = int(record["step"]), float(record["seconds"])
        self.evaluations = [(int(step), float(value)) for step, value in record["evaluations"]]
