from pathlib import Path

import pytest

from condsim.errors import InputError
from condsim.training.recipe import Recipe, load_recipe, save_recipe

RECIPES = sorted(
    path
    for path in (Path(__file__).parents[2] / "recipes").rglob("*.yaml")
    if path.parent.name not in ("sweeps", "contexts")
)
MINIMAL = "name: a\ntrain: t.csv\ndev: d.csv\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_recipes_folder_every_file_parses(path):
    assert load_recipe(path).name


def test_recipes_folder_has_every_row_of_table_8():
    rows = {path.stem for path in RECIPES if path.parent.name == "csts"}
    backbones = ("roberta-base", "roberta-large", "diffcse-base", "simcse-base", "simcse-large")
    assert rows == {f"{b}-{kind}" for b in backbones for kind in ("cross", "bi", "tri")}


def test_load_recipe_minimal_takes_table_7_defaults(tmp_path):
    recipe = load_recipe(written(tmp_path, MINIMAL))
    assert (recipe.batch_size, recipe.epochs, recipe.warmup, recipe.schedule) == (
        32,
        3,
        0.1,
        "linear",
    )


def test_save_recipe_then_load_gives_equal(tmp_path):
    recipe = Recipe(name="a", train="t", dev="d", objective={"mse": 1.0, "quad": 0.5}, dropout=0.2)
    save_recipe(recipe, tmp_path / "r.yaml")
    assert load_recipe(tmp_path / "r.yaml") == recipe


def test_load_recipe_overrides_change_single_keys(tmp_path):
    path = written(tmp_path, MINIMAL + "objective: {mse: 1.0}\n")
    recipe = load_recipe(path, overrides=["learning_rate=1e-5", "objective.quad=0.5", "epochs=5"])
    assert recipe.learning_rate == 1e-5
    assert recipe.objective == {"mse": 1.0, "quad": 0.5}
    assert recipe.epochs == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + "learning_rte: 1e-5\n", "Unknown recipe key 'learning_rte'.*'learning_rate'"),
        ("name: a\ntrain: t.csv\n", "the recipe key 'dev' is missing"),
        (MINIMAL + "encoder: biencoder\n", "Unknown value of 'encoder'.*'bi-encoder'"),
        (MINIMAL + "epochs: three\n", "'epochs' must be of type int. Got 'three'"),
        (MINIMAL + "epochs: true\n", "'epochs' must be of type int. Got True"),
        (MINIMAL + "transform: 1\n", "'transform' must be of type bool"),
        (MINIMAL + "learning_rate: fast\n", "'learning_rate' must be a number"),
        (MINIMAL + "learning_rate: .nan\n", "'learning_rate' must be a number"),
        (MINIMAL + "learning_rate: 0\n", "'learning_rate' must be above 0"),
        (MINIMAL + "layer_decay: 1.5\n", r"'layer_decay' must be in \(0, 1\]"),
        (MINIMAL + "warmup: 1\n", r"'warmup' must be in \[0, 1\)"),
        (MINIMAL + "objective: mse\n", "'objective' must be a mapping"),
        (MINIMAL + "objective: {msee: 1}\n", "Unknown objective 'msee'.*'mse'"),
        (MINIMAL + "objective: {mse: 0}\n", "one weight above 0"),
        (MINIMAL + "objective: {mse: -1}\n", "weights of at least 0"),
        (MINIMAL + "objective: {quad: 1}\nbatch_size: 1\n", "'batch_size' must be at least 2"),
        (MINIMAL + "tau: 0\n", "'tau' must be above 0"),
        (
            MINIMAL + "objective: {quad: 1}\nmiddle_tolerance: 0.2\n",
            "0 without 'mse' or 'correlation'",
        ),
        (MINIMAL + "middle_tolerance: 0.6\n", r"'middle_tolerance' must be in \[0, 0.5\]"),
        (MINIMAL + "sigma: 1.5\n", r"'sigma' must be in \[0, 1\]"),
        (MINIMAL + "margin: -1\n", "'margin' must be at least 0"),
        (MINIMAL + "scale: 0\n", "'scale' must be above 0"),
        (MINIMAL + "max_grad_norm: -1\n", "'max_grad_norm' must be above 0"),
        (MINIMAL + "seed: -1\n", r"'seed' must be in \[0, 2\^32\)"),
        (MINIMAL + "train_rows: 1\n", "'train_rows' must be at least 2"),
        (MINIMAL + "inputs: condition\n", "must be 'both' for a bi-encoder"),
        (MINIMAL + "objective: {classification: 1}\n", "of a cross-encoder and without other"),
        (
            MINIMAL + "encoder: cross-encoder\nobjective: {classification: 1, mse: 1}\n",
            "of a cross-encoder and without other",
        ),
        (MINIMAL + "keep: last\npatience: 2\n", "'patience' must be null with 'keep: last'"),
        (MINIMAL + "freeze: [encoder]\n", "without 'encoder' for a bi-encoder without"),
        (MINIMAL + "ties: both\n", "Unknown value of 'ties'"),
        (MINIMAL + "objective: {bcl: 1}\ndropout: 0\n", "above 0 for 'bcl'"),
        (
            MINIMAL + "encoder: cross-encoder\nobjective: {c-mse: 1}\n",
            "'c-mse' does not apply to a cross-encoder",
        ),
        (
            MINIMAL + "encoder: cross-encoder\nobjective: {quad: 1}\n",
            "'quad' does not apply to a cross-encoder",
        ),
        (
            MINIMAL + "objective: {softmax: 1, mse: 1}\n",
            "'softmax' stands alone, with the weight 1.*Train by one recipe after the other",
        ),
        (MINIMAL + "objective: {triplet: 0.5}\n", "'triplet' stands alone, with the weight 1"),
        (MINIMAL + "objective: {softmax: 1, triplet: 1}\n", "'softmax' stands alone"),
        (
            MINIMAL + "objective: {softmax: 1}\nencoder: cross-encoder\n",
            "'softmax' is for a bi-encoder.*Got a cross-encoder",
        ),
        (MINIMAL + "objective: {triplet: 1}\nencoder: tri-encoder\n", "'triplet' is for a bi-enc"),
        (
            MINIMAL + "objective: {softmax: 1}\ninputs: sentences\n",
            "must be 'both' for a bi-encoder",
        ),
        (MINIMAL + "plain: pairs.csv\n", "'plain' is no more. Name the file under 'sources'"),
        ("- a\n", "must hold a mapping"),
        ("a: [\n", "is not valid YAML"),
    ],
)
def test_load_recipe_bad_text_says_what_and_how(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        load_recipe(written(tmp_path, text))


@pytest.mark.parametrize("override", ["epochs", "=5", "name.a=1", "epochs=[", "epoch=5"])
def test_load_recipe_bad_override_raises(tmp_path, override):
    with pytest.raises(InputError, match=r"--set|Unknown recipe key"):
        load_recipe(written(tmp_path, MINIMAL), overrides=[override])


def test_load_recipe_missing_file_raises(tmp_path):
    with pytest.raises(InputError, match=r"The recipe .* does not exist"):
        load_recipe(tmp_path / "none.yaml")
