"""Nearest pairs against brute force, vectors of texts, and the measures and filters of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from condsim.console import silent
from condsim.errors import InputError, ModelError
from condsim_annotation.candidates import embed_collection, mean_vectors, read_items
from condsim_annotation.pairs import (
    FilterCounts,
    FilterSettings,
    Measures,
    TextEncoder,
    bag_of_words,
    caption_vectors,
    load_text_encoder,
    nearest_pairs,
    read_stop_words,
    text_facts,
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
    monkeypatch.setattr("condsim_annotation.pairs._ITEMS_PER_BLOCK", 7)
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
    monkeypatch.setattr("condsim_annotation.pairs._TEXTS_PER_BLOCK", 2)
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
    with pytest.raises(ModelError):
        load_text_encoder("./none")


def test_embed_without_images_takes_the_mean_of_captions(collection, tmp_path, monkeypatch):
    encoder = TextEncoder("default", "1", Fake())
    monkeypatch.setattr("condsim_annotation.candidates.load_text_encoder", lambda *_, **__: encoder)
    vectors = embed_collection(collection, cache=tmp_path / "c", progress=silent)
    np.testing.assert_allclose(vectors.items, mean_vectors(vectors.captions, collection))
    assert vectors.provenance["items"] == {"by": "mean of captions"}
    assert vectors.provenance["text_encoder"]["revision"] == "1"


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_unit_length_of_no_direction_refused(bad):
    vectors = np.array([[3.0, 4.0], [bad, bad]], dtype=np.float32)
    np.testing.assert_allclose(unit_length(vectors[:1], subject="v"), [[0.6, 0.8]], rtol=1e-6)
    with pytest.raises(InputError, match=r"v\.npy: every embedding .* row 1 \(from 0\)"):
        unit_length(vectors, subject="v.npy")


TEXTS = [
    "A man rides a red bike down the street.",
    "The red bike is on the street by a man.",
    "Two dogs play",
    "the of and",
    "A man rides a red bike down the street.",
    "The man's dogs PLAY in the red, red water!",
]


def by_definition(text1, text2):
    """The definitions of A.2, text by text."""
    bags = bag_of_words(text1, read_stop_words()), bag_of_words(text2, read_stop_words())
    union = len(bags[0] | bags[1])
    words = sorted([len(text1.split()), len(text2.split())])
    return (
        len(bags[0] & bags[1]) / union if union else 0.0,
        words[0] / words[1],
        min(len(text1), len(text2)),
        text1 == text2,
    )


def values(measures, at):
    return (
        measures.iou[at],
        measures.length_ratio[at],
        measures.min_length[at],
        measures.same_text[at],
    )


def test_iou_value_worked_by_hand():
    measures = text_facts(TEXTS).product(slice(0, 1), np.array([1, 2, 3]), vectors=None)
    # {man, rides, red, bike, street} and {red, bike, street, man}: 4 of 5
    assert measures.iou.tolist() == [[0.8, 0.0, 0.0]]
    assert measures.length_ratio[0].tolist() == [9 / 10, 3 / 9, 3 / 9]
    assert measures.min_length[0].tolist() == [39, 13, 10]


def test_product_and_pairs_equal_the_definitions():
    facts = text_facts(TEXTS)
    vectors = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    columns = np.array([5, 4, 3, 2, 1, 0, 3])
    for rows in (slice(0, 3), slice(3, 6)):
        product = facts.product(rows, columns, vectors=vectors)
        for row in range(3):
            first = np.full(len(columns), rows.start + row)
            paired = facts.paired(first, columns, vectors=vectors)
            np.testing.assert_allclose(paired.text_cosine, product.text_cosine[row], atol=1e-6)
            for place, column in enumerate(columns):
                expected = by_definition(TEXTS[rows.start + row], TEXTS[column])
                assert values(product, (row, place)) == values(paired, place) == expected


def test_bag_of_words_own_stop_words():
    bag = bag_of_words("The dog, the DOG's ball and 2 cats.", frozenset({"the", "and"}))
    assert bag == {"2", "ball", "cats", "dog", "dog's"}
    assert bag_of_words("Der Hund\u2019s Ball", frozenset({"der"})) == {"hund's", "ball"}


def test_filters_bounds_themselves_pass_and_each_rejection_is_counted():
    # Each pair but the first and last breaks one rule; the last breaks two.
    measures = Measures(
        same_text=np.array([False, True, False, False, False, False]),
        iou=np.array([0.2, 0.2, 0.21, 0.1, 0.1, 0.5]),
        text_cosine=np.array([0.4, 0.9, 0.5, 0.39, 0.5, 0.5], np.float32),
        length_ratio=np.array([0.7, 1, 1, 1, 0.69, 1]),
        min_length=np.array([48, 60, 60, 60, 60, 47]),
    )
    counts = FilterCounts()
    settings = FilterSettings(max_iou=0.2, min_length_ratio=0.7, min_length=48)
    assert counts.keep(measures, settings).tolist() == [True, False, False, True, False, False]
    assert counts.to_dict() == {
        "pairs": 6,
        "same_text": 1,
        "max_iou": 2,
        "min_text_cosine": 0,
        "min_length_ratio": 1,
        "min_length": 1,
        "passed": 2,
    }
    counts.add(counts)
    assert counts.pairs == 12
    passing = counts.keep(measures, FilterSettings(min_text_cosine=0.4))
    assert passing.tolist() == [True, False, True, False, True, True]
