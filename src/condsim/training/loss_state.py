"""What a loss trains beside the encoder (CCL's projection head), kept in the checkpoints of a run.

The library's checkpoints hold the encoder and the optimizer only: a resumed run would go on with a
fresh head. The saved encoder has none of it.
"""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from condsim.files import replacing

__all__ = ["LOSS_STATE", "LossStateCallback", "load_loss_state", "loss_state"]

LOSS_STATE = "loss.safetensors"


def loss_state(loss: nn.Module) -> dict[str, Tensor]:
    """Gives the loss's own weights.

    Args:
        loss: A loss whose encoder is its submodule ``model``.

    Returns:
        Weights by name, those of the encoder left out; empty for most losses.
    """
    return {
        name: weight.detach().cpu().contiguous()
        for name, weight in loss.state_dict().items()
        if not name.startswith("model.")
    }


def load_loss_state(loss: nn.Module, checkpoint: Path) -> None:
    """Puts the loss's own weights back as a checkpoint has them.

    Args:
        loss: The loss.
        checkpoint: Folder of the checkpoint; nothing happens if the loss has no weights.
    """
    if loss_state(loss):
        loss.load_state_dict(load_file(checkpoint / LOSS_STATE), strict=False)


class LossStateCallback(TrainerCallback):
    """Writes the loss's own weights into each checkpoint, after the library's part of it."""

    def __init__(self, loss: nn.Module) -> None:
        """Takes the loss."""
        self._loss = loss

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Writes ``loss.safetensors``; a checkpoint is complete only with it."""
        if not state.is_world_process_zero:
            return
        folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
        with replacing(folder / LOSS_STATE) as partial:
            save_file(loss_state(self._loss), partial)
