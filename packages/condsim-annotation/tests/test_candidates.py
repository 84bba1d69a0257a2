from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from condsim.data.files import iter_rows
from condsim.errors import InputError
from condsim_annotation import candidates
from condsim_annotation.candidates import (
    PRESETS,
    CandidateSettings,
    Embeddings,
    filter_files,
    find_images,
    image_vectors,
    make_candidates,
    read_item_vectors,
    read_items,
    read_pairs,
)
from condsim_annotation.pairs import (
    Candidate,
    FilterCounts,
    FilterSettings,
    PairFilter,
    TextEncoder,
    bag_of_words,
    pair_id_of,
    read_stop_words,
    text_facts,
)
from condsim_annotation.tables import read_manifest, read_rows

pytest.importorskip("faiss")
pytest.importorskip("pyarrow")

PART_SIZE = "condsim_annotation.candidates._PAIRS_PER_PART"
FILTERS = FilterSettings(max_iou=0.5, min_text_cosine=0.0, min_length_ratio=0.5, min_length=12)
SETTINGS = CandidateSettings(k=4, filters=FILTERS)
WORDS = "man woman dog cat ball street park red blue runs sits plays with the a on".split()


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def collection(tmp_path):
    """20 items of 1 to 4 captions, some of which several items share."""
    random = np.random.default_rng(1)
    rows = [
        (f"i{item}", " ".join(random.choice(WORDS, size=random.integers(2, 9))))
        for item in range(20)
        for _ in range(random.integers(1, 4))
    ]
    rows += [(f"i{item}", "the man plays ball in a red park") for item in range(0, 20, 2)]
    rows += [(f"i{item}", "a woman and a dog run on the street") for item in range(0, 20, 3)]
    path = tmp_path / "captions.csv"
    path.write_text("item_id,caption\n" + "\n".join(",".join(row) for row in rows))
    return read_items(path, source="s")


@pytest.fixture
def vectors(collection):
    random = np.random.default_rng(2)
    items = unit(random.normal(size=(len(collection), 6)))
    texts = {text: unit(random.normal(size=(1, 5)))[0] for text in sorted(collection.captions)}
    return items, np.array([texts[text] for text in collection.captions])


def by_hand(collection, items, captions, settings):
    """All of §2.2.1 by loops: the texts of the candidates."""
    cosines = items @ items.T
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines, axis=1)[:, : settings.k].tolist()
    item_pairs = {(min(i, j), max(i, j)) for i, row in enumerate(near) for j in row}
    texts, stop_words, filters = set(), read_stop_words(), settings.filters
    for pair in item_pairs:
        rows = [range(collection.starts[item], collection.starts[item + 1]) for item in pair]
        for a, b in itertools.product(*rows):
            text1, text2 = collection.captions[a], collection.captions[b]
            bags = bag_of_words(text1, stop_words), bag_of_words(text2, stop_words)
            iou = len(bags[0] & bags[1]) / max(1, len(bags[0] | bags[1]))
            counts = sorted([len(text1.split()), len(text2.split())])
            if (
                text1 != text2
                and iou <= filters.max_iou
                and captions[a] @ captions[b] >= filters.min_text_cosine
                and counts[0] / counts[1] >= filters.min_length_ratio
                and min(len(text1), len(text2)) >= filters.min_length
            ):
                texts.add(frozenset([text1, text2]))
    return texts


@pytest.fixture
def make(collection, vectors, tmp_path):
    """Make the candidates of the collection; `make.rows()` reads them."""

    def run(settings=SETTINGS, captions=vectors[1]):
        return make_candidates(
            collection,
            Embeddings(vectors[0], captions, {"items": "by hand"}),
            tmp_path / "pairs.parquet",
            settings,
            read_stop_words(),
            cache=tmp_path / "cache",
            progress=lambda *_: None,
        )

    run.path = tmp_path / "pairs.parquet"
    run.rows = lambda: list(read_rows(run.path, Candidate))
    return run


