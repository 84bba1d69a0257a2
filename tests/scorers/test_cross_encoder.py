from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.scorers import CrossEncoderScorer
from condsim.types import Scorer


@pytest.fixture(scope="module")
def model(tiny_backbone):
    from condsim.encoders import build_cross_encoder

    return build_cross_encoder(str(tiny_backbone))


@pytest.fixture
def scorer(model):
    return CrossEncoderScorer(model, name="cross")


def test_score_equals_the_model_on_the_joined_texts(model, scorer):
    expected = model.predict([["a dog[SEP]a cat", "the animal"]])
    found = scorer.score(["a dog"], ["a cat"], ["the animal"])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.dtype == np.float32
    assert isinstance(scorer, Scorer)


def test_score_condition_first(model):
    scorer = CrossEncoderScorer(model, name="cross", order="condition-first")
    expected = model.predict([["the animal", "a dog[SEP]a cat"]])
    assert scorer.score("a dog", "a cat", "the animal") == pytest.approx(expected[0], abs=1e-6)


def test_score_single_texts_give_a_float(scorer):
    assert type(scorer.score("a dog", "a cat", "the animal")) is float


def test_score_no_rows_gives_no_scores(scorer):
    assert scorer.score([], [], []).shape == (0,)


@pytest.mark.parametrize("order", ["sentence-first", "condition-first"])
def test_score_no_conditions_scores_the_two_sentences(model, order):
    scorer = CrossEncoderScorer(model, name="cross", order=order)
    expected = model.predict([["a dog", "a cat"], ["a ball", "a dog"]])
    found = scorer.score(["a dog", "a ball"], ["a cat", "a dog"], None)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert type(scorer.score("a dog", "a cat")) is float


def test_score_empty_text_refused(scorer):
    with pytest.raises(InputError, match="must have text"):
        scorer.score(["a dog"], [" "])
