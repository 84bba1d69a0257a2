from __future__ import annotations

import numpy as np
import pytest

from condsim.contexts.corpus.vocabulary import CorpusTokens
from condsim.contexts.surrogate import token_vectors

pytest.importorskip("sklearn")

# Tokens 0 and 1 stand between 2 and 3, tokens 4 and 5 between 6 and 7; 8 stands alone.
SENTENCES = [[2, 0, 3], [2, 1, 3], [6, 4, 7], [6, 5, 7], [3, 0, 2], [3, 1, 2], [8]] * 3


def tokens_of(sentences: list[list[int]]) -> CorpusTokens:
    starts = np.cumsum([0, *map(len, sentences)])
    return CorpusTokens(np.concatenate(sentences).astype(np.uint16), starts)


def naive(sentences: list[list[int]], entries: int, size: int) -> np.ndarray:
    """The same by loops and a full SVD."""
    counts = np.zeros((entries, entries))
    for sentence in sentences:
        for place, token in enumerate(sentence):
            for other, beside in enumerate(sentence):
                if 0 < abs(place - other) <= 8:
                    counts[token, beside] += 1 / abs(place - other)
    total = counts.sum(axis=1)
    shares = total**0.75 / (total**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(counts / (total[:, None] * shares))
    information[~(information > 0)] = 0
    left, values, _ = np.linalg.svd(information)
    vectors = (left * np.sqrt(values))[:, :size]
    lengths = np.linalg.norm(vectors, axis=1)
    return vectors / lengths[lengths > 1e-6].mean()


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_token_vectors_tokens_of_like_company_are_alike():
    vectors = token_vectors(tokens_of(SENTENCES), entries=10, size=4)
    assert cosine(vectors[0], vectors[1]) > 0.999
    assert abs(cosine(vectors[0], vectors[4])) < 0.01
    assert not vectors[8:].any()  # alone, and not there at all
    assert np.linalg.norm(vectors[:8], axis=1).mean() == pytest.approx(1, abs=1e-5)


def test_token_vectors_unseen_tokens_are_0_where_there_are_many_of_them():
    sentences = [[token + 300 for token in sentence] for sentence in SENTENCES]
    vectors = token_vectors(tokens_of(sentences), entries=400, size=256)
    assert np.flatnonzero(vectors.any(axis=1)).tolist() == list(range(300, 308))


@pytest.mark.parametrize("block", [50_000, 2])
def test_token_vectors_equal_those_of_a_naive_loop(block: int, monkeypatch):
    monkeypatch.setattr("condsim.contexts.surrogate._BLOCK", block)
    random = np.random.default_rng(0)
    sentences = [random.integers(0, 30, size=random.integers(1, 15)).tolist() for _ in range(60)]
    vectors = token_vectors(tokens_of(sentences), entries=30, size=30)
    # Signs of columns are free, products of rows are not.
    wanted = naive(sentences, 30, 30)
    np.testing.assert_allclose(vectors @ vectors.T, wanted @ wanted.T, atol=1e-4)


def test_token_vectors_of_a_large_corpus_are_counted_on_blocks_spread_over_it(monkeypatch):
    monkeypatch.setattr("condsim.contexts.surrogate._BLOCK", 2)
    monkeypatch.setattr("condsim.contexts.surrogate._MOST", 4)
    read = []
    tokens = tokens_of([[0, 1], [1, 0], [2, 3], [3, 2], [4, 5], [5, 4], [6, 7], [7, 6]])
    stretch = tokens.stretch
    monkeypatch.setattr(tokens, "stretch", lambda *rows: read.append(rows) or stretch(*rows))
    vectors = token_vectors(tokens, entries=8, size=8)
    assert read == [(0, 2), (6, 8)]
    assert vectors.any(axis=1).tolist() == [True, True, False, False, False, False, True, True]


def test_token_vectors_of_a_small_vocabulary_are_filled_up_with_zeros():
    vectors = token_vectors(tokens_of([[0, 1], [1, 2]]), entries=3, size=8)
    assert vectors.shape == (3, 8)
    assert not vectors[:, 3:].any()
    assert not token_vectors(tokens_of([[0], [1]]), entries=3, size=8).any()
