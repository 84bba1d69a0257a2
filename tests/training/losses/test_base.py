from __future__ import annotations

import pytest
import torch

from condsim.errors import InputError
from condsim.training.losses.base import LossOptions, Targets, encode_batch


class SumOfTokens(torch.nn.Module):
    """Embeds a text as the sum of its tokens, and notes how wide each forward was."""

    def __init__(self) -> None:
        super().__init__()
        self.widths: list[int] = []

    def forward(self, features):
        tokens, mask = features["input_ids"], features["attention_mask"]
        self.widths.append(tokens.shape[1])
        total = (tokens * mask).sum(dim=1, keepdim=True)
        return {"sentence_embedding": torch.cat([total, mask.sum(dim=1, keepdim=True)], dim=1)}


def test_batch_is_embedded_in_forwards_of_like_length(monkeypatch):
    monkeypatch.setattr("condsim.training.losses.base._TOKENS", 8)
    tokens = torch.arange(1, 17).view(2, 2, 4)
    masks = torch.tensor([[[1, 1, 0, 0], [1, 1, 1, 1]], [[1, 0, 0, 0], [0, 1, 1, 1]]])
    columns = [
        {"input_ids": one, "attention_mask": mask, "task": None}
        for one, mask in zip(tokens, masks, strict=True)
    ]
    model = SumOfTokens()
    batch = encode_batch(model, columns, torch.tensor([0.0, 1.0]))
    assert model.widths == [4, 2]  # 4 and 3 tokens, the latter padded on the left; 2 and 1
    assert batch.first.tolist() == [[3, 2], [26, 4]]
    assert batch.second.tolist() == [[9, 1], [45, 3]]


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
    with pytest.raises(InputError, match=r"'margin' must be (at least 0|a number)"):
        LossOptions(margin=margin)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_loss_options_bad_scale_raises(scale: float) -> None:
    with pytest.raises(InputError, match=r"'scale' must be (above 0|a number)"):
        LossOptions(scale=scale)
