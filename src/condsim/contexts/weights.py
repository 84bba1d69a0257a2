"""λ of Eq. 3 without labels: by how well they tell a sentence's own context from others'.

The paper gives no λ and does not say how they were chosen; labeled pairs would be the usual way.
Here a conditional logit (McFadden, 1974) is fitted to sentences of held-out documents: p(context |
sentence) = exp(λ · terms of the context) / sum over the contexts of a group. Terms are those of the
score, minus the mean of each context where the centering subtracts that. Not part of SSBC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from condsim.contexts.corpus import Corpus
from condsim.contexts.origin import OriginScorer
from condsim.contexts.recipe import Weights
from condsim.contexts.selection import are_far
from condsim.errors import InputError
from condsim.types import Float64Array, IntArray

GROUP_SIZE = 16
"""Sentences whose contexts are told apart."""

# Half of the groups are fitted to and half measured on.
_MIN_GROUPS = 4


@dataclass(frozen=True)
class FittedWeights:
    """λ of Eq. 3, of sum 1, and the share of sentences whose own context they find.

    ``equal`` and ``alone`` are the shares with equal weights and by each term by itself;
    ``sentences`` were measured on, and as many others fitted to.
    """

    weights: Weights
    accuracy: float
    equal: float
    alone: Mapping[str, float]
    sentences: int

    @property
    def setting(self) -> str:
        """The weights as a key and a value of a recipe, for ``--set``."""
        values = ", ".join(f"{name}: {value:g}" for name, value in self.weights)
        return f"scoring.weights={{{values}}}"

    def summary(self) -> str:
        """Describe the accuracy in one line."""
        alone = ", ".join(f"{name} {share:.1%}" for name, share in self.alone.items())
        return (
            f"own context found among {GROUP_SIZE}, of {self.sentences:,} held-out sentences: "
            f"{self.accuracy:.1%}; with equal weights {self.equal:.1%}; by one term alone: "
            f"{alone}; chance is {1 / GROUP_SIZE:.1%}"
        )


def fit_weights(
    scorer: OriginScorer, corpus: Corpus, rows: IntArray, *, sentences: int = 640, seed: int = 0
) -> FittedWeights:
    """Fit λ to sentences in their own contexts and in those of the others of a group of 16.

    ``rows`` are sentences of documents that no model was trained on; half of those drawn are fitted
    to, half measured on. Terms of weight 0 keep it.
    """
    inner = rows[(corpus.neighbours(rows, left=1, right=1) >= 0).all(axis=1)]
    count = min(sentences, len(inner))
    groups = count // GROUP_SIZE
    if groups < _MIN_GROUPS:
        raise InputError(
            f"Weights need {_MIN_GROUPS * GROUP_SIZE} held-out sentences with a sentence on either "
            f"side; got {count}. Give more text, or a larger 'held_out'."
        )
    shuffled = np.random.default_rng((seed, 6)).permutation(inner)
    terms = _group_terms(
        scorer, corpus, shuffled[: groups * GROUP_SIZE].reshape(groups, GROUP_SIZE)
    )
    names, half = scorer.weights.used, groups // 2 * GROUP_SIZE
    fitted = _most_likely_weights(terms[:half])
    if not fitted.any():
        raise InputError(
            f"No term ({', '.join(names)}) tells the context of a held-out sentence from others; "
            "give more text to train on."
        )
    measured = terms[half:]
    shares = (fitted / fitted.sum()).round(3).tolist()
    return FittedWeights(
        weights=scorer.weights.replaced(**dict(zip(names, shares, strict=True))),
        accuracy=_accuracy(measured, fitted),
        equal=_accuracy(measured, np.ones(len(names))),
        alone={
            name: _accuracy(measured, single)
            for name, single in zip(names, np.eye(len(names)), strict=True)
        },
        sentences=len(measured),
    )


def _group_terms(scorer: OriginScorer, corpus: Corpus, groups: IntArray) -> Float64Array:
    """Compute terms of each sentence in the contexts of its group, its own first: (n, 16, terms).

    NaN for a context near another sentence of the group.
    """
    centres = np.array([np.roll(group, -row) for group in groups for row in range(GROUP_SIZE)])
    results = scorer.terms_less_means(corpus.sentences(centres[:, 0]), list(centres))
    terms = np.stack(
        [np.stack([by_name[name] for name in scorer.weights.used], -1) for by_name in results]
    )
    far = np.array([are_far(contexts[:1], contexts) for contexts in centres])
    far[:, 0] = True
    terms[~far] = np.nan
    return terms.astype(np.float64)


def _most_likely_weights(terms: Float64Array) -> Float64Array:
    """Find λ of the highest likelihood, each at least 0, ``(terms,)``."""
    present = ~np.isnan(terms[..., 0])
    # Differences to the own context, which is 0.
    differences = np.where(present[..., None], terms - terms[:, :1], 0.0)

    def loss(weights: Float64Array) -> tuple[float, Float64Array]:
        logits = np.where(present, differences @ weights, -np.inf)
        total = logsumexp(logits, axis=1)
        chances = np.exp(logits - total[:, None])
        gradient = np.einsum("nk,nkt->t", chances, differences) / len(differences)
        return float(total.mean()), gradient

    start = np.zeros(terms.shape[-1])
    result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start))
    weights: Float64Array = result.x
    return weights


def _accuracy(terms: Float64Array, weights: Float64Array) -> float:
    """Measure how often the first context has the highest score; k ties count 1/k."""
    scores = np.nan_to_num(terms @ weights, nan=-np.inf)
    best = scores == scores.max(axis=1, keepdims=True)
    return float((best[:, 0] / best.sum(axis=1)).mean())
