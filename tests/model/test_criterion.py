"""Criteria: learned from labels, used as conditions, stored in files."""

import base64
import csv
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import condsim
from condsim.errors import InputError, ModelError, ScoredWarning
from condsim.model.base import PairScorer
from condsim.model.criterion import Criterion, check_values
from condsim.model.learned_figures import area_under_curve, fit_logistic

HELPDESK = Path(__file__).parents[2] / "examples" / "helpdesk.csv"


@pytest.fixture(scope="module")
def model():
    return condsim.load()


@pytest.fixture(scope="module")
def tickets():
    with HELPDESK.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["problem"] for row in rows]


@pytest.fixture(scope="module")
def criterion(model, tickets):
    texts, values = tickets
    return model.learn(texts[:40], values[:40], condition="the problem")


def test_learn_new_texts_are_told_apart_better(model, tickets, criterion):
    texts, values = tickets[0][40:], np.array(tickets[1][40:])
    rows, columns = np.triu_indices(len(texts), 1)
    same = (values[:, None] == values)[rows, columns]
    learned = model.encode(texts, criterion)
    plain = model.encode(texts, "the problem")
    areas = [
        area_under_curve((vectors @ vectors.T)[rows, columns], same) for vectors in (plain, learned)
    ]
    assert areas[1] > areas[0] + 0.05
    assert criterion.helps
    assert criterion.figures.low <= criterion.figures.auc <= criterion.figures.high
    assert abs(areas[1] - criterion.figures.auc) < 0.05


def test_learn_twice_gives_the_same(model, tickets, criterion):
    again = model.learn(tickets[0][:40], tickets[1][:40], condition="the problem")
    assert np.array_equal(again.weights, criterion.weights)
    assert again.figures == criterion.figures
    assert again.labels == criterion.labels


def test_learn_missing_values_are_not_values(model, tickets, criterion):
    missing = [None, float("nan"), " ", np.float32("nan"), np.datetime64("NaT")]
    texts = [*tickets[0][:40], *"abcde"]
    values = [*tickets[1][:40], *missing]
    again = model.learn(texts, values, condition="the problem")
    assert again.values == criterion.values
    assert again.labels == criterion.labels


def test_learn_random_values_falls_back(model, tickets):
    texts = tickets[0][:40]
    values = np.random.default_rng(0).permutation(["a", "b"] * 20).tolist()
    criterion = model.learn(texts, values, condition="the problem")
    if not criterion.helps:
        vectors, alone = model.encode(texts, criterion), model.encode(texts, "the problem")
        np.testing.assert_allclose(vectors @ vectors.T, alone @ alone.T, atol=1e-5)
        assert "did not help" in str(criterion.summary())
    assert criterion.figures.auc >= criterion.figures.zero_shot


def test_learn_scores_are_calibrated(model, tickets, criterion):
    texts, values = tickets[0][40:80], tickets[1][40:80]
    rows, columns = np.triu_indices(40, 1)
    scores = model.score(
        [texts[row] for row in rows], [texts[column] for column in columns], criterion
    )
    same = np.array(
        [values[row] == values[column] for row, column in zip(rows, columns, strict=True)]
    )
    assert abs(scores.mean() - same.mean()) < 0.1
    assert same[scores > 0.5].mean() > 0.7
    assert same[scores < 0.5].mean() < 0.2


def test_assign_new_texts_and_none_of_these(tickets, criterion):
    assigned = criterion.assign(tickets[0][40:])
    pairs = [
        (value, truth)
        for value, truth in zip(assigned.values, tickets[1][40:], strict=True)
        if value is not None
    ]
    assert np.mean([value == truth for value, truth in pairs]) > 0.85
    assert len(pairs) > 60
    assert np.allclose(assigned.probabilities.sum(axis=1), 1, atol=1e-5)
    other = criterion.assign(["The moon is 384,000 km away.", "Whisk the eggs with the sugar."])
    assert other.values == [None, None]
    with pytest.raises(InputError, match="a sequence of texts; got 'I cannot"):
        criterion.assign("I cannot log in.")


