"""Checks that a run says which of its inputs are cut."""

from __future__ import annotations

import pytest

from condsim.data.load import load_task
from condsim.model.backbone import load_backbone
from condsim.training.data import warn_of_cuts
from condsim.training.trainer import build_run

LONG = "The man throws a red ball and runs in the street. " * 8


@pytest.mark.parametrize("encoder", ["bi-encoder", "tri-encoder", "cross-encoder"])
def test_inputs_over_the_limit_are_counted(tmp_path, tiny_recipe, caplog, encoder):
    rows = ["sentence1,sentence2,condition,label"]
    rows += [f"{LONG},A dog {number}.,the sport,{1 + number % 5}" for number in range(6)]
    (tmp_path / "long.csv").write_text("\n".join(rows) + "\n")
    recipe = tiny_recipe.replaced(
        train=str(tmp_path / "long.csv"), encoder=encoder, objective={"mse": 1.0}
    )
    train, dev = load_task(recipe.train), load_task(recipe.dev)
    build_run(recipe, train, dev, tmp_path / "run")
    # Each row is one input of a cross-encoder; the other encoders read the long text once.
    cut = {"cross-encoder": "6 of 6", "bi-encoder": "1 of 7", "tri-encoder": "1 of 8"}[encoder]
    expected = f"{cut} different inputs to train on have more than 48 tokens"
    assert expected in caplog.text


def test_inputs_of_few_characters_and_many_tokens_are_counted(tiny_roberta_backbone, caplog):
    tokenizer = load_backbone(str(tiny_roberta_backbone)).tokenizer
    warn_of_cuts(["\u72d7" * 20, "a dog"], tokenizer, 48)  # three tokens a character
    assert "1 of 2 different inputs to train on have more than 48 tokens" in caplog.text


def test_inputs_within_the_limit_are_silent(tmp_path, tiny_recipe, caplog):
    train, dev = load_task(tiny_recipe.train), load_task(tiny_recipe.dev)
    build_run(tiny_recipe, train, dev, tmp_path / "run")
    assert "to train on have more than" not in caplog.text
