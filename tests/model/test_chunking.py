"""Long texts are read in chunks; what is truncated is counted in one warning."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from condsim.errors import InputError, ModelError
from condsim.model import reading
from condsim.model.applicability import PROBE
from condsim.model.inputs import collect_truncations, record_truncation
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER
from condsim.model.torch import CrossEncoderScorer, EncoderScorer

# 6 tokens each for the tiny tokenizer, full stop included.
SENTENCES = ["the dog runs in the.", "a red cat on a.", "the man throws a ball."]
LONG = " ".join(SENTENCES * 6)
CONDITION = "the animal"


@pytest.fixture(scope="module")
def tiny(exported):
    return OnnxScorer(exported, threads=1)


@pytest.fixture(scope="module")
def tiny_torch(trained):
    from condsim.model.torch import load_trained

    return load_trained(trained, device="cpu")


@pytest.fixture
def tri(tiny_backbone):
    from condsim.model.tri_encoder import build_tri_encoder

    return EncoderScorer(build_tri_encoder(str(tiny_backbone), max_seq_length=32), name="tri")


def token_count(scorer, text):
    return len(scorer._chunker._tokenizer.encode(text, add_special_tokens=False))


def test_chunks_long_text_splits_at_the_ends_of_sentences(tiny):
    assert tiny.chunks(SENTENCES[0], CONDITION) == [SENTENCES[0]]
    chunks = tiny.chunks(LONG, CONDITION)
    # 32 tokens are read, less 3 special ones and 2 or more of the condition.
    assert " ".join(chunks) == LONG
    assert all(chunk.endswith(".") for chunk in chunks)
    assert max(token_count(tiny, chunk) for chunk in chunks) <= 27
    assert min(token_count(tiny, chunk) for chunk in chunks[:-1]) > 12


def test_chunks_without_full_stops_split_at_lines_then_words_then_anywhere(tiny):
    assert tiny.chunks("the dog runs\n" * 12)[0].endswith("runs")
    assert " ".join(tiny.chunks("dog " * 100)).split() == ["dog"] * 100
    chunks = tiny.chunks("xyz" * 30, CONDITION)
    assert "".join(chunks) == "xyz" * 30
    assert len(chunks) > 1


@pytest.mark.parametrize("condition", [None, CONDITION])
def test_encode_long_text_is_the_mean_of_its_chunks_by_tokens(tiny, condition):
    chunks = tiny.chunks(LONG, condition)
    assert len(chunks) > 1
    weights = np.array([token_count(tiny, chunk) for chunk in chunks])
    mean = weights @ tiny.encode(chunks, condition)
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(tiny.encode(LONG, condition), expected, atol=1e-6)


def test_encode_long_text_prefers_the_chunks_that_speak_of_the_condition(tiny, monkeypatch):
    chunks = tiny.chunks(LONG, CONDITION)
    chances = np.full(len(chunks), 0.5, np.float32)
    chances[0], chances[-1] = 1, 0
    plain = tiny.encode(chunks)

    class Head:
        def check(self, probe, *, model):
            np.testing.assert_allclose(probe, tiny.encode(*PROBE), atol=1e-6)

        def probability(self, rows):
            np.testing.assert_allclose(rows.under, tiny.encode(chunks, CONDITION), atol=1e-6)
            np.testing.assert_allclose(rows.plain, plain, atol=1e-6)
            asked = np.tile(tiny.encode(CONDITION), (len(chunks), 1))
            np.testing.assert_allclose(rows.condition, asked, atol=1e-6)
            return chances

    monkeypatch.setattr(tiny, "head", Head())
    # 0.5 to the power 8 is 1 / 256; no chance is taken for less than 0.01.
    weights = np.array([token_count(tiny, chunk) for chunk in chunks], np.float64)
    weights *= [1, *[1 / 256] * (len(chunks) - 2), 1e-16]
    mean = weights @ tiny.encode(chunks, CONDITION)
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(tiny.encode(LONG, CONDITION), expected, atol=1e-6)


def test_encode_long_text_with_the_head_of_another_model_goes_by_length(tiny, monkeypatch):
    expected = tiny.encode(LONG, CONDITION)
    head = OnnxScorer(DEFAULT_FOLDER, threads=1).head
    monkeypatch.setattr(tiny, "head", head)
    np.testing.assert_array_equal(tiny.encode(LONG, CONDITION), expected)
    with pytest.raises(ModelError, match="Fit a head for this model"):
        tiny.mentions(LONG, CONDITION)


def test_encode_long_texts_same_in_torch_and_onnx(tiny, tiny_torch):
    texts = [LONG, "a dog", "cat " * 90, SENTENCES[1]]
    for condition in (None, CONDITION, CONDITION + " of the man" * 4):
        expected = tiny_torch.encode(texts, condition)
        np.testing.assert_allclose(tiny.encode(texts, condition), expected, atol=1e-5)


def test_encode_short_text_next_to_a_long_one_is_the_same(tiny, monkeypatch):
    texts = ["a dog", LONG, "a cat sits"]
    vectors = tiny.encode(texts, CONDITION)
    np.testing.assert_allclose(vectors[0], tiny.encode("a dog", CONDITION), atol=1e-6)
    np.testing.assert_allclose(vectors[2], tiny.encode("a cat sits", CONDITION), atol=1e-6)
    monkeypatch.setattr("condsim.model.inputs.CHARACTERS_PER_ROW", 100)
    monkeypatch.setattr("condsim.model.inputs.ROWS_PER_BLOCK", 3)
    np.testing.assert_allclose(tiny.encode(texts, CONDITION), vectors, atol=1e-6)


def test_score_long_texts_swapped_are_the_same(tiny):
    columns = [LONG, "a dog", LONG], ["a cat", LONG, SENTENCES[0] * 9]
    scores = tiny.score(*columns, CONDITION)
    assert scores.tolist() == tiny.score(*columns[::-1], CONDITION).tolist()


def test_encode_tri_encoder_reads_a_long_text_in_chunks(tri, caplog):
    # Text and condition have the limit each.
    assert len(tri.chunks("a dog runs. " * 5, "the animal " * 5)) == 1
    assert len(tri.chunks(LONG, CONDITION)) > 1
    assert tri.encode([LONG, "a dog"], CONDITION).shape == (2, 32)
    assert not caplog.records


def test_score_condition_that_leaves_no_room_refused(tiny, tiny_torch, caplog):
    # 32 tokens are read, less 3 special ones; 14 of them must be left for the text.
    condition = "the animal " * 8
    assert token_count(tiny, condition) == 16
    for scorer in (tiny, tiny_torch):
        with pytest.raises(InputError, match=r"at most 15 tokens, .* room .* has 16"):
            scorer.score(["a dog", LONG], "a cat", condition)
        assert scorer.score("a dog", "a cat", condition) < 1
        assert scorer.encode(LONG, condition.removesuffix("animal ")).shape == (32,)
    assert not caplog.records


def test_score_tri_encoder_truncates_a_long_condition_with_one_warning(tri, caplog):
    tri.score([LONG, "a dog"], ["a cat", "two birds"], "the animal " * 40)
    assert caplog.messages == ["tri truncated 4 inputs at 32 tokens, the most it reads."]


def test_score_cross_encoder_truncates_with_one_warning(tiny_backbone, caplog):
    from condsim.model.builders import build_cross_encoder

    model = build_cross_encoder(str(tiny_backbone), max_seq_length=24)
    CrossEncoderScorer(model, name="cross").score(["a dog", LONG], ["a cat", "a"], CONDITION)
    assert caplog.messages == ["cross truncated 1 input at 24 tokens, the most it reads."]


def test_collect_truncations_nested_blocks_count_together(caplog):
    with caplog.at_level(logging.WARNING, "condsim"):
        with collect_truncations():
            for _ in range(3):
                with collect_truncations():
                    record_truncation("some", 128, 2)
        # Outside of a block, nothing is counted.
        record_truncation("some", 128, 2)
    assert caplog.messages == ["some truncated 6 inputs at 128 tokens, the most it reads."]


def test_default_long_text_uses_its_end():
    scorer = OnnxScorer(DEFAULT_FOLDER, threads=1)
    filler = "We had booked two months ahead and came by train in the afternoon. " * 20
    text = f"{filler}A man plays the guitar."
    assert scorer.chunks(text, "the instrument")[-1].endswith("guitar.")
    first, second = scorer.encode([filler, text], "the instrument")
    assert np.abs(first - second).max() > 1e-3


def test_default_finds_what_a_long_text_says_of_the_condition():
    scorer = OnnxScorer(DEFAULT_FOLDER, threads=1)
    filler = "We walked along the river and looked at the old bridges. " * 20
    text = f"{filler}The staff were rude. {filler}"
    others = ["The receptionist was unfriendly.", "The staff were friendly."]
    alike, unlike = scorer.score([text] * 2, others, "the attitude of the staff")
    assert alike > unlike + 0.2


def test_text_of_very_many_chunks_is_announced(tiny, caplog, monkeypatch):
    monkeypatch.setattr(reading, "_MANY_CHUNKS", 3)
    tiny.score(LONG, SENTENCES[0], CONDITION)
    assert caplog.messages[0].startswith("A text is read in ")
    caplog.clear()
    tiny.score(SENTENCES[1], SENTENCES[0], CONDITION)
    assert not caplog.messages
