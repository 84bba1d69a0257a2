from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from papers.baselines import BertScoreScorer, CorpusTfIdfScorer, GloveScorer, read_vectors

from condsim.errors import InputError, MissingExtraError

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n", "contains no word vectors"),
        ("dog 1 2\ncat 1\n", "line 2: must be a word"),
        ("dog 1 2\ncat 1 nan\n", "line 2: must be a word"),
        ("dog 1\n", "line 1: must be a word"),
    ],
)
def test_read_vectors_bad_file_names_the_line(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_vectors(path)


def test_glove_scorer_averages_words_without_stop_words(vectors):
    pytest.importorskip("sentence_transformers")
    scorer = GloveScorer(vectors)
    # cos of (1, 0, 1) / 2 and (0.6, 0.8, 1) / 2 is 1.6 / (sqrt 2 * sqrt 2); "the" is a stop word.
    assert scorer.score("The dog runs!", "the Cat runs", scale="raw") == pytest.approx(0.8)
    assert scorer.name == "glove:tiny.txt"


PAIRS = (["a dog runs", "two red cats"], ["a dog runs", "the street in a park"])


def test_bertscore_without_the_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with pytest.raises(MissingExtraError, match=r"condsim\[train,bertscore\]"):
        BertScoreScorer("bert-base-uncased")


def test_bertscore_is_the_greedy_matching_of_tokens(tiny_backbone):
    pytest.importorskip("bert_score")
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    scorer = BertScoreScorer(str(tiny_backbone), layer=1)
    found = scorer.score(*PAIRS, ["not", "looked at"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_backbone)
    model = transformers.AutoModel.from_pretrained(tiny_backbone).eval()

    def vectors(text):
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        tokens = states.hidden_states[1][0].numpy()
        return tokens / np.linalg.norm(tokens, axis=1, keepdims=True)

    for score, one, two in zip(found, *PAIRS, strict=True):
        cosines = vectors(one) @ vectors(two).T
        # The first and the last token, [CLS] and [SEP], may be matched and do not count.
        precision = cosines.max(axis=1)[1:-1].mean()
        recall = cosines.max(axis=0)[1:-1].mean()
        expected = 2 * precision * recall / (precision + recall)
        assert score == pytest.approx(expected, abs=1e-4)
    assert found[0] == pytest.approx(1, abs=1e-5)
    assert np.allclose(found, scorer.score(PAIRS[1], PAIRS[0]), atol=1e-5)
    assert scorer.name == f"bertscore:{tiny_backbone.name}@1"


class Texts:
    """Three sentences, whose first reading is interrupted."""

    folder, revision, interrupted = Path("corpus"), "0123456789abcdef", False

    def __len__(self):
        return 3

    def sentences(self, ids):
        if not self.interrupted:
            self.interrupted = True
            raise KeyboardInterrupt
        texts = ["The lamp is on the table.", "The table is red.", "Nothing else is here."]
        return [texts[number] for number in ids]


def test_corpus_tfidf_counts_sentences_and_counts_again_after_an_interrupt():
    scorer = CorpusTfIdfScorer(Texts())
    with pytest.raises(KeyboardInterrupt):
        scorer.score(["red lamp"], ["red oak"], None)
    # df of 3 sentences: red 1, lamp 1, oak 0: idf ln(4/2) + 1 = 1.693147 and ln(4/1) + 1 = 2.386294
    # cosine of (red, lamp) and (red, oak): 1.693147^2 / (2.394472 * 2.925919) = 0.409183
    scores = scorer.score(["red lamp"], ["red oak"], None)
    np.testing.assert_allclose(scores, [0.409183], atol=1e-5)
    again = scorer.score(["red lamp", "the red lamp"], ["red oak", "a blue lamp"], None)
    assert again[0] == pytest.approx(scores[0], abs=1e-6)
    assert scorer.fitted_on == "idf of corpus 0123456789ab"
