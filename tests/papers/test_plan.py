from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from papers.columns import resolve_backbones
from papers.trained import plan_trained

from condsim.errors import InputError
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


def test_plan_paper_backbone_takes_the_papers_recipe_where_there_is_a_number(options):
    asked = dataclasses.replace(options, backbones=resolve_backbones(["roberta-large"]))
    lines = plan_trained(load_experiment("csts-table3"), asked)
    ran = {line.row.key: line.runs for line in lines if line.runs}
    assert list(ran) == ["cross-mse", "bi-quad-mse", "tri-mse"]
    assert ran["bi-quad-mse"][0].recipe.learning_rate == 1e-5
    assert [run.recipe.seed for run in ran["bi-quad-mse"]] == [42, 43, 44]


def test_plan_other_backbone_takes_the_small_recipe(options, tmp_path):
    asked = dataclasses.replace(options, backbones=resolve_backbones([str(tmp_path)]))
    run = open_work(load_experiment("csts-table10"), asked).runs[0]
    assert run.recipe.backbone == str(tmp_path)
    assert run.recipe.learning_rate == 1e-4


def test_plan_overrides_and_seeds_reach_every_run(options):
    changed = dataclasses.replace(options, overrides=("epochs=2",), seeds=2)
    runs = open_work(load_experiment("ccl-table3"), changed).runs
    assert {run.recipe.epochs for run in runs} == {2}
    assert [run.recipe.seed for run in runs] == [0, 1] * 6


def test_plan_full_adds_the_tri_encoder(options):
    experiment = load_experiment("ccl-table4")
    assert len(open_work(experiment, options).runs) == 5
    assert len(open_work(experiment, dataclasses.replace(options, full=True)).runs) == 10


def test_plan_ablation_leaves_the_term_out(options):
    lines = plan_trained(load_experiment("ccl-table4"), options)
    run = next(line.runs[0] for line in lines if line.row.key == "bi-no-bcl" and line.runs)
    assert sorted(run.recipe.objective) == ["c-mse", "mse", "w-acl"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("sigma=0.1", "the rows of ccl-table5 differ in 'sigma'"),
        ("seed=3", "'seed' is decided by --seeds"),
        ("epoch=3", "Unknown recipe key 'epoch'"),
    ],
)
def test_plan_override_that_cannot_be_raises(override, message, options):
    changed = dataclasses.replace(options, overrides=(override,))
    with pytest.raises(InputError, match=message):
        plan_trained(load_experiment("ccl-table5"), changed)


def test_plan_missing_file_names_the_option(options):
    (options.data / "csts-reannotated" / "dev.csv").unlink()
    with pytest.raises(InputError, match=r"dev\.csv: --data must name a folder that holds csts-re"):
        plan_trained(load_experiment("ccl-table5"), options)
    (options.data / "sts-b" / "sts-dev.csv").unlink()
    with pytest.raises(InputError, match=r"--data must name .* sts-b/sts-dev\.csv"):
        plan_trained(load_experiment("csts-table9"), options)
    nowhere = dataclasses.replace(options, data=None)
    with pytest.raises(InputError, match=r"with --data; it must hold csts-reannotated/train\.csv"):
        plan_trained(load_experiment("ccl-table5"), nowhere)


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
                documented[name] = 0 if cells[-1] == "none" else int(cells[-1])
    assert documented == {name: len(folders) for name, folders in trained.items()}
    assert f"together they need {len(set().union(*trained.values()))}." in page