def test_learn_unreadable_texts_are_one_warning(model):
    texts = [f"包裹{n}迟到了" for n in range(8)]
    with pytest.warns(ScoredWarning, match="cannot read 8 texts") as caught:
        model.learn(texts, ["late", "lost"] * 4, condition="the problem")
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("texts", "values", "message"),
    [
        (["x", "y", "z"], ["a", "b", "a"], "8 or more"),
        ([f"text {i}" for i in range(9)], ["a"] * 9, "All labeled texts have the value 'a'"),
        ([f"text {i}" for i in range(9)], list("abcdefghi"), "different values"),
        ([f"text {i}" for i in range(9)] + ["text 0"], ["a", "b"] * 4 + ["a", "c"], "two values"),
        ([f"text {i}" for i in range(9)], ["a"], "a value for each text"),
        ([*[f"text {i}" for i in range(8)], " "], ["a", "b"] * 4 + ["a"], "at index 8"),
        ("abcdefgh", ["a", "b"] * 4, "a sequence of texts; got the text 'abcdefgh'"),
    ],
)
def test_learn_bad_labels_raises(model, texts, values, message):
    with pytest.raises(InputError, match=message):
        model.learn(texts, values, condition="the topic")


def test_learn_too_many_values_raises_before_texts_are_encoded(model, monkeypatch):
    encode, encoded = type(model).encode, []

    def counted(self, sentences, *args, **options):
        encoded.extend(sentences)
        return encode(self, sentences, *args, **options)

    monkeypatch.setattr(type(model), "encode", counted)
    texts = [f"text {n}" for n in range(400)]
    with pytest.raises(InputError, match="200 values, too many for a file of 300 kB"):
        model.learn(texts, [f"value {n // 2}" for n in range(400)], condition="the topic")
    assert not set(texts) & set(encoded)


def test_check_values_most_values_fit_into_the_file(model, criterion):
    count = 138
    values = tuple(f"value number {n:03}" for n in range(count))
    check_values(values, criterion.probe)
    with pytest.raises(InputError, match="150 values"):
        check_values([str(n) for n in range(150)], criterion.probe)
    rows = np.random.default_rng(0).normal(size=(count, 2 * criterion.probe.size))
    many = replace(criterion, values=values, weights=rows, centers=rows, bias=-10 * rows[:, 0])
    assert len(many.to_json().encode()) <= 300_000


def test_learn_from_texts_and_pairs_spreads_values(model, tickets, criterion):
    texts, values = tickets[0][:40], tickets[1][:40]
    first, second, same = zip(
        *((texts[row], texts[20 + row], values[row] == values[20 + row]) for row in range(20)),
        strict=True,
    )
    both = model.learn(
        texts[:20], values[:20], condition="the problem", pairs=(first, second, same)
    )
    known = dict(zip(texts[:20], values[:20], strict=True)) | {
        other: values[row] for row, other in enumerate(second) if same[row]
    }
    alone = model.learn(list(known), list(known.values()), condition="the problem")
    assert both.figures.labels == len(known) > 20
    assert both.labels == alone.labels
    with pytest.raises(InputError, match="are labeled different, but their values are 'a' and 'a'"):
        model.learn(texts[:9], list("aabbabbba"), condition="x", pairs=(texts[:1], texts[1:2], [0]))


@pytest.mark.parametrize("kind", ["file", "criterion"])
def test_learn_under_a_learned_criterion_raises(model, tickets, criterion, kind):
    condition = criterion if kind == "criterion" else "problem.criterion"
    with pytest.raises(InputError, match="under a condition in words"):
        model.learn(tickets[0][:20], tickets[1][:20], condition=condition)


