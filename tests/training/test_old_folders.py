"""A run folder and a recipe of before the package was rearranged load unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

import condsim
from condsim.training.folder import finished_run
from condsim.training.recipe import Recipe, load_recipe

OLD = Path(__file__).parents[1] / "data" / "old-run"


def test_old_recipe_loads_with_its_values():
    assert load_recipe(OLD / "recipe.yaml") == Recipe(
        name="tiny",
        train="train.csv",
        dev="dev.csv",
        encoder="tri-encoder",
        backbone="tiny-bert",
        pooling="cls",
        fusion="concat",
        max_seq_length=48,
        objective={"ranknet": 1.0, "listnet": 0.5, "pair-order": 0.5},
        epochs=2,
        batch_size=8,
        learning_rate=1e-3,
        precision="float32",
    )


def test_old_run_is_read_back():
    run = finished_run(OLD)
    assert run is not None
    assert run.report.model.metrics["spearman"].value == pytest.approx(38.43296277669376)
    assert run.dev_spearman == (38.428, 19.472)
    assert (run.train_revision, run.seconds) == ("729a19db4ecd", 1.2)


def test_old_tri_encoder_scores_as_it_did():
    assert "condsim.model.tri_encoder.TriEncoder" in (OLD / "modules.json").read_text()
    row = ("The dog runs in the street 3.", "A cat sits on a table 4.", "the animal")
    model = condsim.load(str(OLD))
    assert model.score(*row) == pytest.approx(0.195, abs=1e-4)
    assert model.score(*row, scale="raw") == pytest.approx(0.9999956, abs=1e-6)
