"""What happens around a training step: the progress bar, Ctrl-C, and checkpoints in an epoch."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from condsim.console import ProgressDisplay
from condsim.io import replacing

LOSS_STATE = "loss.safetensors"


def loss_state(loss: nn.Module) -> dict[str, Tensor]:
    """Gives the loss's own weights."""
    return {
        name: weight.detach().cpu().contiguous()
        for name, weight in loss.state_dict().items()
        if not name.startswith("model.")
    }


def load_loss_state(loss: nn.Module, checkpoint: Path) -> None:
    """Puts the loss's own weights back as a checkpoint has them."""
    if loss_state(loss):
        loss.load_state_dict(load_file(checkpoint / LOSS_STATE), strict=False)


class LossStateCallback(TrainerCallback):
    """Writes the loss's own weights into each checkpoint, which is complete only with them."""

    def __init__(self, loss: nn.Module) -> None:
        self._loss = loss

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Writes ``loss.safetensors`` after the library's part of the checkpoint."""
        if not state.is_world_process_zero:
            return
        folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
        with replacing(folder / LOSS_STATE) as partial:
            save_file(loss_state(self._loss), partial)


class ProgressCallback(TrainerCallback):
    """Shows steps, loss, dev Spearman and the time left on stderr; without a terminal, as lines."""

    def __init__(self) -> None:
        self._display = ProgressDisplay()
        self._figures: dict[str, str] = {}

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Moves the bar on."""
        if not state.is_world_process_zero:
            return
        note = ", ".join(f"{name} {value}" for name, value in self._figures.items())
        self._display("training", state.global_step, state.max_steps, note)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        """Shows the newest loss, and prints a line for each epoch."""
        if logs and "loss" in logs:
            self._figures["loss"] = f"{float(logs['loss']):.4f}"
        if logs and "eval_spearman" in logs and state.is_world_process_zero:
            spearman = self._figures["dev Spearman"] = f"{100 * logs['eval_spearman']:.2f}"
            accuracy = logs.get("eval_accuracy")
            of_triplets = "" if accuracy is None else f", accuracy {100 * accuracy:.2f}"
            self._display.say(f"epoch {state.epoch:.0f}: dev Spearman {spearman}{of_triplets}")

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Takes the bar away."""
        self._display.close()


class InterruptCallback(TrainerCallback):
    """Ends the run cleanly on Ctrl-C: the step is finished and a checkpoint is written."""

    def __init__(self) -> None:
        self.interrupted = False  # whether the run was ended this way

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Takes over Ctrl-C in the block; does nothing in a thread, where Python forbids it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            if previous is not None:  # one of C code cannot be given back
                signal.signal(signal.SIGINT, previous)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second Ctrl-C stops at once

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Asks for a checkpoint and the end of training once Ctrl-C was pressed."""
        if self.interrupted:
            control.should_save = True
            control.should_training_stop = True

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Does not judge an epoch that was cut short, so that resuming it ends the same."""
        if self.interrupted and state.epoch is not None and state.epoch % 1:
            control.should_evaluate = False
            control.should_save = False


class PatienceCallback(TrainerCallback):
    """Ends the run once the dev figure has not risen for so many epochs."""

    # The library's own callback would count from 0 again in a run that is resumed.

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Counts the epochs since the first of the best ones."""
        key = f"eval_{args.metric_for_best_model}"
        figures = [entry[key] for entry in state.log_history if key in entry]
        if len(figures) > self._epochs + figures.index(max(figures)):
            control.should_training_stop = True


class CheckpointCallback(TrainerCallback):
    """Writes a checkpoint every few steps within an epoch, without evaluating."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Asks for a checkpoint on every multiple of the number of steps."""
        if state.global_step % self._steps == 0:
            control.should_save = True
