"""The TF-IDF index: scores by hand and of scikit-learn, files and faults."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from condsim.errors import InputError
from condsim_contexts.corpus import Corpus, prepare_corpus
from condsim_contexts.index import TfidfIndex, top_chunks
from condsim_contexts.recipe import CorpusSettings

pytest.importorskip("filelock")


@pytest.fixture
def index(small_corpus: Corpus, tmp_path: Path) -> TfidfIndex:
    return TfidfIndex.build(
        small_corpus.chunk_texts(), tmp_path / "index", revision=small_corpus.revision
    )


def random_texts(count: int, *, seed: int = 0, words: int = 120) -> list[str]:
    """Texts of words as unevenly frequent as those of a language."""
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, words + 1)
    names = [f"W{number:02d}é" for number in range(words)]
    sizes = random.integers(0, 40, size=count)
    drawn = [random.choice(words, size=size, p=chances / chances.sum()) for size in sizes]
    return [" ".join(names[word] for word in row) + " a I." for row in drawn]


def test_index_scores_match_hand_worked_value(tmp_path: Path) -> None:
    index = TfidfIndex.build(
        ["red fox", "red red owl", "cat"], tmp_path / "i", revision="1", min_df=1
    )
    ((chunks, scores),) = index.search(["red bird"])
    # red is in 2 of 3 chunks, every other term in 1; bird is unknown, so the query is red alone.
    red, rare = math.log(4 / 3) + 1, math.log(4 / 2) + 1
    # chunk 0: red, fox, "red fox"; chunk 1: red twice, owl, "red red", "red owl"
    first = red / math.sqrt(red**2 + 2 * rare**2)
    second = 2 * red / math.sqrt(4 * red**2 + 3 * rare**2)
    assert chunks.tolist() == [1, 0]
    np.testing.assert_allclose(scores, [second, first], rtol=1e-6)
    assert scores.dtype == np.float32
    assert chunks.dtype == np.int64


@pytest.mark.parametrize("min_df", [1, 2, 3])
def test_index_scores_equal_scikit_learn(
    tmp_path: Path, min_df: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    # Many parts and blocks: the borders are where faults would be.
    monkeypatch.setattr("condsim_contexts.index._OCCURRENCES_PER_PART", 300)
    monkeypatch.setattr("condsim_contexts.index._WEIGHTS_PER_BLOCK", 100)
    monkeypatch.setattr("condsim_contexts.index._CHUNKS_PER_PRODUCT", 64)
    monkeypatch.setattr("condsim_contexts.index._SCORES_PER_BATCH", 300 * 4)
    texts, queries = random_texts(300), [*random_texts(20, seed=1, words=130), "", "a zz"]
    index = TfidfIndex.build(texts, tmp_path / "index", revision="1", min_df=min_df)
    vectorizer = text.TfidfVectorizer(ngram_range=(1, 2), min_df=min_df)
    matrix = vectorizer.fit_transform(texts)
    expected = (vectorizer.transform(queries) @ matrix.T).toarray()
    for (chunks, scores), row in zip(index.search(queries, top_n=300), expected, strict=True):
        assert len(chunks) == (row > 0).sum()
        np.testing.assert_allclose(scores, row[chunks], atol=1e-6)
        assert (np.diff(scores) <= 0).all()
    for (chunks, scores), row in zip(index.search(queries, top_n=9), expected, strict=True):
        best_nine = np.sort(row)[::-1][:9]
        np.testing.assert_allclose(scores, best_nine[best_nine > 0], atol=1e-6)
        assert len(set(chunks.tolist())) == len(chunks)


def test_best_of_equal_scores_takes_the_earlier_chunk() -> None:
    scores = np.array([0.5, 0, 0.25, 0.5, 0.75, 0.25, 0.5], dtype=np.float32)
    assert top_chunks(scores, 3)[0].tolist() == [4, 0, 3]
    assert top_chunks(scores, 5)[0].tolist() == [4, 0, 3, 6, 2]
    assert top_chunks(scores, 7)[0].tolist() == [4, 0, 3, 6, 2, 5]
    assert top_chunks(scores, 99)[1].tolist() == [0.75, 0.5, 0.5, 0.5, 0.25, 0.25]


def test_index_same_corpus_is_opened_and_another_refused(tmp_path: Path) -> None:
    texts = ["one two", "one two"]
    TfidfIndex.build(texts, tmp_path / "index", revision="1")
    again = TfidfIndex.build([], tmp_path / "index", revision="1")  # not read
    assert len(again) == 2
    for changed in ({"revision": "2"}, {"revision": "1", "min_df": 1}):
        with pytest.raises(InputError):
            TfidfIndex.build(texts, tmp_path / "index", **changed)


def test_index_bad_input_is_an_error(tmp_path: Path, index: TfidfIndex) -> None:
    with pytest.raises(InputError, match="No word is in 2 chunks or more of the 1"):
        TfidfIndex.build(["one two"], tmp_path / "few", revision="1")
    with pytest.raises(InputError, match="has no context"):
        TfidfIndex.build([], tmp_path / "few", revision="1")
    assert not (tmp_path / "few").exists()
    with pytest.raises(InputError, match=r"'min_df' must be 1 or more; got 0\."):
        TfidfIndex.build([], tmp_path / "few", revision="1", min_df=0)
    with pytest.raises(InputError):
        index.search(["x"], top_n=0)
    with pytest.raises(InputError):
        TfidfIndex(tmp_path / "missing")


def test_index_damaged_is_an_error(index: TfidfIndex) -> None:
    np.save(index.folder / "weights.npy", np.zeros(3, dtype=np.float32))
    with pytest.raises(InputError, match="damaged: its files do not belong together"):
        TfidfIndex(index.folder)
    (index.folder / "words.txt").write_text("one\n")
    with pytest.raises(InputError):
        TfidfIndex(index.folder)


def test_index_does_not_find_documents_of_one_sentence(tmp_path: Path) -> None:
    captions = tmp_path / "captions.tsv"
    captions.write_text("caption\nA dog runs on the beach today.\nA cat sleeps on the sofa.\n")
    text = tmp_path / "text.txt"
    text.write_text("A dog runs in the park.\nIt likes the beach a lot.\nA cat looks at a dog.\n")
    corpus = prepare_corpus(
        [captions, text], tmp_path / "corpus", settings=CorpusSettings(chunk_sentences=2)
    )
    assert corpus.has_context.tolist() == [False, False, True, True, True]
    index = TfidfIndex.build(
        corpus.chunk_texts(), tmp_path / "index", revision=corpus.revision, min_df=1
    )
    found = {int(chunk) for chunks, _ in index.search(["dog cat beach sofa"]) for chunk in chunks}
    assert found == {2, 3}
    text_alone = prepare_corpus(
        [text], tmp_path / "alone", settings=CorpusSettings(chunk_sentences=2)
    )
    alone = TfidfIndex.build(text_alone.chunk_texts(), tmp_path / "i", revision="1", min_df=1)
    (_, scores), (_, wanted) = index.search(["dog park"])[0], alone.search(["dog park"])[0]
    np.testing.assert_allclose(scores, wanted, rtol=1e-6)  # as if the captions were not there


def test_likeness_match_hand_worked_value(tmp_path: Path) -> None:
    index = TfidfIndex.build(
        ["red fox", "red red owl", "cat"], tmp_path / "i", revision="1", min_df=1
    )
    likeness = index.likeness("red owl", ["red fox", "Owl!", "bird", "red owl bird"])
    red, rare = math.log(4 / 3) + 1, math.log(4 / 2) + 1
    square = red**2 + 2 * rare**2  # of red, owl and "red owl", as of red, fox and "red fox"
    np.testing.assert_allclose(likeness, [red**2 / square, rare / math.sqrt(square), 0, 1], 1e-6)
    assert index.likeness("red", []).tolist() == []
