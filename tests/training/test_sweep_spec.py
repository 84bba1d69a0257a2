from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from condsim.errors import InputError
from condsim.training.recipe import Recipe
from condsim_sweep.spec import Parameter, load_sweep, point_name

PROJECT = Path(__file__).parents[2]
SWEEPS = sorted((PROJECT / "recipes" / "sweeps").glob("*.yaml"))
GRID = {"learning_rate": {"grid": ["1e-5", 3e-5]}, "transform": {"choice": [True, False]}}


@pytest.fixture
def write(tmp_path):
    """Writes a sweep over a base recipe; a key set to None is left out."""

    def written(**keys):
        base = {"name": "base", "train": "t.csv", "dev": "d.csv", "objective": {"mse": 1}}
        (tmp_path / "base.yaml").write_text(yaml.safe_dump({**base, "seed": 7}))
        values = {"name": "s", "recipe": str(tmp_path / "base.yaml"), "space": GRID, **keys}
        path = tmp_path / "sweep.yaml"
        path.write_text(yaml.safe_dump({k: v for k, v in values.items() if v is not None}))
        return path

    return written


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_sweeps_folder_every_file_loads(path, monkeypatch):
    monkeypatch.chdir(PROJECT)
    spec = load_sweep(path)
    assert spec.test is None or spec.test != spec.base.dev


def test_csts_table7_is_the_grid_of_the_paper(monkeypatch):
    monkeypatch.chdir(PROJECT)
    spec = load_sweep(PROJECT / "recipes" / "sweeps" / "csts-table7.yaml")
    recipes = [spec.recipe_for(point) for point in spec.planned()]
    assert len(recipes) == len(set(map(str, recipes))) == 24
    assert {recipe.learning_rate for recipe in recipes} == {1e-5, 3e-5}
    assert {recipe.weight_decay for recipe in recipes} == {0.0, 0.1}
    assert {recipe.transform for recipe in recipes} == {True, False}
    assert [{"mse": 1.0}, {"quad": 1.0}, {"mse": 1.0, "quad": 1.0}] == [
        recipe.objective for recipe in recipes[:3]
    ]
    assert {(r.batch_size, r.epochs, r.seed) for r in recipes} == {(32, 3, 42)}


def test_load_sweep_defaults_and_types(write):
    spec = load_sweep(write(set={"epochs": 2}))
    assert (spec.sampler, spec.trials, spec.seed, spec.test) == ("grid", 4, 0, None)
    assert spec.seeds == (8, 9, 10)  # not 7, with which the best was chosen
    assert spec.space["learning_rate"] == Parameter("values", (1e-5, 3e-5))
    assert spec.planned()[1] == {"learning_rate": 1e-5, "transform": False}
    assert spec.recipe_for(spec.planned()[1], seed=3) == Recipe(
        name="base", train="t.csv", dev="d.csv", epochs=2, learning_rate=1e-5, seed=3
    )


def test_load_sweep_dotted_key_keeps_other_weights(write):
    spec = load_sweep(write(space={"objective.quad": {"grid": [0, 0.5]}}))
    assert [spec.recipe_for(point).objective for point in spec.planned()] == [
        {"mse": 1.0, "quad": 0.0},
        {"mse": 1.0, "quad": 0.5},
    ]


