from __future__ import annotations

import json
import os

import numpy as np
import pytest

from condsim.annotation.items import find_images, image_vectors, read_item_vectors, read_items
from condsim.errors import InputError, ModelError

PIL = pytest.importorskip("PIL.Image")


def silent(stage, done, total):
    pass


@pytest.fixture
def collection(tmp_path):
    path = tmp_path / "captions.csv"
    path.write_text("item_id,caption\nred,a red wall\nblue.png,blue sea\ngreen,grass\n")
    return read_items(path)


@pytest.fixture
def folder(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for name, colour in (("red.jpg", "red"), ("blue.png", "blue"), ("green.PNG", "green")):
        PIL.new("RGB", (20, 14), colour).save(photos / name)
    PIL.new("L", (9, 9), 128).save(photos / "of_nobody.png")
    (photos / "notes.txt").write_text("no image")
    return photos


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory):
    """A random CLIP as sentence-transformers saves it: 32 x 32 pixels, width 16."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.base.modules import Transformer

    raw = tmp_path_factory.mktemp("clip-raw")
    part = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    part["num_attention_heads"] = 2
    tokens = ["<|startoftext|>", "<|endoftext|>", *"abcdefgh", *(f"{c}</w>" for c in "abcdefgh")]
    (raw / "vocab.json").write_text(json.dumps({token: n for n, token in enumerate(tokens)}))
    (raw / "merges.txt").write_text("#version: 0.2\n")
    config = transformers.CLIPConfig(
        text_config=part | {"vocab_size": len(tokens), "bos_token_id": 0, "eos_token_id": 1},
        vision_config=part | {"image_size": 32, "patch_size": 16},
        projection_dim=8,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.CLIPModel(config).save_pretrained(raw)
    transformers.CLIPProcessor(
        transformers.CLIPImageProcessor(size=32, crop_size=32),
        transformers.CLIPTokenizer(vocab=str(raw / "vocab.json"), merges=str(raw / "merges.txt")),
    ).save_pretrained(raw)
    folder = tmp_path_factory.mktemp("clip")
    sentence_transformers.SentenceTransformer(modules=[Transformer(str(raw))]).save(str(folder))
    return folder


def test_images_found_by_name_with_or_without_suffix(collection, folder):
    names = [path.name for path in find_images(collection, folder)]
    assert names == ["red.jpg", "blue.png", "green.PNG"]


def test_image_vectors_are_of_unit_length_and_kept(collection, folder, tiny_clip, tmp_path):
    paths = find_images(collection, folder)
    arguments = {"cache": tmp_path / "cache", "progress": silent, "device": "cpu"}
    vectors = image_vectors(paths, str(tiny_clip), **arguments)
    assert vectors.shape == (3, 8)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert abs(vectors[0] @ vectors[1]) < 0.9999
    np.testing.assert_array_equal(image_vectors(paths, str(tiny_clip), **arguments), vectors)
    assert len(list((tmp_path / "cache").glob("*.npy"))) == 1
    # A new time stamp means another file.
    os.utime(paths[0], (0, 0))
    image_vectors(paths, str(tiny_clip), **arguments)
    assert len(list((tmp_path / "cache").glob("*.npy"))) == 2


def test_image_damaged_is_named(collection, folder, tiny_clip, tmp_path):
    (folder / "blue.png").write_bytes((folder / "blue.png").read_bytes()[:40])
    paths = find_images(collection, folder)
    with pytest.raises(InputError, match=r"blue\.png cannot be read as an image"):
        image_vectors(paths, str(tiny_clip), cache=tmp_path / "c", progress=silent, device="cpu")


def test_image_encoder_for_texts_refused(folder, collection, tiny_backbone, tmp_path):
    st = pytest.importorskip("sentence_transformers")
    st.SentenceTransformer(str(tiny_backbone), device="cpu").save(str(tmp_path / "text"))
    paths = find_images(collection, folder)
    with pytest.raises(ModelError, match="encodes text, not images"):
        image_vectors(paths, str(tmp_path / "text"), cache=tmp_path / "c", progress=silent)


def test_images_missing_or_twice_are_named(collection, folder):
    PIL.new("RGB", (5, 5)).save(folder / "red.png")
    with pytest.raises(InputError, match=r"'red' has two images, red\.jpg and red\.png"):
        find_images(collection, folder)
    (folder / "red.jpg").unlink()
    (folder / "red.png").unlink()
    (folder / "green.PNG").unlink()
    with pytest.raises(InputError, match="2 of 3 items have no image, the first is 'red'"):
        find_images(collection, folder)


def test_vectors_of_a_file_are_scaled(collection, tmp_path):
    np.save(tmp_path / "v.npy", np.array([[3, 4], [0, 2], [1, 0]]))
    vectors = read_item_vectors(tmp_path / "v.npy", collection)
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [0, 1], [1, 0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.ones((4, 2)), "a row for each of the 3 items .* got 4 rows"),
        (np.ones(3), "one array of numbers with two axes"),
        (np.array([["a"], ["b"], ["c"]]), "one array of numbers with two axes"),
        (np.array([[1.0], [np.nan], [1.0]]), "row 1 "),
        (b"1,2,3", "cannot be read as an array"),
        (b"", "cannot be read as an array"),
    ],
)
def test_vectors_of_a_file_that_does_not_fit_refused(collection, tmp_path, content, message):
    path = tmp_path / "v.npy"
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content)
    with pytest.raises(InputError, match=message):
        read_item_vectors(path, collection)
