from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from sentence_transformers.sentence_transformer.losses import CoSENTLoss as LibraryCoSENTLoss
from torch import Tensor, nn

from condsim.errors import InputError
from condsim.training.losses import (
    classification_loss,
    correlation_loss,
    cosent_loss,
    high_low_pairs,
    listnet_loss,
    mse_loss,
    pair_order_loss,
    quad_loss,
    ranking_loss,
    ranknet_loss,
    tolerant_labels,
)

ROW_LOSSES = [mse_loss, correlation_loss, cosent_loss, ranknet_loss, listnet_loss]
PAIR_LOSSES = [quad_loss, pair_order_loss]
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


@pytest.mark.parametrize("loss", ROW_LOSSES)
@pytest.mark.parametrize(("rows", "labels"), [((3,), (2,)), ((2, 2), (2, 2)), ((0,), (0,))])
def test_row_loss_wrong_shapes_raises(
    loss: RowLoss, rows: tuple[int, ...], labels: tuple[int, ...]
) -> None:
    with pytest.raises(InputError, match="vectors of one length"):
        loss(torch.zeros(rows), torch.zeros(labels))


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


@pytest.mark.parametrize("loss", PAIR_LOSSES)
def test_pair_loss_half_precision_equals_float32(loss: RowLoss) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        high, low = torch.tensor([0.9, 0.3]).to(dtype), torch.tensor([0.1, 0.7]).to(dtype)
        half = loss(high, low)
        assert half.dtype == torch.float32
        assert half.item() == pytest.approx(loss(high.float(), low.float()).item(), rel=1e-6)


@pytest.mark.parametrize("loss", [*PAIR_LOSSES, high_low_pairs])
def test_pair_loss_wrong_shapes_raises(loss: RowLoss) -> None:
    with pytest.raises(InputError, match=r"\(2,\) and \(3,\)"):
        loss(torch.zeros(2), torch.zeros(3))


@pytest.mark.parametrize("loss", [*PAIR_LOSSES, cosent_loss, ranknet_loss])
def test_loss_nothing_to_compare_is_zero_with_graph(loss: RowLoss) -> None:
    similarities = torch.tensor([0.3, 0.4], requires_grad=True)
    if loss in PAIR_LOSSES:
        value = loss(similarities[:0], similarities[:0])
    else:
        value = loss(similarities, torch.tensor([0.5, 0.5]))
    value.backward()
    assert value.item() == 0.0
    assert similarities.grad is not None
    assert similarities.grad.tolist() == [0.0, 0.0]


def test_cosent_loss_hand_worked_equals() -> None:
    # Only row 0 is to score above row 1: log(1 + exp(2 · (0.9 - 0.4))) = log(1 + e) = 1.3132617
    loss = cosent_loss(torch.tensor([0.4, 0.9]), torch.tensor([1.0, 0.0]), scale=2.0)
    assert loss.item() == pytest.approx(1.3132617)


def test_cosent_loss_random_equals_naive_loop(batch: tuple[Tensor, Tensor]) -> None:
    rows = list(zip(batch[0].tolist(), batch[1].tolist(), strict=True))
    total = sum(math.exp(20 * (sj - si)) for (si, yi), (sj, yj) in product(rows, rows) if yi > yj)
    assert cosent_loss(*batch).item() == pytest.approx(math.log(1 + total), rel=1e-5)


def test_cosent_loss_random_equals_library(batch: tuple[Tensor, Tensor]) -> None:
    similarities, labels = batch
    library = LibraryCoSENTLoss(nn.Identity(), similarity_fct=lambda a, _: a[:, 0])  # type: ignore[arg-type]
    column = similarities.unsqueeze(1)
    expected = library.compute_loss_from_embeddings([column, column], labels)
    assert cosent_loss(similarities, labels).item() == pytest.approx(expected.item(), rel=1e-6)


def test_ranknet_loss_hand_worked_equals() -> None:
    # Row 0 above rows 1 and 2, which are equal: log(1 + e^(2·(0.9 - 0.4))) and log(1 + e^0)
    loss = ranknet_loss(torch.tensor([0.4, 0.9, 0.4]), torch.tensor([1.0, 0.0, 0.0]), scale=2.0)
    assert loss.item() == pytest.approx((1.3132617 + math.log(2)) / 2)


def test_ranknet_loss_random_equals_naive_loop(batch: tuple[Tensor, Tensor]) -> None:
    rows = list(zip(batch[0].tolist(), batch[1].tolist(), strict=True))
    terms = [
        math.log1p(math.exp(20 * (sj - si)))
        for (si, yi), (sj, yj) in product(rows, rows)
        if yi > yj
    ]
    assert ranknet_loss(*batch).item() == pytest.approx(sum(terms) / len(terms), rel=1e-5)


