from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from condsim.errors import InputError
from condsim.training.losses.similarity import TripletLoss


@pytest.fixture
def triplets() -> list[dict[str, Tensor]]:
    """Rows (0, 1, 2) and (3, 2, 1) of the table (1, 0), (2, 0), (3, 4), (0, 5)."""
    columns = (torch.tensor([[0], [3]]), torch.tensor([[1], [2]]), torch.tensor([[2], [1]]))
    return [{"input_ids": ids, "attention_mask": torch.ones_like(ids)} for ids in columns]


def test_triplet_loss_hand_worked_equals(table_encoder: Any, triplets: Any) -> None:
    # ‖a - p‖ = 1, ‖a - n‖ = ‖(-2, -4)‖ = √20: max(1 - √20 + 4, 0) = 5 - √20
    # ‖a - p‖ = ‖(-3, 1)‖ = √10, ‖a - n‖ = ‖(-2, 5)‖ = √29: max(√10 - √29 + 4, 0)
    expected = (5 - math.sqrt(20) + math.sqrt(10) - math.sqrt(29) + 4) / 2
    loss = TripletLoss(table_encoder, margin=4.0)
    assert loss(triplets, None).item() == pytest.approx(expected)
    # with the margin 1 both are far enough: 2 - √20 and √10 - √29 + 1 are below 0
    assert TripletLoss(table_encoder)(triplets, None).item() == 0.0


def test_triplet_loss_random_equals_naive_loop(table_encoder: Any) -> None:
    generator = torch.Generator().manual_seed(2)
    batch = [torch.randn(8, 5, generator=generator) for _ in range(3)]
    total = 0.0
    for a, p, n in zip(*(texts.tolist() for texts in batch), strict=True):
        total += max(math.dist(a, p) - math.dist(a, n) + 0.5, 0.0)
    loss = TripletLoss(table_encoder, margin=0.5).compute_loss_from_embeddings(batch, None)
    assert loss.item() == pytest.approx(total / 8, rel=1e-5)


def test_triplet_loss_gradient_is_finite_and_not_zero(table_encoder: Any, triplets: Any) -> None:
    TripletLoss(table_encoder, margin=4.0)(triplets, None).backward()
    assert bool(table_encoder.table.grad.isfinite().all())
    assert float(table_encoder.table.grad.abs().sum()) > 0


def test_triplet_loss_equal_embeddings_have_finite_gradient(table_encoder: Any) -> None:
    same = torch.ones(2, 4, requires_grad=True)
    loss = TripletLoss(table_encoder).compute_loss_from_embeddings([same, same, same], None)
    loss.backward()
    assert loss.item() == 1.0
    assert same.grad is not None
    assert bool(same.grad.isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_triplet_loss_half_precision_embeddings_equal_float32(
    dtype: torch.dtype, table_encoder: Any, triplets: Any
) -> None:
    loss = TripletLoss(table_encoder, margin=4.0)
    full = loss(triplets, None)
    table_encoder.to(dtype)
    half = loss(triplets, None)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(full.item(), rel=1e-5)


def test_triplet_loss_bad_input_raises(table_encoder: Any, triplets: Any) -> None:
    with pytest.raises(InputError, match=r"at least 0\. Got -1"):
        TripletLoss(table_encoder, margin=-1.0)
    with pytest.raises(InputError, match=r"three columns: anchor, positive, negative\. Got 2"):
        TripletLoss(table_encoder)(triplets[:2], None)
