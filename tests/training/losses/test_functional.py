from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from condsim.errors import InputError
from condsim.training.losses.base import LossOptions, Targets
from condsim.training.losses.contrastive import ACLLoss, WACLLoss
from condsim.training.losses.functional import (
    classification_loss,
    correlation_loss,
    cosent_loss,
    high_low_pairs,
    listnet_loss,
    mse_loss,
    quad_loss,
    ranknet_loss,
    tolerant_labels,
)
from condsim.training.losses.similarity import QuadLoss

ROW_LOSSES = [mse_loss, correlation_loss, cosent_loss, ranknet_loss, listnet_loss]
RowLoss = Callable[[Tensor, Tensor], Tensor]


def test_mse_loss_hand_worked_equals() -> None:
    # ((0.5 - 1)² + (0.25 - 0)²) / 2 = (0.25 + 0.0625) / 2 = 0.15625
    assert mse_loss(torch.tensor([0.5, 0.25]), torch.tensor([1.0, 0.0])).item() == 0.15625


def test_mse_loss_random_equals_naive_loop(batch: tuple[Tensor, Tensor]) -> None:
    similarities, labels = batch
    naive = sum((s - y) ** 2 for s, y in zip(similarities.tolist(), labels.tolist(), strict=True))
    assert mse_loss(similarities, labels).item() == pytest.approx(naive / 12, rel=1e-5)


def test_quad_loss_hand_worked_equals() -> None:
    # λ = 1: max(1 + 0.2 - 0.9, 0) = 0.3 and max(1 + 0.5 - 0.25, 0) = 1.25; mean 0.775
    high, low = torch.tensor([0.9, 0.25]), torch.tensor([0.2, 0.5])
    assert quad_loss(high, low).item() == pytest.approx(0.775)
    # λ = 0.1: max(0.1 + 0.2 - 0.9, 0) = 0 and max(0.1 + 0.5 - 0.25, 0) = 0.35; mean 0.175
    assert quad_loss(high, low, margin=0.1).item() == pytest.approx(0.175)


def test_quad_loss_random_equals_naive_loop(batch: tuple[Tensor, Tensor]) -> None:
    high, low = batch[0][:6], batch[0][6:]
    naive = sum(max(0.4 + n - p, 0.0) for p, n in zip(high.tolist(), low.tolist(), strict=True))
    assert quad_loss(high, low, margin=0.4).item() == pytest.approx(naive / 6, rel=1e-5)


def test_quad_loss_no_pairs_is_zero_with_graph() -> None:
    similarities = torch.tensor([0.3, 0.4], requires_grad=True)
    loss = quad_loss(similarities[:0], similarities[:0])
    loss.backward()
    assert loss.item() == 0.0
    assert similarities.grad is not None
    assert similarities.grad.tolist() == [0.0, 0.0]


def test_correlation_loss_hand_worked_equals() -> None:
    # x = (0, 0.5, 1) deviates by (-.5, 0, .5); y = (0, 1, 0.5) by (-.5, .5, 0).
    # r = (0.25 + 0 + 0) / sqrt(0.5 · 0.5) = 0.5, so the loss is 0.5
    loss = correlation_loss(torch.tensor([0.0, 0.5, 1.0]), torch.tensor([0.0, 1.0, 0.5]))
    assert loss.item() == pytest.approx(0.5)


def test_correlation_loss_random_equals_naive_loop(batch: tuple[Tensor, Tensor]) -> None:
    xs, ys = batch[0].tolist(), batch[1].tolist()
    mean_x, mean_y = sum(xs) / 12, sum(ys) / 12
    cov = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    norm = math.sqrt(sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys))
    assert correlation_loss(*batch).item() == pytest.approx(1 - cov / norm, rel=1e-5)


def test_correlation_loss_any_line_is_ignored(batch: tuple[Tensor, Tensor]) -> None:
    similarities, labels = batch
    moved = correlation_loss(0.01 * similarities + 100, labels)
    assert moved.item() == pytest.approx(correlation_loss(similarities, labels).item(), abs=1e-2)


