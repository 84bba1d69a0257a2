from __future__ import annotations

import logging
import pickle
import warnings

import numpy as np
import pytest

from condsim.errors import ScoredWarning
from condsim.model.base import PairScorer
from condsim.model.legibility import collect_unread, record_unread
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER

READ = [
    "The café is great — “really”, 5€, naïve.",
    "Über die Straße gehen",
    "Việt Nam đẹp lắm",
    "α-helix of 5 µm",
    "I moved to 北京 last year",
    "We did it ✓ and it works ✓ so well ✓",
    "!!!",
]
UNREAD = [
    "Great 👍",
    "🙂",
    "你好今天天气很好",
    "안녕하세요 오늘",
    "مرحبا بالعالم",
    "Привет, как дела?",
    "Καλημέρα κόσμε",
    "ありがとう",
    "0123456789abcdef" * 8,
    "\u200b",
    "Пакет " * 10 + "a dog runs",
]


@pytest.fixture(scope="module")
def model():
    return OnnxScorer(DEFAULT_FOLDER, threads=1)


@pytest.mark.parametrize("text", READ)
def test_reads_text_with_learned_words_is_true(model, text):
    assert model.reads(text)


@pytest.mark.parametrize("text", UNREAD)
def test_reads_text_of_unknown_words_or_script_is_false(model, text):
    assert not model.reads(text)
    assert model.unread_parts([text]) == {text: text}


def test_unread_parts_of_a_text_that_is_mostly_read_are_its_words(model):
    texts = ["The food was great and cheap 😍", "plain", "The food was great, 😍 and 😡"]
    assert model.unread_parts(texts) == {texts[0]: "😍", texts[2]: "😍 😡"}


@pytest.mark.parametrize(
    "pair",
    [("Great 👍", "Great 👎"), ("你好", "再见"), ("Such a fine day 😍", "Such a fine day 😡")],
)
def test_score_unread_texts_warns_once_a_call(model, pair):
    with pytest.warns(ScoredWarning, match="cannot read 2 texts") as caught:
        model.score([*pair] * 2, [pair[1], pair[0]] * 2, "the topic")
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_score_unread_condition_and_encode_warn(model):
    with pytest.warns(ScoredWarning, match="1 text, such as '天气'"):
        model.score("A dog.", "A cat.", "天气")
    with pytest.warns(ScoredWarning, match="1 text"):
        model.encode(["A dog.", "你好"])


def test_score_read_texts_does_not_warn(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(READ, [*reversed(READ)], "the topic")
        model.score("Such a fine day 😍", "Such a fine day 😍", "the topic")


def test_explain_unread_texts_warns_of_both(model):
    with pytest.warns(ScoredWarning, match="2 texts") as caught:
        model.explain("Great 👍", "Great 👎")
    assert len(caught) == 1


def test_same_texts_that_differ_in_what_is_not_read_are_not_the_same(model):
    happy, angry = "The staff of the hotel was kind 😍", "The staff of the hotel was kind 😡"
    assert not model.same(happy, angry, ["the staff"], at_least=0.1)
    assert model.same(happy, happy, ["the staff"], at_least=0.1)
    same = model.same([happy, happy, "a dog"], [angry, happy, "a dog"], "the staff", at_least=0.1)
    assert same.tolist() == [False, True, True]


def test_pickled_model_reads_as_before(model):
    copy = pickle.loads(pickle.dumps(model))
    assert not copy.reads("你好")


def test_encoder_of_sentence_transformers_reads_by_its_tokenizer(tiny_backbone):
    from condsim.model.builders import build_bi_encoder
    from condsim.model.torch import EncoderScorer

    scorer = EncoderScorer(build_bi_encoder(str(tiny_backbone)), name="tiny")
    assert scorer.reads("the dog")
    assert not scorer.reads("你好")


def test_reads_model_without_tokens_is_true():
    from condsim.model.embedding import EmbeddingScorer

    class Words(EmbeddingScorer):
        def _embed(self, texts):
            return np.ones((len(texts), 1), np.float32)

    scorer = Words(name="words", order="condition-first", dimension=1, calibration=None)
    assert isinstance(scorer, PairScorer)
    assert scorer.reads("你好")
    assert scorer.score("你好", "再见") == 1


def test_collect_unread_nested_blocks_log_each_text_once(caplog):
    with caplog.at_level(logging.WARNING, "condsim"), collect_unread(log=True):
        for _ in range(3):
            with collect_unread():
                record_unread(["你好", "再见"])
        with collect_unread(log=False):
            record_unread(["ignored"])
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("The model cannot read 2 texts, such as '你好': ")
