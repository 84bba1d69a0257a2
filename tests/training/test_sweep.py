from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests.evaluation.conftest import report_of

from condsim.errors import InputError, MissingExtraError, ModelError
from condsim.evaluation.report import ModelResult, Report
from condsim.evaluation.statistics import Metric
from condsim.training.recipe import load_recipe, save_recipe

pytest.importorskip("optuna")
pytest.importorskip("torch")

from condsim.training.folder import FinishedRun
from condsim_sweep import sweep as module
from condsim_sweep.spec import load_sweep
from condsim_sweep.sweep import run_sweep, sweep_markdown

GRID = {"learning_rate": {"grid": [1e-5, 3e-5, 1e-4]}, "transform": {"grid": [False, True]}}


def result(name, spearman, pearson=10.0):
    values = {"spearman": spearman, "pearson": pearson}
    return ModelResult(name, {key: Metric(value, value, value) for key, value in values.items()})


def finished(recipe, folder, spearman):
    model = result(recipe.name, spearman, spearman - 1)
    report = report_of(model, baselines=(result("condition-only", 5.0, 6.0),))
    return FinishedRun(
        folder=folder,
        recipe=recipe,
        report=report,
        dev_spearman=(spearman,),
        seconds=60.0,
        train_revision="0" * 12,
    )


def score(recipe):
    """What a recipe is worth: best at 3e-5 with the dense layer."""
    near = -abs(math.log10(recipe.learning_rate / 3e-5))
    return 40 + 10 * near + recipe.transform + recipe.seed % 10


class FakeRuns:
    """Stands in for training: notes what was trained, gives what ``score`` says."""

    def __init__(self):
        self.trained = []
        self.score = score

    def __call__(self, recipe, folder, *, wait=True):
        marker = folder / "recipe.yaml"
        if not marker.is_file():
            folder.mkdir(parents=True)
            self.trained.append(folder.name)
            value = self.score(recipe)
            save_recipe(recipe, marker)
        else:
            assert load_recipe(marker) == recipe
            value = self.score(recipe)
        return finished(recipe, folder, value)


class FakeScorer:
    """Stands in for a trained model."""

    name = "fake"

    def __init__(self, folder):
        pass

    def score(self, sentences1, sentences2, conditions):
        return np.linspace(0, 1, len(sentences1), dtype=np.float32)


@pytest.fixture
def runs(monkeypatch):
    fake = FakeRuns()
    monkeypatch.setattr(module, "run_or_resume", fake)
    return fake


@pytest.fixture
def write(tmp_path, tiny_recipe):
    """Makes the file of a sweep over a tiny base recipe."""

    def written(**keys):
        save_recipe(tiny_recipe, tmp_path / "base.yaml")
        values = {"name": "tiny", "recipe": str(tmp_path / "base.yaml"), "space": GRID, **keys}
        path = tmp_path / "sweep.yaml"
        path.write_text(yaml.safe_dump(values, sort_keys=False))
        return path

    return written


@pytest.fixture
def held_out(tmp_path, tiny_recipe):
    path = tmp_path / "test.csv"
    lines = Path(tiny_recipe.dev).read_text("utf-8").splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n", "utf-8")
    return path


def files_of(folder):
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.iterdir()
        if path.is_file() and path.suffix != ".lock"
    }