@pytest.mark.parametrize(
    ("similarities", "labels"),
    [
        ([0.3, 0.3, 0.3], [0.0, 0.5, 1.0]),
        ([0.1, 0.7, 0.9], [0.25, 0.25, 0.25]),
        ([0.3, 0.3, 0.3], [0.7, 0.7, 0.7]),
        ([0.3], [1.0]),
    ],
)
def test_correlation_loss_constant_is_one_with_zero_gradient(
    similarities: list[float], labels: list[float]
) -> None:
    predicted = torch.tensor(similarities, requires_grad=True)
    loss = correlation_loss(predicted, torch.tensor(labels))
    loss.backward()
    assert loss.item() == 1.0
    assert predicted.grad is not None
    assert predicted.grad.tolist() == [0.0] * len(similarities)


def test_high_low_pairs_hand_worked_equals() -> None:
    # Pair 7 is rows 0 and 3 (0.25 < 1.0); pair 2 is rows 1 and 4, tied; -1 never pairs.
    labels = torch.tensor([0.25, 0.5, 0.0, 1.0, 0.5, 0.75])
    high, low = high_low_pairs(labels, torch.tensor([7, 2, -1, 7, 2, -1]))
    assert (high.tolist(), low.tolist()) == ([3], [0])


def test_ties_kept_count_as_in_the_released_code_hand_worked() -> None:
    # Pair 0 has the labels 0.75 and 0.25 and the cosines 0.8 and 0.1; pair 1 is a tie, whose first
    # row (0.3) is the positive and whose second (0.7) the negative.
    similarities = torch.tensor([0.1, 0.3, 0.8, 0.7])
    targets = Targets(torch.tensor([0.25, 0.5, 0.75, 0.5]), torch.tensor([0, 1, 0, 1]))
    expected = {
        # Quad: 1 + 0.1 - 0.8 = 0.3 of pair 0, 1 + 0.7 - 0.3 = 1.4 of pair 1
        QuadLoss: {"dropped": 0.3, "kept": (0.3 + 1.4) / 2},
        # W-ACL: 0.5 * |0.5 + 0.1 - 0.8| = 0.1, and 0 * |0 + 0.7 - 0.3| = 0
        WACLLoss: {"dropped": 0.1, "kept": 0.05},
        # ACL: 0.2 and 0.4
        ACLLoss: {"dropped": 0.2, "kept": 0.3},
    }
    assert LossOptions().ties == "dropped"
    for loss, values in expected.items():
        for ties, value in values.items():
            options = LossOptions(ties=ties)  # type: ignore[arg-type]
            assert loss.compute(similarities, targets, options).item() == pytest.approx(value)
    high, low = high_low_pairs(targets.gold, targets.pair_ids, ties=True)  # type: ignore[arg-type]
    assert [*zip(high.tolist(), low.tolist(), strict=True)] == [(1, 3), (2, 0)]
    with pytest.raises(InputError, match="Unknown value of 'ties'"):
        LossOptions(ties="some")  # type: ignore[arg-type]


def test_classification_loss_hand_worked_equals() -> None:
    # Gold 0.25 is the second of five labels: -log(2 / (1 + 2 + 1 + 1 + 1)) = log 3; gold 1 is the
    # last: -log(1 / 5) of equal logits.
    logits = torch.tensor([[0.0, math.log(2), 0.0, 0.0, 0.0], [3.0] * 5])
    expected = (math.log(3) + math.log(5)) / 2
    assert classification_loss(logits, torch.tensor([0.25, 1.0])).item() == pytest.approx(expected)
    with pytest.raises(InputError, match="classification_loss takes logits"):
        classification_loss(logits[:, 0], torch.tensor([0.25, 1.0]))


def test_high_low_pairs_random_equals_naive_loop() -> None:
    generator = torch.Generator().manual_seed(5)
    labels = torch.randint(0, 5, (30,), generator=generator) / 4
    ids = torch.randint(-1, 8, (30,), generator=generator)
    naive = {
        (i, j)
        for i, j in product(range(30), range(30))
        if ids[i] == ids[j] and ids[i] >= 0 and labels[i] > labels[j]
    }
    high, low = high_low_pairs(labels, ids)
    assert set(zip(high.tolist(), low.tolist(), strict=True)) == naive


@pytest.mark.parametrize("loss", ROW_LOSSES)
def test_row_loss_random_gradient_is_finite_and_not_zero(
    loss: RowLoss, batch: tuple[Tensor, Tensor]
) -> None:
    similarities = batch[0].clone().requires_grad_()
    loss(similarities, batch[1]).backward()
    assert similarities.grad is not None
    assert bool(similarities.grad.isfinite().all())
    assert float(similarities.grad.abs().sum()) > 0


