"""Probabilities of target tokens: output words mixed with copies, and their loss.

Copies are a pointer to the given sentences (See et al., 2017, Eq. 8-9): contexts differ mostly in
words that recur, which a small Transformer does not learn unless it can point. With a gate g and an
attention of one head, both from the decoder's state, a token's probability is
``(1 - g) p_words(token) + g * (attention on the given tokens that are this token)``.
Not part of SSBC, whose generators are plain Transformers: ``copy: false`` gives those.

Rows are taken in blocks, whose logits fit the processor's cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Logits in a block; 2^20 are 128 rows of 8,000.
_LOGITS_PER_SCORING_BLOCK = 1 << 20
_LOGITS_PER_TRAINING_BLOCK = 1 << 21
# e^75 times a large vocabulary is still a float32 and a bfloat16.
_SAFE_EXPONENT = 75.0
_KEY_SIZE = 64
# An eighth of the probability is for copies at first.
_INITIAL_GATE = -2.0


class Copies(NamedTuple):
    """Parts that a target token's log-probability is mixed from, each ``(...)`` float32.

    ``own`` is the log of the share of the output words, log(1 - g), and ``copied`` the
    log-probability of the token as a copy, log g included.
    """

    own: Tensor
    copied: Tensor

    def mixed(self, scores: Tensor) -> Tensor:
        """Mix in the log-probabilities of tokens among the output words, ``(...)``."""
        return torch.logaddexp(self.own + scores, self.copied)


class CopyHead(nn.Module):
    """One head of attention on the given tokens, and the gate of its share."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, _KEY_SIZE)
        self.key = nn.Linear(size, _KEY_SIZE)
        self.gate = nn.Linear(size, 1)
        nn.init.constant_(self.gate.bias, _INITIAL_GATE)

    def forward(
        self, hidden: Tensor, keys: Tensor, inputs: Tensor, attended: Tensor, targets: Tensor
    ) -> Copies:
        """Look for target tokens, (b, t), by states, (b, t, d), among input tokens, (b, s)."""
        scores = (self.query(hidden) * _KEY_SIZE**-0.5) @ keys.transpose(1, 2)
        scores = scores.float().masked_fill(~attended[:, None], float("-inf"))
        is_copy = (inputs[:, None] == targets[:, :, None]) & attended[:, None]
        # Log of the sum of the softmax over copies; the least float stands for no copy.
        least = torch.finfo(torch.float32).min
        copy_mass = torch.logsumexp(scores.masked_fill(~is_copy, least), dim=-1)
        gate = self.gate(hidden).squeeze(-1).float()
        pointed = copy_mass - torch.logsumexp(scores, dim=-1)
        return Copies(F.logsigmoid(-gate), F.logsigmoid(gate) + pointed)


def target_log_probabilities(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor
) -> Tensor:
    """Compute log softmax(hidden @ weight.T + bias) at the targets, (n,) float32; no gradient.

    Decoder states are (n, d); output embeddings are (vocabulary, d), of the same number format.
    """
    gold = (hidden.float() * weight[targets].float()).sum(dim=-1)
    if bias is not None:
        gold = gold + bias[targets].float()
    if not len(hidden):
        return gold
    # h·w <= |h| |w|, so exponentials of logits minus this bound do not overflow, and no pass over
    # the logits is needed to find their maximum.
    bound = float(hidden.float().norm(dim=-1).amax() * weight.float().norm(dim=-1).amax())
    if bias is not None:
        bound += float(bias.float().amax())
    # A multiple of 8 is exact in bfloat16 too.
    shift = 8.0 * math.ceil(max(0.0, bound - _SAFE_EXPONENT) / 8)
    shifted_bias = weight.new_full((len(weight),), -shift) if shift else bias
    sums = []
    for rows in torch.split(hidden, max(1, _LOGITS_PER_SCORING_BLOCK // len(weight))):
        mass = _row_sums(F.linear(rows, weight, shifted_bias).exp_()).log_() + shift
        if shift and (bias is not None or bool((mass < shift - _SAFE_EXPONENT).any())):
            # All logits may be so far below the bound that their exponentials are lost.
            mass = torch.logsumexp(F.linear(rows, weight, bias).float(), dim=-1)
        sums.append(mass)
    return gold - torch.cat(sums)


def _row_sums(values: Tensor) -> Tensor:
    """Sum rows to float32, ``(n,)``."""
    # A sum of bfloat16 in one go is rounded to 8 bits, and one that asks for float32 is ten times
    # slower; the rounding of 64 parts averages out.
    parts = next(count for count in (64, 32, 16, 8, 1) if values.shape[1] % count == 0)
    if values.dtype == torch.float32 or parts == 1:
        return values.sum(dim=-1, dtype=torch.float32)
    return values.view(len(values), parts, -1).sum(dim=-1).sum(dim=-1, dtype=torch.float32)


def mean_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    copies: Copies | None = None,
) -> Tensor:
    """Compute the mean negative log-probability of the targets, a scalar; they may be copies.

    Decoder states are (n, d), output embeddings (vocabulary, d).
    """
    total = torch.zeros((), device=hidden.device)
    size = max(1, _LOGITS_PER_TRAINING_BLOCK // len(weight))
    for first in range(0, len(targets), size):
        block = slice(first, first + size)
        logits = F.linear(hidden[block], weight, bias).float()
        scores = -F.cross_entropy(logits, targets[block], reduction="none")
        if copies is not None:
            scores = Copies(copies.own[block], copies.copied[block]).mixed(scores)
        total = total - scores.sum()
    return total / len(targets)
