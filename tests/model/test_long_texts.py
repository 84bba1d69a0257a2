from __future__ import annotations

import logging

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.model import embedding as embedding_module
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER
from condsim.model.torch import EncoderScorer
from condsim.model.truncation import count_cut, one_warning

# 6 tokens each for the tiny tokenizer, full stop included.
SENTENCES = ["the dog runs in the.", "a red cat on a.", "the man throws a ball."]
LONG = " ".join(SENTENCES * 6)
CONDITION = "the animal"


@pytest.fixture(scope="module")
def tiny(exported):
    return OnnxScorer(exported, threads=1)


@pytest.fixture(scope="module")
def same(trained):
    """The same model in torch."""
    from condsim.model.trained import load_trained

    return load_trained(trained, device="cpu")


def tokens_of(scorer, text):
    return len(scorer._splitter._tokenizer.encode(text, add_special_tokens=False))


def test_pieces_short_text_is_read_whole(tiny):
    assert tiny.pieces(SENTENCES[0], CONDITION) == [SENTENCES[0]]
    assert tiny.pieces(SENTENCES[0]) == [SENTENCES[0]]


def test_pieces_long_text_splits_at_the_ends_of_sentences(tiny):
    pieces = tiny.pieces(LONG, CONDITION)
    # 32 tokens are read, less 3 special ones and 2 or more of the condition.
    assert " ".join(pieces) == LONG
    assert all(piece.endswith(".") for piece in pieces)
    assert max(tokens_of(tiny, piece) for piece in pieces) <= 27
    assert min(tokens_of(tiny, piece) for piece in pieces[:-1]) > 12


def test_pieces_without_full_stops_split_at_lines_then_words(tiny):
    assert tiny.pieces("the dog runs\n" * 12)[0].endswith("runs")
    pieces = tiny.pieces("dog " * 100)
    assert " ".join(pieces).split() == ["dog"] * 100


def test_pieces_one_endless_word_is_split_anywhere(tiny):
    pieces = tiny.pieces("xyz" * 30, CONDITION)
    assert "".join(pieces) == "xyz" * 30
    assert len(pieces) > 1


@pytest.mark.parametrize("condition", [None, CONDITION])
def test_encode_long_text_is_the_mean_of_its_pieces_by_tokens(tiny, condition):
    pieces = tiny.pieces(LONG, condition)
    assert len(pieces) > 1
    weights = np.array([tokens_of(tiny, piece) for piece in pieces])
    mean = weights @ tiny.encode(pieces, condition)
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(tiny.encode(LONG, condition), expected, atol=1e-6)


def test_encode_what_comes_after_the_limit_counts(tiny):
    other = LONG.removesuffix(SENTENCES[-1]) + "two birds eat at a big table with people."
    assert np.abs(tiny.encode(LONG, CONDITION) - tiny.encode(other, CONDITION)).max() > 1e-3


def test_encode_long_texts_same_in_torch_and_onnx(tiny, same):
    texts = [LONG, "a dog", "cat " * 90, SENTENCES[1]]
    for condition in (None, CONDITION, CONDITION + " of the man" * 4):
        np.testing.assert_allclose(
            tiny.encode(texts, condition), same.encode(texts, condition), atol=1e-5
        )


def test_encode_short_text_beside_a_long_one_is_the_same(tiny):
    vectors = tiny.encode(["a dog", LONG, "a cat sits"], CONDITION)
    np.testing.assert_allclose(vectors[0], tiny.encode("a dog", CONDITION), atol=1e-6)
    np.testing.assert_allclose(vectors[2], tiny.encode("a cat sits", CONDITION), atol=1e-6)


def test_score_long_texts_swapped_are_the_same(tiny):
    columns = [LONG, "a dog", LONG], ["a cat", LONG, SENTENCES[0] * 9]
    found = tiny.score(*columns, CONDITION)
    assert found.tolist() == tiny.score(*columns[::-1], CONDITION).tolist()


