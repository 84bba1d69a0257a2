from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import CrossEncoder

from condsim.errors import InputError
from condsim.model.builders import build_cross_encoder
from condsim.training.losses.base import LossOptions
from condsim.training.losses.functional import (
    classification_loss,
    correlation_loss,
    cosent_loss,
    mse_loss,
    pair_order_loss,
)
from condsim.training.losses.weighted import CrossEncoderSimilarityLoss

COLUMNS = [
    ["a man runs[SEP]a dog runs", "a girl eats[SEP]a boy eats", "a cat sits[SEP]a bird eats"],
    ["the animal", "the food", "the place"],
]
GOLD = torch.tensor([0.0, 0.75, 0.25])


@pytest.fixture(scope="module")
def model(tiny_backbone: Path) -> CrossEncoder:
    return build_cross_encoder(str(tiny_backbone), dropout=0.0)


def test_cross_encoder_loss_terms_equal_functions_of_predicted_scores(model: CrossEncoder) -> None:
    scores = model.predict(list(zip(*COLUMNS, strict=True)), convert_to_tensor=True).clone()
    weights = {"mse": 2.0, "correlation": 1.0, "cosent": 0.5}
    terms = CrossEncoderSimilarityLoss(model, weights, LossOptions(scale=3.0))(COLUMNS, GOLD)
    assert terms["mse"].item() == pytest.approx(2 * mse_loss(scores, GOLD).item(), rel=1e-4)
    assert terms["correlation"].item() == pytest.approx(
        correlation_loss(scores, GOLD).item(), rel=1e-3
    )
    expected = 0.5 * cosent_loss(scores, GOLD, scale=3.0).item()
    assert terms["cosent"].item() == pytest.approx(expected, rel=1e-4)


def test_cross_encoder_loss_list_of_label_rows_equals_gold(model: CrossEncoder) -> None:
    loss = CrossEncoderSimilarityLoss(model, {"mse": 1.0})
    rows = [torch.tensor([gold, -1.0]) for gold in GOLD.tolist()]
    assert loss(COLUMNS, rows)["mse"].item() == pytest.approx(loss(COLUMNS, GOLD)["mse"].item())


def test_cross_encoder_loss_gradient_reaches_backbone(model: CrossEncoder) -> None:
    model.zero_grad()
    CrossEncoderSimilarityLoss(model, {"mse": 1.0})(COLUMNS, GOLD)["mse"].backward()
    gradient: Any = model[0].model.embeddings.word_embeddings.weight.grad
    assert bool(gradient.isfinite().all())
    assert float(gradient.abs().sum()) > 0


def test_cross_encoder_loss_pair_order_and_tolerance_equal_functions(model: CrossEncoder) -> None:
    scores = model.predict(list(zip(*COLUMNS, strict=True)), convert_to_tensor=True).clone()
    labels = torch.tensor([[0.5, 3.0], [0.75, 3.0], [0.25, -1.0]])
    weights = {"mse": 1.0, "pair-order": 1.0}
    options = LossOptions(scale=3.0, middle_tolerance=0.5)
    loss = CrossEncoderSimilarityLoss(model, weights, options)
    terms = loss(COLUMNS, labels)
    expected = pair_order_loss(scores[1:2], scores[:1], scale=3.0)
    assert terms["pair-order"].item() == pytest.approx(expected.item(), rel=1e-4)
    gold = torch.stack([scores[0].clamp(0, 1), labels[1, 0], labels[2, 0]])
    assert terms["mse"].item() == pytest.approx(mse_loss(scores, gold).item(), rel=1e-3)


def test_cross_encoder_loss_quad_raises(model: CrossEncoder) -> None:
    with pytest.raises(InputError, match="'quad' does not apply to a cross-encoder: it needs a"):
        CrossEncoderSimilarityLoss(model, {"mse": 1.0, "quad": 1.0})


def test_cross_encoder_loss_quad_of_weight_zero_is_dropped(model: CrossEncoder) -> None:
    loss = CrossEncoderSimilarityLoss(model, {"mse": 1.0, "quad": 0.0})
    assert loss.get_config_dict() == {"weights": {"mse": 1.0}, **LossOptions().model_dump()}


def test_cross_encoder_loss_column_of_pairs_is_two_columns(model: CrossEncoder) -> None:
    loss = CrossEncoderSimilarityLoss(model, {"mse": 1.0})
    pairs: Any = [list(pair) for pair in zip(*COLUMNS, strict=True)]
    assert loss([pairs], GOLD)["mse"].item() == loss(COLUMNS, GOLD)["mse"].item()


def test_cross_encoder_loss_three_columns_raises(model: CrossEncoder) -> None:
    with pytest.raises(InputError, match=r"one or two text columns\. Got 3"):
        CrossEncoderSimilarityLoss(model, {"mse": 1.0})(COLUMNS + COLUMNS[:1], GOLD)


def test_cross_encoder_loss_outputs_that_do_not_fit_raise(model: CrossEncoder) -> None:
    three = CrossEncoder(str(model[0].model.config.name_or_path), num_labels=3)
    with pytest.raises(InputError, match=r"one output, the similarity\. Got one with 3"):
        CrossEncoderSimilarityLoss(three, {"mse": 1.0})
    with pytest.raises(InputError, match=r"one for each label\. Got one with 1"):
        CrossEncoderSimilarityLoss(model, {"classification": 1.0})


def test_cross_encoder_loss_classification_equals_function_of_logits(tiny_backbone: Path) -> None:
    model = build_cross_encoder(str(tiny_backbone), dropout=0.0, outputs=5)
    loss = CrossEncoderSimilarityLoss(model, {"classification": 2.0})(COLUMNS, GOLD)
    logits = model.predict(list(zip(*COLUMNS, strict=True)), convert_to_tensor=True).clone()
    expected = 2 * classification_loss(logits, GOLD).item()
    assert loss["classification"].item() == pytest.approx(expected, rel=1e-4)