@pytest.mark.slow
def test_learn_pairs_helps_on_new_texts(model, tickets):
    texts, values = tickets
    generator = np.random.default_rng(1)
    first, second = generator.integers(0, 80, (2, 300))
    same = [values[row] == values[column] for row, column in zip(first, second, strict=True)]
    criterion = model.learn_pairs(
        [texts[row] for row in first],
        [texts[row] for row in second],
        same,
        condition="the problem",
    )
    assert criterion.helps
    assert criterion.values == ()
    rows, columns = np.triu_indices(40, 1)
    new = np.array(values[80:])
    truth = (new[:, None] == new)[rows, columns]
    areas = []
    for condition in ("the problem", criterion):
        vectors = model.encode(texts[80:], condition)
        areas.append(area_under_curve((vectors @ vectors.T)[rows, columns], truth))
    assert areas[1] > areas[0]
    with pytest.raises(InputError, match="no values"):
        criterion.assign(["a text"])


@pytest.mark.parametrize(
    ("same", "message"),
    [
        ([1, 0] * 3, "8 or more"),
        ([1] * 10, "same label"),
        ([1, 0] * 4 + ["maybe"], "index 8"),
    ],
)
def test_learn_pairs_bad_labels_raises(model, same, message):
    first = [f"first {i}" for i in range(len(same))]
    second = [f"second {i}" for i in range(len(same))]
    with pytest.raises(InputError, match=message):
        model.learn_pairs(first, second, same, condition="the topic")


def test_criterion_goes_where_a_condition_goes(model, tickets, criterion):
    first, second = tickets[0][40], tickets[0][41]
    score = model.score(first, second, criterion)
    assert 0 <= score <= 1
    raw = model.score(first, second, criterion, scale="raw")
    vectors = model.encode([first, second], criterion)
    assert raw == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
    assert vectors.shape == (2, criterion.dimension)
    matrix = model.score_matrix([first], [second], ["the product", criterion])
    assert matrix[0, 1] == pytest.approx(score, abs=1e-5)
    assert model.same(first, first, [criterion, "the product"], at_least=0.5) is True
    assert model.same([first], [first], criterion, at_least=0.5).tolist() == [True]
    explanation = model.explain(first, second, criterion)
    words = sum(word.contribution for text in explanation.texts for word in text.words)
    assert explanation.score == pytest.approx(score, abs=1e-4)
    assert explanation.remainder + words == pytest.approx(explanation.score, abs=1e-4)


def test_criterion_file_returns_the_same(model, tickets, criterion, tmp_path):
    path = tmp_path / "problem.criterion"
    criterion.save(path)
    assert path.stat().st_size < 300_000
    loaded = Criterion.load(path).bound(model)
    assert repr(loaded) == repr(criterion)
    assert "AUC" in loaded._repr_html_()
    texts = tickets[0][40:60]
    assert np.array_equal(model.encode(texts, loaded), model.encode(texts, criterion))
    assert loaded.assign(texts).values == criterion.assign(texts).values


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("weights"),
        lambda content: content.update(kind="other"),
        lambda content: content.update(weight=float("nan")),
        lambda content: content.update(weight=-1),
        lambda content: content.update(values=["a"]),
        lambda content: content["weights"].update(shape=[10**9, 10**9]),
        lambda content: content["weights"].update(int8="!"),
        lambda content: content["weights"].update(scales=base64.b64encode(b"\x7f" * 24).decode()),
        lambda content: content.update(values="abcdef"),
        lambda content: content.update(helps="no"),
        lambda content: content.update(probe=[1e39] * len(content["probe"])),
        lambda content: content["figures"].update(auc="high"),
        lambda content: content["figures"].update(auc=7),
        lambda content: content["figures"].update(labels=-3),
        lambda content: content["calibration"].update(raw=[1, 0]),
    ],
)
def test_criterion_damaged_file_raises_one_line(criterion, tmp_path, change):
    path = tmp_path / "damaged.criterion"
    criterion.save(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match=r"damaged.criterion") as caught:
        Criterion.load(path)
    assert "\n" not in str(caught.value)


