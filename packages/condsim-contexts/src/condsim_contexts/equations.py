"""Equations 3 and 4 (SSBC §3.3): contexts of a sentence, how well they fit it, the cosine of two.

The paper gives no λ of Eq. 3 and does not say how they were chosen; labeled pairs would be the
usual way. `fit_weights` needs none: it fits a conditional logit (McFadden, 1974) to sentences of
held-out documents, p(context | sentence) = exp(λ · terms of the context) / sum over the contexts of
a group. Terms are as in the score, minus the mean of each context where the centering subtracts
that. Not part of SSBC.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp

from condsim.errors import InputError
from condsim.types import BoolArray, Float64Array, FloatArray, IntArray
from condsim_contexts.corpus import Corpus
from condsim_contexts.index import TfidfIndex
from condsim_contexts.recipe import GENERATOR_TASKS, Center, Selection, Weights
from condsim_contexts.sentences import near_duplicate_key

if TYPE_CHECKING:
    from condsim_contexts.coherence import CoherenceScorer
    from condsim_contexts.generators import GeneratorScorer
    from condsim_contexts.origin import OriginScorer

SENTENCE_TERMS = ("coherence", "center")
"""The terms of the probability of the sentence; the others belong to the context."""

SENTENCES_APART = 10
"""Sentences on each side of a sentence whose contexts are not scored with it."""

GROUP_SIZE = 16
"""Sentences whose contexts are told apart to fit λ."""

# The best chunks in which a sentence of the corpus is looked for.
_OWN_CHUNKS = 100
# Half of the groups are fitted to and half measured on.
_MIN_GROUPS = 4


class ContextTerms:
    """Terms of Eq. 3 from trained models; a model that no term needs may be None."""

    def __init__(
        self, coherence: CoherenceScorer | None, generators: GeneratorScorer | None
    ) -> None:
        self._coherence, self._generators = coherence, generators

    def terms(
        self, sentences: Sequence[str], centers: Sequence[IntArray], names: Sequence[str]
    ) -> list[dict[str, FloatArray]]:
        """Compute the named terms of each of m sentences in its own contexts.

        Returns for each sentence the terms by name, each of the length of its contexts; NaN where a
        context has no left or no right side.
        """
        results: list[dict[str, FloatArray]] = [{} for _ in sentences]
        if self._coherence is not None and "coherence" in names:
            vectors = self._coherence.encode(sentences)
            for terms, vector, contexts in zip(results, vectors, centers, strict=True):
                terms["coherence"] = self._coherence.log_probability(vector[None], contexts)[0]
        tasks = tuple(task for task in GENERATOR_TASKS if task in names)
        if self._generators is not None and tasks:
            for task, scores in self._generators.scores(tasks, sentences, centers).items():
                for terms, values in zip(results, scores, strict=True):
                    terms[task] = values
        return results


class ContextMeans:
    """The mean terms of contexts over a few sentences of the corpus, each computed once."""

    def __init__(self, corpus: Corpus, terms: ContextTerms, references: int, *, seed: int) -> None:
        size = min(references, len(corpus))
        rows = np.random.default_rng(seed).choice(len(corpus), size=size, replace=False)
        self._sentences = corpus.sentences(np.sort(rows).astype(np.int64))
        self._terms = terms
        # By term, each (n,), and which of the contexts are computed.
        self._means: dict[str, FloatArray] = {}
        self._done: BoolArray = np.zeros(len(corpus), np.bool_)

    def of(self, groups: Sequence[IntArray], names: Sequence[str]) -> list[dict[str, FloatArray]]:
        """Look up the means of groups of contexts by term; the same terms at every call."""
        if not names:
            return [{} for _ in groups]
        contexts = np.unique(np.concatenate(groups))
        missing = contexts[~self._done[contexts]]
        if len(missing):
            scores = self._terms.terms(self._sentences, [missing] * len(self._sentences), names)
            for name in names:
                means = self._means.setdefault(name, np.zeros(len(self._done), np.float32))
                means[missing] = np.mean([terms[name] for terms in scores], axis=0)
            self._done[missing] = True
        return [{name: self._means[name][group] for name in names} for group in groups]


def context_scores(terms: Mapping[str, FloatArray], weights: Weights) -> FloatArray:
    """Compute S(s, c) of Eq. 3 for each context, ``(k,)``; NaN for one that has no term.

    The weighted sum is divided by the sum of its weights, which changes no ranking and no cosine. A
    term that a context lacks, as one without a left side does, counts as the mean of the others':
    left out it would count as the mean of the context's own terms, of which coherence is by far the
    highest, and the edges of documents would come first. ``terms`` are log-probabilities by name,
    each ``(k,)``, NaN where a context lacks the term; terms of weight 0 may be missing.

    Examples:
        >>> terms = {"coherence": np.float32([-1.0]), "center": np.float32([-3.0])}
        >>> context_scores(terms, Weights(left=0, right=0))
        array([-2.], dtype=float32)
    """
    values = np.stack([terms[name].astype(np.float64) for name in weights.used])  # (used, k)
    present = ~np.isnan(values)
    # Terms that any of the contexts has.
    rows = present.any(axis=1)
    if not rows.any():
        return np.full(values.shape[1], np.nan, dtype=np.float32)
    shares = np.array([getattr(weights, name) for name in weights.used])[rows]
    values, present = values[rows], present[rows]
    means = np.where(present, values, 0).sum(axis=1) / present.sum(axis=1)
    filled = np.where(present, values, means[:, None])
    scores = np.average(filled, axis=0, weights=shares)
    return np.where(present.any(axis=0), scores, np.nan).astype(np.float32)


@dataclass(frozen=True, eq=False)
class PairTerms:
    """The terms of Eq. 3 for both sentences of a pair, in the contexts C_s1 and C_s2 together.

    ``first`` and ``second`` are the terms of the sentences by name, each ``(k,)``; ``means`` the
    mean terms of each context over the reference sentences, ``(k,)``; ``alone`` of both sentences
    over the reference contexts, ``(2,)``. There are means for the terms that the centering changes.
    """

    first: Mapping[str, FloatArray]
    second: Mapping[str, FloatArray]
    means: Mapping[str, FloatArray] = field(default_factory=dict)
    alone: Mapping[str, FloatArray] = field(default_factory=dict)


def similarity(pair: PairTerms, *, weights: Weights, center: Center) -> float:
    """Equation 4: the cosine, in [-1, 1], of the scores of two sentences in their contexts.

    It is 0 where one of the vectors is 0 or there is no context.
    """
    vectors = []
    for side, terms in enumerate((pair.first, pair.second)):
        centered = {name: terms[name] for name in weights.used}
        for name, values in centered.items():
            if center == "pmi" and name in SENTENCE_TERMS:
                centered[name] = values - pair.alone[name][side]
            elif center != "none":
                centered[name] = values - pair.means[name]
        vectors.append(context_scores(centered, weights).astype(np.float64))
    first, second = vectors
    valid = ~(np.isnan(first) | np.isnan(second))
    first, second = first[valid], second[valid]
    length = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.clip(first @ second / length, -1.0, 1.0)) if length else 0.0


@dataclass(frozen=True, eq=False)
class ContextSet:
    """The contexts of one sentence, best first, ``(k,)``, and its terms in them.

    ``own`` are the rows of the sentence itself in the corpus, ``(j,)``; the contexts are ``random``
    if no chunk shares a word with it.
    """

    centers: IntArray
    terms: Mapping[str, FloatArray]
    own: IntArray
    random: bool


@dataclass(frozen=True, eq=False)
class ContextSelector:
    """Selection of the context sets of sentences."""

    corpus: Corpus
    index: TfidfIndex
    scorer: ContextTerms
    selection: Selection
    weights: Weights

    def select(self, sentences: Sequence[str]) -> list[ContextSet]:
        """Choose the contexts of each sentence."""
        retrieves = self.selection.strategy != "random"
        # The own rows of a sentence with random contexts are not looked for: few would be near.
        pools = own_rows = [np.zeros(0, np.int64)] * len(sentences)
        if retrieves:
            pools, own_rows = self._retrieved(sentences)
            pools = self._most_coherent(sentences, pools)
        is_lost = [not len(pool) for pool in pools]
        pools = [
            pool if len(pool) else self._random(sentence, own)
            for sentence, pool, own in zip(sentences, pools, own_rows, strict=True)
        ]
        scores = self.scorer.terms(sentences, pools, self.weights.used)
        sets = []
        for pool, terms, own, lost in zip(pools, scores, own_rows, is_lost, strict=True):
            order = np.arange(len(pool)) if lost else self._best(pool, terms)
            chosen = {name: values[order] for name, values in terms.items()}
            sets.append(ContextSet(pool[order], chosen, own, random=lost and retrieves))
        return sets

    def _retrieved(self, sentences: Sequence[str]) -> tuple[list[IntArray], list[IntArray]]:
        """Retrieve contexts far from each sentence, and the rows of the sentence itself."""
        pools, own_rows = [], []
        results = self.index.search(sentences, top_n=self.selection.chunks)
        for sentence, (chunks, _) in zip(sentences, results, strict=True):
            near, key = self.corpus.chunk_rows(chunks[:_OWN_CHUNKS]), near_duplicate_key(sentence)
            is_same = [near_duplicate_key(text) == key for text in self.corpus.sentences(near)]
            own = near[np.array(is_same, dtype=np.bool_)]
            pool = self.corpus.chunk_rows(chunks)
            pools.append(pool[are_far(own, pool)])
            own_rows.append(own)
        return pools, own_rows

    def _random(self, sentence: str, own: IntArray) -> IntArray:
        """Draw centers that depend on the sentence alone, far from its own rows."""
        digest = hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()
        random = np.random.default_rng([self.selection.seed, int.from_bytes(digest[:8], "big")])
        centers = np.flatnonzero(self.corpus.has_context)
        centers = centers[are_far(own, centers)]
        size = min(self.selection.size, len(centers))
        return random.choice(centers, size=size, replace=False).astype(np.int64)

    def _most_coherent(self, sentences: Sequence[str], pools: Sequence[IntArray]) -> list[IntArray]:
        """Choose the most coherent contexts, best first; as retrieved if coherence is unused."""
        if "coherence" in self.weights.used:
            scores = self.scorer.terms(sentences, pools, ("coherence",))
            pools = [
                pool[np.argsort(-terms["coherence"], kind="stable")]
                for pool, terms in zip(pools, scores, strict=True)
            ]
        count = round(self.selection.candidates * self.selection.size)
        chosen = []
        for pool in pools:
            if self.selection.strategy == "two-step" and len(pool):
                # One of each chunk is chosen in the end.
                chunks = self.corpus.chunk_of(pool)
                most = math.ceil(count / len(np.unique(chunks)))
                pool = pool[_rank_in_group(chunks) < most]
            chosen.append(pool[:count])
        return chosen

    def _best(self, pool: IntArray, terms: Mapping[str, FloatArray]) -> IntArray:
        """Choose the places of the best candidates by Eq. 3, one at a time."""
        # Ties stay in their order, and NaN is last.
        order = np.argsort(-context_scores(terms, self.weights), kind="stable")
        if self.selection.strategy == "two-step":
            ordered = pool[order]
            before = self.corpus.neighbors(ordered, left=1, right=0)[:, 0]
            neighbors = np.full(len(ordered), "", dtype=object)
            neighbors[before >= 0] = self.corpus.sentences(before[before >= 0])
            size, likeness = self.selection.size, self.selection.likeness
            chunks = self.corpus.chunk_of(ordered)
            order = order[_diverse(chunks, neighbors.tolist(), count=size, likeness=likeness)]
        return order[: self.selection.size]


def are_far(own: IntArray, centers: IntArray) -> BoolArray:
    """Flag the centers, ``(n,)``, that are far from all rows of a sentence, ``(k,)``."""
    far: BoolArray = (np.abs(centers[:, None] - own) > SENTENCES_APART).all(axis=1)
    return far


def _diverse(
    chunks: IntArray, neighbors: Sequence[str], *, count: int, likeness: float
) -> IntArray:
    """Pick the places of contexts from the best down, at most one of each chunk.

    The words of its left neighbor must be less than ``likeness`` alike (Jaccard) to the left
    neighbors picked before.
    """
    words, sizes = _word_matrix(neighbors)
    blocked = np.zeros(len(chunks), np.bool_)
    picked: list[int] = []
    for candidate in range(len(chunks)):
        if len(picked) == count:
            break
        if blocked[candidate]:
            continue
        picked.append(candidate)
        blocked |= chunks == chunks[candidate]
        if sizes[candidate]:
            shared = words @ words[candidate].toarray().ravel()
            union = sizes + sizes[candidate] - shared
            blocked |= shared >= likeness * union
    return np.array(picked, np.int64)


def _word_matrix(sentences: Sequence[str]) -> tuple[sparse.csr_array, NDArray[np.float32]]:
    """Mark the words of each sentence, ``(k, words)`` sparse, and count them, ``(k,)``."""
    numbers: dict[str, int] = {}
    columns: list[int] = []
    starts = [0]
    for sentence in sentences:
        distinct = set(sentence.casefold().split())
        columns.extend(numbers.setdefault(word, len(numbers)) for word in distinct)
        starts.append(len(columns))
    shape = (len(sentences), max(len(numbers), 1))
    matrix = sparse.csr_array((np.ones(len(columns), np.float32), columns, starts), shape=shape)
    return matrix, np.diff(starts).astype(np.float32)


def _rank_in_group(groups: IntArray) -> IntArray:
    """Count the earlier members of the same group, ``(k,)``."""
    order = np.argsort(groups, kind="stable")
    _, firsts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(firsts, sizes)
    return ranks


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
    scorer: OriginScorer, corpus: Corpus, rows: IntArray, *, sentences: int = 640
) -> FittedWeights:
    """Fit λ to sentences in their own contexts and in the other contexts of a group of 16.

    ``rows`` are sentences of documents that no model was trained on; half of those drawn are fitted
    to, half measured on. Terms of weight 0 keep it.
    """
    inner = rows[(corpus.neighbors(rows, left=1, right=1) >= 0).all(axis=1)]
    groups = min(sentences, len(inner)) // GROUP_SIZE
    if groups < _MIN_GROUPS:
        raise InputError(
            f"Weights need {_MIN_GROUPS * GROUP_SIZE} held-out sentences with a sentence on either "
            f"side; got {min(sentences, len(inner))}. Give more text, or a larger 'held_out'."
        )
    drawn = np.random.default_rng((0, 6)).permutation(inner)[: groups * GROUP_SIZE]
    terms = _group_terms(scorer, corpus, drawn.reshape(groups, GROUP_SIZE))
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
    centers = np.array([np.roll(group, -row) for group in groups for row in range(GROUP_SIZE)])
    results = scorer.terms_less_means(corpus.sentences(centers[:, 0]), list(centers))
    terms = np.stack(
        [np.stack([by_name[name] for name in scorer.weights.used], -1) for by_name in results]
    )
    far = np.array([are_far(contexts[:1], contexts) for contexts in centers])
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
    bounds = [(0, None)] * len(start)
    weights: Float64Array = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return weights


def _accuracy(terms: Float64Array, weights: Float64Array) -> float:
    """Measure how often the first context has the highest score; k ties count 1/k."""
    scores = np.nan_to_num(terms @ weights, nan=-np.inf)
    best = scores == scores.max(axis=1, keepdims=True)
    return float((best[:, 0] / best.sum(axis=1)).mean())