def test_encode_blocks_of_long_texts_give_the_same(tiny, monkeypatch):
    texts = [LONG, "a dog", LONG + " a cat.", "two birds"]
    expected = tiny.encode(texts, CONDITION)
    monkeypatch.setattr(embedding_module, "_CHARACTERS", 100)
    monkeypatch.setattr(embedding_module, "_ROWS", 3)
    np.testing.assert_allclose(tiny.encode(texts, CONDITION), expected, atol=1e-6)


def test_encode_limit_changed_later_is_used(tiny_backbone):
    from condsim.model.builders import build_bi_encoder

    encoder = build_bi_encoder(str(tiny_backbone), max_seq_length=40)
    scorer = EncoderScorer(encoder, name="some")
    assert len(scorer.pieces("a dog runs. " * 9)) == 1
    encoder.max_seq_length = 20
    assert len(scorer.pieces("a dog runs. " * 9)) > 1


def test_encode_tri_encoder_reads_a_long_text_in_pieces(tiny_backbone, caplog):
    from condsim.model.tri_encoder import build_tri_encoder

    scorer = EncoderScorer(build_tri_encoder(str(tiny_backbone), max_seq_length=32), name="tri")
    assert len(scorer.pieces("a dog runs. " * 5, "the animal " * 5)) == 1  # each is short enough
    assert len(scorer.pieces(LONG, CONDITION)) > 1
    assert scorer.encode([LONG, "a dog"], CONDITION).shape == (2, 32)
    assert not caplog.records


def test_score_condition_that_leaves_no_room_refused(tiny, same):
    # 32 tokens are read, less 3 special ones; 14 of them must be left for the text.
    condition = "the animal " * 8
    assert tokens_of(tiny, condition) == 16
    message = r"The condition 'the animal .*' has 16 tokens and leaves no room .*; at most 15\."
    for scorer in (tiny, same):
        with pytest.raises(InputError, match=message):
            scorer.score(["a dog", LONG], "a cat", condition)
        assert scorer.score("a dog", "a cat", condition) < 1  # nothing is cut
        assert scorer.encode(LONG, condition.removesuffix("animal ")).shape == (32,)


def test_score_tri_encoder_cuts_a_long_condition_with_one_warning(tiny_backbone, caplog):
    from condsim.model.tri_encoder import build_tri_encoder

    scorer = EncoderScorer(build_tri_encoder(str(tiny_backbone), max_seq_length=32), name="tri")
    scorer.score([LONG, "a dog"], ["a cat", "two birds"], "the animal " * 40)
    assert [record.getMessage() for record in caplog.records] == [
        "tri cut 4 inputs at 32 tokens, the most it reads; nothing beyond has any influence."
    ]


def test_score_long_texts_with_short_conditions_without_a_warning(tiny, same, caplog):
    for scorer in (tiny, same):
        scorer.score([LONG, "a dog"], ["a cat", LONG], CONDITION)
    assert not caplog.records


def test_score_cross_encoder_cuts_with_one_warning(tiny_backbone, caplog):
    from condsim.model.builders import build_cross_encoder
    from condsim.model.torch import CrossEncoderScorer

    model = build_cross_encoder(str(tiny_backbone), max_seq_length=24)
    scorer = CrossEncoderScorer(model, name="cross")
    scorer.score(["a dog", LONG], ["a cat", "a"], CONDITION)
    assert [record.getMessage() for record in caplog.records] == [
        "cross cut 1 input at 24 tokens, the most it reads; nothing beyond has any influence."
    ]


def test_one_warning_nested_runs_count_together(caplog):
    with caplog.at_level(logging.WARNING, "condsim"):
        with one_warning():
            for _ in range(3):
                with one_warning():
                    count_cut("some", 128, 2)
        count_cut("some", 128, 2)  # outside, where nobody asks
    assert [record.args[1] for record in caplog.records] == [6]


def test_bundled_long_text_keeps_what_it_says_at_the_end():
    scorer = OnnxScorer(DEFAULT_FOLDER, threads=1)
    filler = "We had booked two months ahead and came by train in the afternoon. " * 20
    text = f"{filler}A man plays the guitar."
    assert scorer.pieces(text, "the instrument")[-1].endswith("guitar.")
    found = scorer.encode([filler, text], "the instrument")
    assert np.abs(found[0] - found[1]).max() > 1e-3
