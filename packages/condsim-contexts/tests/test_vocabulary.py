"""The tokenizer of a corpus, and its tokens on disk."""

from __future__ import annotations

import numpy as np
import pytest

from condsim_contexts.recipe import SPECIAL_TOKENS
from condsim_contexts.tokens import CorpusTokens, learn_vocabulary


def test_encode_capitals_and_first_word_are_the_word(vocabulary):
    assert [vocabulary.pad_id, vocabulary.start_id, vocabulary.end_id] == [0, 1, 2]
    first, second = vocabulary.encode(["The BAKER", "and the baker"])
    np.testing.assert_array_equal(first, second[-len(first) :])


def test_encode_text_of_a_special_token_is_plain_text(vocabulary):
    (ids,) = vocabulary.encode(["<sep> </s>"])
    assert not set(ids.tolist()) & set(range(len(SPECIAL_TOKENS)))


def test_learned_folder_is_a_transformers_tokenizer(vocabulary, vocabulary_folder):
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(vocabulary_folder)
    assert tokenizer.pad_token == "<pad>"
    assert tokenizer.mask_token == "<mask>"
    ids = tokenizer("The baker").input_ids
    assert (ids[0], ids[-1]) == (vocabulary.start_id, vocabulary.end_id)
    (plain,) = vocabulary.encode(["The baker"])
    assert ids[1:-1] == plain.tolist()


def test_learn_vocabulary_again_opens_it(small_corpus, tmp_path, monkeypatch):
    first = learn_vocabulary(small_corpus, tmp_path, size=300)
    monkeypatch.setattr(type(small_corpus), "sentences", None)  # nothing is read
    assert learn_vocabulary(small_corpus, tmp_path, size=300).revision == first.revision


def test_learn_vocabulary_killed_before_its_end_is_learned_anew(small_corpus, tmp_path):
    learn_vocabulary(small_corpus, tmp_path, size=300)
    (tmp_path / "settings.json").unlink()
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    assert len(learn_vocabulary(small_corpus, tmp_path, size=300)) == 300


def test_corpus_tokens_are_those_of_the_sentences(small_corpus, vocabulary):
    tokens = CorpusTokens.build(small_corpus, vocabulary)
    assert len(tokens) == len(small_corpus)
    ids = np.array([0, 299, 17])
    for found, wanted in zip(
        tokens.take(ids, most=1000), vocabulary.encode(small_corpus.sentences(ids)), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(tokens.take(ids[:1], most=3)[0], tokens.take([0], most=99)[0][:3])
