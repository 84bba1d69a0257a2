"""The recipes of the papers' tables against the numbers typed from the papers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from condsim.data.load import load_task
from condsim.training.recipe import load_recipe

RECIPES = Path(__file__).parents[2] / "recipes"

CCL_TABLE_2 = {  # learning rate, tau, sigma
    ("roberta-base", "bi"): (3e-5, 10, 0.5),
    ("roberta-large", "bi"): (1e-5, 3, 0.5),
    ("diffcse-base", "bi"): (3e-5, 8, 1),
    ("simcse-base", "bi"): (3e-5, 3, 0.75),
    ("simcse-large", "bi"): (1e-5, 4, 0.25),
    ("roberta-base", "tri"): (3e-5, 5, 0.5),
    ("roberta-large", "tri"): (1e-5, 8, 1),
    ("diffcse-base", "tri"): (3e-5, 9, 0.75),
    ("simcse-base", "tri"): (3e-5, 7, 1),
    ("simcse-large", "tri"): (1e-5, 7, 0.5),
}
CCL_TABLE_6 = {  # epochs, batch size, gradient accumulation, weight decay
    "roberta-base": (10, 16, 4, 0.1),
    "roberta-large": (10, 16, 4, 0.1),
    "diffcse-base": (5, 16, 4, 0.1),
    "simcse-base": (5, 16, 4, 0.1),
    "simcse-large": (5, 16, 4, 0.1),
}
CCL = {"w-acl": 1.0, "bcl": 1.0, "mse": 1.0, "c-mse": 1.0}


def test_ccl_folder_has_every_row_of_table_2():
    found = {path.stem for path in (RECIPES / "ccl").glob("*.yaml")}
    assert found == {"-".join(row) for row in CCL_TABLE_2}


@pytest.mark.parametrize("row", CCL_TABLE_2, ids="-".join)
def test_ccl_recipe_has_the_values_of_tables_2_and_6(row):
    backbone, kind = row
    recipe = load_recipe(RECIPES / f"ccl/{backbone}-{kind}.yaml")
    assert (recipe.learning_rate, recipe.tau, recipe.sigma) == CCL_TABLE_2[row]
    assert (
        recipe.epochs,
        recipe.batch_size,
        recipe.gradient_accumulation,
        recipe.weight_decay,
    ) == CCL_TABLE_6[backbone]
    assert (recipe.name, recipe.encoder) == (f"ccl-{backbone}-{kind}", f"{kind}-encoder")
    assert (recipe.objective, recipe.seed) == (CCL, 42)  # §4.1
    assert (recipe.pooling, recipe.transform, recipe.fusion) == ("cls", False, "hadamard")  # §3.2.1
    peer = load_recipe(RECIPES / f"csts/{backbone}-{kind}.yaml")
    for key in ("train", "dev", "backbone", "order", "schedule", "warmup"):
        assert getattr(recipe, key) == getattr(peer, key)


@pytest.mark.parametrize(("ours", "peer"), [("ccl-bi", "bi"), ("ccl-tri", "tri-hadamard")])
def test_minilm_ccl_recipe_differs_in_the_objective_only(ours, peer):
    recipe = load_recipe(RECIPES / f"minilm/{ours}.yaml")
    assert (recipe.name, recipe.objective) == (f"minilm-{ours}", CCL)
    assert (recipe.tau, recipe.sigma) == (5, 0.5)
    other = load_recipe(RECIPES / f"minilm/{peer}.yaml")
    same = other.replaced(name=recipe.name, objective=CCL, tau=5, sigma=0.5)
    assert recipe == same


@pytest.mark.parametrize("kind", ["bi", "cross"])
def test_stsb_recipe_is_mse_on_stsb(kind):
    recipe = load_recipe(RECIPES / f"stsb/{kind}.yaml")
    assert (recipe.encoder, recipe.objective) == (f"{kind}-encoder", {"mse": 1.0})
    assert (recipe.epochs, recipe.batch_size, recipe.learning_rate) == (2, 32, 1e-4)
    assert [Path(file).stem for file in (recipe.train, recipe.dev)] == ["sts-train", "sts-dev"]


@pytest.mark.parametrize(("folder", "term"), [("nli", "softmax"), ("sections", "triplet")])
def test_fine_tuning_recipe_has_the_settings_of_sbert(folder, term):
    recipe = load_recipe(RECIPES / folder / "minilm-bi.yaml")
    kind = {"softmax": "classes", "triplet": "triplets"}[term]
    assert (recipe.encoder, recipe.objective) == ("bi-encoder", {term: 1.0})
    assert recipe.train_kind == kind
    assert (recipe.epochs, recipe.batch_size, recipe.margin) == (1, 16, 1.0)
    assert (recipe.pooling, recipe.schedule, recipe.warmup) == ("mean", "linear", 0.1)


@pytest.mark.parametrize(
    "file", sorted((RECIPES / "csts").glob("*.yaml")), ids=lambda one: one.stem
)
def test_csts_recipe_trains_as_the_released_code(file):
    recipe = load_recipe(file)
    assert (recipe.max_grad_norm, recipe.keep, recipe.max_seq_length) == (None, "last", 512)
    assert (recipe.layout, recipe.order, recipe.freeze) == ("released", "sentence-first", [])
    assert not recipe.pair_terms or recipe.ties == "kept"


def test_ccl_recipes_take_ties_as_the_paper():  # §3.1: l_pos >= l_neg
    assert {load_recipe(file).ties for file in (RECIPES / "ccl").glob("*.yaml")} == {"kept"}


def test_stsb_after_nli_differs_in_the_backbone_only():
    recipe = load_recipe(RECIPES / "stsb/nli-bi.yaml")
    assert recipe.backbone == "runs/nli"
    same = load_recipe(RECIPES / "stsb/bi.yaml")
    assert same.replaced(name=recipe.name, backbone="runs/nli") == recipe


def test_afs_recipe_chooses_no_epoch_on_its_fold():
    recipe = load_recipe(RECIPES / "afs/bi.yaml")
    assert recipe.epochs == 1
    assert (recipe.objective, recipe.batch_size, recipe.learning_rate) == ({"mse": 1.0}, 16, 2e-5)


def test_afs_fold_is_read_on_its_scale_of_five(tmp_path):
    path = tmp_path / "afs-0-train.tsv"
    path.write_text("score\tsentence1\tsentence2\n0.0\tA b.\tC d.\n4.5\tA b.\tA b!\n")
    task = load_task(path)
    assert task.label_range == (0.0, 5.0)
    assert task.gold.tolist() == [0.0, 0.8999999761581421]


def test_afs_ten_folds_as_the_docs_run_them(tiny_backbone, tmp_path, monkeypatch, capsys):
    """On files in the released form, with a tiny encoder and two folds."""
    pytest.importorskip("datasets")
    pages = (Path(__file__).parents[2] / "papers/docs/reproduce.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", pages, re.DOTALL)
    (script,) = [block for block in blocks if "load_afs_topics" in block]
    monkeypatch.chdir(tmp_path)
    for folder in ("datasets/afs", "recipes/afs", "runs"):
        Path(folder).mkdir(parents=True)
    recipe = (RECIPES / "afs/bi.yaml").read_text(encoding="utf-8")
    assert "backbone: sentence-transformers/all-MiniLM-L6-v2" in recipe
    recipe = recipe.replace("sentence-transformers/all-MiniLM-L6-v2", str(tiny_backbone))
    recipe += "max_seq_length: 64\n"
    Path("recipes/afs/bi.yaml").write_text(recipe, encoding="utf-8")
    for topic, word in (("DP", "dog"), ("GC", "cat"), ("GM", "bird")):
        rows = "".join(
            f'{row % 6 - 0.5 * (row % 6 == 5)},x,"A {word} runs, {row} times.","The {word} sits."\n'
            for row in range(8)
        )
        text = "regression_label,HIT_id,sentence_1,sentence_2\n" + rows
        Path(f"datasets/afs/ArgPairs_{topic}.csv").write_text(text, encoding="utf-8")
    assert "folds=10, seed=0" in script
    exec(compile(script.replace("folds=10", "folds=2"), "papers/docs/reproduce.md", "exec"), {})
    mean, spread = capsys.readouterr().out.splitlines()[-1].split(" ± ")
    assert -100 <= float(mean) <= 100
    assert float(spread) >= 0
    assert {path.name for path in Path("runs").iterdir()} == {"afs-0", "afs-1"}
    tested = [load_task(Path(f"afs-{number}-test.tsv")) for number in range(2)]
    assert sorted(len(task) for task in tested) == [12, 12]