def test_sweep_grid_trains_every_point_once_and_the_best_with_each_seed(tmp_path, write, runs):
    spec, output = load_sweep(write()), tmp_path / "out"
    found = run_sweep(spec, output)
    assert len(runs.trained) == 6 + 3
    assert runs.trained[6:] == ["43", "44", "45"]
    best = found.trials[0]
    assert best.parameters == {"learning_rate": 3e-5, "transform": True}
    assert best.folder == "trials/learning_rate=3e-05,transform=true"
    assert [trial.dev.spearman for trial in found.trials] == sorted(
        (trial.dev.spearman for trial in found.trials), reverse=True
    )
    assert load_recipe(output / "best.yaml") == found.recipe == spec.recipe_for(best.parameters)
    written = json.loads((output / "sweep.json").read_text())
    # 40 + 1 for the dense layer + the last digit of the seed: 44, 45, 46
    assert written["mean"]["spearman"] == {"mean": 45.0, "std": 1.0}
    assert written["mean"]["pearson"]["mean"] == 44.0
    assert written["condition_only"] == {"spearman": 5.0, "pearson": 6.0}
    assert not (output / "test.json").exists()
    text = (output / "sweep.md").read_text("utf-8")
    assert text == sweep_markdown(found)
    for line in (
        "# Sweep tiny",
        "| | learning_rate | transform | Spearman | Pearson | minutes |",
        "| 1 | 3e-05 | true | 43.00 | 42.00 | 1.0 |",
        "| seed 43 | 44.00 | 43.00 |",
        "| **mean ± standard deviation** | 45.00 ± 1.00 | 44.00 ± 1.00 |",
        "| condition-only | 5.00 | 6.00 |",
    ):
        assert line in text.splitlines()


def test_sweep_finished_only_reads(tmp_path, write, runs, monkeypatch):
    path, output = write(), tmp_path / "out"
    first = run_sweep(load_sweep(path), output)
    before = files_of(output)

    def never(*_, **__):
        raise AssertionError("a finished sweep runs nothing")

    for name in ("run_or_resume", "load_task"):
        monkeypatch.setattr(module, name, never)
    assert run_sweep(load_sweep(path), output) == first
    assert files_of(output) == before


def test_sweep_listed_seed_of_the_trials_is_not_trained_again(tmp_path, write, runs):
    found = run_sweep(load_sweep(write(seeds=[42, 1])), tmp_path / "out")
    assert runs.trained[6:] == ["1"]
    assert found.seeds[0].folder == found.trials[0].folder


@pytest.mark.parametrize(("sampler", "trials"), [("random", 4), ("tpe", 12)])  # tpe: 10 at random
def test_sweep_samplers_run_their_number_and_draw_alike(tmp_path, write, runs, sampler, trials):
    space = {"learning_rate": {"log_uniform": [1e-6, 1e-3]}, "transform": {"choice": [True, False]}}
    spec = load_sweep(write(space=space, sampler=sampler, trials=trials, seeds=1))
    found, again = (run_sweep(spec, tmp_path / name) for name in ("a", "b"))
    assert len({trial.folder for trial in found.trials}) == len(found.trials) == trials
    assert found.trials == again.trials
    assert all(1e-6 <= trial.parameters["learning_rate"] <= 1e-3 for trial in found.trials)


def test_sweep_diverged_trial_is_reported_and_the_rest_runs(tmp_path, write, runs):
    def diverging(recipe):
        if recipe.learning_rate == 1e-4 and recipe.transform:
            raise ModelError("every score must be a finite number")
        return math.nan if recipe.learning_rate == 1e-4 else score(recipe)

    runs.score = diverging
    spec, output = load_sweep(write()), tmp_path / "out"
    found = run_sweep(spec, output)
    assert [trial.dev.spearman is None for trial in found.trials] == [False] * 4 + [True] * 2
    assert {trial.error for trial in found.trials[4:]} == {
        "every score must be a finite number",
        "all its scores are equal",
    }
    assert "- no result: `trials/learning_rate=0.0001,transform=true`: every" in sweep_markdown(
        found
    )
    assert run_sweep(spec, output) == found


def test_sweep_without_any_result_raises(tmp_path, write, runs):
    runs.score = lambda recipe: math.nan
    with pytest.raises(ModelError, match=r"No trial in .* has a dev Spearman: all its scores"):
        run_sweep(load_sweep(write()), tmp_path / "out")


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), KeyboardInterrupt()])
def test_sweep_stopped_in_a_trial_goes_on_with_it(tmp_path, write, runs, error):
    def failing(recipe):
        if len(runs.trained) == 3:
            raise error
        return score(recipe)

    runs.score = failing
    spec, output = load_sweep(write()), tmp_path / "out"
    with pytest.raises(type(error)):
        run_sweep(spec, output)
    (output / "trials" / runs.trained.pop()).rmdir()  # what is trained again, and only that
    runs.score = score
    found = run_sweep(spec, output)
    assert len(runs.trained) == len(set(runs.trained)) == 9
    assert len(found.trials) == 6


