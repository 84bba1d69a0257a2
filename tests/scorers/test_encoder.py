from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.scorers.calibration import Calibration
from condsim.scorers.encoder import EncoderScorer
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
    from condsim.encoders import build_bi_encoder

    encoder = build_bi_encoder(str(tiny_backbone))
    first, second = encoder.encode(["a dog", "a red ball"], normalize_embeddings=True)
    score = EncoderScorer(encoder, name="some").score("a dog", "a red ball")
    assert score == pytest.approx(float(first @ second), abs=1e-6)


def test_score_no_conditions_refused_by_a_tri_encoder(tiny_backbone):
    from condsim.encoders import build_tri_encoder

    scorer = EncoderScorer(build_tri_encoder(str(tiny_backbone)), name="some")
    with pytest.raises(InputError, match="pair"):
        scorer.score(["a dog"], ["a red ball"])
