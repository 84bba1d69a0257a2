"""Losses of mixed sources, cross-encoders, NLI classes and triplets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss
from torch import Tensor

from condsim.model.builders import build_cross_encoder
from condsim.training.losses import (
    classification_loss,
    correlation_loss,
    cosent_loss,
    mse_loss,
    pair_order_loss,
)
from condsim.training.objective_loss import CrossEncoderLoss, FloatTripletLoss, MixedLoss
from condsim.training.objectives import LossOptions

COLUMNS = [
    ["a man runs[SEP]a dog runs", "a girl eats[SEP]a boy eats", "a cat sits[SEP]a bird eats"],
    ["the animal", "the food", "the place"],
]
GOLD = torch.tensor([0.0, 0.75, 0.25])


@pytest.fixture(scope="module")
def model(tiny_backbone: Path) -> CrossEncoder:
    return build_cross_encoder(str(tiny_backbone), dropout=0.0)


def predicted(model: CrossEncoder) -> Tensor:
    pairs = list(zip(*COLUMNS, strict=True))
    return model.predict(pairs, convert_to_tensor=True).clone()  # type: ignore[no-any-return]


def test_cross_encoder_loss_terms_equal_functions_of_predicted_scores(model: CrossEncoder) -> None:
    scores = predicted(model)
    weights = {"mse": 2.0, "correlation": 1.0, "cosent": 0.5, "quad": 0.0}
    terms = CrossEncoderLoss(model, weights, LossOptions(scale=3.0))(COLUMNS, GOLD)
    expected = {
        "mse": 2 * mse_loss(scores, GOLD).item(),
        "correlation": correlation_loss(scores, GOLD).item(),
        "cosent": 0.5 * cosent_loss(scores, GOLD, scale=3.0).item(),
    }
    values = {name: term.item() for name, term in terms.items()}
    assert values == pytest.approx(expected, rel=1e-3)


def test_cross_encoder_loss_forms_of_labels_and_columns_are_equal(model: CrossEncoder) -> None:
    loss = CrossEncoderLoss(model, {"mse": 1.0})
    expected = loss(COLUMNS, GOLD)["mse"].item()
    rows = [torch.tensor([gold, -1.0]) for gold in GOLD.tolist()]
    assert loss(COLUMNS, rows)["mse"].item() == pytest.approx(expected)
    pairs: Any = [list(pair) for pair in zip(*COLUMNS, strict=True)]
    assert loss([pairs], GOLD)["mse"].item() == expected


def test_cross_encoder_loss_pair_order_and_tolerance_equal_functions(model: CrossEncoder) -> None:
    scores = predicted(model)
    labels = torch.tensor([[0.5, 3.0], [0.75, 3.0], [0.25, -1.0]])
    options = LossOptions(scale=3.0, middle_tolerance=0.5)
    terms = CrossEncoderLoss(model, {"mse": 1.0, "pair-order": 1.0}, options)(COLUMNS, labels)
    expected = pair_order_loss(scores[1:2], scores[:1], scale=3.0)
    assert terms["pair-order"].item() == pytest.approx(expected.item(), rel=1e-4)
    gold = torch.stack([scores[0].clamp(0, 1), labels[1, 0], labels[2, 0]])
    assert terms["mse"].item() == pytest.approx(mse_loss(scores, gold).item(), rel=1e-3)


def test_cross_encoder_loss_classification_equals_function_of_logits(tiny_backbone: Path) -> None:
    model = build_cross_encoder(str(tiny_backbone), dropout=0.0, outputs=5)
    loss = CrossEncoderLoss(model, {"classification": 2.0})(COLUMNS, GOLD)
    expected = 2 * classification_loss(predicted(model), GOLD).item()
    assert loss["classification"].item() == pytest.approx(expected, rel=1e-4)


TEACHER = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
# The vectors of the fixture: (1, 0), (2, 0), (3, 4), (0, 5)
SUB_BATCHES = [{"input_ids": torch.tensor(rows)} for rows in ([[0], [1]], [[2], [3]])]


def rows_of(gold: list[float], **changes: Tensor) -> dict[str, Tensor]:
    """Rows (0, 1), (0, 2), (0, 3): similarities 1.0, 0.6, 0.0."""
    return {
        "first": torch.tensor([0, 0, 0]),
        "second": torch.tensor([1, 2, 3]),
        "gold": torch.tensor(gold),
        "pair_ids": torch.tensor([4, 4, -1]),
        "list_ids": torch.tensor([-1, 7, 7]),
        "weights": torch.ones(3),
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


def softmax_loss(encoder: Any, weight: Tensor, bias: Tensor) -> SoftmaxLoss:
    encoder.device = torch.device("cpu")
    loss = SoftmaxLoss(encoder, 2, num_labels=len(bias))
    with torch.no_grad():
        loss.classifier.weight.copy_(weight)
        loss.classifier.bias.copy_(bias)
    return loss


def test_softmax_loss_hand_worked_equals(table_encoder: Any, columns: Any) -> None:
    # Row 0 is u = (1, 0), v = (2, 0), |u - v| = (1, 0). W takes u1, v1 and |u - v|1 as the logits:
    # (1, 2, 1). Of class 1: -log(e² / (e + e² + e)) = log(1 + 2/e)
    # Row 1 is u = (1, 0), v = (3, 4), |u - v| = (2, 4): logits (1, 3, 2), of class 2
    # log(1/e + e + 1). Row 2 is u = (1, 0), v = (0, 5), |u - v| = (1, 5): logits (1, 0, 1), of
    # class 0 log(2 + 1/e).
    loss = softmax_loss(table_encoder, torch.eye(6)[[0, 2, 4]], torch.zeros(3))
    values = [math.log(1 + 2 / math.e), math.log(1 / math.e + math.e + 1), math.log(2 + 1 / math.e)]
    assert loss(columns, torch.tensor([1, 2, 0])).item() == pytest.approx(sum(values) / 3)


@pytest.fixture
def triplets() -> list[dict[str, Tensor]]:
    """Rows (0, 1, 2) and (3, 2, 1) of the table (1, 0), (2, 0), (3, 4), (0, 5)."""
    columns = (torch.tensor([[0], [3]]), torch.tensor([[1], [2]]), torch.tensor([[2], [1]]))
    return [{"input_ids": ids, "attention_mask": torch.ones_like(ids)} for ids in columns]


def test_triplet_loss_hand_worked_equals(table_encoder: Any, triplets: Any) -> None:
    # ‖a - p‖ = 1, ‖a - n‖ = ‖(-2, -4)‖ = √20: max(1 - √20 + 4, 0) = 5 - √20
    # ‖a - p‖ = ‖(-3, 1)‖ = √10, ‖a - n‖ = ‖(-2, 5)‖ = √29: max(√10 - √29 + 4, 0)
    expected = (5 - math.sqrt(20) + math.sqrt(10) - math.sqrt(29) + 4) / 2
    loss = FloatTripletLoss(table_encoder, triplet_margin=4.0)
    value = loss(triplets, None)
    assert value.item() == pytest.approx(expected)
    # With the margin 1 both are far enough: 2 - √20 and √10 - √29 + 1 are below 0.
    assert FloatTripletLoss(table_encoder, triplet_margin=1.0)(triplets, None).item() == 0.0
    value.backward()
    assert bool(table_encoder.table.grad.isfinite().all())
    assert float(table_encoder.table.grad.abs().sum()) > 0


def test_triplet_loss_equal_embeddings_have_finite_gradient(table_encoder: Any) -> None:
    same = torch.ones(2, 4, requires_grad=True)
    loss = FloatTripletLoss(table_encoder, triplet_margin=1.0)
    value = loss.compute_loss_from_embeddings([same, same, same], torch.empty(0))
    value.backward()
    assert value.item() == 1.0
    assert same.grad is not None
    assert bool(same.grad.isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_triplet_loss_half_precision_embeddings_equal_float32(
    dtype: torch.dtype, table_encoder: Any, triplets: Any
) -> None:
    loss = FloatTripletLoss(table_encoder, triplet_margin=4.0)
    full = loss(triplets, None)
    table_encoder.to(dtype)
    half = loss(triplets, None)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(full.item(), rel=1e-5)
