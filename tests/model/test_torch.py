"""Scorers on models of sentence-transformers."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
import transformers
from sentence_transformers import CrossEncoder

from condsim.errors import InputError, ModelError
from condsim.model import precision as precision_module, torch as module
from condsim.model.builders import build_bi_encoder, build_cross_encoder
from condsim.model.torch import CrossEncoderScorer, EncoderScorer, transformer_scorer
from condsim.model.tri_encoder import build_tri_encoder
from condsim.types import Scorer

TEXTS = ["a dog", "a", "a red ball on the table", "the man throws a ball", "a cat", "a dog runs"]


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


@pytest.fixture
def encoder(tiny_backbone):
    return build_bi_encoder(str(tiny_backbone)).to("cpu").eval()


def test_score_without_calibration_gives_cosines(model):
    scorer = EncoderScorer(model, name="some")
    # 2 and 4 letters with the condition: cos(0.4 - 0.2).
    assert scorer.score(["a"], ["abc"], ["x"])[0] == pytest.approx(np.cos(0.2), abs=1e-6)
    assert isinstance(scorer, Scorer)
    assert scorer.name == "some"


@pytest.mark.parametrize(
    ("order", "pair"), [("condition-first", ["x", "a"]), ("sentence-first", ["a", "x"])]
)
def test_score_order_of_texts(model, order, pair):
    EncoderScorer(model, name="some", order=order).score("a", "b", "x")
    assert model.calls[0][0] == pair
    with pytest.raises(InputError, match="Unknown order"):
        EncoderScorer(model, name="some", order="both")


def test_score_each_distinct_text_encoded_once(model):
    scorer = EncoderScorer(model, name="some")
    scorer.score(["a", "b", "a"], ["b", "a", "a"], "x")
    assert model.calls == [[["x", "a"], ["x", "b"]]]
    assert scorer.encode([], []).shape == (0, 2)
    assert len(model.calls) == 1


def test_score_without_conditions_encodes_plain_sentences(model, encoder):
    scores = EncoderScorer(model, name="some").score(["a", "abc"], ["abc", "a"], None)
    # 1 and 3 letters: cos(0.3 - 0.1).
    np.testing.assert_allclose(scores, np.cos(0.2), atol=1e-6)
    assert model.calls == [["a", "abc"]]
    first, second = encoder.encode(["a dog", "a red ball"], normalize_embeddings=True)
    score = EncoderScorer(encoder, name="some").score("a dog", "a red ball")
    assert score == pytest.approx(float(first @ second), abs=1e-6)


def test_score_without_conditions_refused_by_a_tri_encoder(tiny_backbone):
    scorer = EncoderScorer(build_tri_encoder(str(tiny_backbone)), name="some")
    with pytest.raises(InputError, match="pair"):
        scorer.score(["a dog"], ["a red ball"])


@pytest.mark.parametrize("condition", [None, "the animal"])
def test_encode_in_batches_of_tokens_keeps_the_order(encoder, monkeypatch, condition):
    texts = TEXTS if condition is None else [[condition, text] for text in TEXTS]
    expected = encoder.encode(texts, normalize_embeddings=True)
    monkeypatch.setattr(module, "BATCH_TOKENS_CPU", 12)
    vectors = EncoderScorer(encoder, name="some").encode(TEXTS, condition)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["bi", "transform", "tri"])
def test_with_precision_bfloat16_gives_nearly_the_same_vectors_of_length_one(tiny_backbone, kind):
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
    # bfloat16 has 8 significant bits.
    np.testing.assert_allclose(vectors, expected, atol=0.02)
    assert np.abs(vectors - expected).max() > 0


@pytest.mark.parametrize(("faster", "numbers"), [(True, "bfloat16"), (False, "float32")])
def test_with_precision_auto_uses_what_is_faster(encoder, monkeypatch, faster, numbers):
    monkeypatch.setattr(precision_module, "uses_bfloat16", lambda precision: faster)
    scorer = EncoderScorer(encoder, name="some")
    assert scorer.with_precision("auto").numbers == numbers
    assert scorer.with_precision("bfloat16").with_precision("float32").numbers == "float32"
    with pytest.raises(InputError):
        scorer.with_precision("bfloat")


def test_with_precision_has_its_own_cache(encoder, monkeypatch):
    expected = EncoderScorer(encoder, name="some").with_precision("bfloat16").encode(TEXTS)
    scorer = EncoderScorer(encoder, name="some")
    scorer.set_cache_size(100)
    full = scorer.encode(TEXTS)
    halved = scorer.with_precision("bfloat16")
    np.testing.assert_array_equal(halved.encode(TEXTS), expected)
    np.testing.assert_array_equal(scorer.encode(TEXTS), full)
    monkeypatch.setattr(EncoderScorer, "_embed", None)
    np.testing.assert_array_equal(halved.encode(TEXTS), expected)


@pytest.mark.parametrize("kind", ["bi", "tri", "cross"])
def test_copied_scorer_gives_the_same_scores(tiny_backbone, kind):
    build = {"bi": build_bi_encoder, "tri": build_tri_encoder, "cross": build_cross_encoder}[kind]
    wrap = CrossEncoderScorer if kind == "cross" else EncoderScorer
    scorer = wrap(build(str(tiny_backbone)).eval(), name="some")
    row = "a dog", "a cat", "the animal"
    expected = scorer.score(*row)
    for again in (pickle.loads(pickle.dumps(scorer)), copy.deepcopy(scorer)):
        assert again.model is not scorer.model
        assert again.score(*row) == pytest.approx(expected, abs=1e-6)
    assert copy.copy(scorer).model is scorer.model


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_transformer_scorer_pools_the_last_layer(tiny_backbone, pooling):
    scorer = transformer_scorer(str(tiny_backbone), pooling=pooling)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_backbone)
    model = transformers.AutoModel.from_pretrained(tiny_backbone).eval()
    expected = []
    for text in TEXTS:
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        vector = (states[0] if pooling == "cls" else states.mean(dim=0)).numpy()
        expected.append(vector / np.linalg.norm(vector))
    np.testing.assert_allclose(scorer.encode(TEXTS), expected, atol=1e-5)
    assert scorer.name == f"{pooling}:{tiny_backbone.name}"
    assert scorer.calibration is None


def test_transformer_scorer_bad_model_or_pooling_refused(tiny_backbone, tmp_path):
    with pytest.raises(ModelError):
        transformer_scorer(str(tmp_path))
    with pytest.raises(InputError, match="Unknown pooling 'max'"):
        transformer_scorer(str(tiny_backbone), pooling="max")


@pytest.fixture(scope="module")
def cross_encoder(tiny_backbone):
    return build_cross_encoder(str(tiny_backbone))


@pytest.mark.parametrize(
    ("order", "pair"),
    [
        ("sentence-first", ["a dog[SEP]a cat", "the animal"]),
        ("condition-first", ["the animal", "a dog[SEP]a cat"]),
    ],
)
def test_cross_encoder_equals_the_model_on_the_joined_texts(cross_encoder, order, pair):
    scorer = CrossEncoderScorer(cross_encoder, name="cross", order=order)
    scores = scorer.score(["a dog"], ["a cat"], ["the animal"])
    np.testing.assert_allclose(scores, cross_encoder.predict([pair]), atol=1e-6)
    assert scores.dtype == np.float32
    assert isinstance(scorer, Scorer)
    assert type(scorer.score("a dog", "a cat", "the animal")) is float
    assert scorer.score([], [], []).shape == (0,)


def test_cross_encoder_released_layout_is_one_text_in_the_order_of_the_rows(
    cross_encoder, monkeypatch
):
    monkeypatch.setattr(module, "CROSS_ENCODER_ROWS", 2)
    scorer = CrossEncoderScorer(cross_encoder, name="cross", layout="released")
    sentences = ["a dog", "a ball and a dog in the park", "a cat"]
    scores = scorer.score(sentences, ["a cat"] * 3, ["the animal"] * 3, scale="raw")
    for sentence, score in zip(sentences, scores, strict=True):
        text = f"{sentence} [SEP] a cat [SEP] the animal"
        expected = cross_encoder(cross_encoder.preprocess([text]))["scores"].item()
        assert score == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("order", ["sentence-first", "condition-first"])
def test_cross_encoder_without_conditions_scores_the_two_sentences(cross_encoder, order):
    scorer = CrossEncoderScorer(cross_encoder, name="cross", order=order)
    expected = cross_encoder.predict([["a dog", "a cat"], ["a ball", "a dog"]])
    scores = scorer.score(["a dog", "a ball"], ["a cat", "a dog"], None)
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_cross_encoder_of_three_outputs_refused(cross_encoder):
    three = CrossEncoder(cross_encoder[0].model.config.name_or_path, num_labels=3)
    with pytest.raises(ModelError, match=r"1 output, the similarity, or 5.* got 3"):
        CrossEncoderScorer(three, name="nli")


def test_encoder_and_cross_encoder_score_from_many_threads(encoder, tiny_backbone):
    from concurrent.futures import ThreadPoolExecutor

    cross = build_cross_encoder(str(tiny_backbone))
    for scorer in (
        EncoderScorer(encoder, name="tiny"),
        CrossEncoderScorer(cross, name="cross", layout="separator"),
    ):
        rows = [(TEXTS[n % 6] * (1 + n % 3), TEXTS[(n + 1) % 6], "the animal") for n in range(64)]
        expected = [scorer.score(*row) for row in rows]
        with ThreadPoolExecutor(8) as pool:
            scores = list(pool.map(lambda row, scorer=scorer: scorer.score(*row), rows))
        np.testing.assert_allclose(scores, expected, atol=1e-6)