def texts_of(rows):
    return {frozenset([row.sentence1, row.sentence2]) for row in rows}


def test_candidates_are_those_of_the_paper(collection, vectors, make, monkeypatch):
    monkeypatch.setattr(PART_SIZE, 60)
    monkeypatch.setattr("condsim_annotation.candidates._ROWS_PER_GROUP", 7)
    report = make()
    rows = make.rows()
    assert texts_of(rows) == by_hand(collection, *vectors, SETTINGS)
    assert len(rows) == len(texts_of(rows)) == report.written > 20
    assert report.repeated > 0
    assert report.counts.passed == report.written + report.repeated
    assert report.counts.same_text > 0
    manifest = read_manifest(make.path)
    assert manifest["source_revision"] == collection.revision
    assert manifest["settings"]["filters"]["max_iou"] == 0.5
    assert manifest["items"] == "by hand"
    assert manifest["report"]["counts"] == report.counts.to_dict()
    for row in rows:
        assert row.item1 != row.item2
        assert row.pair_id == pair_id_of("s", row.sentence1, row.sentence2)
        assert row.iou <= 0.5
        assert row.text_cosine >= 0
        assert row.min_length == min(len(row.sentence1), len(row.sentence2))


def test_candidates_sample_is_seeded_and_of_all_pairs(make):
    make()
    all_ids = {row.pair_id for row in make.rows()}
    samples = []
    for seed in (0, 0, 1):
        assert make(SETTINGS.replaced(sample=15, seed=seed)).written == 15
        samples.append({row.pair_id for row in make.rows()})
    assert samples[0] == samples[1] != samples[2]
    assert samples[0] < all_ids
    assert len(samples[0]) == 15


def test_candidates_without_filters_and_cosine_are_all_pairs(make):
    report = make(CandidateSettings(k=99), captions=None)
    assert report.item_pairs == 190
    assert report.counts.passed == report.counts.pairs - report.counts.same_text
    first = make.rows()[0]
    assert first.text_cosine is None
    assert first.length_ratio is not None


def test_candidates_interrupted_continue(collection, vectors, make, tmp_path, monkeypatch):
    monkeypatch.setattr(PART_SIZE, 60)
    parts = []
    write = candidates.write_rows

    def write_two(rows, path, kind):
        if len(parts) == 2:
            raise KeyboardInterrupt
        parts.append(path)
        return write(rows, path, kind=kind)

    def write_more(rows, path, kind):
        parts.append(path)
        return write(rows, path, kind=kind)

    monkeypatch.setattr(candidates, "write_rows", write_two)
    with pytest.raises(KeyboardInterrupt):
        make()
    assert not make.path.exists()
    (folder,) = (tmp_path / "cache").glob("parts-*")
    assert sorted(folder.glob("*.parquet")) == parts
    monkeypatch.setattr(candidates, "write_rows", write_more)
    make()
    assert len(parts) == len(set(parts)) > 2
    assert texts_of(make.rows()) == by_hand(collection, *vectors, SETTINGS)


PAIRS = """sentence1,sentence2,similarity
A man rides a red bike.,The man has a red bike.,0.9
A man rides a red bike.,A woman walks her dog.,0.5
A woman walks her dog.,A man rides a red bike.,0.5
A woman walks her dog.,A woman walks her dog.,1
A cat.,A man rides a red bike.,
"""


class Fake:
    def encode(self, sentences):
        return np.array([[1, len(text)] for text in sentences], np.float32)


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


