from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from sentence_transformers.sentence_transformer.losses import CoSENTLoss as LibraryCoSENTLoss
from torch import Tensor, nn

from condsim.errors import InputError
from condsim.training.losses.functional import (
    cosent_loss,
    listnet_loss,
    pair_order_loss,
    ranking_loss,
    ranknet_loss,
)


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


def test_cosent_loss_equal_labels_is_zero_with_graph() -> None:
    similarities = torch.tensor([0.3, 0.4], requires_grad=True)
    loss = cosent_loss(similarities, torch.tensor([0.5, 0.5]))
    loss.backward()
    assert loss.item() == 0.0
    assert similarities.grad is not None
    assert similarities.grad.tolist() == [0.0, 0.0]


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


def test_ranknet_loss_equal_labels_is_zero_with_graph() -> None:
    similarities = torch.tensor([0.3, 0.4], requires_grad=True)
    loss = ranknet_loss(similarities, torch.tensor([0.5, 0.5]))
    loss.backward()
    assert loss.item() == 0.0


def test_pair_order_loss_hand_worked_equals() -> None:
    # (log(1 + e^(2·(0.4 - 0.9))) + log(1 + e^(2·(0.6 - 0.6)))) / 2 = (0.3132617 + 0.6931472) / 2
    loss = pair_order_loss(torch.tensor([0.9, 0.6]), torch.tensor([0.4, 0.6]), scale=2.0)
    assert loss.item() == pytest.approx((0.3132617 + 0.6931472) / 2)


def test_pair_order_loss_no_pairs_is_zero_with_graph() -> None:
    similarities = torch.tensor([0.3], requires_grad=True)
    loss = pair_order_loss(similarities[:0], similarities[:0])
    loss.backward()
    assert loss.item() == 0.0


def test_pair_order_loss_half_precision_equals_float32() -> None:
    high, low = torch.tensor([0.9, 0.3]).bfloat16(), torch.tensor([0.1, 0.7]).bfloat16()
    half = pair_order_loss(high, low)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(pair_order_loss(high.float(), low.float()).item())


def test_pair_order_loss_wrong_shapes_raises() -> None:
    with pytest.raises(InputError, match="pair_order_loss takes high and low as vectors of one"):
        pair_order_loss(torch.zeros(2), torch.zeros(3))


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
