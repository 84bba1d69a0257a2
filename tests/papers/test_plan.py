from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from papers.naming import canonical, run_hash
from papers.trained import plan_trained

from condsim.training.recipe import Recipe
from papers import load_experiment, names, open_work


def test_plan_default_runs_minilm_and_shows_the_papers_rows(options):
    lines = plan_trained(load_experiment("csts-table10"), options)
    assert {line.column.key for line in lines if line.runs} == {"minilm"}
    assert {line.column.key for line in lines if not line.runs} == {"roberta-base"}
    assert [run.recipe.inputs for line in lines for run in line.runs] == [
        "condition",
        "sentences",
        "both",
    ]


def test_plan_overrides_and_seeds_reach_every_run(options):
    changed = dataclasses.replace(options, overrides=("epochs=2",), seeds=2)
    runs = open_work(load_experiment("ccl-table3"), changed).runs
    assert {run.recipe.epochs for run in runs} == {2}
    assert [run.recipe.seed for run in runs] == [0, 1] * 6


def test_plan_counts_are_those_of_the_documentation(options):
    project = Path(__file__).resolve().parents[2]
    page = (project / "papers" / "docs" / "reproduce.md").read_text("utf-8")
    trained = {}
    for name in names():
        if name.startswith("ssbc"):
            continue  # these have a table of their own
        runs = open_work(load_experiment(name), options).runs
        trained[name] = {run.folder for run in runs if run.trained}
    documented = {}
    for line in page.partition("## Options")[0].splitlines():
        if line.startswith("| `c") and (cells := line.strip("| ").split(" | ")):
            for name in re.findall(r"`([\w-]+)`", cells[0]):
                if name in trained:
                    documented[name] = 0 if cells[-1] == "none" else int(cells[-1])
    assert documented == {name: len(folders) for name, folders in trained.items()}
    assert f"together they need {len(set().union(*trained.values()))}." in page


RECIPE = Recipe(name="a", train="t", dev="d", objective={"mse": 1.0, "quad": 1.0}, epochs=2)
DATA = {"train_revision": "118ef9354435", "dev_revision": "1c65b99f2426"}


def test_run_hash_stays_what_it_was():
    # A change here gives every finished run another folder.
    assert run_hash(RECIPE, **DATA) == "f66becdc"


def test_run_hash_ignores_names_paths_and_zero_weights():
    other = RECIPE.replaced(
        name="b",
        train="elsewhere/t",
        dev="elsewhere/d",
        license="mit",
        objective={"quad": 1.0, "acl": 0.0, "mse": 1.0},
    )
    assert run_hash(other, **DATA) == run_hash(RECIPE, **DATA)
    assert canonical(other).objective == {"mse": 1.0, "quad": 1.0}


def test_run_hash_differs_by_value_seed_and_data():
    hashes = {
        run_hash(RECIPE, **DATA),
        run_hash(RECIPE.replaced(seed=1), **DATA),
        run_hash(RECIPE.replaced(margin=0.5), **DATA),
        run_hash(RECIPE, train_revision="other", dev_revision=DATA["dev_revision"]),
        run_hash(RECIPE, train_revision=DATA["train_revision"], dev_revision="other"),
    }
    assert len(hashes) == 5
