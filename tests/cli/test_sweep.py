from __future__ import annotations

from functools import partial

import pytest
import yaml
from tests import commands

from condsim_sweep.sweep import Correlations, SeedResult, SweepResult, TrialResult

invoke = partial(commands.invoke, "sweep")
SPACE = {"learning_rate": {"grid": ["1e-5", "3e-5"]}, "objective": {"grid": [{"mse": 1}]}}


@pytest.fixture
def write(tmp_path):
    def written(**keys):
        (tmp_path / "base.yaml").write_text("name: base\ntrain: t.csv\ndev: d.csv\nseed: 1\n")
        values = {"name": "s", "recipe": str(tmp_path / "base.yaml"), "space": SPACE, **keys}
        path = tmp_path / "sweep.yaml"
        path.write_text(yaml.safe_dump(values))
        return path

    return written


def test_sweep_dry_run_prints_the_grid_and_writes_nothing(tmp_path, write):
    done = invoke(write(test="test.csv"), "--output", tmp_path / "out", "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "s: 2 trials, sampler grid",
        "  learning_rate=1e-05,objective=mse1",
        "  learning_rate=3e-05,objective=mse1",
        "then the best with the seeds 2, 3, 4",
        "then test.csv, once",
    ]
    assert not (tmp_path / "out").exists()


def test_sweep_dry_run_of_tpe_prints_the_space(tmp_path, write):
    space = {"learning_rate": {"log_uniform": [1e-5, 1e-3]}, "transform": {"grid": [True, False]}}
    path = write(space=space, sampler="tpe", trials=20, seeds=[5])
    assert invoke(path, "--output", tmp_path / "out", "--dry-run").stdout.splitlines() == [
        "s: 20 trials, sampler tpe, in",
        "  learning_rate: 1e-05 to 0.001, log_uniform",
        "  transform: true, false",
        "then the best with the seeds 5",
    ]


def test_sweep_prints_the_result(tmp_path, write, monkeypatch):
    def finished(spec, output):
        point, dev = spec.planned()[0], Correlations(spearman=30.0, pearson=None)
        return SweepResult(
            name=spec.name,
            search=spec.search(),
            trials=(TrialResult(parameters=point, folder="trials/a", dev=dev, seconds=90.0),),
            recipe=spec.recipe_for(point),
            seeds=(SeedResult(seed=2, folder="seeds/2", figures=dev),),
            mean={"spearman": {"mean": 30.0, "std": None}},
            condition_only=Correlations(spearman=10.0, pearson=11.0),
        )

    monkeypatch.setattr("condsim_sweep.sweep.run_sweep", finished)
    done = invoke(write(), "--output", tmp_path / "out")
    assert done.exit_code == 0
    assert "| 1 | 1e-05 | mse1 | 30.00 | - | 1.5 |" in done.stdout.splitlines()
    assert "| condition-only | 10.00 | 11.00 |" in done.stdout.splitlines()