def test_pair_order_loss_hand_worked_equals() -> None:
    # (log(1 + e^(2·(0.4 - 0.9))) + log(1 + e^(2·(0.6 - 0.6)))) / 2 = (0.3132617 + 0.6931472) / 2
    loss = pair_order_loss(torch.tensor([0.9, 0.6]), torch.tensor([0.4, 0.6]), scale=2.0)
    assert loss.item() == pytest.approx((0.3132617 + 0.6931472) / 2)


def test_listnet_loss_hand_worked_equals() -> None:
    # scale 1: gold e^ln3 : e^0 = (3/4, 1/4), predicted (1/2, 1/2);
    # KL = 3/4 · log(3/2) + 1/4 · log(1/2) = 0.1308
    loss = listnet_loss(torch.zeros(2), torch.tensor([math.log(3), 0.0]), scale=1.0)
    assert loss.item() == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))


def test_listnet_loss_random_equals_naive_loop(batch: tuple[Tensor, Tensor]) -> None:
    predicted, gold = ([math.exp(5 * x) for x in xs.tolist()] for xs in batch)
    shares = [(y / sum(gold), x / sum(predicted)) for y, x in zip(gold, predicted, strict=True)]
    naive = sum(y * math.log(y / x) for y, x in shares)
    assert listnet_loss(*batch, scale=5.0).item() == pytest.approx(naive, rel=1e-4)


def test_listnet_loss_one_row_is_zero() -> None:
    assert listnet_loss(torch.tensor([0.3]), torch.tensor([1.0])).item() == 0.0


def test_listnet_loss_shifted_golds_is_zero(batch: tuple[Tensor, Tensor]) -> None:
    assert listnet_loss(batch[1] - 0.3, batch[1]).item() == pytest.approx(0.0, abs=1e-5)


PAIRS = torch.tensor([0, 0, 1, 1, -1, 2, 2, 2, 3, 3, -1, 4])
LISTS = torch.tensor([-1, 5, 5, 5, 6, 6, -1, -1, 7, 6, 5, -1])


def test_ranking_loss_hand_worked_equals() -> None:
    # Pair 0: rows 0 and 1, gap 1, apart by 0.5; list 5: rows 1 and 2, gap 0.5, apart by -0.2;
    # row 3 differs from row 2 by too little. scale 2, margin 0.1:
    # (1 · log(1 + e^(-2·0.4)) + 0.5 · log(1 + e^(2·0.3))) / 1.5
    similarities = torch.tensor([0.9, 0.4, 0.2, 0.7])
    loss = ranking_loss(
        similarities,
        torch.tensor([1.0, 0.0, 0.5, 0.6]),
        [torch.tensor([0, 0, 1, 1]), torch.tensor([-1, 5, 5, -1])],
        scale=2.0,
        margin=0.1,
    )
    expected = (math.log1p(math.exp(-0.8)) + 0.5 * math.log1p(math.exp(0.6))) / 1.5
    assert loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_ranking_loss_random_equals_naive_loop(
    batch: tuple[Tensor, Tensor], weighted: bool
) -> None:
    weights = torch.rand(12, generator=torch.Generator().manual_seed(0)) + 0.1
    similarities, labels = (one.tolist() for one in batch)
    total = whole = 0.0
    for ids in (PAIRS.tolist(), LISTS.tolist()):
        for i, j in product(range(12), range(12)):
            gap = labels[i] - labels[j]
            if ids[i] == ids[j] >= 0 and gap > 0.2:
                weight = gap * (math.sqrt(weights[i] * weights[j]) if weighted else 1.0)
                margin = similarities[i] - similarities[j] - 0.3
                total += weight * math.log1p(math.exp(-5 * margin))
                whole += weight
    loss = ranking_loss(
        *batch, [PAIRS, LISTS], weights if weighted else None, scale=5.0, margin=0.3
    )
    assert loss.item() == pytest.approx(total / whole, rel=1e-5)


def test_ranking_loss_nothing_to_compare_is_zero_with_graph() -> None:
    similarities = torch.tensor([0.3, 0.4], requires_grad=True)
    loss = ranking_loss(similarities, torch.tensor([0.5, 0.6]), [torch.tensor([1, 1])])
    loss.backward()
    assert loss.item() == 0.0
    assert similarities.grad is not None
    assert similarities.grad.tolist() == [0.0, 0.0]


def test_ranking_loss_half_precision_equals_float32(batch: tuple[Tensor, Tensor]) -> None:
    similarities = batch[0].bfloat16()
    half = ranking_loss(similarities, batch[1], [PAIRS])
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(
        ranking_loss(similarities.float(), batch[1], [PAIRS]).item()
    )


def test_ranking_loss_wrong_shapes_raises() -> None:
    with pytest.raises(InputError, match="high_low_pairs takes labels and pair_ids as vectors"):
        ranking_loss(torch.zeros(2), torch.zeros(2), [torch.zeros(3)])
    with pytest.raises(InputError, match="ranking_loss takes similarities and weights as vectors"):
        ranking_loss(torch.zeros(2), torch.zeros(2), [torch.zeros(2)], torch.ones(3))
