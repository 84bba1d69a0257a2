from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.contexts.cli import Stage
from condsim.errors import InputError, MissingExtraError

pytest.importorskip("pyarrow")

PROJECT = Path(__file__).resolve().parents[2]


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
            self.folder, self.progress = folder, progress

        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            self.progress(name, 1, 2)
            report = SimpleNamespace(summary=lambda: f"{name}: done", scorer=None)
            if name == "corpus":
                return SimpleNamespace(counts=report)
            return {"index": range(1234), "generators": None}.get(name, report)

        def begun(self) -> Any:
            return self

        def __enter__(self) -> Any:
            asked.append("begun")
            return self

        def __exit__(self, *_: object) -> None:
            asked.append("ended")

        def harvest_cost(self) -> str | None:
            return "5 pairs" if "harvested" not in asked else None

        def harvest(self, engine: Any = None) -> Any:
            asked.append("harvested")
            return SimpleNamespace(summary=lambda: "harvest: 5 pairs")

        def surrogate(self, harvested: Any) -> Any:
            spearman = SimpleNamespace(value=71.26)
            model = SimpleNamespace(metrics={"spearman": spearman})
            report = SimpleNamespace(model=model, valid_rows=9)
            return SimpleNamespace(folder="out/surrogate", report=report)

    monkeypatch.setattr("condsim.contexts.pipeline.Pipeline", Made)
    return asked


def invoke(*words: object) -> Any:
    return CliRunner().invoke(app, ["contexts", "run", *map(str, words)])


def test_stages_are_those_of_the_pipeline():
    from condsim.contexts.pipeline import STAGES

    assert get_args(Stage) == STAGES


def test_run_makes_all_stages_and_says_what_each_gave(recipe, made):
    done = invoke(recipe, "--output", "out", "--set", "selection.size=7")
    assert done.exit_code == 0, done.exception
    assert done.stderr.splitlines() == [
        "corpus: done",
        "index: 1,234 chunks",
        "coherence: done",
        "generators: not used, its weight is 0",
        "origin: out, for condsim evaluate --model",
        "harvest, to be done: 5 pairs",
        "harvest: 5 pairs",
        "surrogate: out/surrogate; Spearman 71.3 with the origin on 9 dev pairs",
    ]
    assert made[:2] == ["until surrogate, size 7", "begun"]
    assert made[-1] == "ended"


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


def test_run_stops_after_the_stage_named(recipe, made):
    done = invoke(recipe, "--output", "out", "--until", "index")
    assert done.stderr.splitlines() == ["corpus: done", "index: 1,234 chunks"]
    assert made == ["until index, size 500", "begun", "corpus", "index", "ended"]


def test_weigh_prints_a_setting_that_run_takes(recipe, made, monkeypatch):
    from condsim.contexts.recipe import Weights
    from condsim.contexts.weights import FittedWeights

    asked: list[object] = []
    weights = Weights(coherence=0, centre=0.6, left=0.4, right=0)
    found = FittedWeights(weights, 0.9, 0.8, {"centre": 0.7, "left": 0.25}, 320)

    def opened(folder: Path, *, progress: object) -> Any:
        return SimpleNamespace(fit_weights=lambda *, sentences: asked.append(sentences) or found)

    monkeypatch.setattr("condsim.contexts.run.open_pipeline", opened)
    done = CliRunner().invoke(app, ["contexts", "weigh", "out", "--sentences", "400"])
    assert done.exit_code == 0, done.exception
    assert asked == [400]
    assert done.stdout == ("scoring.weights={coherence: 0, centre: 0.6, left: 0.4, right: 0}\n")
    assert done.stderr == (
        "own context found among 16, of 320 held-out sentences: 90.0%; with equal weights 80.0%; "
        "by one term alone: centre 70.0%, left 25.0%; chance is 6.2%\n"
    )
    assert invoke(recipe, "--output", "out", "--set", done.stdout.strip()).exit_code == 0


def test_run_interrupted_says_how_to_go_on(recipe, made, monkeypatch):
    def interrupted(self: Any, engine: Any = None) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("condsim.contexts.pipeline.Pipeline.harvest", interrupted)
    done = invoke(recipe, "--output", "out")
    assert done.exit_code == 130
    assert "Stopped. The same command goes on from here." in done.stderr


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), RuntimeError("I/O error: No space left on device")]
)
def test_run_full_disk_is_one_line(recipe, made, monkeypatch, error: Exception):
    def full(self: Any, engine: Any = None) -> Any:
        raise error

    monkeypatch.setattr("condsim.contexts.pipeline.Pipeline.harvest", full)
    done = invoke(recipe, "--output", "out")
    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith("No space is left on the disk of out. Finished work")


@pytest.mark.parametrize("options", [["--workers", "2"], ["--address", "auto"]])
def test_run_ray_options_without_ray_are_refused(recipe, made, options: list[str]):
    done = invoke(recipe, "--output", "out", *options)
    assert isinstance(done.exception, InputError)
    assert "are for --engine ray" in str(done.exception)
    assert made == []


def test_run_without_ray_installed_is_told_before_anything_is_made(recipe, made, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    done = invoke(recipe, "--output", "out", "--engine", "ray")
    assert isinstance(done.exception, MissingExtraError)
    assert str(done.exception).endswith("pip install 'condsim[ray]'")
    assert made == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "selection.sise=3"], "'sise'. Did you mean 'size'?"),
        (["--set", "inputs=[none.txt]"], "none.txt does not exist."),
        (["--set", "surrogate.train.epoch=3"], "'epoch'"),
    ],
)
def test_command_mistakes_are_one_line_and_nothing_is_written(
    recipe, tmp_path, monkeypatch, words: list[str], message: str
):
    monkeypatch.chdir(tmp_path)
    done = invoke(recipe, "--output", "out", *words)
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_help_imports_no_torch():
    code = (
        "import sys, condsim.contexts.cli; "
        "assert not {'torch', 'pyarrow', 'ray', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
