"""Nearest pairs against brute force, and vectors of texts."""

from __future__ import annotations

import numpy as np
import pytest

from condsim.annotation.items import embed_collection, mean_vectors, read_items
from condsim.console import silent
from condsim.errors import InputError, ModelError
from condsim.rows.near_pairs import (
    TextEncoder,
    caption_vectors,
    load_text_encoder,
    nearest_pairs,
    unit_length,
)

pytest.importorskip("faiss")


def random_vectors(n, width=8):
    vectors = np.random.default_rng(0).normal(size=(n, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def brute_force(vectors, k):
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines, axis=1)[:, :k]
    return {(min(i, j), max(i, j)) for i, row in enumerate(near.tolist()) for j in row}, cosines


def test_nearest_pairs_equal_brute_force_no_pair_twice_none_with_itself(tmp_path, monkeypatch):
    monkeypatch.setattr("condsim.rows.near_pairs._ITEMS_PER_BLOCK", 7)
    vectors = random_vectors(50)
    pairs = nearest_pairs(vectors, 5, cache=tmp_path / "c", progress=silent)
    expected, cosines = brute_force(vectors, 5)
    items = list(zip(pairs.items1.tolist(), pairs.items2.tolist(), strict=True))
    assert items == sorted(expected)
    np.testing.assert_allclose(pairs.similarity, cosines[pairs.items1, pairs.items2], atol=1e-6)
    assert len(nearest_pairs(vectors[:4], 99, cache=tmp_path, progress=silent)) == 6


def test_nearest_pairs_equal_vectors_do_not_pair_an_item_with_itself(tmp_path):
    vectors = np.ones((6, 4), dtype=np.float32) / 2
    pairs = nearest_pairs(vectors, 2, cache=tmp_path, progress=silent)
    assert (pairs.items1 < pairs.items2).all()
    np.testing.assert_allclose(pairs.similarity, 1)


def test_nearest_pairs_hnsw_finds_nearly_what_exact_search_finds(tmp_path):
    vectors = random_vectors(400)
    pairs = nearest_pairs(vectors, 5, cache=tmp_path, progress=silent, exact_up_to=100)
    expected, _ = brute_force(vectors, 5)
    items = set(zip(pairs.items1.tolist(), pairs.items2.tolist(), strict=True))
    assert len(items & expected) > 0.97 * len(expected)
    assert (pairs.items1 < pairs.items2).all()
    (index,) = tmp_path.glob("index-*-hnsw.faiss")
    before = index.stat().st_mtime_ns
    nearest_pairs(vectors, 6, cache=tmp_path, progress=silent, exact_up_to=100)
    assert index.stat().st_mtime_ns == before


class Fake:
    """A vector a text: its length and the place of its first letter."""

    def __init__(self):
        self.texts = []

    def encode(self, sentences):
        self.texts += sentences
        return np.array([[len(text), ord(text[0]) - 96] for text in sentences], np.float32)


@pytest.fixture
def collection(tmp_path):
    path = tmp_path / "captions.csv"
    path.write_text("item_id,caption\nx,abc\nx,ccd\ny,bb\n")
    return read_items(path)


def test_caption_vectors_are_made_once_a_model_and_content(collection, tmp_path, monkeypatch):
    monkeypatch.setattr("condsim.rows.near_pairs._TEXTS_PER_BLOCK", 2)
    fake, steps = Fake(), []

    def embed(revision):
        return caption_vectors(
            collection.captions,
            TextEncoder("fake", revision, fake),
            cache=tmp_path,
            progress=lambda *step: steps.append(step),
        )

    vectors = embed("1")
    np.testing.assert_allclose(vectors[2], [0.5**0.5, 0.5**0.5], rtol=1e-6)  # (2, 2)
    np.testing.assert_array_equal(embed("1"), vectors)
    assert fake.texts == ["abc", "ccd", "bb"]
    assert steps == [("captions", 2, 3), ("captions", 3, 3)]
    embed("2")
    assert len(fake.texts) == 6


def test_mean_vectors_of_captions_worked_by_hand(collection):
    vectors = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    means = mean_vectors(vectors, collection)
    np.testing.assert_allclose(means, [[0.5**0.5, 0.5**0.5], [0, 1]], rtol=1e-6)
    with pytest.raises(InputError, match=r"The mean of the captions .* row 0 \(from 0\)"):
        mean_vectors(np.array([[1, 0], [-1, 0], [0, 1]], np.float32), collection)


def test_text_encoder_bundled_gives_unit_vectors():
    encoder = load_text_encoder("default")
    vectors = encoder.encode(["A cat sleeps.", "A cat naps.", "The stock market fell."])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert encoder.revision
    with pytest.raises(ModelError, match=r"no model folder '\./none'"):
        load_text_encoder("./none")


@pytest.fixture
def fake(monkeypatch):
    fake = Fake()
    monkeypatch.setattr(
        "condsim.annotation.items.load_text_encoder",
        lambda name, device: TextEncoder(name, "1", fake),
    )
    return fake


def test_embed_without_images_takes_the_mean_of_captions(collection, tmp_path, fake):
    vectors = embed_collection(collection, cache=tmp_path / "c", progress=silent)
    np.testing.assert_allclose(vectors.items, mean_vectors(vectors.captions, collection))
    assert vectors.provenance["items"] == {"by": "mean of captions"}
    assert vectors.provenance["text_encoder"]["revision"] == "1"


def test_embed_by_a_file_asks_the_text_encoder_for_cosines_only(collection, tmp_path, fake):
    path, cache = tmp_path / "v.npy", tmp_path / "c"
    np.save(path, np.eye(2))
    vectors = embed_collection(
        collection, cache=cache, progress=silent, embeddings=path, cosine=False
    )
    assert vectors.captions is None
    assert not fake.texts
    assert vectors.provenance["items"]["by"] == "file"
    vectors = embed_collection(collection, cache=cache, progress=silent, embeddings=path)
    assert vectors.captions.shape == (3, 2)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_unit_length_of_no_direction_refused(bad):
    vectors = np.array([[3.0, 4.0], [bad, bad]], dtype=np.float32)
    np.testing.assert_allclose(unit_length(vectors[:1], subject="v"), [[0.6, 0.8]], rtol=1e-6)
    with pytest.raises(InputError, match=r"v\.npy: every embedding .* row 1 \(from 0\)"):
        unit_length(vectors, subject="v.npy")
