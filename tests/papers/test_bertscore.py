from __future__ import annotations

import sys

import numpy as np
import pytest
from papers.baselines import BertScoreScorer

from condsim.errors import InputError, MissingExtraError, ModelError

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


def test_bertscore_long_text_is_cut(tiny_roberta_backbone):
    pytest.importorskip("bert_score")
    scorer = BertScoreScorer(str(tiny_roberta_backbone), layer=2)
    scorer._scorer._tokenizer.model_max_length = int(1e30)
    again = BertScoreScorer(str(tiny_roberta_backbone), layer=2)
    assert np.isfinite(again.score(["dog " * 200], ["cat " * 200])).all()


def test_bertscore_bad_layer_or_model_is_one_line(tiny_backbone, tmp_path):
    pytest.importorskip("bert_score")
    with pytest.raises(InputError, match="does not know which layer"):
        BertScoreScorer(str(tiny_backbone))
    with pytest.raises(ModelError, match="layer 3: Invalid num_layers"):
        BertScoreScorer(str(tiny_backbone), layer=3)
    with pytest.raises(ModelError, match="BERTScore cannot load"):
        BertScoreScorer(str(tmp_path), layer=1)


def test_bertscore_empty_text_is_refused(tiny_backbone):
    pytest.importorskip("bert_score")
    scorer = BertScoreScorer(str(tiny_backbone), layer=1)
    with pytest.raises(InputError, match="must have text"):
        scorer.score(["a dog"], [" "])
