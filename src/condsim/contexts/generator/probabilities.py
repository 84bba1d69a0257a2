"""Probabilities of target tokens: output words mixed with copies, and their loss."""

# Copies are a pointer to the given sentences (See et al., 2017, Eq. 8-9): contexts differ mostly in
# words of theirs that recur, which a small Transformer does not learn unless it can point. With a
# gate g and an attention of one head, both from the decoder's state, a token's probability is
#     (1 - g) p_words(token) + g * (attention on the given tokens that are this token).
# Not part of SSBC, whose generators are plain Transformers: ``copy: false`` gives those.
# Rows are taken in blocks, whose logits fit the processor's cache; those of a batch (8,000 for each
# token) are hundreds of megabytes, written and read several times. In training the gradient of a
# block is computed with its probabilities.

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_SCORED_VALUES = 1 << 20  # logits in a block: 128 rows of 8,000
_TRAINED_VALUES = 1 << 21
_SAFE_EXPONENT = 75.0  # e^75 times a large vocabulary is still a float32 and a bfloat16
_KEY_SIZE = 64
_GATE = -2.0  # at first an eighth of the probability is for copies


class Copied(NamedTuple):
    """What a target token's log-probability is mixed from, each ``(...)`` float32."""

    own: Tensor  # log of the share of the output words, log(1 - g)
    copied: Tensor  # log-probability of the token as a copy, log g included

    def mixed(self, scores: Tensor) -> Tensor:
        """Log-probabilities, ``(...)`` float32, of those among the output words, ``(...)``."""
        return torch.logaddexp(self.own + scores, self.copied)


class CopyHead(nn.Module):
    """One head of attention on the given tokens, and the gate of its share."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, _KEY_SIZE)
        self.key = nn.Linear(size, _KEY_SIZE)
        self.gate = nn.Linear(size, 1)
        nn.init.constant_(self.gate.bias, _GATE)

    def forward(
        self, hidden: Tensor, keys: Tensor, given: Tensor, attended: Tensor, wanted: Tensor
    ) -> Copied:
        """Looks for target tokens, (b, t), by states, (b, t, d), among given ones, (b, s)."""
        scores = (self.query(hidden) * _KEY_SIZE**-0.5) @ keys.transpose(1, 2)
        scores = scores.float().masked_fill(~attended[:, None], float("-inf"))
        found = (given[:, None] == wanted[:, :, None]) & attended[:, None]
        # log of the sum over found places of softmax; the least float stands for no such place.
        least = torch.finfo(torch.float32).min
        there = torch.logsumexp(scores.masked_fill(~found, least), dim=-1)
        gate = self.gate(hidden).squeeze(-1).float()
        pointed = there - torch.logsumexp(scores, dim=-1)
        return Copied(F.logsigmoid(-gate), F.logsigmoid(gate) + pointed)


def target_log_probabilities(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor
) -> Tensor:
    """Computes log softmax(hidden @ weight.T + bias) at the targets, (n,) float32; no gradient."""
    # Decoder states are (n, d); output embeddings are (vocabulary, d), of the same number format.
    gold = (hidden.float() * weight[targets].float()).sum(dim=-1)
    if bias is not None:
        gold = gold + bias[targets].float()
    if not len(hidden):
        return gold
    # h·w <= |h| |w|, so exponentials of logits less this much are no overflow.
    most = float(hidden.float().norm(dim=-1).amax() * weight.float().norm(dim=-1).amax())
    if bias is not None:
        most += float(bias.float().amax())
    shift = 8.0 * math.ceil(max(0.0, most - _SAFE_EXPONENT) / 8)  # exact in bfloat16 too
    moved = weight.new_full((len(weight),), -shift) if shift else bias
    sums = []
    for rows in torch.split(hidden, max(1, _SCORED_VALUES // len(weight))):
        mass = _row_sums(F.linear(rows, weight, moved).exp_()).log_() + shift
        if shift and (bias is not None or bool((mass < shift - _SAFE_EXPONENT).any())):
            # All logits may be so far below the bound that their exponentials are lost.
            mass = torch.logsumexp(F.linear(rows, weight, bias).float(), dim=-1)
        sums.append(mass)
    return gold - torch.cat(sums)


def _row_sums(values: Tensor) -> Tensor:
    """Sums rows to float32, ``(n,)``."""
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
    mixture: Copied | None = None,
) -> Tensor:
    """Computes the mean negative log-probability of the targets; the bias gets no gradient."""
    # Decoder states are (n, d), output embeddings (vocabulary, d). ``mixture`` is what the
    # probabilities are mixed from if targets may be copies.
    own, copied = (None, None) if mixture is None else mixture
    loss = _MeanCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, targets, own, copied
    )
    return cast("Tensor", loss)


class _MeanCrossEntropy(torch.autograd.Function):
    """The loss of a mean is known to weigh each row 1/n, so gradients can be made going forward."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401  (torch's context has no public type)
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        own: Tensor | None,
        copied: Tensor | None,
    ) -> Tensor:
        device = hidden.device.type
        autocast = torch.is_autocast_enabled(device)
        kind = torch.get_autocast_dtype(device) if autocast else hidden.dtype
        with torch.autocast(device, enabled=False):
            inputs, outputs = hidden.detach().to(kind), weight.detach().to(kind)
            share = 1.0 / len(targets)
            total = torch.zeros((), device=hidden.device)
            of_hidden = torch.empty_like(inputs)
            of_weight = torch.zeros_like(weight, dtype=torch.float32)
            of_own = None if own is None else torch.empty_like(own)
            size = max(1, _TRAINED_VALUES // len(weight))
            for first in range(0, len(targets), size):
                rows, wanted = inputs[first : first + size], targets[first : first + size, None]
                logits = F.linear(rows, outputs, None if bias is None else bias.to(kind)).float()
                gold = logits.gather(1, wanted)
                top = logits.amax(dim=1, keepdim=True)
                chances = logits.sub_(top).exp_()
                mass = chances.sum(dim=1, keepdim=True)
                scores = gold - mass.log() - top
                part = torch.full_like(scores, share)  # dL / d score, but for its sign
                if own is not None and copied is not None and of_own is not None:
                    block = slice(first, first + size)
                    words = own[block, None] + scores
                    scores = torch.logaddexp(words, copied[block, None])
                    part *= (words - scores).exp()
                    of_own[block] = -part[:, 0]
                total -= scores.sum()
                chances.mul_(part / mass)
                chances.scatter_add_(1, wanted, -part)
                slopes = chances.to(kind)
                of_hidden[first : first + size] = slopes @ outputs
                of_weight += slopes.T @ rows
            of_copied = None if of_own is None else -share - of_own
        ctx.save_for_backward(
            of_hidden.to(hidden.dtype), of_weight.to(weight.dtype), of_own, of_copied
        )
        return total * share

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        of_hidden, of_weight, of_own, of_copied = (
            None if gradient is None else gradient * slopes[0] for gradient in ctx.saved_tensors
        )
        return of_hidden, of_weight, None, None, of_own, of_copied
