"""The number format and the attention of a run are measured once and stored."""

from __future__ import annotations

import json
import logging

import pytest
import torch

from condsim.model import precision as module
from condsim.model.precision import backbone_of, choose_training_precision, training_speeds
from condsim.training.run import fit
from condsim.training.trainer import build_model

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")


@pytest.fixture
def backbone(tiny_recipe):
    return backbone_of(build_model(tiny_recipe))


def fake_speeds(monkeypatch, **speeds):
    """Set the measured speeds, by format and attention joined by ``_``."""
    values = {name.replace("_", " "): speed for name, speed in speeds.items()}
    monkeypatch.setattr(module, "training_speeds", lambda *_: values)


def test_training_speeds_leaves_weights_random_numbers_and_gradients_alone(backbone):
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    backbone.eval()
    state = torch.get_rng_state()
    speeds = training_speeds(backbone, ("sdpa", "eager"))
    assert list(speeds) == ["float32 sdpa", "float32 eager", "bfloat16 sdpa", "bfloat16 eager"]
    assert min(speeds.values()) > 0
    assert torch.equal(torch.get_rng_state(), state)
    assert not backbone.training
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())
    assert all(weight.grad is None for weight in backbone.parameters())


@pytest.mark.parametrize(
    ("bfloat16", "expected"), [(100.0, (True, "eager")), (54.0, (False, "sdpa"))]
)
def test_choose_training_precision_auto_needs_a_clear_gain(
    monkeypatch, caplog, backbone, bfloat16, expected
):
    fake_speeds(monkeypatch, float32_sdpa=50.0, float32_eager=40.0, bfloat16_eager=bfloat16)
    with caplog.at_level(logging.INFO):
        chosen = choose_training_precision(backbone, "auto")
    assert (chosen.bfloat16, chosen.attention) == expected
    assert "float32 sdpa 50.0, float32 eager 40.0, bfloat16 eager" in caplog.text


@pytest.mark.slow
def test_fit_auto_precision_is_kept_when_resumed(
    tmp_path, monkeypatch, tiny_recipe, weights_of, fit_interrupted
):
    recipe = tiny_recipe.replaced(precision="auto", epochs=2)
    fake_speeds(monkeypatch, float32_sdpa=50.0, bfloat16_eager=100.0)
    fit(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit_interrupted(recipe, tmp_path / "stopped", step=5)
    fake_speeds(monkeypatch, float32_sdpa=100.0, bfloat16_eager=50.0)
    fit(recipe, tmp_path / "stopped", resume=True)
    assert weights_of(tmp_path / "stopped") == weights_of(tmp_path / "whole")
    history = json.loads((tmp_path / "stopped" / "training.json").read_text())
    assert history["precision"]["bfloat16"] is True
    config = json.loads((tmp_path / "stopped" / "config.json").read_text())
    assert not [key for key in config if "attn" in key]
