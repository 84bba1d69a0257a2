"""λ of Eq. 3 without labels: by how well they tell a sentence's own context from others'."""

# The paper gives no λ and does not say how they were chosen; labelled pairs would be the usual way.
# Here a conditional logit (McFadden, 1974) is fitted to sentences of held-out documents: p(context
# | sentence) = exp(λ · terms of the context) / sum over the contexts of a group. Terms are those of
# the score, less the mean of each context where the centring takes that off. Not part of SSBC.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from condsim.contexts.corpus.stored import Corpus
from condsim.contexts.scoring.equations import Weights
from condsim.contexts.scoring.origin import OriginScorer
from condsim.contexts.scoring.selection import far_from
from condsim.errors import InputError
from condsim.types import IntArray

GROUP = 16
"""Sentences whose contexts are told apart."""

_LEAST = 4  # groups, of which half are fitted to and half measured on


@dataclass(frozen=True)
class FittedWeights:
    """λ of Eq. 3, and how often they find the context of a sentence."""

    weights: Weights  # λ, of sum 1; 0 for terms that the scorer leaves out
    # Share of the sentences whose own context has the highest score of its group, [0, 1].
    accuracy: float
    equal: float  # the same with all weights the same
    alone: Mapping[str, float]  # the same of each term by itself
    sentences: int  # measured on; as many others were fitted to

    @property
    def setting(self) -> str:
        """The weights as a key and a value of a recipe, for ``--set``."""
        values = ", ".join(f"{name}: {value:g}" for name, value in self.weights)
        return f"scoring.weights={{{values}}}"

    def summary(self) -> str:
        """Says in a line how well they do."""
        alone = ", ".join(f"{name} {share:.1%}" for name, share in self.alone.items())
        return (
            f"own context found among {GROUP}, of {self.sentences:,} held-out sentences: "
            f"{self.accuracy:.1%}; with equal weights {self.equal:.1%}; by one term alone: "
            f"{alone}; chance is {1 / GROUP:.1%}"
        )


def fit_weights(
    scorer: OriginScorer, corpus: Corpus, rows: IntArray, *, sentences: int = 640, seed: int = 0
) -> FittedWeights:
    """Fits λ to sentences in their own contexts and in those of the others of a group of 16."""
    # ``rows`` are sentences of documents that no model was trained on; half are fitted to, half
    # measured on. Terms of weight 0 keep it.
    whole = rows[(corpus.neighbours(rows, left=1, right=1) >= 0).all(axis=1)]
    count = min(sentences, len(whole))
    groups = count // GROUP
    if groups < _LEAST:
        raise InputError(
            f"Weights need {_LEAST * GROUP} held-out sentences with a sentence on either side. "
            f"Got {count}. Give more text, or a larger 'held_out'."
        )
    drawn = np.random.default_rng((seed, 6)).permutation(whole)[: groups * GROUP]
    terms = _terms(scorer, corpus, drawn.reshape(groups, GROUP))
    names, half = scorer.weights.used, groups // 2 * GROUP
    fitted = _fitted(terms[:half])
    if not fitted.any():
        raise InputError(
            f"No term ({', '.join(names)}) tells the context of a held-out sentence from others. "
            "The models have learned nothing that scores could be made of: give more text."
        )
    measured = terms[half:]
    single = np.eye(len(names))
    return FittedWeights(
        weights=scorer.weights.replaced(
            **dict(zip(names, (fitted / fitted.sum()).round(3).tolist(), strict=True))
        ),
        accuracy=_accuracy(measured, fitted),
        equal=_accuracy(measured, np.ones(len(names))),
        alone={name: _accuracy(measured, one) for name, one in zip(names, single, strict=True)},
        sentences=len(measured),
    )


def _terms(scorer: OriginScorer, corpus: Corpus, groups: IntArray) -> NDArray[np.float64]:
    """Terms of each sentence in the contexts of its group, its own first, ``(n, 16, terms)``."""
    # NaN for a context from where another sentence of the group stands.
    centres = np.array([np.roll(group, -place) for group in groups for place in range(GROUP)])
    found = scorer.terms_less_means(corpus.sentences(centres[:, 0]), list(centres))
    terms = np.stack([np.stack([one[name] for name in scorer.weights.used], -1) for one in found])
    far = np.array([far_from(one[:1], one) for one in centres])
    far[:, 0] = True
    terms[~far] = np.nan
    return terms.astype(np.float64)


def _fitted(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """λ of the highest likelihood, each at least 0, ``(terms,)``."""
    there = ~np.isnan(terms[..., 0])
    known = np.where(there[..., None], terms - terms[:, :1], 0.0)  # own context: 0

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logits = np.where(there, known @ weights, -np.inf)
        total = logsumexp(logits, axis=1)
        chances = np.exp(logits - total[:, None])
        return float(total.mean()), np.einsum("nk,nkt->t", chances, known) / len(known)

    start = np.zeros(terms.shape[-1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start))
    weights: NDArray[np.float64] = found.x
    return weights


def _accuracy(terms: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """How often the first context has the highest score; one of k that are level counts 1/k."""
    scores = np.nan_to_num(terms @ weights, nan=-np.inf)
    best = scores == scores.max(axis=1, keepdims=True)
    return float((best[:, 0] / best.sum(axis=1)).mean())
