from __future__ import annotations

import numpy as np
import pytest

from condsim.annotation.items import embed_collection, mean_vectors, read_items
from condsim.errors import InputError, ModelError
from condsim.rows.near_pairs import TextEncoder, caption_vectors, load_text_encoder, unit_length


def silent(stage, done, total):
    pass


class Fake:
    """A vector a text: its length and the place of its first letter."""

    def __init__(self):
        self.asked = []

    def encode(self, sentences):
        self.asked += sentences
        return np.array([[len(text), ord(text[0]) - 96] for text in sentences], np.float32)


@pytest.fixture
def collection(tmp_path):
    path = tmp_path / "captions.csv"
    path.write_text("item_id,caption\nx,abc\nx,ccd\ny,bb\n")
    return read_items(path)


def test_caption_vectors_are_made_once_a_model_and_content(collection, tmp_path):
    fake = Fake()
    encoder = TextEncoder("fake", "1", fake)
    made = caption_vectors(collection.captions, encoder, cache=tmp_path, progress=silent)
    np.testing.assert_allclose(made[2], [0.5**0.5, 0.5**0.5], rtol=1e-6)  # (2, 2)
    again = caption_vectors(collection.captions, encoder, cache=tmp_path, progress=silent)
    np.testing.assert_array_equal(again, made)
    assert fake.asked == ["abc", "ccd", "bb"]
    other = TextEncoder("fake", "2", fake)
    caption_vectors(collection.captions, other, cache=tmp_path, progress=silent)
    assert len(fake.asked) == 6


def test_caption_vectors_go_on_in_blocks(collection, tmp_path, monkeypatch):
    monkeypatch.setattr("condsim.rows.near_pairs._TEXTS_PER_BLOCK", 2)
    seen = []
    caption_vectors(
        collection.captions,
        TextEncoder("fake", "1", Fake()),
        cache=tmp_path,
        progress=lambda stage, done, total: seen.append((stage, done, total)),
    )
    assert seen == [("captions", 2, 3), ("captions", 3, 3)]


def test_mean_vectors_of_captions_worked_by_hand(collection):
    vectors = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    made = mean_vectors(vectors, collection)
    np.testing.assert_allclose(made, [[0.5**0.5, 0.5**0.5], [0, 1]], rtol=1e-6)
    with pytest.raises(InputError, match=r"The mean of the captions .* row 0 \(from 0\)"):
        mean_vectors(np.array([[1, 0], [-1, 0], [0, 1]], np.float32), collection)


def test_text_encoder_bundled_gives_unit_vectors():
    encoder = load_text_encoder("default")
    vectors = encoder.encode(["A cat sleeps.", "A cat naps.", "The stock market fell."])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert encoder.revision


def test_text_encoder_unknown_refused():
    with pytest.raises(ModelError, match=r"no model folder '\./none'"):
        load_text_encoder("./none")


@pytest.fixture
def fake(monkeypatch):
    made = Fake()
    monkeypatch.setattr(
        "condsim.annotation.items.load_text_encoder",
        lambda name, device: TextEncoder(name, "1", made),
    )
    return made


def test_embed_without_images_takes_the_mean_of_captions(collection, tmp_path, fake):
    pytest.importorskip("filelock")
    found = embed_collection(collection, cache=tmp_path / "c", progress=silent)
    np.testing.assert_allclose(found.items, mean_vectors(found.captions, collection))
    assert found.provenance["items"] == {"by": "mean of captions"}
    assert found.provenance["text_encoder"]["revision"] == "1"


def test_embed_by_a_file_asks_the_text_encoder_for_cosines_only(collection, tmp_path, fake):
    pytest.importorskip("filelock")
    path = tmp_path / "v.npy"
    np.save(path, np.eye(2))
    found = embed_collection(
        collection, cache=tmp_path / "c", progress=silent, embeddings=path, cosine=False
    )
    assert found.captions is None
    assert not fake.asked
    assert found.provenance["items"]["by"] == "file"
    found = embed_collection(collection, cache=tmp_path / "c", progress=silent, embeddings=path)
    assert found.captions.shape == (3, 2)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_unit_length_of_no_direction_refused(bad):
    vectors = np.array([[3.0, 4.0], [bad, bad]], dtype=np.float32)
    np.testing.assert_allclose(unit_length(vectors[:1], what="v"), [[0.6, 0.8]], rtol=1e-6)
    with pytest.raises(InputError, match=r"v\.npy: every embedding .* row 1 \(from 0\)"):
        unit_length(vectors, what="v.npy")
