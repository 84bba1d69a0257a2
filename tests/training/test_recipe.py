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
        ("learning_rte: 1e-5", "'learning_rte'.*'learning_rate'"),
        ("encoder: biencoder", "'bi-encoder'.*'biencoder'"),
        ("epochs: three", "'epochs'"),
        ("learning_rate: .nan", "'learning_rate'"),
        ("layer_decay: 0.5", "Unknown recipe key 'layer_decay'"),
        ("objective: mse", "'objective'"),
        ("objective: {msee: 1}", "'msee'.*'mse'"),
        ("objective: {mse: 0}", "weight above 0"),
        ("objective: {mse: -1}", "'mse' must be at least 0"),
        ("objective: {quad: 1}\nbatch_size: 1", "'batch_size' must be at least 2"),
        ("objective: {quad: 1}\nmiddle_tolerance: 0.2", "0 without 'mse' or 'correlation'"),
        ("inputs: condition", "must be 'both' for a bi-encoder"),
        ("keep: last\npatience: 2", "'patience' must be null with 'keep: last'"),
        ("freeze: [encoder]", "without 'encoder' for a bi-encoder without"),
        ("objective: {bcl: 1}\ndropout: 0", "above 0 for 'bcl'"),
        ("objective: {classification: 1}", "'classification' is for a cross-encoder"),
        (
            "encoder: cross-encoder\nobjective: {classification: 1, mse: 1}",
            "'classification' must be the only one",
        ),
        ("encoder: cross-encoder\nobjective: {c-mse: 1}", "'c-mse' does not apply"),
        ("objective: {softmax: 1, mse: 1}", "'softmax' must be the only one, with the weight 1"),
        ("objective: {triplet: 0.5}", "'triplet' must be the only one, with the weight 1"),
        ("objective: {triplet: 1}\nencoder: tri-encoder", "'triplet' is for a bi-encoder"),
        ("plain: pairs.csv", "'plain'"),
    ],
)
def test_load_recipe_bad_value_names_it(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        load_recipe(written(tmp_path, f"{MINIMAL}{text}\n"))


def test_load_recipe_without_a_required_key_raises(tmp_path):
    with pytest.raises(InputError, match="'dev' is missing"):
        load_recipe(written(tmp_path, "name: a\ntrain: t.csv\n"))


def test_load_recipe_retired_keys_without_effect_are_dropped(tmp_path):
    text = "layer_decay: 1.0\nlength_grouped: true\nattention: auto\nplain: null\n"
    assert load_recipe(written(tmp_path, MINIMAL + text)) == load_recipe(written(tmp_path, MINIMAL))


def test_load_recipe_name_with_a_slash_raises(tmp_path):
    with pytest.raises(InputError, match="'name' must be without '/'"):
        load_recipe(written(tmp_path, MINIMAL), overrides=["name=a/b"])


@pytest.mark.parametrize("override", ["epochs", "=5", "name.a=1", "epochs=[", "epoch=5"])
def test_load_recipe_bad_override_raises(tmp_path, override):
    with pytest.raises(InputError, match=r"--set|Unknown recipe key"):
        load_recipe(written(tmp_path, MINIMAL), overrides=[override])
