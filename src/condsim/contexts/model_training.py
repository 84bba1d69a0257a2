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
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from condsim.contexts.model_weights import (
    BEST,
    CHECKPOINT,
    load_weights,
    read_tensors,
    weights,
    write_tensors,
)
from condsim.errors import ModelError
from condsim.precision import uses_bfloat16
from condsim.types import IntArray

Progress = Callable[[int, int, float], None]
"""Called after each step with the step, their number and the loss."""

_CHECKPOINT_SHARE = 0.05  # of the time at most, spent on writing checkpoints


@dataclass(frozen=True)
class LoopOptions:
    """How a model is trained, whatever it is.

    Attributes:
        epochs: Passes over the training examples.
        max_steps: Steps at most, or None.
        learning_rate: Peak of the learning rate; it falls linearly to 0.
        warmup: Share of the steps over which it rises, [0, 1).
        weight_decay: AdamW's, on matrices only.
        evaluations: How often the held-out part is evaluated in all.
        patience: Evaluations without a better one before training ends.
        seed: Seed of everything drawn.
        precision: Number format of the products; weights and optimizer stay float32.
        checkpoint_seconds: Time between checkpoints.
    """

    epochs: int
    max_steps: int | None
    learning_rate: float
    warmup: float
    weight_decay: float
    evaluations: int
    patience: int
    seed: int
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    checkpoint_seconds: float = 120.0


class TrainingWork(Protocol):
    """What is trained on: batches, their loss and the held-out part."""

    def batches(self, epoch: int) -> list[IntArray]:
        """The batches of an epoch, numbers of examples; equal at each call."""

    def loss(self, batch: IntArray, random: np.random.Generator) -> Tensor:
        """Mean loss of a batch, a scalar."""

    def evaluate(self) -> float:
        """Quality on the held-out part; higher is better, equal at each call for equal weights."""


@dataclass(frozen=True)
class Course:
    """How a training run went.

    Attributes:
        steps: Steps taken.
        seconds: Time taken, that of earlier processes of the run too.
        own_seconds: Time taken by this process.
        evaluations: Step and quality of each evaluation.
    """

    steps: int
    seconds: float
    own_seconds: float
    evaluations: tuple[tuple[int, float], ...]


def train_model(
    model: nn.Module,
    work: TrainingWork,
    folder: Path,
    *,
    options: LoopOptions,
    progress: Progress | None = None,
) -> Course:
    """Trains a model, or goes on where a killed run of the same work stopped.

    The model ends with the weights of its best evaluation. The checkpoint files stay in the folder
    until :func:`train_model` is called with another one or the caller removes them.
    """
    with torch.random.fork_rng():
        return _Loop(model, work, folder, options, progress).run()


class _Loop:
    """One run: its state is what a checkpoint holds."""

    def __init__(
        self,
        model: nn.Module,
        work: TrainingWork,
        folder: Path,
        options: LoopOptions,
        progress: Progress | None,
    ) -> None:
        self.model, self.work, self.folder, self.options = model, work, folder, options
        self.progress = progress
        self.device = next(model.parameters()).device
        self.autocast = uses_bfloat16(options.precision)
        matrices = [p for p in model.parameters() if p.ndim > 1]
        vectors = [p for p in model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": options.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=options.learning_rate,
            fused=True,
        )
        self.sizes = [len(work.batches(epoch)) for epoch in range(options.epochs)]
        self.steps = min(sum(self.sizes), options.max_steps or sum(self.sizes))
        self.every = max(1, math.ceil(self.steps / max(1, options.evaluations)))
        self.step = 0
        self.evaluations: list[tuple[int, float]] = []
        self.seconds = 0.0

    def run(self) -> Course:
        """Takes the steps that are left."""
        self._resume()
        started = saved = time.monotonic()
        before = self.seconds
        interval = self.options.checkpoint_seconds
        while self.step < self.steps and not self._tired():
            loss = self._take_step()
            if self.progress is not None:
                self.progress(self.step, self.steps, loss)
            judged = self.step % self.every == 0 or self.step == self.steps
            if judged:
                self._judge()
            now = time.monotonic()
            self.seconds = before + now - started
            if judged or now - saved > interval:
                self._save()
                saved = time.monotonic()
                interval = max(interval, (saved - now) / _CHECKPOINT_SHARE)
        if self.evaluations:
            best, _ = read_tensors(self.folder / BEST)
            load_weights(self.model, best, source=self.folder / BEST)
        self.model.eval()
        return Course(self.step, self.seconds, self.seconds - before, tuple(self.evaluations))

    def _take_step(self) -> float:
        epoch, start = 0, 0
        while self.step - start >= self.sizes[epoch]:
            start += self.sizes[epoch]
            epoch += 1
        batch = self._batches(epoch)[self.step - start]
        key = (self.options.seed, self.step)
        torch.manual_seed(int(np.random.SeedSequence(key).generate_state(1)[0]))
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.learning_rate * self._rate(self.step)
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
                f"{self.options.learning_rate}."
            )
        self.optimizer.step()
        self.step += 1
        return value

    def _batches(self, epoch: int) -> list[IntArray]:
        if getattr(self, "_epoch", None) != epoch:
            self._epoch = epoch
            self._of_epoch = self.work.batches(epoch)
        return self._of_epoch

    def _rate(self, step: int) -> float:
        warm = max(1, round(self.options.warmup * self.steps))
        if step < warm:
            return (step + 1) / warm
        return max(0.0, (self.steps - step) / max(1, self.steps - warm))

    def _tired(self) -> bool:
        values = [value for _, value in self.evaluations]
        return bool(values) and len(values) - 1 - int(np.argmax(values)) >= self.options.patience

    def _judge(self) -> None:
        self.model.eval()
        with (
            torch.inference_mode(),
            torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast),
        ):
            value = self.work.evaluate()
        if all(value > other for _, other in self.evaluations):
            write_tensors(self.folder / BEST, weights(self.model))
        self.evaluations.append((self.step, value))

    def _save(self) -> None:
        tensors = {f"model.{name}": value for name, value in weights(self.model).items()}
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
        load_weights(self.model, own, source=path)
        for name, parameter in self.model.named_parameters():
            parts = {key: f"optimizer.{key}.{name}" for key in ("step", "exp_avg", "exp_avg_sq")}
            if parts["step"] in tensors:  # a parameter that no loss reached has no state
                self.optimizer.state[parameter] = {
                    key: tensors[full].to(self.device) for key, full in parts.items()
                }
        record = json.loads(metadata["state"])
        self.step, self.seconds = int(record["step"]), float(record["seconds"])
        self.evaluations = [(int(step), float(value)) for step, value in record["evaluations"]]
