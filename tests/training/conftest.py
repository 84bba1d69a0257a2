"""A small task of our own and a recipe that trains a tiny random backbone on it in a second."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from condsim.training.recipe import Recipe, save_recipe

SUBJECTS = ("man", "woman", "girl", "boy", "dog", "cat", "bird", "child")
ACTIONS = ("throws a red ball", "kicks a blue ball", "sits on a table", "runs in the street")


def write_rows(path: Path, *, first: int, pairs: int) -> None:
    """Writes sentence pairs with two conditions each; every fifth pair lacks its second row."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["sentence1", "sentence2", "condition", "label"])
        for number in range(first, first + pairs):
            subject1, action1 = SUBJECTS[number % 8], ACTIONS[number % 4]
            subject2, action2 = SUBJECTS[(number // 3) % 8], ACTIONS[(number // 5) % 4]
            sentences = [f"The {subject1} {action1} {number}.", f"A {subject2} {action2} {number}."]
            rows.writerow([*sentences, "the animal", 5 if subject1 == subject2 else 2])
            if number % 5:
                rows.writerow([*sentences, "the sport", 4 if action1 == action2 else 1])


@pytest.fixture(scope="session")
def tiny_recipe(tmp_path_factory, tiny_backbone) -> Recipe:
    folder = tmp_path_factory.mktemp("tiny-task")
    write_rows(folder / "train.csv", first=0, pairs=40)
    write_rows(folder / "dev.csv", first=100, pairs=20)
    return Recipe(
        name="tiny",
        train=str(folder / "train.csv"),
        dev=str(folder / "dev.csv"),
        backbone=str(tiny_backbone),
        objective={"mse": 1.0, "quad": 0.5, "correlation": 0.5},
        max_seq_length=48,
        epochs=2,
        batch_size=8,
        learning_rate=1e-3,
        precision="float32",
    )


@pytest.fixture
def weights_of() -> Callable[[Path], dict[str, bytes]]:
    """Gives the weights that a run's folder holds, checkpoints left out, byte by byte."""

    def weights(folder: Path) -> dict[str, bytes]:
        numpy = pytest.importorskip("safetensors.numpy")
        return {
            f"{path.relative_to(folder)}:{name}": tensor.tobytes()
            for path in sorted(folder.rglob("*.safetensors"))
            if "checkpoints" not in path.parts
            for name, tensor in numpy.load_file(path).items()
        }

    return weights


@pytest.fixture
def fit_interrupted() -> Callable[..., None]:
    """Trains by a recipe, with Ctrl-C after a step."""

    def interrupted(recipe: Recipe, output: Path, *, step: int) -> None:
        from condsim.training.callbacks import ProgressCallback
        from condsim.training.run import fit

        original = ProgressCallback.on_step_end

        def on_step_end(self, args, state, control, **rest):
            if state.global_step == step:
                os.kill(os.getpid(), signal.SIGINT)
            original(self, args, state, control, **rest)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ProgressCallback, "on_step_end", on_step_end)
            fit(recipe, output)

    return interrupted


@pytest.fixture
def check_killed_and_resumed(tmp_path, weights_of) -> Callable[..., Path]:
    """Trains a recipe at one go, and killed after a checkpoint and resumed; both end bit-equal.

    Each training has a process of its own on one thread: sums of two threads differ run by run, and
    libraries that other tests load may change how this process rounds.
    """

    def start(recipe: Path, output: Path, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "condsim", "train", recipe, "--output", output, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def check(recipe: Recipe, checkpoint: str) -> Path:
        path, run = tmp_path / "recipe.yaml", tmp_path / "killed"
        save_recipe(recipe, path)
        assert start(path, tmp_path / "whole").wait() == 0
        process = start(path, run)
        deadline = time.monotonic() + 600
        while not any((run / "checkpoints").glob(f"{checkpoint}/trainer_state.json")):
            assert time.monotonic() < deadline, "no checkpoint was written"
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (run / "report.json").exists()
        assert start(path, run, "--resume").wait() == 0
        assert weights_of(run) == weights_of(tmp_path / "whole")
        return run

    return check
