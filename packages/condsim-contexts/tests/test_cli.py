from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.errors import InputError

pytest.importorskip("pyarrow")

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def recipe(tmp_path) -> Path:
    (tmp_path / "a.txt").write_text("A text.")
    path = tmp_path / "r.yaml"
    path.write_text(f"name: n\ninputs: [{tmp_path / 'a.txt'}]\n")
    return path


@pytest.fixture
def made(monkeypatch) -> Any:
    """Stands in for the pipeline: remembers what was asked for."""
    asked: list[str] = []

    class Made:
        def __init__(self, folder: Path, recipe: Any, *, until: str, progress: Any) -> None:
            asked.append(f"until {until}, size {recipe.selection.size}")
            self.progress = progress

        @contextmanager
        def locked(self) -> Iterator[Any]:
            asked.append("locked")
            yield self
            asked.append("ended")

        def run(self) -> Iterator[str]:
            self.progress("corpus", 1, 2)
            yield "corpus: done"

    monkeypatch.setattr("condsim_contexts.pipeline.Pipeline", Made)
    return asked


def invoke(*words: object) -> Any:
    return CliRunner().invoke(app, ["contexts", "run", *map(str, words)])


def test_run_makes_the_stages_and_prints_their_lines(recipe, made):
    done = invoke(recipe, "--output", "out", "--set", "selection.size=7", "--until", "index")
    assert done.exit_code == 0, done.exception
    assert done.stderr.splitlines() == ["corpus: done"]
    assert made == ["until index, size 7", "locked", "ended"]


@pytest.mark.slow
def test_run_of_tiny_yaml_ends_with_a_surrogate(tmp_path):
    """All of its stages, with some of its steps and a third of its pairs."""
    pytest.importorskip("sentence_transformers")
    command = [sys.executable, "-m", "condsim", "contexts", "run", "recipes/contexts/tiny.yaml"]
    command += ["--output", str(tmp_path / "out")]
    for fewer in ("coherence.max_steps=6", "generators.max_steps=4", "harvest.pairs=300"):
        command += ["--set", fewer]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "harvest, to be done: 300 pairs x 10 contexts x 3 generators" in done.stderr
    assert "surrogate; Spearman" in done.stderr.splitlines()[-1]
    assert (tmp_path / "out" / "surrogate" / "model.safetensors").is_file()


def test_weigh_prints_a_setting_that_run_takes(recipe, made, monkeypatch):
    from condsim_contexts.equations import FittedWeights
    from condsim_contexts.recipe import Weights

    asked: list[object] = []
    weights = Weights(coherence=0, center=0.6, left=0.4, right=0)
    found = FittedWeights(weights, 0.9, 0.8, {"center": 0.7, "left": 0.25}, 320)

    def opened(folder: Path, *, progress: object) -> Any:
        return SimpleNamespace(fit_weights=lambda *, sentences: asked.append(sentences) or found)

    monkeypatch.setattr("condsim_contexts.origin.open_pipeline", opened)
    done = CliRunner().invoke(app, ["contexts", "weigh", "out", "--sentences", "400"])
    assert done.exit_code == 0, done.exception
    assert asked == [400]
    assert done.stdout == ("scoring.weights={coherence: 0, center: 0.6, left: 0.4, right: 0}\n")
    assert done.stderr == (
        "own context found among 16, of 320 held-out sentences: 90.0%; with equal weights 80.0%; "
        "by one term alone: center 70.0%, left 25.0%; chance is 6.2%\n"
    )
    assert invoke(recipe, "--output", "out", "--set", done.stdout.strip()).exit_code == 0


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), RuntimeError("I/O error: No space left on device")]
)
def test_run_full_disk_is_one_line(recipe, made, monkeypatch, error: Exception):
    def full(self: Any) -> Any:
        raise error

    monkeypatch.setattr("condsim_contexts.pipeline.Pipeline.run", full)
    done = invoke(recipe, "--output", "out")
    assert isinstance(done.exception, InputError)
    assert "out cannot be written: " in str(done.exception)
