"""Probabilities of target tokens: output words mixed with copies.

Copies are a pointer to the given sentences (See et al., 2017, Eq. 8-9): contexts differ mostly in
words that recur, which a small Transformer does not learn unless it can point. With a gate g and an
attention of one head, both from the decoder's state, a token's probability is
``(1 - g) p_words(token) + g * (attention on the given tokens that are this token)``.
Not part of SSBC, whose generators are plain Transformers: ``copy: false`` gives those.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# 128 rows of 8,000.
_LOGITS_PER_BLOCK = 1 << 20
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
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    copies: Copies | None = None,
) -> Tensor:
    """Compute the log-probabilities of targets, (n,) float32; they may be copies.

    Decoder states are (n, d), output embeddings (vocabulary, d). Rows are taken in blocks, whose
    logits fit the processor's cache.
    """
    blocks = []
    size = max(1, _LOGITS_PER_BLOCK // len(weight))
    for rows, block_targets in zip(
        torch.split(hidden, size), torch.split(targets, size), strict=True
    ):
        logits = F.linear(rows, weight, bias).float()
        blocks.append(-F.cross_entropy(logits, block_targets, reduction="none"))
    scores = torch.cat(blocks)
    return scores if copies is None else copies.mixed(scores)
