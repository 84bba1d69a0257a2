"""The loss of several sources, and those that learn a teacher's vectors."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from condsim.errors import InputError
from condsim.training.losses.base import LossOptions
from condsim.training.losses.weighted import MixedLoss, relation_loss, vector_loss

ONES = torch.ones(3)
IDS = torch.tensor([4, 4, -1])
TEACHER = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
# The fixture's vectors: (1, 0), (2, 0), (3, 4), (0, 5)
SUB_BATCHES = [{"input_ids": torch.tensor(rows)} for rows in ([[0], [1]], [[2], [3]])]


def rows_of(gold: list[float], **changes: Tensor) -> dict[str, Tensor]:
    """Rows (0, 1), (0, 2), (0, 3): similarities 1.0, 0.6, 0.0."""
    return {
        "first": torch.tensor([0, 0, 0]),
        "second": torch.tensor([1, 2, 3]),
        "gold": torch.tensor(gold),
        "pair_ids": IDS,
        "list_ids": torch.tensor([-1, 7, 7]),
        "weights": ONES,
        **changes,
    }


def test_mixed_loss_parts_hand_worked_equal(table_encoder: Any) -> None:
    parts = {
        "train": {"mse": 2.0, "ranking": 1.0},
        "plain": {"mse": 1.0},
        "teacher": {"vectors": 3},
    }
    loss = MixedLoss(table_encoder, parts, LossOptions(scale=2.0))
    weights = torch.tensor([1.0, 2.0, 1.0])
    terms = loss(
        SUB_BATCHES,
        {
            "train": rows_of([1.0, 0.5, 0.25], weights=weights),
            "plain": rows_of([1.0, 1.0, 1.0]),
            "teacher": {"inputs": torch.tensor([2, 3]), "vectors": TEACHER},
        },
    )
    assert table_encoder.forwards == len(SUB_BATCHES)
    assert list(terms) == ["mse", "ranking", "plain-mse", "teacher-vectors"]
    assert terms["mse"].item() == pytest.approx(2 * (2 * 0.1**2 + 0.25**2) / 4)
    # Pair: 1.0 over 0.6, gap 0.5, rows of 1 and 2; list: 0.6 over 0.0, gap 0.25, rows of 2 and 1
    ranked = 0.5 * math.log1p(math.exp(-0.6)) + 0.25 * math.log1p(math.exp(-1.0))
    assert terms["ranking"].item() == pytest.approx(ranked / 0.75)
    assert terms["plain-mse"].item() == pytest.approx((0.4**2 + 1) / 3)
    # cos((3, 4), (1, 0)) = 0.6 and cos((0, 5), (3, 4)) = 0.8
    assert terms["teacher-vectors"].item() == pytest.approx(3 * (1 - 0.7))
    sum(terms.values()).backward()
    assert float(table_encoder.table.grad.abs().sum()) > 0


def test_mixed_loss_computes_only_parts_in_the_batch(table_encoder: Any) -> None:
    loss = MixedLoss(table_encoder, {"train": {"mse": 1.0}, "plain": {"mse": 1.0}})
    assert list(loss(SUB_BATCHES, {"plain": rows_of([0.0, 0.5, 1.0])})) == ["plain-mse"]
    assert loss.get_config_dict()["parts"] == {"train": {"mse": 1.0}, "plain": {"mse": 1.0}}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"bcl": 1.0, "mse": 1.0}, "compared by their cosines only"),
        ({"vectors": 1.0, "mse": 1.0}, "Unknown objective 'vectors'"),
        ({"vectors": -1.0}, "weight of objective 'vectors' must be at least 0"),
        ({"msee": 1.0}, "Unknown objective 'msee'"),
        ({}, "At least one objective"),
    ],
)
def test_mixed_loss_bad_weights_raises(
    table_encoder: Any, weights: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        MixedLoss(table_encoder, {"train": weights})


def test_relation_loss_hand_worked_equals() -> None:
    # Cosines of the student 0, 0.6, 0.8; of the teacher, in three dimensions, 1, 0, 0
    student = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    teacher = torch.tensor([[1.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    loss = relation_loss(student, teacher)
    assert loss.item() == pytest.approx((1.0 + 0.6**2 + 0.8**2) / 3)
    assert relation_loss(student[:1], teacher[:1]).item() == 0.0


def test_relation_loss_random_equals_naive_loop_and_has_a_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    student = torch.randn(6, 4, generator=generator).requires_grad_()
    teacher = torch.randn(6, 9, generator=generator)

    def cosine(one: Tensor, two: Tensor) -> Tensor:
        return torch.dot(one, two) / (one.norm() * two.norm())

    squares = [
        (cosine(student[i], student[j]) - cosine(teacher[i], teacher[j])) ** 2
        for i in range(6)
        for j in range(6)
        if i != j
    ]
    loss = relation_loss(student, teacher)
    assert loss.item() == pytest.approx(torch.stack(squares).sum().item() / 30, rel=1e-5)
    loss.backward()
    assert float(student.grad.abs().sum()) > 0  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_teacher_losses_half_precision_equal_float32(dtype: torch.dtype) -> None:
    student = torch.tensor([[1.0, 0.5], [0.25, 2.0], [3.0, 4.0]])
    teacher = torch.tensor([[1.0, 0.0], [0.5, 1.0], [2.0, 2.0]])
    for loss in (vector_loss, relation_loss):
        half = loss(student.to(dtype), teacher.to(dtype))
        assert half.dtype == torch.float32
        assert half.item() == pytest.approx(loss(student, teacher).item(), rel=1e-5)


def test_teacher_losses_wrong_shapes_raise() -> None:
    with pytest.raises(InputError, match=r"of one shape, \(inputs, dim\). Got \(2, 3\)"):
        vector_loss(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(InputError, match="as many embeddings of the student"):
        relation_loss(torch.zeros(2, 3), torch.zeros(3, 3))
    with pytest.raises(InputError, match="as many embeddings of the student"):
        relation_loss(torch.zeros(0, 3), torch.zeros(0, 3))
