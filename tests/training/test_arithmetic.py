"""The number format and the attention of a run are measured once and kept."""

from __future__ import annotations

import json
import logging

import pytest
import torch

from condsim.errors import InputError
from condsim.training.arithmetic import Arithmetic, choose_arithmetic, measure
from condsim.training.run import fit
from condsim.training.trainer import build_model

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")


@pytest.fixture
def model(tiny_recipe):
    return build_model(tiny_recipe)


@pytest.fixture
def backbone(model):
    return model[0].auto_model


def faked(monkeypatch, **speeds):
    """Lets the measurement find these speeds, by format and attention joined by ``_``."""
    found = {name.replace("_", " "): speed for name, speed in speeds.items()}
    monkeypatch.setattr("condsim.training.arithmetic.measure", lambda *_: found)


def test_measure_leaves_weights_random_numbers_and_gradients_alone(backbone):
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    backbone.eval()
    state = torch.get_rng_state()
    speeds = measure(backbone, ("sdpa", "eager"))
    assert list(speeds) == ["float32 sdpa", "float32 eager", "bfloat16 sdpa", "bfloat16 eager"]
    assert min(speeds.values()) > 0
    assert torch.equal(torch.get_rng_state(), state)
    assert not backbone.training
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())
    assert all(weight.grad is None for weight in backbone.parameters())


def test_choose_arithmetic_auto_takes_the_fastest_and_says_so(
    tmp_path, monkeypatch, caplog, model, backbone, tiny_recipe
):
    faked(monkeypatch, float32_sdpa=50.0, float32_eager=40.0, bfloat16_eager=100.0)
    recipe = tiny_recipe.replaced(precision="auto")
    with caplog.at_level(logging.INFO, logger="condsim"):
        chosen = choose_arithmetic(model, recipe, tmp_path)
    assert (chosen.bfloat16, chosen.attention) == (True, "eager")
    assert backbone.config._attn_implementation == "eager"
    assert "float32 sdpa 50.0, float32 eager 40.0, bfloat16 eager 100.0" in caplog.text
    noted = json.loads((tmp_path / "training.json").read_text())["precision"]
    assert noted == chosen.model_dump()
    # A resumed run does not measure again
    faked(monkeypatch, float32_sdpa=500.0)
    assert choose_arithmetic(model, recipe, tmp_path) == chosen


def test_choose_arithmetic_small_gain_keeps_float32(tmp_path, monkeypatch, model, tiny_recipe):
    faked(monkeypatch, float32_sdpa=50.0, bfloat16_eager=54.0)
    chosen = choose_arithmetic(model, tiny_recipe.replaced(precision="auto"), tmp_path)
    assert (chosen.bfloat16, chosen.attention) == (False, "sdpa")


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_choose_arithmetic_given_precision_is_not_measured(tmp_path, model, tiny_recipe, precision):
    recipe = tiny_recipe.replaced(precision=precision, attention="eager")
    chosen = choose_arithmetic(model, recipe, tmp_path)
    assert chosen == Arithmetic(bfloat16=precision == "bfloat16", attention="eager")


def test_choose_arithmetic_attention_the_backbone_lacks_raises(
    tmp_path, monkeypatch, model, backbone, tiny_recipe
):
    monkeypatch.setattr(type(backbone), "_can_set_attn_implementation", lambda *_: False)
    with pytest.raises(InputError, match="'attention': BertModel cannot use 'eager'"):
        choose_arithmetic(model, tiny_recipe.replaced(attention="eager"), tmp_path)


def test_fit_auto_precision_is_kept_when_resumed(
    tmp_path, monkeypatch, tiny_recipe, weights_of, fit_interrupted
):
    recipe = tiny_recipe.replaced(precision="auto", epochs=2)
    faked(monkeypatch, float32_sdpa=50.0, bfloat16_eager=100.0)
    fit(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit_interrupted(recipe, tmp_path / "stopped", step=5)
    faked(monkeypatch, float32_sdpa=100.0, bfloat16_eager=50.0)
    fit(recipe, tmp_path / "stopped", resume=True)
    assert weights_of(tmp_path / "stopped") == weights_of(tmp_path / "whole")
    history = json.loads((tmp_path / "stopped" / "training.json").read_text())
    assert history["precision"]["bfloat16"] is True
    config = json.loads((tmp_path / "stopped" / "config.json").read_text())
    assert not [key for key in config if "attn" in key]
