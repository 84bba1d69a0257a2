"""Clusters: grouping, names, cross-table, picture and the messages for bad input."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")
from condsim.errors import InputError, MissingExtraError
from condsim.model.embedding import EmbeddingScorer
from condsim.search.clustering import cluster, cross_table, plot_clusters

COLORS = {"red": 0, "blue": 1, "black": 2}
THINGS = {"car": 0, "cat": 1}
TEXTS = [
    f"A {color} {thing}, {number}." for number in range(4) for thing in THINGS for color in COLORS
]


class KeywordEncoder(EmbeddingScorer):
    """Points along the axis of a color, or of a thing, with a little noise."""

    def __init__(self):
        super().__init__(name="keyword", order="condition-first", dimension=8, calibration=None)
        self.read: list[object] = []

    def _embed(self, texts):
        self.read += texts
        vectors = np.zeros((len(texts), 8), np.float32)
        for row, one in enumerate(texts):
            condition, text = ("", one) if isinstance(one, str) else one
            axes = THINGS if condition == "the thing" else COLORS
            vectors[row, next((axes[word] for word in axes if word in text), 4)] = 1
            # Phrases that name a cluster have no number.
            number = int(text[-2]) if text[-2:-1].isdigit() else 0
            vectors[row, 5:] = 0.05 * np.array([len(text) % 2, number % 2, number // 2])
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def encoder():
    return KeywordEncoder()


def groups(result):
    """The sets of texts that are together."""
    return {
        frozenset(text for text, label in zip(TEXTS, result.labels, strict=True) if label == number)
        for number in range(len(result.clusters))
    }


def by_word(words):
    return {frozenset(text for text in TEXTS if f" {word}" in text) for word in words}


def test_cluster_k_groups_by_the_condition(encoder):
    result = cluster(TEXTS, "the color", model=encoder, k=3)
    assert groups(result) == by_word(COLORS)
    assert groups(cluster(TEXTS, "the thing", model=encoder, k=2)) == by_word(THINGS)
    assert result.method == "k-means"
    assert result.unassigned == 0
    assert result.silhouette > 0.9
    assert encoder.read[0][0] == "the color"


def test_cluster_min_size_finds_the_number(encoder):
    result = cluster(TEXTS, "the color", model=encoder, min_size=4)
    assert result.method == "HDBSCAN"
    assert groups(result) == by_word(COLORS)


def test_cluster_lone_text_is_in_none():
    near = np.repeat(np.eye(12, dtype=np.float32)[:2], 8, axis=0)
    near[:, 3:11] += 0.01 * np.tile(np.eye(8, dtype=np.float32), (2, 1))
    vectors = np.vstack([near, np.eye(12, dtype=np.float32)[11:]])
    texts = [f"word{number}" for number in range(17)]
    result = cluster(texts, "c", vectors=vectors, min_size=5)
    assert result.labels[16] == -1
    assert (result.unassigned, result.name_of(16)) == (1, "")
    assert sorted(group.size for group in result.clusters) == [8, 8]


def test_cluster_names_are_words_of_its_own(encoder):
    result = cluster(TEXTS, "the color", model=encoder, k=3)
    assert sorted(group.words[0] for group in result.clusters) == ["black", "blue", "red"]
    assert result.name_of(0).startswith("red")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["the", "and the", "of", "of it"], {()}),
        (
            ["We've 20 kettles, don't ask.", "We've kettles 20, don't ask.", "ovens", "ovens."],
            {("ask", "kettles"), ("ovens",)},
        ),
    ],
)
def test_cluster_stop_words_contractions_and_numbers_name_nothing(texts, words):
    result = cluster(texts, None, vectors=np.eye(2, dtype=np.float32)[[0, 0, 1, 1]], k=2)
    assert {group.words for group in result.clusters} == words


def test_cluster_numbers_largest_first_and_nearest_to_its_mean():
    angles = np.array([0.0, 0.2, 0.3, 1.5, 1.6])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    result = cluster(["a1", "a2", "a3", "b1", "b2"], "c", vectors=vectors, k=2)
    assert result.labels.tolist() == [0, 0, 0, 1, 1]
    # The mean of 0, 0.2 and 0.3 points to about 0.17: 0.2 is the nearest.
    assert (result.clusters[0].nearest, result.clusters[0].text) == (1, "a2")


@pytest.mark.parametrize("texts", ["abcd", "aabb"])
@pytest.mark.parametrize("k", [3, 4])
def test_cluster_equal_embeddings_give_fewer_clusters(texts, k):
    vectors = np.eye(2, dtype=np.float32)[[0, 0, 1, 1]]
    assert len(cluster(list(texts), "c", vectors=vectors, k=k).clusters) == 2


def test_cluster_flags_of_a_blas_are_no_warning(encoder, monkeypatch):
    def flagged(space, k, *, seed):
        assert np.isnan(np.float32(np.inf) - np.float32(np.inf))  # sets the flag "invalid"
        return np.arange(len(space)) % k

    monkeypatch.setattr(sys.modules["condsim.search.clustering"], "_k_means", flagged)
    assert len(cluster(TEXTS, "the color", model=encoder, k=2).clusters) == 2


@pytest.mark.slow
def test_cluster_umap_groups_by_the_condition(encoder, monkeypatch):
    pytest.importorskip("umap")
    result = cluster(TEXTS, "the thing", model=encoder, k=2, umap=True)
    assert groups(result) == by_word(THINGS)
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'condsim\[umap\]'"):
        cluster(TEXTS, "the thing", model=encoder, k=2, umap=True)


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (TEXTS, {"k": 3, "min_size": 4}, "either the number of clusters .* got 3 and 4"),
        (TEXTS, {"k": 25}, "from 2 to 24, .* got 25"),
        (["a", "a", "a"], {"k": 4}, "whole number from 2 to 3, the number of texts; got 4"),
        (TEXTS, {"k": 1}, "whole number from 2 to 24"),
        (TEXTS, {"k": 2.5}, "'auto' or a whole number .* got 2.5"),
        (TEXTS, {"min_size": 1}, "must have from 2 to 24 texts"),
        (TEXTS, {"min_size": 25}, "got 25"),
        (["a", "b"], {}, "at least 3 texts; got 2"),
        (["a", " ", "c"], {"k": 2}, "'texts' must have text; got ' ' at index 1"),
        (TEXTS, {"vectors": np.ones((2, 3), np.float32)}, "a vector for each of the 24 texts"),
    ],
)
def test_cluster_bad_input_refused(encoder, texts, options, message):
    with pytest.raises(InputError, match=message):
        cluster(texts, "the color", model=encoder, **options)
    assert not encoder.read


def test_cross_table_counts_both_and_refuses_other_texts(encoder):
    color = cluster(TEXTS, "the color", model=encoder, k=3)
    thing = cluster(TEXTS, "the thing", model=encoder, k=2)
    counts = cross_table(color, thing)
    np.testing.assert_array_equal(counts, [[4, 4, 0], [4, 4, 0], [4, 4, 0], [0, 0, 0]])
    with pytest.raises(InputError, match="got 24 and 9"):
        cross_table(color, cluster(TEXTS[:9], "the color", model=encoder, k=3))


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:6]])
def test_plot_writes_a_panel_for_each_condition(encoder, tmp_path, texts):
    pytest.importorskip("matplotlib")
    result = [cluster(texts, one, model=encoder, k=2) for one in ("the color", "a $b$ thing")]
    plot_clusters(result, tmp_path / "both.png")
    plot_clusters(result[:1], tmp_path / "one.png")
    sizes = []
    for name in ("one", "both"):
        header = (tmp_path / f"{name}.png").read_bytes()[:24]
        assert header.startswith(b"\x89PNG")
        sizes.append(int.from_bytes(header[16:20], "big"))
    assert sizes[1] == 2 * sizes[0]


class NoisyEncoder(KeywordEncoder):
    """Gives equal texts vectors that differ in the last bits, as batches of a model do."""

    def _embed(self, texts):
        vectors = super()._embed(texts)
        noise = np.random.default_rng(0).normal(0, 1e-8, vectors.shape)
        return (vectors + noise).astype(np.float32)


def test_cluster_min_size_keeps_equal_texts_together():
    texts = [f"A {color} car, 1." for color in COLORS] * 40
    labels = cluster(texts, "the color", model=NoisyEncoder()).labels
    assert len(set(zip(texts, labels.tolist(), strict=True))) == 3
