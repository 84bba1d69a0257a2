"""Equation 4: two sentences are alike when the same contexts fit both (SSBC §3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from condsim.contexts.eq3 import Weights, fit
from condsim.types import FloatArray

__all__ = ["OF_SENTENCES", "Center", "PairTerms", "similarity"]

Center = Literal["none", "context", "pmi"]
"""What is taken off the scores of Eq. 3 before their cosine.

``none``: nothing, as Eq. 4 is printed. Log-probabilities are all negative, so cosines crowd near 1,
and a sentence that every context leaves alike is near all others. ``context``: each context's mean
over reference sentences. ``pmi``: each term less what it is without the other side: log p(s | c)
less the sentence's mean over reference contexts, log p(c< | s, c>) less the context's mean over
reference sentences. What is left is near the pointwise mutual information of sentence and context,
which is 0 where they have nothing to do with each other.
"""

OF_SENTENCES = ("coherence", "centre")
"""The terms that are the probability of the sentence; the others are that of the context."""


@dataclass(frozen=True, eq=False)
class PairTerms:
    """The terms of Eq. 3 for both sentences of a pair, in the contexts C_s1 and C_s2 together.

    Attributes:
        first: Terms of sentence 1 by name, each ``(k,)``.
        second: Terms of sentence 2, each ``(k,)``.
        means: Mean term of each context over the reference sentences, each ``(k,)``; of the terms
            that the centring takes it off.
        alone: Mean term of sentence 1 and of sentence 2 over the reference contexts, each ``(2,)``;
            likewise.
    """

    first: Mapping[str, FloatArray]
    second: Mapping[str, FloatArray]
    means: Mapping[str, FloatArray] = field(default_factory=dict)
    alone: Mapping[str, FloatArray] = field(default_factory=dict)


def similarity(pair: PairTerms, *, weights: Weights, center: Center) -> float:
    """Equation 4: the cosine of what the contexts say of two sentences.

    Args:
        pair: The terms of a pair.
        weights: λ of Eq. 3.
        center: See `Center`.

    Returns:
        The cosine, in [-1, 1]; 0 where one of the vectors is 0 or there is no context.
    """
    sides = []
    for place, terms in enumerate((pair.first, pair.second)):
        used = {name: terms[name] for name in weights.used}
        for name, values in used.items():
            if center == "pmi" and name in OF_SENTENCES:
                used[name] = values - pair.alone[name][place]
            elif center != "none":
                used[name] = values - pair.means[name]
        sides.append(fit(used, weights).astype(np.float64))
    first, second = sides
    there = ~(np.isnan(first) | np.isnan(second))
    first, second = first[there], second[there]
    length = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.clip(first @ second / length, -1.0, 1.0)) if length else 0.0