def test_quad_loss_random_gradient_pulls_high_up_and_low_down() -> None:
    high = torch.tensor([0.5, 0.1], requires_grad=True)
    low = torch.tensor([0.4, 0.6], requires_grad=True)
    quad_loss(high, low).backward()
    assert high.grad is not None
    assert low.grad is not None
    assert high.grad.tolist() == [-0.5, -0.5]
    assert low.grad.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("loss", ROW_LOSSES)
def test_row_loss_half_precision_equals_float32(
    loss: RowLoss, dtype: torch.dtype, batch: tuple[Tensor, Tensor]
) -> None:
    similarities = batch[0].to(dtype)
    half = loss(similarities, batch[1].to(dtype))
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(loss(similarities.float(), batch[1]).item(), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_quad_loss_half_precision_equals_float32(dtype: torch.dtype) -> None:
    high, low = torch.tensor([0.9, 0.3]).to(dtype), torch.tensor([0.1, 0.7]).to(dtype)
    half = quad_loss(high, low)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(quad_loss(high.float(), low.float()).item(), rel=1e-6)


@pytest.mark.parametrize("loss", ROW_LOSSES)
@pytest.mark.parametrize(("rows", "labels"), [((3,), (2,)), ((2, 2), (2, 2)), ((0,), (0,))])
def test_row_loss_wrong_shapes_raises(
    loss: RowLoss, rows: tuple[int, ...], labels: tuple[int, ...]
) -> None:
    with pytest.raises(InputError, match="vectors of one length"):
        loss(torch.zeros(rows), torch.zeros(labels))


def test_quad_loss_wrong_shapes_raises() -> None:
    with pytest.raises(InputError, match=r"high and low .* \(2,\) and \(3,\)"):
        quad_loss(torch.zeros(2), torch.zeros(3))


def test_high_low_pairs_wrong_shapes_raises() -> None:
    with pytest.raises(InputError, match="labels and pair_ids"):
        high_low_pairs(torch.zeros(2), torch.zeros(3))


def test_tolerant_labels_hand_worked_equals() -> None:
    # Only golds of 0.5 move, to the predictions cut off at 0.5 - 0.25 and 0.5 + 0.25
    gold = torch.tensor([0.5, 0.5, 0.5, 0.25, 1.0])
    predicted = torch.tensor([0.6, -0.3, 0.9, 0.9, 0.2], requires_grad=True)
    smoothed = tolerant_labels(gold, predicted, tolerance=0.25)
    assert smoothed.tolist() == pytest.approx([0.6, 0.25, 0.75, 0.25, 1.0])
    assert not smoothed.requires_grad


def test_tolerant_labels_of_no_width_changes_nothing() -> None:
    gold = torch.tensor([0.5, 0.0])
    assert torch.equal(tolerant_labels(gold, torch.tensor([0.9, 0.9]), tolerance=0.0), gold)


def test_mse_loss_weights_hand_worked_equals() -> None:
    # (3 · 0.2² + 1 · 0.4²) / 4
    loss = mse_loss(torch.tensor([0.2, 0.4]), torch.zeros(2), torch.tensor([3.0, 1.0]))
    assert loss.item() == pytest.approx((3 * 0.04 + 0.16) / 4)


def test_row_weights_count_a_row_as_often(batch: tuple[Tensor, Tensor]) -> None:
    weights = torch.tensor([1, 2, 3] * 4)
    repeated = [one.repeat_interleave(weights) for one in batch]
    for loss in (mse_loss, correlation_loss):
        assert loss(*batch, weights.float()).item() == pytest.approx(
            loss(*repeated).item(), rel=1e-5
        )
        assert loss(*batch, torch.full((12,), 7.0)).item() == pytest.approx(loss(*batch).item())


def test_correlation_loss_weights_constant_vector_is_one() -> None:
    weights = torch.tensor([0.1, 0.2, 0.7])
    assert correlation_loss(torch.full((3,), 0.3), torch.rand(3), weights).item() == 1.0


def test_row_weights_wrong_shape_raises() -> None:
    with pytest.raises(InputError, match="mse_loss takes similarities and weights as vectors"):
        mse_loss(torch.zeros(2), torch.zeros(2), torch.ones(3))