def test_filter_passes_each_pair_once_and_counts(pairs, tmp_path):
    pytest.importorskip("pyarrow")
    rules = PairFilter(FilterSettings(max_iou=0.4, min_length=10))
    assert filter_files([pairs, pairs], rules, output=tmp_path / "out.parquet") == 1
    (row,) = read_rows(tmp_path / "out.parquet", Candidate)
    assert (row.sentence1, row.sentence2) == ("A man rides a red bike.", "A woman walks her dog.")
    assert (row.source, row.similarity, row.text_cosine) == ("pairs", 0.5, None)
    assert (row.iou, row.length_ratio, row.min_length) == (0.0, pytest.approx(5 / 6), 22)
    assert rules.repeated == 6
    assert rules.counts.to_dict() == {
        "pairs": 4,
        "same_text": 1,
        "max_iou": 2,
        "min_text_cosine": 0,
        "min_length_ratio": 0,
        "min_length": 1,
        "passed": 1,
    }
    manifest = read_manifest(tmp_path / "out.parquet")
    assert manifest["counts"]["passed"] == manifest["written"] == 1


def test_filter_cosine_is_that_of_the_encoder(pairs, tmp_path, monkeypatch):
    monkeypatch.setattr("condsim_annotation.pairs._PAIRS_PER_BATCH", 2)
    rules = PairFilter(FilterSettings(), encoder=TextEncoder("fake", "1", Fake()))
    rows = list(rules.passing(read_pairs(pairs)))
    lengths = [(len(row.sentence1), len(row.sentence2)) for row in rows]
    for row, (one, two) in zip(rows, lengths, strict=True):
        cosine = (1 + one * two) / ((1 + one**2) * (1 + two**2)) ** 0.5
        assert row.text_cosine == pytest.approx(cosine, abs=1e-6)
    assert len(rows) == 3


def test_pairs_that_are_candidates_keep_source_items_and_id(pairs, tmp_path):
    rules = PairFilter(FilterSettings())
    filter_files([pairs], rules, output=tmp_path / "one.csv")
    first = list(read_rows(tmp_path / "one.csv", Candidate))
    assert filter_files([tmp_path / "one.csv"], PairFilter(FilterSettings()), output=None) == 3
    assert list(PairFilter(FilterSettings()).passing(read_pairs(tmp_path / "one.csv"))) == first


@pytest.fixture(scope="module")
def csts_train():
    path = Path(__file__).resolve().parents[3] / "../shared/data/csts-reannotated/train.csv"
    if not path.is_file():
        pytest.skip("the re-annotated C-STS data are not here")
    return path


def test_filters_pass_the_pairs_that_the_paper_kept(csts_train):
    """The wider bounds, of Flickr30k, for all pairs: the file does not say which are of COCO."""
    rows = iter_rows(csts_train, columns=("sentence1", "sentence2"))
    pairs = list(dict.fromkeys((row.cells["sentence1"], row.cells["sentence2"]) for row in rows))
    texts = {text: number for number, text in enumerate({text for pair in pairs for text in pair})}
    places = np.array([[texts[text] for text in pair] for pair in pairs])
    made = text_facts(list(texts)).paired(places[:, 0], places[:, 1], vectors=None)
    counts = FilterCounts()
    counts.keep(made, PRESETS["flickr30k"][1].replaced(min_text_cosine=None))
    assert counts.pairs == 5671
    assert counts.same_text == 0
    assert counts.max_iou <= 0.03 * 5671
    assert counts.min_length_ratio <= 0.06 * 5671
    assert counts.min_length == 0


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_items_captions_of_an_item_come_together_and_once(tmp_path):
    path = write(
        tmp_path / "captions.csv", "item_id,caption\nx,one\ny,two\nx,three\nx,one\ny,one\n"
    )
    items = read_items(path)
    assert items.item_ids == ("x", "y")
    assert items.captions == ("one", "three", "two", "one")
    assert items.starts.tolist() == [0, 2, 4]
    assert items.repeated == 1
    assert items.source == "captions"
    assert len(items) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item_id,caption\nx,one\ny,\n", r"row 2 \(line 3\), column 'caption': must not be empty"),
        ("item_id,caption\n,one\ny,two\n", "row 1 .*column 'item_id': must not be empty"),
        ("item_id,caption\nx,one\nx,two\n", "at least two items with different texts, got 1"),
        ("item_id,text\nx,one\n", "column 'caption' is missing"),
    ],
)
def test_items_bad_file_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_items(write(tmp_path / "c.csv", text))


