from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers import CrossEncoder

from condsim.errors import InputError, ModelError
from condsim.model.torch import CrossEncoderScorer
from condsim.types import Scorer


@pytest.fixture(scope="module")
def model(tiny_backbone):
    from condsim.model.builders import build_cross_encoder

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


def test_score_released_layout_is_one_text_in_the_order_of_the_rows(model):
    scorer = CrossEncoderScorer(model, name="cross", layout="released", batch_size=2)
    sentences = ["a dog", "a ball and a dog in the park", "a cat"]
    found = scorer.score(sentences, ["a cat"] * 3, ["the animal"] * 3, scale="raw")
    for one, score in zip(sentences, found, strict=True):
        text = f"{one} [SEP] a cat [SEP] the animal"
        assert score == pytest.approx(model(model.preprocess([text]))["scores"].item(), abs=1e-6)


def test_cross_encoder_with_another_number_of_outputs_refused(model):
    three = CrossEncoder(model[0].model.config.name_or_path, num_labels=3)
    with pytest.raises(ModelError, match=r"1 output, the similarity, or 5.* Got 3"):
        CrossEncoderScorer(three, name="nli")


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
