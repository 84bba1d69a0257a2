from __future__ import annotations

import numpy as np
import pytest

from condsim.rows.near_pairs import nearest_pairs

pytest.importorskip("faiss")


def silent(stage, done, total):
    pass


def some_vectors(n, width=8):
    vectors = np.random.default_rng(0).normal(size=(n, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def brute_force(vectors, k):
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines, axis=1)[:, :k]
    return {(min(i, j), max(i, j)) for i, row in enumerate(near.tolist()) for j in row}, cosines


def test_nearest_pairs_equal_brute_force_no_pair_twice_none_with_itself(tmp_path, monkeypatch):
    monkeypatch.setattr("condsim.rows.near_pairs._ITEMS_PER_BLOCK", 7)
    vectors = some_vectors(50)
    pairs = nearest_pairs(vectors, 5, cache=tmp_path / "c", progress=silent)
    expected, cosines = brute_force(vectors, 5)
    found = list(zip(pairs.items1.tolist(), pairs.items2.tolist(), strict=True))
    assert len(found) == len(set(found)) == len(pairs)
    assert set(found) == expected
    assert found == sorted(found)
    np.testing.assert_allclose(pairs.similarity, cosines[pairs.items1, pairs.items2], atol=1e-6)


def test_nearest_pairs_equal_vectors_do_not_pair_an_item_with_itself(tmp_path):
    vectors = np.ones((6, 4), dtype=np.float32) / 2
    pairs = nearest_pairs(vectors, 2, cache=tmp_path, progress=silent)
    assert (pairs.items1 < pairs.items2).all()
    np.testing.assert_allclose(pairs.similarity, 1)


def test_nearest_pairs_more_neighbours_than_items_pair_all(tmp_path):
    assert len(nearest_pairs(some_vectors(4), 99, cache=tmp_path, progress=silent)) == 6


def test_nearest_pairs_hnsw_finds_nearly_what_exact_search_finds(tmp_path):
    vectors = some_vectors(400)
    pairs = nearest_pairs(vectors, 5, cache=tmp_path, progress=silent, exact_up_to=100)
    expected, _ = brute_force(vectors, 5)
    found = set(zip(pairs.items1.tolist(), pairs.items2.tolist(), strict=True))
    assert len(found & expected) > 0.97 * len(expected)
    assert all(one < two for one, two in found)
    (kept,) = tmp_path.glob("index-*-hnsw.faiss")
    before = kept.stat().st_mtime_ns
    nearest_pairs(vectors, 6, cache=tmp_path, progress=silent, exact_up_to=100)
    assert kept.stat().st_mtime_ns == before
