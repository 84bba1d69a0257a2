from __future__ import annotations

from pathlib import Path

from papers.naming import canonical, run_folder, run_hash

from condsim.training.recipe import Recipe

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


def test_run_folder_reads_as_the_run():
    folder = run_folder(Path("runs"), RECIPE.replaced(train_rows=1000, seed=3), **DATA)
    assert folder.name.startswith("all-minilm-l6-v2-bi-mse-quad-train-rows-1000-s3-")
    ccl = RECIPE.replaced(objective=dict.fromkeys(("mse", "bcl", "w-acl", "c-mse"), 1.0))
    assert run_folder(Path("runs"), ccl, **DATA).name.startswith("all-minilm-l6-v2-bi-ccl-s42-")
