from __future__ import annotations

import gzip

import numpy as np
import pytest
from papers.baselines import GloveScorer, read_vectors

from condsim.errors import InputError

FILE = "dog 1 0 0\ncat 0.6 0.8 0\nruns 0 0 1\n. . 5 5 5\n"


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "tiny.txt"
    path.write_text(FILE)
    return path


def test_read_vectors_words_with_spaces_and_repeats(vectors):
    vectors.write_text("4 3\n" + FILE + "dog 9 9 9\n")
    words, found = read_vectors(vectors)
    assert words == ["dog", "cat", "runs", ". ."]
    assert found.dtype == np.float32
    assert found[0].tolist() == [1, 0, 0]
    assert found[3].tolist() == [5, 5, 5]


def test_read_vectors_gzipped(tmp_path):
    path = tmp_path / "tiny.txt.gz"
    path.write_bytes(gzip.compress(FILE.encode()))
    assert len(read_vectors(path)[0]) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n", "contains no word vectors"),
        ("dog 1 2\ncat 1\n", "line 2: must be a word"),
        ("dog 1 2\ncat 1 x\n", "line 2: must be a word and the finite"),
        ("dog 1 2\ncat 1 nan\n", "line 2: must be a word"),
        ("<html>\n", "line 1: must be a word"),
        ("dog 1\n", "line 1: must be a word"),
    ],
)
def test_read_vectors_bad_file_names_the_line(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_vectors(path)


def test_read_vectors_missing_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"none\.txt"):
        read_vectors(tmp_path / "none.txt")


def test_glove_scorer_averages_words_without_stop_words(vectors):
    pytest.importorskip("sentence_transformers")
    scorer = GloveScorer(vectors)
    # cos of (1, 0, 1) / 2 and (0.6, 0.8, 1) / 2 is 1.6 / (sqrt 2 * sqrt 2); "the" is a stop word.
    assert scorer.score("The dog runs!", "the Cat runs", scale="raw") == pytest.approx(0.8)
    assert scorer.name == "glove:tiny.txt"


def test_glove_scorer_unknown_words_and_conditions(vectors):
    pytest.importorskip("sentence_transformers")
    scorer = GloveScorer(vectors)
    scores = scorer.score(["nothing here", "dog"], ["dog", "cat"], scale="raw")
    assert scores.tolist() == pytest.approx([0, 0.6])
    blind = scorer.score(["dog", "dog"], ["cat", "cat"], ["cat", "the size"], scale="raw")
    assert blind.tolist() == pytest.approx([0.6, 0.6])


def test_glove_scorer_agrees_with_sentence_transformers(vectors, monkeypatch):
    library = pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings

    vectors.write_text("dog 1 0 0\ncat 0.6 0.8 0\nruns 0 0 1\n")
    words = WordEmbeddings.from_text_file(str(vectors))
    model = library.SentenceTransformer(modules=[words, Pooling(3, pooling_mode="mean")])
    texts = ["The dog runs.", "A cat", "dog cat dog"]
    theirs = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    assert np.allclose(GloveScorer(vectors).encode(texts), theirs, atol=1e-6)
