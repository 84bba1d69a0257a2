from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from condsim.errors import ModelError
from condsim.loading import load_scorer
from condsim.model import applicability as module
from condsim.model.applicability import ApplicabilityHead, Embedded, head_features, silence
from condsim.model.onnx import OnnxScorer

ONE = ["a man kicks a ball", "a dog runs on the street", "two birds"]
TWO = ["a girl throws a ball", "a cat sits", "a child eats at a big table"]
CONDITIONS = ["the sport", "the animal", "the number of people"]


def unit(*values):
    row = np.array([values], np.float32)
    return row / np.linalg.norm(row)


@pytest.fixture
def with_head(exported, tmp_path):
    """A copy of the tiny exported model with a random head of its own."""
    folder = shutil.copytree(exported, tmp_path / "model")
    random = np.random.default_rng(0)
    head = ApplicabilityHead(
        model="tiny",
        weights=random.normal(size=2 * 32 + 3) / 10,
        bias=0.1,
        probe=OnnxScorer(folder, threads=1).encode(*module.PROBE),
        facts={"rows": "a 1"},
    )
    head.save(folder / module.FILE_NAME)
    return folder


def test_features_worked_by_hand():
    rows = Embedded(unit(1, 0), unit(3, 4), unit(0, 1))
    root = np.sqrt(2)
    # u sqrt(d), c sqrt(d), then 5 u.c, 5 u.s = 5 * 0.6 and 5 s.c = 5 * 0.8.
    np.testing.assert_allclose(head_features(rows), [[root, 0, 0, root, 0, 3, 4]], atol=1e-6)


def test_probability_is_the_logistic_function():
    weights = np.zeros(7)
    weights[4] = 0.4  # 5 u.c = 5, so the logit is 2 + bias
    head = ApplicabilityHead(model="m", weights=weights, bias=-1.0, probe=unit(1, 0)[0])
    rows = Embedded(*[unit(1, 0)] * 3)
    assert head.probability(rows)[0] == pytest.approx(1 / (1 + np.exp(-1)), abs=1e-6)


def test_applicability_is_the_product_of_what_the_texts_mention(with_head):
    model = load_scorer(with_head)
    first, second = model.mentions(ONE, CONDITIONS), model.mentions(TWO, CONDITIONS)
    np.testing.assert_allclose(model.applicability(ONE, TWO, CONDITIONS), first * second, 1e-6)
    assert model.mentions(ONE[0], CONDITIONS[0]) == pytest.approx(first[0], abs=1e-5)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (0.5, 0.4, ""),
        (0.4, 0.4, "neither text seems to mention it"),
        (0.9, 0.1, "the second text seems not to mention it"),
        (0.2, 0.6, "the first text seems not to mention it"),
        (0.0, 0.0, "neither text seems to mention it"),
        (np.nan, 0.1, ""),
    ],
)
def test_silence_names_the_silent_texts_below_the_threshold(first, second, text):
    assert silence(first, second) == text


def test_applicability_shapes_range_and_single(with_head):
    model = load_scorer(with_head)
    found = model.applicability(ONE, TWO, CONDITIONS)
    assert found.shape == (3,)
    assert found.dtype == np.float32
    assert ((found >= 0) & (found <= 1)).all()
    # Symmetric to the last bit.
    np.testing.assert_array_equal(found, model.applicability(TWO, ONE, CONDITIONS))
    alone = model.applicability(ONE[0], TWO[0], CONDITIONS[0])
    assert type(alone) is float
    assert alone == pytest.approx(found[0], abs=1e-5)
    assert model.applicability(ONE, TWO, "the sport").shape == (3,)
    assert model.applicability([], [], []).shape == (0,)


def test_applicability_trained_model_has_it_too(with_head, trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "trained")
    shutil.copy(with_head / module.FILE_NAME, folder / module.FILE_NAME)
    found = load_scorer(folder, device="cpu").applicability(ONE, TWO, CONDITIONS)
    expected = load_scorer(with_head).applicability(ONE, TWO, CONDITIONS)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_applicability_no_head_refused(exported):
    with pytest.raises(ModelError, match=r"'tiny' has no applicability head\. Fit one with"):
        OnnxScorer(exported).applicability("a", "b", "c")


def test_applicability_head_of_another_model_refused(with_head):
    model = load_scorer(with_head)
    head = model.head
    model.head = ApplicabilityHead(
        model="other", weights=head.weights, bias=head.bias, probe=-head.probe
    )
    with pytest.raises(
        ModelError, match="embeddings of 'other', which differ from the embeddings of 'tiny'"
    ):
        model.applicability("a", "b", "c")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.pop("weights"), "is not an applicability head.*weights"),
        (lambda content: content["weights"].pop(), r"must have 2 d \+ 3 weights"),
        (lambda content: content["probe"].__setitem__(0, float("inf")), "finite numbers"),
        (lambda content: content.update(format=1), "of format 2"),
    ],
)
def test_head_damaged_refused(with_head, change, message):
    path = with_head / module.FILE_NAME
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        load_scorer(with_head)


def test_bundled_head_is_that_of_the_bundled_model():
    model = load_scorer()
    one, two = "A brown dog runs over wet sand.", "A black dog swims in a lake."
    chances = model.applicability(one, two, ["type of animal", "name of place"])
    assert chances[0] > chances[1] > 0  # refused if the head is of an earlier model