def test_load_sweep_random_draws_are_the_same_each_time(write):
    space = {
        "learning_rate": {"log_uniform": ["1e-5", "1e-3"]},
        "weight_decay": {"uniform": [0, 0.1]},
        "epochs": {"integer": [1, 3]},
        "pooling": {"choice": ["cls", "mean"]},
    }
    path = write(space=space, sampler="random", trials=200, seed=1)
    points = load_sweep(path).planned()
    assert points == load_sweep(path).planned()
    assert points != load_sweep(write(space=space, sampler="random", trials=200)).planned()
    rates = sorted(point["learning_rate"] for point in points)
    assert 1e-5 <= rates[0] < 2e-5
    assert rates[100] == pytest.approx(1e-4, rel=0.4)  # the middle in the logarithm
    assert 9e-4 > rates[-1] > 5e-4 or rates[-1] <= 1e-3
    assert {point["epochs"] for point in points} == {1, 2, 3}
    assert {point["pooling"] for point in points} == {"cls", "mean"}
    assert all(0 <= point["weight_decay"] <= 0.1 for point in points)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"smpler": "grid"}, "Unknown sweep key 'smpler'.*'sampler'"),
        ({"recipe": "none.yaml"}, "The recipe none.yaml does not exist"),
        ({"space": {}}, "'space'"),
        ({"space": {"lerning_rate": {"grid": [1]}}}, "'space': Unknown recipe key.*learning_rate"),
        ({"set": {"epoch": 1}}, "'set': Unknown recipe key 'epoch'.*'epochs'"),
        ({"set": {"transform": True}}, "must not have 'transform': 'set' has it too"),
        ({"space": {"epochs.a": {"grid": [1]}}}, "Unknown recipe key 'epochs.a'"),
        ({"space": {"epochs": {"gird": [1]}}}, "must be one of grid"),
        ({"space": {"epochs": {"grid": []}}}, "'epochs' must be one of"),
        ({"space": {"epochs": {"grid": [1, 1]}}}, "'epochs' has a value twice"),
        ({"space": {"epochs": {"grid": [1, 0]}}}, "no recipe with .*epochs=0"),
        ({"space": {"objective": {"grid": [{"mse": 0}]}}}, "weight above 0"),
        ({"space": {"objective.msee": {"grid": [1]}}}, "Unknown objective 'msee'.*'mse'"),
        ({"space": {"seed": {"grid": [1, 2]}}}, "must not have 'seed'"),
        ({"space": {"sources.a": {"grid": [{"file": "a.csv"}]}}}, "must not have 'sources.a'"),
        (
            {"space": {"objective": {"grid": [{"mse": 1}]}, "objective.quad": {"grid": [1]}}},
            "must not have 'objective.quad': it has 'objective' too",
        ),
        (
            {
                "space": {
                    "encoder": {"grid": ["bi-encoder", "cross-encoder"]},
                    "objective.quad": {"grid": [0, 1]},
                }
            },
            "no recipe with encoder=cross-encoder,objective.quad=1.*does not apply",
        ),
        ({"space": {"weight_decay": {"uniform": [0, 1]}}}, "'grid' needs a list of values"),
        ({"trials": 3}, "'trials' must be given .* not for 'grid'"),
        ({"sampler": "random"}, "'trials' must be given"),
        ({"seeds": 0}, "'seeds' must be a number from 1 to 1000, or a list"),
        ({"seeds": [1, 1]}, "list of as many different seeds"),
        ({"space": {key: {"grid": [*range(1, 60)]} for key in ("epochs", "batch_size",
          "max_seq_length")}}, "at most 1000 points; got 205379"),
    ],
)  # fmt: skip
def test_load_sweep_bad_keys_say_what_and_how(write, keys, message):
    path = write(**keys)
    with pytest.raises(InputError, match=message) as caught:
        load_sweep(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"learning_rate": {"uniform": [0, 1]}}, "no recipe with .*learning_rate=0"),
        ({"learning_rate": {"log_uniform": [0, 1]}}, "two numbers above 0"),
        ({"learning_rate": {"uniform": [1, 1]}}, "the lower first"),
        ({"learning_rate": {"uniform": [1]}}, "two numbers"),
        ({"learning_rate": {"uniform": [0.1, ".inf"]}}, "two numbers"),
        ({"epochs": {"integer": [1.0, 2]}}, "two integers"),
        ({"epochs": {"uniform": [1, 2]}}, "'epochs'"),
    ],
)
@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_load_sweep_bad_range_raises(write, space, message, sampler):
    with pytest.raises(InputError, match=message):
        load_sweep(write(space=space, sampler=sampler, trials=3))


def test_point_name_is_a_folder_name_and_tells_points_apart():
    assert point_name({"learning_rate": 1e-5, "objective": {"mse": 1.0, "quad": 0.5}}) == (
        "learning_rate=1e-05,objective=mse1+quad0.5"
    )
    names = {point_name({"backbone": name}) for name in ("a/b", "a-b", "a:b", "x" * 300, "x" * 301)}
    assert len(names) == 5
    assert all("/" not in name and len(name) < 150 for name in names)
