from __future__ import annotations

import itertools

import numpy as np
import pytest

from condsim.annotation import candidates
from condsim.annotation.candidates import CandidateSettings, make_candidates
from condsim.annotation.items import Embeddings, read_items
from condsim.errors import InputError
from condsim.rows.pairs import (
    Candidate,
    FilterSettings,
    bag_of_words,
    pair_id_of,
    read_stop_words,
)
from condsim.rows.records import read_manifest, read_rows

pytest.importorskip("faiss")
pytest.importorskip("pyarrow")

PART_SIZE = "condsim.annotation.candidates._PAIRS_PER_PART"
FILTERS = FilterSettings(max_iou=0.5, min_text_cosine=0.0, min_length_ratio=0.5, min_length=12)
SETTINGS = CandidateSettings(k=4, filters=FILTERS)
WORDS = "man woman dog cat ball street park red blue runs sits plays with the a on".split()


def silent(stage, done, total):
    pass


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
            progress=silent,
        )

    run.path = tmp_path / "pairs.parquet"
    run.rows = lambda: list(read_rows(run.path, Candidate))
    return run


def texts_of(rows):
    return {frozenset([row.sentence1, row.sentence2]) for row in rows}


def test_candidates_are_those_of_the_paper(collection, vectors, make, monkeypatch):
    monkeypatch.setattr(PART_SIZE, 60)
    monkeypatch.setattr("condsim.annotation.candidates._ROWS_PER_GROUP", 7)
    report = make()
    rows = make.rows()
    assert texts_of(rows) == by_hand(collection, *vectors, SETTINGS)
    assert len(rows) == len(texts_of(rows)) == report.written > 20
    assert report.repeated > 0
    assert report.counts.passed == report.written + report.repeated
    assert report.counts.same_text > 0
    for row in rows:
        assert row.item1 != row.item2
        assert row.pair_id == pair_id_of("s", row.sentence1, row.sentence2)
        assert row.iou <= 0.5
        assert row.text_cosine >= 0
        assert row.min_length == min(len(row.sentence1), len(row.sentence2))


def test_candidates_manifest_has_settings_revision_and_counts(collection, make, tmp_path):
    report = make()
    manifest = read_manifest(make.path)
    assert manifest["source_revision"] == collection.revision
    assert manifest["settings"]["filters"]["max_iou"] == 0.5
    assert manifest["items"] == "by hand"
    assert manifest["report"]["counts"] == report.counts.to_dict()
    assert list((tmp_path / "cache").glob("parts-*")) == []


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


def test_candidates_none_pass_is_an_empty_file(make):
    assert make(CandidateSettings(k=4, filters=FilterSettings(min_length=999))).written == 0
    with pytest.raises(InputError, match="has no rows"):
        make.rows()


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