def test_sweep_two_at_once_share_the_grid_without_doubles(tmp_path, write, runs):
    started = threading.Barrier(2, timeout=20)

    def slow(recipe):
        if len(runs.trained) <= 2:
            started.wait()  # passes only with two trials under way at once
        time.sleep(0.02)
        return score(recipe)

    runs.score = slow
    spec, output, found = load_sweep(write(seeds=[42])), tmp_path / "out", []
    workers = [
        threading.Thread(target=lambda: found.append(run_sweep(spec, output))) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found[0] == found[1]
    assert len(runs.trained) == len(set(runs.trained)) == 6


def test_sweep_held_out_is_scored_once_and_never_chooses(
    tmp_path, write, runs, held_out, monkeypatch
):
    scored = []

    def load(folder):
        scored.append(Path(folder).name)
        return FakeScorer(folder)

    monkeypatch.setattr(module, "load_trained", load)
    path, output = write(test=str(held_out)), tmp_path / "out"
    found = run_sweep(load_sweep(path), output)
    assert scored == ["43", "44", "45"]
    assert found.held_out.rows == 35
    assert {seed.seed for seed in found.held_out.seeds} == {43, 44, 45}
    written = json.loads((output / "test.json").read_text())
    assert written["mean"]["spearman"]["std"] == 0.0
    assert "held-out" in (output / "sweep.md").read_text("utf-8")
    before = (output / "test.json").read_bytes()
    (output / "sweep.json").unlink()  # as after a kill between the two
    assert run_sweep(load_sweep(path), output) == found
    assert len(scored) == 3
    with pytest.raises(InputError, match="a held-out file is scored once"):
        run_sweep(load_sweep(write(test=str(held_out), seeds=2)), output)
    assert (output / "test.json").read_bytes() == before


def test_sweep_of_classes_and_without_conditions_ends(tmp_path, write, runs, monkeypatch):
    monkeypatch.setattr(module, "load_trained", FakeScorer)
    rows = [f"A dog runs {n}.\tA cat sits {n}.\t" for n in range(9)]
    nli = ["premise\thypothesis\tlabel", *(f"{row}entailment" for row in rows)]
    (tmp_path / "nli.tsv").write_text("\n".join(nli))
    files = {name: tmp_path / f"{name}.tsv" for name in ("dev", "test")}
    for number, path in enumerate(files.values()):
        scored = [f"{row}{(n + number) % 2}" for n, row in enumerate(rows)]
        path.write_text("\n".join(["sentence1\tsentence2\tscore", *scored]))
    changed = {"train": str(tmp_path / "nli.tsv"), "dev": str(files["dev"])}
    path = write(set={**changed, "objective": {"softmax": 1}}, test=str(files["test"]), seeds=1)
    found = run_sweep(load_sweep(path), tmp_path / "out")
    assert found.held_out.rows == 9
    assert found.held_out.baseline == "word-overlap"


def test_sweep_wrong_data_raises_before_anything_is_written(tmp_path, write, runs, tiny_recipe):
    for keys, message in (
        ({"test": str(tmp_path / "none.csv")}, r"none\.csv"),
        ({"set": {"train": str(tmp_path / "other.csv")}}, r"other\.csv"),
        ({"test": tiny_recipe.dev}, r"has the content of .*dev\.csv, which the sweep"),
    ):
        with pytest.raises(InputError, match=message):
            run_sweep(load_sweep(write(**keys)), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert runs.trained == []


@pytest.mark.parametrize("done", [True, False])
def test_sweep_folder_of_another_sweep_raises(tmp_path, write, runs, done):
    output = tmp_path / "out"
    run_sweep(load_sweep(write()), output)
    if not done:
        (output / "sweep.json").unlink()
    before = files_of(output)
    for keys, changed in (
        ({"name": "other"}, "name"),
        ({"set": {"epochs": 7}}, "recipe"),
        ({"space": {"transform": {"grid": [True]}}}, "space, trials"),
        ({"seed": 1}, "seed"),
    ):
        with pytest.raises(InputError, match=rf"a sweep of other inputs \({changed} changed"):
            run_sweep(load_sweep(write(**keys)), output)
    assert files_of(output) == before
    assert len(runs.trained) == 9


def test_sweep_source_that_changed_raises(tmp_path, write, runs, tiny_recipe):
    source, output = tmp_path / "source.csv", tmp_path / "out"
    source.write_text("\n".join(Path(tiny_recipe.train).read_text().splitlines()[:-1]))
    values = {"sources": {"more": {"file": str(source)}}, "objective": {"mse": 1.0}}
    path = write(set=values)
    run_sweep(load_sweep(path), output)
    (output / "sweep.json").unlink()
    run_sweep(load_sweep(path), output)
    (output / "sweep.json").unlink()
    source.write_text("\n".join(source.read_text().splitlines()[:-1]))
    with pytest.raises(InputError, match=r"\(data changed"):
        run_sweep(load_sweep(path), output)
    source.unlink()
    with pytest.raises(InputError):
        run_sweep(load_sweep(path), tmp_path / "new")


KILLED = """
import sys, time
from pathlib import Path

import condsim_sweep.sweep as module
from condsim_sweep.spec import load_sweep

def run_or_resume(recipe, folder, *, wait=True):
    folder.mkdir(parents=True)
    (folder / "begun").touch()
    time.sleep(600)

module.run_or_resume = run_or_resume
module.run_sweep(load_sweep(Path(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_sweep_killed_process_gives_its_trial_back(tmp_path, write, runs, monkeypatch):
    space = {"learning_rate": {"log_uniform": [1e-6, 1e-3]}}
    path = write(space=space, sampler="tpe", trials=2, seeds=1)
    output = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), str(output)])
    try:
        wait_for(lambda: list(output.glob("trials/*/begun")), process)
    finally:
        process.kill()  # SIGKILL
        process.wait()
    (begun,) = (path.parent for path in output.glob("trials/*/begun"))
    monkeypatch.setattr(
        module, "run_or_resume", lambda recipe, folder, **_: finished(recipe, folder, 1.0)
    )
    found = run_sweep(load_sweep(path), output)
    assert len(found.trials) == 2
    assert begun.name in {Path(trial.folder).name for trial in found.trials}


def wait_for(condition, process):
    for _ in range(6_000):
        if condition():
            return
        assert process.poll() is None, "the process ended by itself"
        time.sleep(0.1)
    pytest.fail("nothing happened for ten minutes")


def test_sweep_done_writes_an_optuna_study_of_its_trials(tmp_path, write, runs):
    import optuna

    output = tmp_path / "out"
    found = run_sweep(load_sweep(write(space={**GRID, "epochs": {"grid": [1]}})), output)
    storage = f"sqlite:///{output / 'study.db'}"
    study = optuna.load_study(study_name="tiny", storage=storage)
    assert study.best_value == found.trials[0].dev.spearman
    assert study.best_params == {"learning_rate": "3e-05", "transform": "true", "epochs": "1"}
    study._storage.remove_session()
    study._storage._backend.engine.dispose()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")
def test_sweep_real_training_end_to_end(tmp_path, write, held_out):
    path = write(
        space={"learning_rate": {"grid": [1e-3, 1e-4]}},
        set={"epochs": 1, "objective": {"mse": 1}},
        seeds=2,
        test=str(held_out),
    )
    output = tmp_path / "out"
    found = run_sweep(load_sweep(path), output)
    for trial in found.trials:
        report = Report.from_json(output / trial.folder / "report.json")
        assert report.model.metrics["spearman"].value == trial.dev.spearman
    for seed in (43, 44):
        assert load_recipe(output / "seeds" / str(seed) / "recipe.yaml").seed == seed
    assert found.condition_only.spearman == report.baselines[0].metrics["spearman"].value
    assert len({seed.figures.spearman for seed in found.held_out.seeds}) == 2
    assert run_sweep(load_sweep(path), output) == found


def test_sweep_without_optuna_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "condsim_sweep.sweep")
    with pytest.raises(MissingExtraError, match=r"pip install 'condsim\[sweep\]'"):
        importlib.import_module("condsim_sweep.sweep")
