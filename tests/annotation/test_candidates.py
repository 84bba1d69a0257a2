from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

from condsim.annotation.candidates import CandidateSettings, make_candidates
from condsim.errors import InputError
from condsim.rows.filters import FilterSettings
from condsim.rows.items import bag_of_words, read_items, read_stop_words
from condsim.rows.records import Candidate, pair_id_of, read_manifest, read_rows

pytest.importorskip("faiss")
pytest.importorskip("pyarrow")

PART = "condsim.annotation.candidates._PART"
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
    """All of §2.2.1 by loops: the texts of the pairs that must come out."""
    cosines = items @ items.T
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines, axis=1)[:, : settings.k].tolist()
    item_pairs = {(min(i, j), max(i, j)) for i, row in enumerate(near) for j in row}
    found, stop_words = set(), read_stop_words()
    for i, j in item_pairs:
        of = [range(collection.starts[x], collection.starts[x + 1]) for x in (i, j)]
        for a, b in itertools.product(*of):
            one, two = collection.captions[a], collection.captions[b]
            bags = bag_of_words(one, stop_words), bag_of_words(two, stop_words)
            iou = len(bags[0] & bags[1]) / max(1, len(bags[0] | bags[1]))
            counts = sorted([len(one.split()), len(two.split())])
            if (
                one != two
                and iou <= settings.filters.max_iou
                and captions[a] @ captions[b] >= settings.filters.min_text_cosine
                and counts[0] / counts[1] >= settings.filters.min_length_ratio
                and min(len(one), len(two)) >= settings.filters.min_length
            ):
                found.add(frozenset([one, two]))
    return found


def make(collection, vectors, folder, settings=SETTINGS, **changes):
    items, captions = vectors
    arguments = {"cache": folder / "cache", "progress": silent, "caption_vectors": captions}
    return make_candidates(
        collection, items, folder / "pairs.parquet", settings=settings, **(arguments | changes)
    )


def test_candidates_are_those_of_the_paper_by_hand(collection, vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(PART, 60)  # several parts
    monkeypatch.setattr("condsim.annotation.candidates._ROWS", 7)  # several row groups
    report = make(collection, vectors, tmp_path)
    rows = list(read_rows(tmp_path / "pairs.parquet", Candidate))
    texts = [frozenset([row.sentence1, row.sentence2]) for row in rows]
    assert set(texts) == by_hand(collection, *vectors, SETTINGS)
    assert len(texts) == len(set(texts)) == report.written > 20
    assert report.repeated > 0
    assert report.counts.passed == report.written + report.repeated
    assert report.counts.same_text > 0
    for row in rows:
        assert row.item1 != row.item2
        assert row.pair_id == pair_id_of("s", row.sentence1, row.sentence2)
        assert row.iou <= 0.5
        assert row.text_cosine >= 0
        assert row.min_length == min(len(row.sentence1), len(row.sentence2))


def test_candidates_manifest_keeps_settings_revision_and_counts(collection, vectors, tmp_path):
    report = make(collection, vectors, tmp_path, provenance={"items": "by hand"})
    manifest = read_manifest(tmp_path / "pairs.parquet")
    assert manifest["source_revision"] == collection.revision
    assert manifest["settings"]["filters"]["max_iou"] == 0.5
    assert manifest["items"] == "by hand"
    assert manifest["report"]["counts"] == report.counts.to_dict()
    assert [one.name for one in (tmp_path / "cache").glob("parts-*")] == []


def test_candidates_same_run_again_is_read_not_made(collection, vectors, tmp_path):
    report = make(collection, vectors, tmp_path)
    before = (tmp_path / "pairs.parquet").stat().st_mtime_ns
    assert make(collection, vectors, tmp_path) == report
    assert (tmp_path / "pairs.parquet").stat().st_mtime_ns == before
    other = SETTINGS.replaced(filters=FILTERS.replaced(min_length=20))
    assert make(collection, vectors, tmp_path, other).written < report.written


def test_candidates_sample_is_seeded_and_of_the_whole(collection, vectors, tmp_path):
    make(collection, vectors, tmp_path)
    whole = {row.pair_id for row in read_rows(tmp_path / "pairs.parquet", Candidate)}

    def drawn(seed):
        report = make(collection, vectors, tmp_path, SETTINGS.replaced(sample=15, seed=seed))
        rows = list(read_rows(tmp_path / "pairs.parquet", Candidate))
        assert report.written == len(rows) == 15
        return {row.pair_id for row in rows}

    first = drawn(0)
    assert first == drawn(0) != drawn(1)
    assert first < whole


def test_candidates_without_filters_and_cosine_are_all_pairs(collection, vectors, tmp_path):
    report = make(collection, vectors, tmp_path, CandidateSettings(k=99), caption_vectors=None)
    assert report.item_pairs == 190
    assert report.counts.passed == report.counts.pairs - report.counts.same_text
    first = next(iter(read_rows(tmp_path / "pairs.parquet", Candidate)))
    assert first.text_cosine is None
    assert first.length_ratio is not None


def test_candidates_none_pass_is_an_empty_file(collection, vectors, tmp_path):
    settings = CandidateSettings(k=4, filters=FilterSettings(min_length=999))
    assert make(collection, vectors, tmp_path, settings).written == 0
    with pytest.raises(InputError, match="has no rows"):
        list(read_rows(tmp_path / "pairs.parquet", Candidate))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"caption_vectors": None}, "'min_text_cosine' needs the vectors of the captions"),
        ({"caption_vectors": np.ones((3, 5))}, "a vector for each of the .* captions of 's'"),
    ],
)
def test_candidates_wrong_vectors_refused(collection, vectors, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        make(collection, vectors, tmp_path, **changes)


def test_candidates_vectors_of_other_items_refused(collection, vectors, tmp_path):
    with pytest.raises(InputError, match=r"for each of the 20 items of 's'\. Got 19"):
        make(collection, (vectors[0][:19], vectors[1]), tmp_path)


def test_candidates_stopped_half_way_go_on_from_there(collection, vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(PART, 60)
    made = []

    def record(self, path, start, stop):
        if len(made) == stops_after:
            raise KeyboardInterrupt
        made.append(path)
        write(self, path, start, stop)

    write = importlib.import_module("condsim.annotation.candidates").PartMaker.write
    monkeypatch.setattr("condsim.annotation.candidates.PartMaker.write", record)
    stops_after = 2
    with pytest.raises(KeyboardInterrupt):
        make(collection, vectors, tmp_path)
    assert not (tmp_path / "pairs.parquet").exists()
    (folder,) = (tmp_path / "cache").glob("parts-*")
    assert sorted(folder.iterdir()) == made
    stops_after = None
    make(collection, vectors, tmp_path)
    assert len(made) == len(set(made)) > 2
    rows = list(read_rows(tmp_path / "pairs.parquet", Candidate))
    texts = {frozenset([row.sentence1, row.sentence2]) for row in rows}
    assert texts == by_hand(collection, *vectors, SETTINGS)
