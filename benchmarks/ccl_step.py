"""A training step of CCL, against one of Quad + MSE on the same batch."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Literal

import torch
from torch import optim

from benchmarks.machine import usable_cores, version_of
from benchmarks.models import train_backbone
from benchmarks.result import Result
from benchmarks.rows import Source, source, take
from condsim.model.precision import uses_bfloat16
from condsim.training.recipe import Recipe
from condsim.training.trainer import TrainingRun, build_run

__all__ = ["BARS", "Cost", "Step", "Times", "run", "time_in_turns"]

Batch = dict[str, Any]
Encoder = Literal["bi-encoder", "tri-encoder"]

BARS: dict[Encoder, float | None] = {"bi-encoder": 1.6, "tri-encoder": None}

_PEER = "Quad + MSE"
_OBJECTIVES: dict[str, dict[str, float]] = {
    _PEER: {"quad": 1.0, "mse": 1.0},
    "CCL": {"w-acl": 1.0, "bcl": 1.0, "mse": 1.0, "c-mse": 1.0},
    "CCL without BCL": {"w-acl": 1.0, "mse": 1.0, "c-mse": 1.0},
}
_EPOCH = 11_342  # rows C-STS has for training


@dataclass(frozen=True)
class Cost(Result):
    """A result of which less is better: ``ratio`` is our time over theirs and ``bar`` its most."""

    @property
    def met(self) -> bool | None:
        """Whether the ratio is no more than the bar; None where there is no bar."""
        return None if self.bar is None else self.ratio <= self.bar


@dataclass(frozen=True)
class Times:
    """Seconds of the steps of one objective.

    Attributes:
        seconds: One number a step, in the order of the steps, the same for all objectives.
    """

    seconds: tuple[float, ...]

    def over(self, other: Times) -> tuple[float, float, float]:
        """Compares two objectives step by step, each with the other's step on the same batch.

        Args:
            other: As many steps on the same batches, two or more.

        Returns:
            Lower quartile, median and upper quartile of our time over the other's.
        """
        pairs = zip(self.seconds, other.seconds, strict=True)
        ratios = [ours / theirs for ours, theirs in pairs]
        low, middle, high = quantiles(ratios, n=4, method="inclusive")
        return low, middle, high

    @property
    def milliseconds(self) -> float:
        """The median step."""
        return 1000 * median(self.seconds)


class Step:
    """One optimizer step of a run, with the trainer's loss, precision, clipping and AdamW."""

    def __init__(self, built: TrainingRun) -> None:
        """Makes the optimizer and wraps the model in autocast, as the trainer does.

        Args:
            built: A run that has not begun.
        """
        self._trainer = built.trainer
        optimizer = built.trainer.create_optimizer()
        self._model: Any  # a SentenceTransformer whose forward runs under autocast
        self._optimizer: optim.Optimizer
        self._model, self._optimizer = built.trainer.accelerator.prepare(built.model, optimizer)
        self._model.train()

    def __call__(self, batch: Batch) -> None:
        """Trains on a batch: forward, backward and update.

        Args:
            batch: A batch of the trainer, already tokenized and on its device.
        """
        trainer = self._trainer
        loss = trainer.compute_loss(self._model, dict(batch))
        trainer.accelerator.backward(loss)
        trainer.accelerator.clip_grad_norm_(self._model.parameters(), trainer.args.max_grad_norm)
        self._optimizer.step()
        self._optimizer.zero_grad()


def time_in_turns(
    steps: Mapping[str, Step], batches: Sequence[Batch], *, repeats: int
) -> dict[str, Times]:
    """Lets the objectives take turns, a step each on every batch, so that all meet the same load.

    Another one begins in each round. A first round is not counted, in which memory is set up.

    Args:
        steps: The step of each objective.
        batches: The batches, one or more.
        repeats: How often each batch is trained on.

    Returns:
        The times of each objective, ``len(batches) * repeats`` steps.
    """
    names = list(steps)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for round_, batch in enumerate([batches[0], *(list(batches) * repeats)]):
        first = round_ % len(names)
        for name in names[first:] + names[:first]:
            _wait()
            start = time.perf_counter()
            steps[name](batch)
            _wait()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    return {name: Times(tuple(taken)) for name, taken in seconds.items()}


def run(backbone: str | None, data: Path, *, rows: int, quick: bool) -> list[Result]:
    """Times the steps of CCL, with and without BCL, and of Quad + MSE, for both encoders.

    Args:
        backbone: A folder; None for all-MiniLM-L6-v2 or what stands in for it.
        data: A C-STS training file; rows are generated where it is missing.
        rows: Rows the batches are drawn from; 0 for as many as C-STS has.
        quick: Take few batches and repeats.

    Returns:
        Two results for each encoder: CCL, and CCL without BCL.

    Raises:
        InputError: If the file breaks a rule or has no sentence pair to compare.
        ModelError: If the backbone cannot be loaded.
    """
    torch.set_num_threads(usable_cores())
    chosen = source(data, rows=rows or _EPOCH)
    batches, repeats = (2, 2) if quick else (6, 3)
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as folder:
        name, what = train_backbone(backbone, chosen.task, Path(folder))
        for encoder, bar in BARS.items():
            recipe = _recipe(encoder, name, chosen)
            times = _times(recipe, chosen, Path(folder, encoder), batches=batches, repeats=repeats)
            results += _results(recipe, bar, times, chosen, what=what, batches=batches)
    return results


def _recipe(encoder: Encoder, backbone: str, chosen: Source) -> Recipe:
    return Recipe(
        name=f"bench-{encoder}",
        train=chosen.task.name,
        dev=chosen.task.name,
        encoder=encoder,
        backbone=backbone,
        objective=_OBJECTIVES[_PEER],
        seed=0,
    )


def _times(
    recipe: Recipe, chosen: Source, output: Path, *, batches: int, repeats: int
) -> dict[str, Times]:
    """Builds a model for each objective, all alike, and times them on batches of the trainer."""
    task = chosen.task
    runs = {
        name: build_run(
            recipe.replaced(objective=objective), task, take(task, 8, seed=0), output / name
        )
        for name, objective in _OBJECTIVES.items()
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pin_memory.*")
        drawn = list(islice(runs[_PEER].trainer.get_train_dataloader(), batches))
    steps = {name: Step(built) for name, built in runs.items()}
    return time_in_turns(steps, drawn, repeats=repeats)


def _results(
    recipe: Recipe,
    bar: float | None,
    times: Mapping[str, Times],
    chosen: Source,
    *,
    what: str,
    batches: int,
) -> list[Result]:
    """One cost for each objective other than the peer's; only CCL itself has a bar."""
    precision = "bfloat16" if uses_bfloat16(recipe.precision) else "float32"
    theirs = times[_PEER]
    results: list[Result] = []
    for name, ours in times.items():
        if name == _PEER:
            continue
        low, middle, high = ours.over(theirs)
        results.append(
            Cost(
                benchmark="ccl_step",
                measured=f"{recipe.encoder}, {name}; less is better",
                peer=f"{_PEER}, {version_of('condsim')}",
                unit="ms/step",
                ours=ours.milliseconds,
                theirs=theirs.milliseconds,
                ratio=middle,
                bar=bar if name == "CCL" else None,
                notes=(
                    f"our time over theirs, the median of {len(ours.seconds)} steps on {batches} "
                    f"batches of {recipe.batch_size} rows, quartiles {low:.2f} and {high:.2f}; "
                    f"{chosen.origin}; backbone {what}; both in {precision}",
                ),
            )
        )
    return results


def _wait() -> None:
    """Waits until an accelerator has done what it was given."""
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
