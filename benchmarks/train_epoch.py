"""One epoch of Quad + MSE, against the straightforward implementation."""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from benchmarks.machine import usable_cores, version_of
from benchmarks.models import train_backbone
from benchmarks.peers.plain_training import BiEncoder, PlainTraining, TriEncoder
from benchmarks.result import Result
from benchmarks.rows import Source, source, take
from condsim.errors import InputError
from condsim.model.precision import uses_bfloat16
from condsim.training.callbacks import ProgressCallback
from condsim.training.recipe import Recipe
from condsim.training.trainer import build_run

__all__ = ["BARS", "Clock", "InTurns", "run"]

Encoder = Literal["bi-encoder", "tri-encoder"]

BARS: dict[Encoder, float] = {"bi-encoder": 1.5, "tri-encoder": 2.0}

_EPOCH = 11_342  # rows C-STS has for training
_TURN = 4  # steps


@dataclass
class Clock:
    """What one side has done.

    Attributes:
        seconds: Time taken.
        rows: Rows trained on.
    """

    seconds: float = 0.0
    rows: float = 0.0

    def add(self, seconds: float, rows: float) -> None:
        """Counts a turn."""
        self.seconds += seconds
        self.rows += rows

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds


class InTurns(TrainerCallback):
    """Lets the peer train after every few steps of ours, so that both meet the same machine.

    Nothing is evaluated or saved: a training epoch is all that is timed. The first turn of each
    side is not counted, in which memory is set up.

    Attributes:
        ours: Seconds and rows of condsim.
        theirs: Seconds and rows of the peer.
    """

    def __init__(self, peer: PlainTraining, *, rows: int, steps: int) -> None:
        """Makes the clock.

        Args:
            peer: The peer's loop.
            rows: Rows of the epoch.
            steps: Steps of a turn.
        """
        self.ours = Clock()
        self.theirs = Clock()
        self._peer = peer
        self._rows = rows
        self._steps = steps
        self._start = 0.0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Starts the clock."""
        self._start = time.perf_counter()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Counts our turn and gives the peer its own."""
        if state.global_step % self._steps:
            return
        _wait()
        turned = time.perf_counter()
        rows = self._peer.run(self._steps)
        _wait()
        end = time.perf_counter()
        if state.global_step > self._steps:
            # Batches of ours hold whole pairs, so some are a row short.
            self.ours.add(turned - self._start, self._steps * self._rows / state.max_steps)
            self.theirs.add(end - turned, rows)
        self._start = time.perf_counter()

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Keeps the trainer from evaluating and saving."""
        control.should_evaluate = control.should_save = False


def run(backbone: str | None, data: Path, *, rows: int) -> list[Result]:
    """Trains both encoders with both implementations on the same rows.

    Args:
        backbone: A folder; None for all-MiniLM-L6-v2 or what stands in for it.
        data: A C-STS training file; rows are generated where it is missing.
        rows: Rows of the epoch; 0 for as many as C-STS has.

    Returns:
        One result for each encoder.

    Raises:
        InputError: If the file breaks a rule, or there are too few rows for two turns.
        ModelError: If the backbone cannot be loaded.
    """
    torch.set_num_threads(usable_cores())
    chosen = source(data, rows=rows or _EPOCH)
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as folder:
        name, what = train_backbone(backbone, chosen.task, Path(folder))
        return [
            _compare(encoder, bar, chosen, name, what=what, output=Path(folder, encoder))
            for encoder, bar in BARS.items()
        ]


def _compare(
    encoder: Encoder, bar: float, chosen: Source, backbone: str, *, what: str, output: Path
) -> Result:
    """Trains one encoder on both sides, in turns."""
    task = chosen.task
    recipe = Recipe(
        name=f"bench-{encoder}",
        train=task.name,
        dev=task.name,
        encoder=encoder,
        backbone=backbone,
        objective={"mse": 1.0, "quad": 1.0},
        epochs=1,
        schedule="constant",
        warmup=0.0,
        seed=0,
    )
    ours = build_run(recipe, task, take(task, 8, seed=0), output)
    theirs = (BiEncoder if encoder == "bi-encoder" else TriEncoder)(
        backbone, max_length=recipe.max_seq_length
    )
    peer = PlainTraining(
        theirs.to(ours.trainer.args.device),
        task,
        batch_size=recipe.batch_size,
        learning_rate=recipe.learning_rate,
        max_grad_norm=recipe.max_grad_norm or float("inf"),
        seed=recipe.seed,
    )
    if len(task) < 2 * _TURN * recipe.batch_size:
        raise InputError(
            f"Training is timed in turns of {_TURN} batches, the first of which is not counted, so "
            f"it takes {2 * _TURN * recipe.batch_size} rows or more. Got {len(task)} instead."
        )
    turns = InTurns(peer, rows=len(task), steps=_TURN)
    ours.trainer.remove_callback(ProgressCallback)
    ours.trainer.add_callback(turns)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pin_memory.*")
        ours.trainer.train()
    precision = "bfloat16" if uses_bfloat16(recipe.precision) else "float32"
    return Result(
        benchmark="train_epoch",
        measured=f"{encoder}, Quad + MSE",
        peer=f"plain {version_of('torch')}, {version_of('transformers')}",
        unit="rows/s",
        ours=turns.ours.rate,
        theirs=turns.theirs.rate,
        ratio=turns.ours.rate / turns.theirs.rate,
        bar=bar,
        notes=(
            f"an epoch of {len(task):,} rows, {chosen.origin}; backbone {what}; "
            f"{recipe.batch_size} rows a batch; ours in {precision}, on {ours.trainer.args.device}",
        ),
    )


def _wait() -> None:
    """Waits until an accelerator has done what it was given."""
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
