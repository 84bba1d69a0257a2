"""Probabilities of target tokens and copies: worked by hand, and against plain torch."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from condsim.contexts.generator.probabilities import (
    Copied,
    CopyHead,
    mean_cross_entropy,
    target_log_probabilities,
)


@pytest.fixture
def even_head():
    """A head that attends to all given tokens alike, and gives copies half of the probability."""
    head = CopyHead(8)
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    return head


def test_copies_worked_by_hand(even_head):
    given = torch.tensor([[7, 3, 7, 9, 0]])
    attended = torch.tensor([[True, True, True, True, False]])
    wanted = torch.tensor([[7, 9, 0]])  # twice, once, and as filling alone
    found = even_head(torch.randn(1, 3, 8), torch.randn(1, 5, 64), given, attended, wanted)
    words = torch.full((1, 3), math.log(0.1))
    # g = 1/2: 1/2 * 0.1 + 1/2 * 2/4, 1/2 * 0.1 + 1/2 * 1/4, 1/2 * 0.1
    torch.testing.assert_close(found.mixed(words).exp(), torch.tensor([[0.3, 0.175, 0.05]]))


def test_probabilities_of_all_tokens_sum_to_one():
    torch.manual_seed(0)
    head = CopyHead(8)
    given = torch.randint(0, 20, (1, 6))
    wanted = torch.arange(20)[None]
    hidden = torch.randn(1, 1, 8).expand(1, 20, 8)  # one state, asked for each token
    attended = torch.ones_like(given, dtype=torch.bool)
    found = head(hidden, torch.randn(1, 6, 64), given, attended, wanted)
    words = torch.randn(1, 20).log_softmax(dim=-1)
    assert found.mixed(words).exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_mean_cross_entropy_mixed_equals_torch_with_gradients():
    torch.manual_seed(0)
    hidden, weight = torch.randn(9, 8), torch.randn(30, 8)
    targets = torch.randint(0, 30, (9,))
    own, copied = F.logsigmoid(torch.randn(9)), -4 * torch.rand(9)
    copied[4] = torch.finfo(torch.float32).min  # not among the given tokens
    mine = [part.clone().requires_grad_() for part in (hidden, weight, own, copied)]
    theirs = [part.clone().requires_grad_() for part in (hidden, weight, own, copied)]
    loss = mean_cross_entropy(mine[0], mine[1], None, targets, Copied(*mine[2:]))
    scores = (theirs[0] @ theirs[1].T).log_softmax(dim=-1).gather(1, targets[:, None])[:, 0]
    wanted = -torch.logaddexp(theirs[2] + scores, theirs[3]).mean()
    torch.testing.assert_close(loss, wanted)
    (3 * loss).backward()
    (3 * wanted).backward()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_copies_in_bfloat16_are_near_float32():
    torch.manual_seed(0)
    head = CopyHead(8)
    given, attended = torch.randint(0, 9, (2, 12)), torch.ones(2, 12, dtype=torch.bool)
    wanted, hidden, keys = torch.randint(0, 9, (2, 5)), torch.randn(2, 5, 8), torch.randn(2, 12, 64)
    full = head(hidden, keys, given, attended, wanted)
    low = head.bfloat16()(hidden.bfloat16(), keys.bfloat16(), given, attended, wanted)
    assert low.copied.dtype == torch.float32
    words = torch.full((2, 5), -3.0)
    torch.testing.assert_close(low.mixed(words), full.mixed(words), atol=0.03, rtol=0)


@pytest.mark.parametrize("biased", [False, True])
def test_mean_cross_entropy_equals_torch_with_gradients(biased, monkeypatch):
    monkeypatch.setattr(
        "condsim.contexts.generator.probabilities._TRAINED_VALUES", 3 * 50
    )  # blocks of 3
    torch.manual_seed(0)
    hidden = torch.randn(11, 8, requires_grad=True)
    weight = torch.randn(50, 8, requires_grad=True)
    bias = torch.randn(50) if biased else None
    targets = torch.randint(0, 50, (11,))
    own = mean_cross_entropy(hidden, weight, bias, targets)
    found = torch.autograd.grad(2 * own, [hidden, weight])
    torchs = F.cross_entropy(F.linear(hidden, weight, bias), targets)
    torch.testing.assert_close(own, torchs)
    for mine, its in zip(found, torch.autograd.grad(2 * torchs, [hidden, weight]), strict=True):
        torch.testing.assert_close(mine, its)


def test_mean_cross_entropy_bfloat16_is_near_float32():
    torch.manual_seed(0)
    hidden, weight = torch.randn(64, 32), torch.randn(200, 32) * 0.2
    targets = torch.randint(0, 200, (64,))
    with torch.autocast("cpu", torch.bfloat16):
        low = mean_cross_entropy(hidden, weight, None, targets)
    assert low.item() == pytest.approx(F.cross_entropy(hidden @ weight.T, targets).item(), rel=5e-3)


# With no shift, where one is needed, and where logits are so uneven that it is not enough.
@pytest.mark.parametrize("scale", [0.1, 5.0, 8.0, 100.0])
@pytest.mark.parametrize("biased", [False, True])
def test_target_log_probabilities_equal_log_softmax(scale, biased, monkeypatch):
    monkeypatch.setattr("condsim.contexts.generator.probabilities._SCORED_VALUES", 3 * 50)
    torch.manual_seed(0)
    hidden, weight = torch.randn(11, 8) * scale, torch.randn(50, 8)
    bias = torch.randn(50) if biased else None
    targets = torch.randint(0, 50, (11,))
    logits = hidden @ weight.T + (0 if bias is None else bias)
    wanted = logits.log_softmax(dim=-1).gather(1, targets[:, None])[:, 0]
    found = target_log_probabilities(hidden, weight, bias, targets)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    low_bias = None if bias is None else bias.bfloat16()
    low = target_log_probabilities(hidden.bfloat16(), weight.bfloat16(), low_bias, targets)
    assert ((low - wanted).abs() < 0.03 * (1 + wanted.abs())).all()