def test_texts_each_distinct_one_is_an_item(tmp_path):
    path = write(tmp_path / "t.csv", "sentence\none\ntwo\none\nthree\n")
    texts = read_items(path, item_column=None, caption_column="sentence", source="mine")
    assert texts.source == "mine"
    assert texts.item_ids == ("row-1", "row-2", "row-4")
    assert texts.captions == ("one", "two", "three")
    assert texts.starts.tolist() == [0, 1, 2, 3]
    assert texts.repeated == 1


PIL = pytest.importorskip("PIL.Image")


@pytest.fixture
def walls(tmp_path):
    """Three items with images."""
    path = tmp_path / "captions.csv"
    path.write_text("item_id,caption\nred,a red wall\nblue.png,blue sea\ngreen,grass\n")
    return read_items(path)


@pytest.fixture
def folder(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for name, color in (("red.jpg", "red"), ("blue.png", "blue"), ("green.PNG", "green")):
        PIL.new("RGB", (20, 14), color).save(photos / name)
    PIL.new("L", (9, 9), 128).save(photos / "of_nobody.png")
    (photos / "notes.txt").write_text("no image")
    return photos


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory, save_random):
    """A random CLIP as sentence-transformers saves it: 32 x 32 pixels, width 16."""
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
    processor = transformers.CLIPProcessor(
        transformers.CLIPImageProcessor(size=32, crop_size=32),
        transformers.CLIPTokenizer(vocab=str(raw / "vocab.json"), merges=str(raw / "merges.txt")),
    )
    save_random(raw, transformers.CLIPModel, config, processor)
    folder = tmp_path_factory.mktemp("clip")
    sentence_transformers.SentenceTransformer(modules=[Transformer(str(raw))]).save(str(folder))
    return folder


def test_image_vectors_are_of_unit_length_and_kept(walls, folder, tiny_clip, tmp_path):
    paths = find_images(walls, folder)
    assert [path.name for path in paths] == ["red.jpg", "blue.png", "green.PNG"]
    arguments = {"cache": tmp_path / "cache", "progress": lambda *_: None, "device": "cpu"}
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


def test_image_damaged_is_named(walls, folder, tiny_clip, tmp_path):
    (folder / "blue.png").write_bytes((folder / "blue.png").read_bytes()[:40])
    paths = find_images(walls, folder)
    with pytest.raises(InputError, match=r"blue\.png cannot be read as an image"):
        image_vectors(
            paths, str(tiny_clip), cache=tmp_path / "c", progress=lambda *_: None, device="cpu"
        )


def test_images_missing_or_twice_are_named(walls, folder):
    PIL.new("RGB", (5, 5)).save(folder / "red.png")
    with pytest.raises(InputError, match=r"'red' has two images, red\.jpg and red\.png"):
        find_images(walls, folder)
    (folder / "red.jpg").unlink()
    (folder / "red.png").unlink()
    (folder / "green.PNG").unlink()
    with pytest.raises(InputError, match="2 of 3 items have no image, the first is 'red'"):
        find_images(walls, folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.ones((4, 2)), r"a row for each of the 3 items .* \(4, 2\)"),
        (np.ones(3), "one array of numbers with two axes"),
        (np.array([["a"], ["b"], ["c"]]), "one array of numbers with two axes"),
        (np.array([[1.0], [np.nan], [1.0]]), "row 1 "),
        (b"1,2,3", "cannot be read as an array"),
        (b"", "cannot be read as an array"),
    ],
)
def test_vectors_of_a_file_that_does_not_fit_refused(walls, tmp_path, content, message):
    path = tmp_path / "v.npy"
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content)
    with pytest.raises(InputError, match=message):
        read_item_vectors(path, walls)
