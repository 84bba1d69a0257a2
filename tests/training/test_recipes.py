"""The recipes of the papers' tables against the numbers typed from the papers."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    assert (recipe.encoder, recipe.objective, recipe.data_objective) == (
        "bi-encoder",
        {term: 1.0},
        term,
    )
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
