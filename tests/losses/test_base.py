from __future__ import annotations

import pytest
import torch

from condsim.errors import InputError
from condsim.losses import LossOptions, Targets


def test_targets_gold_only_has_no_pair_ids() -> None:
    targets = Targets.from_labels(torch.tensor([0.0, 0.75]), rows=2)
    assert targets.gold.tolist() == [0.0, 0.75]
    assert targets.pair_ids is None


def test_targets_gold_and_id_are_taken_apart() -> None:
    labels = torch.tensor([[0.0, -1.0], [0.75, 2.0**24 - 1]], dtype=torch.float32)
    targets = Targets.from_labels(labels, rows=2)
    assert targets.gold.tolist() == [0.0, 0.75]
    assert targets.pair_ids is not None
    assert targets.pair_ids.tolist() == [-1, 2**24 - 1]


@pytest.mark.parametrize("shape", [(3,), (2, 1), (2, 3), (3, 2), (2, 2, 2), ()])
def test_targets_wrong_shape_raises(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"Labels must have shape \(2,\)"):
        Targets.from_labels(torch.zeros(shape), rows=2)


@pytest.mark.parametrize("value", [5.0, -0.5, float("nan")])
def test_targets_gold_out_of_range_raises(value: float) -> None:
    with pytest.raises(InputError, match=r"must lie in \[0, 1\]"):
        Targets.from_labels(torch.tensor([0.5, value]), rows=2)


@pytest.mark.parametrize("margin", [-0.1, float("nan"), float("inf")])
def test_loss_options_bad_margin_raises(margin: float) -> None:
    with pytest.raises(InputError, match="margin of Quad must be at least 0"):
        LossOptions(margin=margin)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_loss_options_bad_scale_raises(scale: float) -> None:
    with pytest.raises(InputError, match="scale of a ranking objective must be above 0"):
        LossOptions(scale=scale)
