"""The training loop of the contextual models: small batches, checkpoints, early stopping.

The batches of an epoch and the random numbers of a step follow from the seed alone, so a run that
was killed and continued ends with the same weights as one that was not.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from condsim.contexts.settings import CoherenceSettings, GeneratorSettings
from condsim.contexts.weights import (
    BEST,
    CHECKPOINT,
    Evaluations,
    copy_weights,
    load_weights,
    read_tensors,
    weights_of,
    write_tensors,
)
from condsim.errors import ModelError
from condsim.precision import uses_bfloat16
from condsim.types import IntArray

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


@dataclass(frozen=True)
class TrainingSummary:
    """How a training went."""

    steps: int
    seconds: float  # of earlier processes too
    tokens_per_second: float  # of this process, evaluations included
    evaluations: Evaluations


def train_model(
    model: nn.Module,
    work: TrainingWork,
    folder: Path,
    settings: CoherenceSettings | GeneratorSettings,
    *,
    learning_rate: float,
    progress: StepProgress | None = None,
) -> TrainingSummary:
    """Trains a model, or goes on where a killed training of the same work stopped.

    The model ends with the weights of its best evaluation; checkpoints stay in the folder.
    """
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
        return TrainingSummary(self.step, self.seconds, rate, tuple(self.evaluations))

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
