from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from condsim.contexts.corpus.preparing import prepare_corpus
from condsim.errors import InputError, MissingExtraError
from condsim.evaluation.evaluate import evaluate
from condsim.model import tfidf as tfidf_cosine
from condsim.model.baselines import baseline
from condsim.model.tfidf import TfIdfCosineScorer
from condsim.types import Task

FIRST = ["The red lamp is on.", "A wide oak table", "the red lamp", "Größe!"]
SECOND = ["The blue lamp is off.", "A lamp", "lamp: red, the", "größe"]
TEXT = "The lamp is on the table.\n\nThe table is red.\nNothing else is here today.\n"


def test_tfidf_cosine_equals_scikit_learn():
    vectorizer = TfidfVectorizer().fit(FIRST + SECOND)
    products = vectorizer.transform(FIRST).multiply(vectorizer.transform(SECOND))
    expected = np.asarray(products.sum(axis=1)).ravel()
    scores = baseline("tfidf-cosine").score(FIRST, SECOND, None)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores[2:], 1, rtol=1e-6)


def test_tfidf_cosine_hand_worked_value():
    # words ab, cd; df 2 and 1 of 2 sentences: idf 1 and ln(3/2) + 1 = 1.405465
    # cosine of (1, 1.405465) and (1, 0): 1 / sqrt(1 + 1.975333) = 0.579739
    score = TfIdfCosineScorer().score(["ab cd"], ["ab"], ["not looked at"])
    np.testing.assert_allclose(score, [0.579739], atol=1e-6)


def test_tfidf_cosine_repeated_sentences_do_not_move_the_idf():
    once = TfIdfCosineScorer().score(FIRST, SECOND, None)
    twice = TfIdfCosineScorer().score(FIRST * 2, SECOND * 2, None)
    np.testing.assert_array_equal(twice, np.tile(once, 2))


def test_tfidf_cosine_idf_from_text_counts_its_lines(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    scorer = TfIdfCosineScorer(idf_from=path)
    # df of 3 lines: red 1, lamp 1, oak 0: idf ln(4/2) + 1 = 1.693147, and ln(4/1) + 1 = 2.386294
    # cosine of (red, lamp) and (red, oak): 1.693147^2 / (2.394472 * 2.925919) = 0.409183
    scores = scorer.score(["red lamp"], ["red oak"], None)
    np.testing.assert_allclose(scores, [0.409183], atol=1e-5)
    again = scorer.score(["red lamp", FIRST[0]], ["red oak", SECOND[0]], None)
    assert again[0] == scores[0]  # no longer depends on what else is scored
    assert scorer.fitted_on is not None
    assert scorer.fitted_on.startswith("idf of text.txt ")
    np.testing.assert_array_equal(
        TfIdfCosineScorer(idf_from=packed).score(["red lamp"], ["red oak"], None), scores
    )


def test_tfidf_cosine_idf_from_corpus_counts_its_sentences(tmp_path, monkeypatch):
    pytest.importorskip("sentencex")
    (tmp_path / "text.txt").write_text(TEXT)
    corpus = prepare_corpus([tmp_path / "text.txt"], tmp_path / "corpus")
    assert len(corpus) == 3
    monkeypatch.setattr(tfidf_cosine, "_BLOCK", 2)
    scorer = TfIdfCosineScorer(idf_from=corpus)
    scores = scorer.score(["red lamp"], ["red oak"], None)
    np.testing.assert_allclose(scores, [0.409183], atol=1e-5)
    assert scorer.fitted_on == f"idf of corpus {corpus.revision[:12]}"


def test_tfidf_cosine_counting_that_was_stopped_begins_anew():
    class Corpus:
        folder, revision, stopped = Path("corpus"), "0" * 12, False

        def __len__(self):
            return 3

        def sentences(self, ids):
            if not self.stopped:
                self.stopped = True
                raise KeyboardInterrupt
            return [TEXT.replace("\n\n", "\n").splitlines()[number] for number in ids]

    scorer = TfIdfCosineScorer(idf_from=Corpus())
    with pytest.raises(KeyboardInterrupt):
        scorer.score(["red lamp"], ["red oak"], None)
    scores = scorer.score(["red lamp"], ["red oak"], None)
    np.testing.assert_allclose(scores, [0.409183], atol=1e-5)


def test_tfidf_cosine_sentences_without_words_score_zero():
    scores = TfIdfCosineScorer().score(["a b", "?!"], ["a b", "?!"], None)
    assert scores.tolist() == [0, 0]
    mixed = TfIdfCosineScorer().score(["a b", "red"], ["red", "red"], None)
    np.testing.assert_allclose(mixed, [0, 1], rtol=1e-6)


def test_tfidf_cosine_text_without_lines_is_an_error(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n\n")
    with pytest.raises(
        InputError, match=r"idf of text\.txt .*: there is no text to count an idf on"
    ):
        TfIdfCosineScorer(idf_from=path).score(FIRST, SECOND, None)
    with pytest.raises(InputError, match="no such file"):
        TfIdfCosineScorer(idf_from=tmp_path / "none.txt")


def test_tfidf_cosine_without_scikit_learn_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(MissingExtraError, match=r"condsim\[train\]"):
        TfIdfCosineScorer().score(FIRST, SECOND, None)


def test_evaluate_tfidf_cosine_is_not_fitted_out_of_fold():
    labels = np.asarray([4, 1, 5, 5], np.float32)
    task = Task("plain", "0", tuple(FIRST), tuple(SECOND), None, labels, (0.0, 5.0))
    report = evaluate(baseline("word-overlap"), task, baselines=["tfidf-cosine"], resamples=5)
    assert [result.name for result in report.baselines] == ["tfidf-cosine"]
    assert report.baselines[0].fitted_on is None