def test_criterion_missing_file_raises(tmp_path):
    with pytest.raises(ModelError, match=r"problem\.criterion: no such file"):
        Criterion.load(tmp_path / "problem.criterion")


def test_criterion_of_another_model_raises(criterion):
    class Other:
        name = "other"

        def encode(self, sentences, condition=None, *, overall=0.0):
            return np.ones((len(sentences), 384), np.float32) / 384**0.5

    with pytest.raises(ModelError, match=r"learned with the model .*, not with 'other'"):
        criterion.bound(Other())
    with pytest.raises(ModelError, match="learned with an earlier or adapted model 'other'"):
        replace(criterion, model="other").bound(Other())


def test_criterion_among_other_conditions_raises(model, criterion, tmp_path):
    path = str(tmp_path / "a.criterion")
    criterion.save(path)
    with pytest.raises(InputError, match="must be the condition of all rows"):
        model.score(["a b", "c d"], ["a c", "b d"], [path, "the topic"])
    assert model.score(["a b", "c d"], ["a c", "b d"], [path, path]).shape == (2,)


@pytest.mark.slow
def test_learn_ten_thousand_labels_takes_seconds(model):
    class Random:
        name = "random"

        def encode(self, sentences, condition=None, *, overall=0.0):
            rows = np.array([hash(text) % 1000 for text in sentences])
            vectors = np.random.default_rng(0).normal(size=(1000, 384)).astype(np.float32)[rows]
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            return (
                np.concatenate([vectors] * (1 + bool(overall)), axis=1) / (1 + bool(overall)) ** 0.5
            )

    from condsim.model.learned_values import learn

    texts = [f"text {n}" for n in range(10_000)]
    begin = time.process_time()
    criterion = learn(Random(), texts, [n % 7 for n in range(10_000)], condition="x")
    assert time.process_time() - begin < 60
    assert criterion.figures.labels == 10_000


def test_criterion_model_without_embeddings_raises(criterion):
    class Scores(PairScorer):
        name = "scores"

        def _score_rows(self, rows, scale):
            return np.zeros(len(rows), np.float32)

    with pytest.raises(InputError, match="needs embeddings"):
        Scores().score(["a b"], ["a c"], criterion)
    with pytest.raises(InputError, match="needs embeddings"):
        Scores().score(["a b"], ["a c"], ["x.criterion"])


def test_area_under_curve_worked_by_hand():
    # Positives 0.9 and 0.4, negatives 0.5 and 0.4: of four pairs, two are won whole (0.9), one is
    # lost (0.4 < 0.5) and one is even.
    scores, same = np.array([0.9, 0.4, 0.5, 0.4]), np.array([True, True, False, False])
    assert area_under_curve(scores, same) == pytest.approx(2.5 / 4)


def test_fit_logistic_half_where_as_likely_as_not():
    scores = np.linspace(-1, 1, 201).astype(np.float32)
    calibration = fit_logistic(scores, scores > 0.2)
    assert calibration.lowest_raw(0.5) == pytest.approx(0.2, abs=0.03)


def test_criterion_names_stand_for_it(model, tickets, criterion, tmp_path):
    path = tmp_path / "problem.criterion"
    criterion.save(path)
    texts = tickets[0][:4]
    expected = model.encode(texts, criterion)
    assert np.array_equal(model.encode(texts, str(path)), expected)
    name = model.named(str(path))
    assert name == criterion.name
    assert np.array_equal(model.encode(texts, name), expected)
    assert model.calibration_of(name) == criterion.calibration
    assert model.mentions(texts[0], criterion) == model.mentions(texts[0], "the problem")
    with pytest.raises(ModelError, match=r"missing.criterion"):
        model.score(*texts[:2], "missing.criterion")
