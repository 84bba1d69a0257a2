from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.model import torch as module
from condsim.model.calibration import Calibration
from condsim.model.torch import EncoderScorer
from condsim.types import Scorer


class CountingModel:
    """Encodes a pair as a unit vector whose angle is the number of its letters, in tenths."""

    def __init__(self):
        self.calls = []

    def get_embedding_dimension(self):
        return 2

    def encode(self, texts, *, batch_size, show_progress_bar, normalize_embeddings):
        assert normalize_embeddings
        self.calls.append(list(texts))
        angles = np.array([len("".join(text)) / 10 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.fixture
def model():
    return CountingModel()


def test_score_no_calibration_gives_cosines(model):
    scorer = EncoderScorer(model, name="some")
    # 2 and 4 letters with the condition: cos(0.4 - 0.2).
    assert scorer.score(["a"], ["abc"], ["x"])[0] == pytest.approx(np.cos(0.2), abs=1e-6)
    assert isinstance(scorer, Scorer)
    assert scorer.name == "some"


def test_score_calibration_applied(model):
    scorer = EncoderScorer(model, name="some", calibration=Calibration((-1.0, 1.0), (0.5, 1.0)))
    assert scorer.score("a", "abc", "x") == pytest.approx(0.75 + np.cos(0.2) / 4, abs=1e-6)


@pytest.mark.parametrize(
    ("order", "pair"), [("condition-first", ["x", "a"]), ("sentence-first", ["a", "x"])]
)
def test_score_order_kept(model, order, pair):
    EncoderScorer(model, name="some", order=order).score("a", "b", "x")
    assert model.calls[0][0] == pair


def test_score_each_distinct_text_encoded_once(model):
    EncoderScorer(model, name="some").score(["a", "b", "a"], ["b", "a", "a"], "x")
    assert model.calls == [[["x", "a"], ["x", "b"]]]


def test_encode_no_rows_encodes_nothing(model):
    assert EncoderScorer(model, name="some").encode([], []).shape == (0, 2)
    assert model.calls == []


def test_encoder_unknown_order_refused(model):
    with pytest.raises(InputError, match="Unknown order"):
        EncoderScorer(model, name="some", order="both")


def test_score_no_conditions_encodes_plain_sentences(model):
    scorer = EncoderScorer(model, name="some")
    # 1 and 3 letters: cos(0.3 - 0.1).
    np.testing.assert_allclose(
        scorer.score(["a", "abc"], ["abc", "a"], None), np.cos(0.2), atol=1e-6
    )
    assert model.calls == [["a", "abc"]]


def test_score_no_conditions_equals_a_bi_encoder_on_the_sentences(tiny_backbone):
    from condsim.model.builders import build_bi_encoder

    encoder = build_bi_encoder(str(tiny_backbone))
    first, second = encoder.encode(["a dog", "a red ball"], normalize_embeddings=True)
    score = EncoderScorer(encoder, name="some").score("a dog", "a red ball")
    assert score == pytest.approx(float(first @ second), abs=1e-6)


TEXTS = ["a dog", "a", "a red ball on the table", "the man throws a ball", "a cat", "a dog runs"]


@pytest.mark.parametrize("condition", [None, "the animal"])
def test_encode_in_batches_of_tokens_gives_the_same_in_the_same_order(
    tiny_backbone, monkeypatch, condition
):
    from condsim.model.builders import build_bi_encoder

    encoder = build_bi_encoder(str(tiny_backbone))
    texts = TEXTS if condition is None else [[condition, text] for text in TEXTS]
    expected = encoder.encode(texts, normalize_embeddings=True)
    monkeypatch.setattr(module, "_TOKENS", 12)
    vectors = EncoderScorer(encoder, name="some").encode(TEXTS, condition)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_encode_batches_have_like_length_and_few_tokens(tiny_backbone, monkeypatch):
    from condsim.model.builders import build_bi_encoder

    encoder = build_bi_encoder(str(tiny_backbone))
    shapes = []
    forward = encoder.forward

    def counted(features, **options):
        shapes.append(tuple(features["input_ids"].shape))
        return forward(features, **options)

    monkeypatch.setattr(encoder, "forward", counted)
    monkeypatch.setattr(module, "_TOKENS", 14)
    EncoderScorer(encoder, name="some").encode(TEXTS)
    # With [CLS] and [SEP] 4, 3, 8, 7, 4 and 5 tokens: 3 4 4 (3 x 4 = 12), 5 7 (2 x 7 = 14) and 8.
    assert shapes == [(1, 8), (2, 7), (3, 4)]


def test_score_no_conditions_refused_by_a_tri_encoder(tiny_backbone):
    from condsim.model.tri_encoder import build_tri_encoder

    scorer = EncoderScorer(build_tri_encoder(str(tiny_backbone)), name="some")
    with pytest.raises(InputError, match="pair"):
        scorer.score(["a dog"], ["a red ball"])


@pytest.mark.parametrize("kind", ["bi", "transform", "tri"])
def test_with_precision_bfloat16_gives_nearly_the_same_vectors_of_length_one(tiny_backbone, kind):
    from condsim.model.builders import build_bi_encoder
    from condsim.model.tri_encoder import build_tri_encoder

    encoder = (
        build_tri_encoder(str(tiny_backbone))
        if kind == "tri"
        else build_bi_encoder(str(tiny_backbone), transform=kind == "transform")
    ).eval()
    scorer = EncoderScorer(encoder, name="some")
    halved = scorer.with_precision("bfloat16")
    assert (scorer.numbers, halved.numbers) == ("float32", "bfloat16")
    assert halved.model is scorer.model
    expected = scorer.encode(TEXTS, "the animal")
    vectors = halved.encode(TEXTS, "the animal")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors, expected, atol=0.02)  # 8 significant bits
    assert np.abs(vectors - expected).max() > 0


@pytest.mark.parametrize(
    ("speedup", "numbers"), [(0.7, "float32"), (1.05, "float32"), (1.3, "bfloat16")]
)
def test_with_precision_auto_takes_what_is_clearly_faster(
    tiny_backbone, monkeypatch, caplog, speedup, numbers
):
    from condsim.model.builders import build_bi_encoder

    clock, asked = [0.0], []

    def encode(self, texts, condition):
        asked.append(self.numbers)
        clock[0] += 1 / speedup if self.numbers == "bfloat16" else 1

    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(EncoderScorer, "encode", encode)
    scorer = EncoderScorer(build_bi_encoder(str(tiny_backbone)).to("cpu"), name="some")
    with caplog.at_level("INFO", logger="condsim"):
        assert scorer.with_precision("auto").numbers == numbers
        assert scorer.with_precision("auto").numbers == numbers
    assert asked == ["float32", "bfloat16"] * 3  # once for a model
    assert caplog.messages == [
        f"some: ms for 32 texts: float32 1000, bfloat16 {1000 / speedup:.0f}; using {numbers}"
    ]
    assert scorer.with_precision("bfloat16").with_precision("float32").numbers == "float32"


def test_with_precision_kept_vectors_are_its_own(tiny_backbone, monkeypatch):
    from condsim.model.builders import build_bi_encoder

    encoder = build_bi_encoder(str(tiny_backbone)).to("cpu").eval()
    expected = EncoderScorer(encoder, name="some").with_precision("bfloat16").encode(TEXTS)
    scorer = EncoderScorer(encoder, name="some")
    scorer.keep_vectors(100)
    full = scorer.encode(TEXTS)
    halved = scorer.with_precision("bfloat16")
    np.testing.assert_array_equal(halved.encode(TEXTS), expected)
    np.testing.assert_array_equal(scorer.encode(TEXTS), full)

    encoded, embed = [], EncoderScorer._embed

    def counted(self, texts):
        encoded.append(len(texts))
        return embed(self, texts)

    monkeypatch.setattr(EncoderScorer, "_embed", counted)
    halved.encode(TEXTS)
    assert encoded == []  # it keeps as many as the other
    scorer.with_precision("auto")
    assert encoded == [32] * 6  # and what is faster is measured without any


def test_with_precision_unknown_refused(tiny_backbone):
    from condsim.model.builders import build_bi_encoder

    scorer = EncoderScorer(build_bi_encoder(str(tiny_backbone)), name="some")
    with pytest.raises(InputError, match=r"Unknown precision 'bfloat'. Did you mean 'bfloat16'"):
        scorer.with_precision("bfloat")
