"""Copying from the given sentences: a pointer beside the output words (See et al., 2017, Eq. 8-9).

A word of a context often comes again in the sentences around it, which is most of what tells one
context from another. A large Transformer learns that from billions of words. A small one trained on
millions does not, unless it can point: the probability of a token is then

    (1 - g) p_words(token) + g * (attention on the given tokens that are this token),

with a gate g and an attention of one head, both from the decoder's state. Not part of SSBC, whose
generators are plain Transformers: ``copy: false`` gives those.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_SIZE = 64


_GATE = -2.0  # at first an eighth of the probability is for copies


class Copied(NamedTuple):
    """What a target token's log-probability is mixed from.

    Attributes:
        own: Log of the share of the output words, log(1 - g), ``(...)`` float32.
        copied: Log-probability of the token as a copy, log g included, ``(...)`` float32.
    """

    own: Tensor
    copied: Tensor

    def mixed(self, scores: Tensor) -> Tensor:
        """The log-probability of each token.

        Args:
            scores: Log-probability among the output words, ``(...)``.

        Returns:
            ``(...)`` float32.
        """
        return torch.logaddexp(self.own + scores, self.copied)


class CopyHead(nn.Module):
    """One head of attention on the given tokens, and the gate of its share."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, _SIZE)
        self.key = nn.Linear(size, _SIZE)
        self.gate = nn.Linear(size, 1)
        nn.init.constant_(self.gate.bias, _GATE)

    def forward(
        self, hidden: Tensor, keys: Tensor, given: Tensor, attended: Tensor, wanted: Tensor
    ) -> Copied:
        """Looks for the target tokens among the given ones.

        Args:
            hidden: Decoder states, ``(b, t, d)``.
            keys: Keys of the given tokens, ``(b, s, 64)``.
            given: The given tokens, ``(b, s)``.
            attended: Which of them are not filling, ``(b, s)``.
            wanted: Target tokens, ``(b, t)``.

        Returns:
            What their log-probabilities are mixed from, ``(b, t)``.
        """
        scores = (self.query(hidden) * _SIZE**-0.5) @ keys.transpose(1, 2)
        scores = scores.float().masked_fill(~attended[:, None], float("-inf"))
        found = (given[:, None] == wanted[:, :, None]) & attended[:, None]
        # log of the sum over found places of softmax; the least float stands for no such place.
        least = torch.finfo(torch.float32).min
        there = torch.logsumexp(scores.masked_fill(~found, least), dim=-1)
        gate = self.gate(hidden).squeeze(-1).float()
        pointed = there - torch.logsumexp(scores, dim=-1)
        return Copied(F.logsigmoid(-gate), F.logsigmoid(gate) + pointed)
