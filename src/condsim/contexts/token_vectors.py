"""Vectors of tokens by the company they keep, which a surrogate from scratch starts with.

Pairs of tokens within eight places of a sentence are counted, each as one over its distance. The
counts become positive pointwise mutual information, with the frequencies of one side to the power
0.75, and a truncated SVD, singular values to the power 0.5, gives the vectors (Levy, Goldberg and
Dagan, 2015, Improving Distributional Similarity with Lessons Learned from Word Embeddings, §3). Not
part of SSBC: its surrogate is a RoBERTa, which has read much before it sees a harvested pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from condsim.contexts.vocabulary_tokens import CorpusTokens
from condsim.errors import require
from condsim.types import FloatArray

__all__ = ["token_vectors"]

_REACH = 8  # places to each side
_SMOOTHING = 0.75
_BLOCK = 50_000  # sentences counted at once
_MOST = 1_000_000  # sentences counted, about, if there are more: what they change is little
_ROUNDING = 1e-9  # singular values below this share of the first are none


def token_vectors(tokens: CorpusTokens, *, entries: int, size: int) -> FloatArray:
    """Computes a vector for each entry of a vocabulary.

    Args:
        tokens: The corpus; of one with more than a million sentences about as many are read, in
            blocks spread over all of it.
        entries: Entries of the vocabulary.
        size: Size of a vector.

    Returns:
        The vectors, ``(entries, size)``, of mean length 1 among those that are not 0. They are 0
        for tokens that tell nothing of others, and in columns beyond the rank of the counts.
    """
    linear_algebra = require("sklearn.utils.extmath", extra="contexts")
    information = _information(_counts(tokens, entries))
    most = min(size, entries)
    left, values, _ = linear_algebra.randomized_svd(information, most, n_iter=4, random_state=0)
    values[values < _ROUNDING * values[0]] = 0
    known = np.diff(information.indptr) > 0
    vectors = np.zeros((entries, size))
    vectors[known, :most] = left[known] * np.sqrt(values)
    if known.any():
        vectors /= np.linalg.norm(vectors[known], axis=1).mean()
    return vectors.astype(np.float32)


def _counts(tokens: CorpusTokens, entries: int) -> Any:  # noqa: ANN401  (scipy has no types)
    """How often two tokens stand near each other, a sparse ``(entries, entries)``."""
    from scipy import sparse

    starts = np.arange(0, len(tokens), _BLOCK)
    read = np.linspace(0, len(starts) - 1, min(len(starts), max(1, _MOST // _BLOCK)))
    counts = sparse.csr_matrix((entries, entries))
    for start in starts[read.round().astype(int)].tolist():
        ids, sentences = tokens.stretch(start, min(start + _BLOCK, len(tokens)))
        near, far, weights = [], [], []
        for distance in range(1, _REACH + 1):
            same = sentences[distance:] == sentences[:-distance]
            near.append(ids[:-distance][same])
            far.append(ids[distance:][same])
            weights.append(np.full(len(far[-1]), 1 / distance))
        places = (np.concatenate(near), np.concatenate(far))
        counts += sparse.csr_matrix((np.concatenate(weights), places), shape=counts.shape)
    return counts + counts.T


def _information(counts: Any) -> Any:  # noqa: ANN401
    """Positive pointwise mutual information of counts, where there is some."""
    total = np.asarray(counts.sum(axis=1)).ravel()
    shares = total**_SMOOTHING / max(float((total**_SMOOTHING).sum()), 1.0)
    found = counts.tocoo()
    found.data = np.maximum(np.log(found.data / (total[found.row] * shares[found.col])), 0)
    found = found.tocsr()
    found.eliminate_zeros()
    return found
