"""Callbacks of a training run: dev figures, progress bar, Ctrl-C, additions to checkpoints."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.evaluation.evaluator import BaseEvaluator
from torch import Tensor, nn
from transformers import (
    TrainerCallback,
    TrainerControl as Control,
    TrainerState as State,
    TrainingArguments as Arguments,
)

from condsim.console import ProgressDisplay
from condsim.data.nli_triplets import Triplets
from condsim.data.tasks import pair_rows
from condsim.evaluation.metrics import pair_accuracy, triplet_wins
from condsim.evaluation.statistics import spearman
from condsim.io import replacing
from condsim.model.torch import CrossEncoderScorer, EncoderScorer
from condsim.training.data import DevData, dev_pairs
from condsim.training.recipe import Recipe

LOSS_STATE = "loss.safetensors"


def loss_state(loss: nn.Module) -> dict[str, Tensor]:
    """Weights of the loss itself, without the model's."""
    return {
        name: weight.detach().cpu().contiguous()
        for name, weight in loss.state_dict().items()
        if not name.startswith("model.")
    }


def load_loss_state(loss: nn.Module, checkpoint: Path) -> None:
    """Restore the loss's own weights from a checkpoint."""
    if loss_state(loss):
        loss.load_state_dict(load_file(checkpoint / LOSS_STATE), strict=False)


Model = SentenceTransformer | CrossEncoder


def uncalibrated_scorer(
    model: Model, recipe: Recipe, *, name: str
) -> EncoderScorer | CrossEncoderScorer:
    """Make a scorer of a model in memory; it has no calibration."""
    if isinstance(model, SentenceTransformer):
        return EncoderScorer(model, name=name, order=recipe.order)
    return CrossEncoderScorer(
        model, name=name, order=recipe.order, layout=recipe.layout, inputs=recipe.inputs
    )


class DevEvaluator(BaseEvaluator):
    """Spearman on the labeled rows of the dev file, as a sentence-transformers evaluator.

    Of triplets it is the Spearman of their pairs, and the epoch is chosen by their accuracy.
    """

    def __init__(self, dev: DevData, recipe: Recipe) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._has_triplets = isinstance(dev, Triplets)
        # The figure that the best epoch is chosen by.
        self.metric = self.primary_metric = "accuracy" if self._has_triplets else recipe.chosen_by
        self._recipe = recipe
        self._dev = dev_pairs(dev).labeled()
        self._pairing = pair_rows(self._dev) if self.metric == "both" else None

    def __call__(
        self,
        model: Model,  # type: ignore[override]
        output_path: str | None = None,
        epoch: int = -1,
        steps: int = -1,
    ) -> dict[str, float]:
        """Score the rows."""
        dev = self._dev
        scorer = uncalibrated_scorer(model, self._recipe, name="dev")
        scores = scorer.score(dev.sentences1, dev.sentences2, dev.conditions, scale="raw")
        order = float(np.nan_to_num(spearman(scores, dev.gold)))
        figures = {"spearman": order}
        if self._pairing is not None:
            accuracy = pair_accuracy(scores, high=self._pairing.high, low=self._pairing.low)
            figures["both"] = order if np.isnan(accuracy) else (order + accuracy) / 2
        if self._has_triplets:
            figures["accuracy"] = float(triplet_wins(scores).mean())
        return figures


class ProgressCallback(TrainerCallback):
    """Shows steps, loss, dev Spearman and the time left on stderr; without a terminal, as lines."""

    def __init__(self) -> None:
        self._display = ProgressDisplay()
        self._figures: dict[str, str] = {}

    def on_step_end(self, args: Arguments, state: State, control: Control, **_: object) -> None:
        """Move the bar."""
        if state.is_world_process_zero:
            note = ", ".join(f"{name} {value}" for name, value in self._figures.items())
            self._display("training", state.global_step, state.max_steps, note)

    def on_log(self, args: Arguments, state: State, control: Control, **_: object) -> None:
        """Show the newest loss, and print a line for each epoch."""
        figures = state.log_history[-1]
        if "loss" in figures:
            self._figures["loss"] = f"{float(figures['loss']):.4f}"
        if "eval_spearman" in figures and state.is_world_process_zero:
            spearman = self._figures["dev Spearman"] = f"{100 * figures['eval_spearman']:.2f}"
            line = f"epoch {state.epoch:.0f}: dev Spearman {spearman}"
            if "eval_accuracy" in figures:
                line += f", accuracy {100 * figures['eval_accuracy']:.2f}"
            self._display.say(line)

    def on_train_end(self, args: Arguments, state: State, control: Control, **_: object) -> None:
        """Remove the bar."""
        self._display.close()


class FirstEpochCallback(TrainerCallback):
    """Clock of the first epoch of a call, which reports the time of a step."""

    def __init__(self, report: Callable[[float, int], None]) -> None:
        """Take the function that gets the seconds of a step, and the number of steps done."""
        self._report = report
        self._started = 0.0
        self._first_step = -1

    def on_train_begin(self, args: Arguments, state: State, control: Control, **_: object) -> None:
        """Start the clock."""
        self._started, self._first_step = time.monotonic(), state.global_step

    def on_evaluate(self, args: Arguments, state: State, control: Control, **_: object) -> None:
        """Report after the first evaluation."""
        steps = state.global_step - self._first_step
        if self._first_step >= 0 and steps:
            self._report((time.monotonic() - self._started) / steps, state.global_step)
            self._first_step = -1


class CheckpointCallback(TrainerCallback):
    """Asks for checkpoints within an epoch, and on Ctrl-C for one and the end of the run.

    A checkpoint also gets the loss's own weights and is complete only with them.

    Attributes:
        interrupted: Whether Ctrl-C ended the run.
    """

    def __init__(self, loss: nn.Module, *, steps: int) -> None:
        """Make the callback; ``steps`` between checkpoints, 0 for none within an epoch."""
        self.interrupted = False
        self._loss, self._steps = loss, steps

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle Ctrl-C in the block; does nothing in a thread, where Python forbids it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            # A handler of C code is None here and cannot be restored.
            if previous is not None:
                signal.signal(signal.SIGINT, previous)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        # A second Ctrl-C stops at once.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def on_step_end(self, args: Arguments, state: State, control: Control, **_: object) -> None:
        """Ask for a checkpoint, and once Ctrl-C was pressed for the end of training."""
        if self.interrupted or (self._steps and state.global_step % self._steps == 0):
            control.should_save = True
        control.should_training_stop |= self.interrupted

    def on_save(self, args: Arguments, state: State, control: Control, **_: object) -> None:
        """Write ``loss.safetensors`` after the library's part of the checkpoint."""
        weights = loss_state(self._loss)
        if weights and state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            with replacing(folder / LOSS_STATE) as partial:
                save_file(weights, partial)

    def on_epoch_end(self, args: Arguments, state: State, control: Control, **_: object) -> None:
        """Skip the evaluation of an epoch that was cut short, so that resuming it stays exact."""
        if self.interrupted and state.epoch is not None and state.epoch % 1:
            control.should_evaluate = False
            control.should_save = False
