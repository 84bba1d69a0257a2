from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from condsim.errors import InputError
from condsim.training.losses.similarity import SoftmaxLoss


@pytest.fixture
def encoder(table_encoder: Any) -> Any:
    table_encoder.device = torch.device("cpu")
    return table_encoder


def loss_with(encoder: Any, weight: Tensor, bias: Tensor) -> SoftmaxLoss:
    loss = SoftmaxLoss(encoder, classes=len(bias))
    with torch.no_grad():
        loss.classifier.weight.copy_(weight)
        loss.classifier.bias.copy_(bias)
    return loss


def test_softmax_loss_hand_worked_equals(encoder: Any, columns: Any) -> None:
    # Row 0 is u = (1, 0), v = (2, 0), |u - v| = (1, 0). W takes u1, v1 and |u - v|1 as the logits:
    # (1, 2, 1). Of class 1: -log(e² / (e + e² + e)) = log(1 + 2/e)
    weight = torch.eye(6)[[0, 2, 4]]
    loss = loss_with(encoder, weight, torch.zeros(3))
    first = [{key: value[:1] for key, value in column.items()} for column in columns]
    expected = math.log(1 + 2 / math.e)
    assert loss(first, torch.tensor([1])).item() == pytest.approx(expected)
    # Row 2 is u = (1, 0), v = (0, 5), |u - v| = (1, 5): logits (1, 0, 1), of class 0 log(2 + 1/e).
    # Row 1 is u = (1, 0), v = (3, 4), |u - v| = (2, 4): logits (1, 3, 2), of class 2
    # log(1/e + e + 1).
    others = math.log(1 / math.e + math.e + 1), math.log(2 + 1 / math.e)
    mean = (expected + sum(others)) / 3
    assert loss(columns, torch.tensor([1, 2, 0])).item() == pytest.approx(mean)


def test_softmax_loss_random_equals_naive_loop(encoder: Any, columns: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    weight, bias = torch.randn(3, 6, generator=generator), torch.randn(3, generator=generator)
    classes = [2, 0, 1]
    table, total = encoder.table.tolist(), 0.0
    for second, label in zip((1, 2, 3), classes, strict=True):
        u, v = table[0], table[second]
        features = [*u, *v, *(abs(a - b) for a, b in zip(u, v, strict=True))]
        logits = [
            sum(w * x for w, x in zip(row, features, strict=True)) + b
            for row, b in zip(weight.tolist(), bias.tolist(), strict=True)
        ]
        total += math.log(sum(math.exp(logit) for logit in logits)) - logits[label]
    loss = loss_with(encoder, weight, bias)(columns, torch.tensor(classes))
    assert loss.item() == pytest.approx(total / 3, rel=1e-5)


def test_softmax_loss_gradient_reaches_encoder_and_classifier(encoder: Any, columns: Any) -> None:
    torch.manual_seed(0)
    loss = SoftmaxLoss(encoder)
    loss(columns, torch.tensor([0, 1, 2])).backward()
    for weight in (encoder.table, *loss.classifier.parameters()):
        assert bool(weight.grad.isfinite().all())
        assert float(weight.grad.abs().sum()) > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_softmax_loss_half_precision_embeddings_equal_float32(
    dtype: torch.dtype, encoder: Any, columns: Any
) -> None:
    torch.manual_seed(0)
    loss, labels = SoftmaxLoss(encoder), torch.tensor([0, 1, 2])
    full = loss(columns, labels)
    encoder.to(dtype)
    half = loss(columns, labels)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(full.item(), rel=1e-5)


def test_softmax_loss_bad_settings_raise(encoder: Any) -> None:
    with pytest.raises(InputError, match=r"two classes or more\. Got 1"):
        SoftmaxLoss(encoder, classes=1)
    encoder.get_embedding_dimension = lambda: None
    with pytest.raises(InputError, match="knows its dimension"):
        SoftmaxLoss(encoder)
