"""Baselines of words: overlap, TF-IDF cosine and the fitted regressions."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from condsim.errors import InputError, MissingExtraError
from condsim.evaluation.statistics import spearman
from condsim.model import baselines as module
from condsim.model.baselines import (
    BASELINES,
    ConditionOnlyScorer,
    SentencesOnlyScorer,
    TfIdfCosineScorer,
    TfIdfRidge,
    WordOverlapScorer,
    baseline,
    out_of_fold,
)
from condsim.types import Scorer, Task

CONDITIONS = (
    "The color of the lamp.",
    "the number of lamps",
    "The room's purpose",
    "the color, the color!",
    "number of a B chairs",
    "Number of tables in the room",
    "Größe der Lampe",
)
GOLD = np.array([1.0, 0.0, 0.75, 1.0, 0.25, 0.0, 0.5])
FIRST = tuple(f"A {word} lamp is on." for word in "red green blue oak pine wide tall".split())
SECOND = tuple(f"The {word} lamp is off." for word in "red blue blue pine oak wide small".split())


def make_task(labels, rows=slice(None)):
    texts = (column[rows] for column in (FIRST, SECOND, CONDITIONS))
    return Task("tiny", "0123456789ab", *texts, np.asarray(labels, np.float32)[rows])


def test_condition_only_never_sees_the_sentences():
    scorer = ConditionOnlyScorer().fit_task(make_task(4 * GOLD + 1))
    scores = scorer.score(FIRST, SECOND, CONDITIONS)
    assert (scores == scorer.score(SECOND[::-1], FIRST, CONDITIONS)).all()
    assert len(set(scorer.score(FIRST, SECOND, None).tolist())) == 1


def test_sentences_only_never_sees_condition_nor_order():
    scorer = SentencesOnlyScorer().fit_task(make_task(4 * GOLD + 1))
    scores = scorer.score(FIRST, SECOND, CONDITIONS)
    assert len(set(scores.tolist())) > 2
    assert (scores == scorer.score(FIRST, SECOND, None)).all()
    np.testing.assert_allclose(scores, scorer.score(SECOND, FIRST, None), atol=1e-7)


def test_word_overlap_hand_worked_values():
    # lower-cased: {the, red, lamp} and {lamp, red}: 2 of 3; nothing shared; one-letter words out
    scores = WordOverlapScorer().score(
        ["The RED lamp!", "a lamp", "a b"], ["lamp, red", "one table", "a b"], None
    )
    np.testing.assert_allclose(scores, [2 / 3, 0, 0], rtol=1e-6)
    assert scores.dtype == np.float32


def test_fit_task_unlabeled_rows_are_left_out():
    labels = 4 * GOLD + 1
    labels[:2] = np.nan
    fitted = ConditionOnlyScorer().fit_task(make_task(labels, slice(2, None)))
    scorer = ConditionOnlyScorer().fit_task(make_task(labels))
    np.testing.assert_allclose(
        scorer.score(FIRST, SECOND, CONDITIONS), fitted.score(FIRST, SECOND, CONDITIONS), atol=1e-6
    )
    assert scorer.fitted_on == "tiny 0123456789ab"


def test_baseline_every_name_makes_a_scorer_of_that_name():
    task = make_task(4 * GOLD + 1)
    for name, kind in BASELINES.items():
        scorer = baseline(name, train=task)
        assert isinstance(scorer, kind)
        assert isinstance(scorer, Scorer)
        assert scorer.name == name
        scores = scorer.score(FIRST, SECOND, CONDITIONS)
        assert scores.shape == (7,)
        assert scores.dtype == np.float32
        assert ((scores >= 0) & (scores <= 1)).all()
        assert scorer.score([], [], []).shape == (0,)


@pytest.mark.parametrize("name", ["condition-only", "sentences-only"])
def test_baseline_not_fitted_or_fitted_on_no_label_is_an_error(name):
    with pytest.raises(InputError, match="not fitted"):
        baseline(name).score(FIRST, SECOND, CONDITIONS)
    with pytest.raises(InputError, match="at least one row"):
        baseline(name, train=make_task([np.nan] * 7))


LEFT = ["The red lamp is on.", "A wide oak table", "the red lamp", "Größe!"]
RIGHT = ["The blue lamp is off.", "A lamp", "lamp: red, the", "größe"]


def test_tfidf_cosine_hand_worked_value():
    # words ab, cd; df 2 and 1 of 2 sentences: idf 1 and ln(3/2) + 1 = 1.405465
    # cosine of (1, 1.405465) and (1, 0): 1 / sqrt(1 + 1.975333) = 0.579739
    score = TfIdfCosineScorer().score(["ab cd"], ["ab"], ["not looked at"])
    np.testing.assert_allclose(score, [0.579739], atol=1e-6)


def test_tfidf_cosine_sentences_without_words_score_zero():
    scores = TfIdfCosineScorer().score(["a b", "?!"], ["a b", "?!"], None)
    assert scores.tolist() == [0, 0]
    mixed = TfIdfCosineScorer().score(["a b", "red"], ["red", "red"], None)
    np.testing.assert_allclose(mixed, [0, 1], rtol=1e-6)


def test_tfidf_cosine_without_scikit_learn_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(MissingExtraError, match=r"condsim\[train\]"):
        TfIdfCosineScorer().score(LEFT, RIGHT, None)


WORDS = "lamp lamps table chair red green wide narrow oak pine one two".split()


def random_texts(*, seed, texts):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 9, size=texts)
    return [" ".join(generator.choice(WORDS, size=length)) for length in lengths]


@pytest.mark.parametrize("alpha", [0.1, 1.0, 8.0])
def test_tfidf_ridge_equals_scikit_learn(alpha):
    train, test = random_texts(seed=0, texts=80), random_texts(seed=1, texts=30)
    test += ["unknown words only", ""]
    targets = np.random.default_rng(2).random(80)
    vectorizer = TfidfVectorizer(token_pattern=r"\S+")
    features = vectorizer.fit_transform(train).toarray()
    reference = Ridge(alpha=alpha, solver="cholesky").fit(features, targets)
    expected = reference.predict(vectorizer.transform(test).toarray())
    model = TfIdfRidge(alpha=alpha)
    model.fit(map(str.split, train), targets)
    np.testing.assert_allclose(model.predict(map(str.split, test)), expected, atol=1e-7)


def test_tfidf_ridge_hand_worked_value():
    # Two documents of one word each: idf is the same and rows have length 1, so the centered
    # features are +-1/2 in both columns, the centered targets +-1/2. With w = (a, -a):
    # 2 rows * (a - 1/2)^2 + alpha 2 a^2 is least at a = 1 / (2 (1 + alpha)) = 1/4 at alpha = 1,
    # so the predictions are 1/2 +- 1/4.
    model = TfIdfRidge(alpha=1.0)
    model.fit([["lamp"], ["table"]], np.array([1.0, 0.0]))
    np.testing.assert_allclose(model.predict([["lamp"], ["table"], ["chair"]]), [0.75, 0.25, 0.5])


def test_tfidf_ridge_cap_keeps_the_most_frequent_terms():
    texts = ["lamp lamp red", "lamp green", "table lamp green"]
    model = TfIdfRidge(alpha=1.0, max_features=2)
    model.fit(map(str.split, texts), np.array([0.0, 1.0, 0.5]))
    prediction = model.predict([["table"], ["red"], [], ["green"]])
    assert prediction[0] == prediction[1] == prediction[2] != prediction[3]
    model.fit([[], []], np.array([0.2, 0.4]))
    np.testing.assert_allclose(model.predict([[], ["lamp"]]), [0.3, 0.3])


def lamp_task(labels, conditions):
    n = len(labels)
    return Task(
        name="tiny",
        revision="0123456789ab",
        sentences1=tuple(f"Lamp {row // 2} is on." for row in range(n)),
        sentences2=tuple(f"Lamp {row // 2} is off." for row in range(n)),
        conditions=tuple(conditions),
        labels=np.asarray(labels, dtype=np.float32),
    )


def random_task(*, rows=60, seed=0):
    generator = np.random.default_rng(seed)
    conditions = generator.choice(["color", "number", "purpose", "size"], size=rows)
    return lamp_task(generator.integers(1, 6, size=rows), conditions)


def test_out_of_fold_rows_are_predicted_by_fits_without_their_pair(monkeypatch):
    task, learned = random_task(rows=20), []
    make = module.baseline

    def spy(name, *, train):
        learned.append(np.flatnonzero(train.valid))
        return make(name, train=train)

    monkeypatch.setattr(module, "baseline", spy)
    out_of_fold(task, folds=5)
    assert len(learned) == 5
    left_out = [np.setdiff1d(np.arange(20), rows) for rows in learned]
    # every row is left out once, always together with the other row of its pair
    assert sorted(np.concatenate(left_out).tolist()) == list(range(20))
    for rows in left_out:
        assert rows.size == 4
        assert (rows[::2] + 1 == rows[1::2]).all()


def test_out_of_fold_swapped_pair_is_left_out_with_it():
    task = random_task(rows=100)
    both = replace(
        task,
        sentences1=task.sentences1 + task.sentences2,
        sentences2=task.sentences2 + task.sentences1,
        conditions=task.conditions * 2,
        labels=np.tile(task.labels, 2),
    )
    labels = both.labels.copy()
    labels[:2] = 6 - labels[:2]  # rows of one pair; those of the swapped one may not learn of it
    for name in ("condition-only", "sentences-only"):
        before = out_of_fold(both, name=name)
        after = out_of_fold(replace(both, labels=labels), name=name)
        assert (before[[0, 1, 100, 101]] == after[[0, 1, 100, 101]]).all()
        assert (before != after).any()
    assert abs(spearman(out_of_fold(both, name="sentences-only"), both.labels)) < 0.3  # chance


def test_out_of_fold_finds_what_conditions_tell():
    conditions = ["color", "number"] * 30
    predictions = out_of_fold(lamp_task([5, 1] * 30, conditions))
    assert predictions.dtype == np.float32
    assert predictions[::2].min() > 0.6 > 0.4 > predictions[1::2].max()


def test_out_of_fold_one_condition_predicts_the_same_for_all_rows():
    task = lamp_task([5, 1, 3, 2, 4, np.nan] * 5, ["color"] * 30)
    assert out_of_fold(task).tolist() == [0.5] * 30
    assert len(set(out_of_fold(task, name="sentences-only").tolist())) > 1


def test_out_of_fold_unlabeled_rows_are_predicted_and_not_learned_from():
    task = random_task()
    labels = task.labels.copy()
    labels[:10] = np.nan
    assert np.isfinite(out_of_fold(replace(task, labels=labels))).all()
    assert out_of_fold(replace(task, labels=np.full(60, np.nan, np.float32))).tolist() == [0.5] * 60
    assert out_of_fold(lamp_task([5, 1], ["color", "size"])).tolist() == [0.5, 0.5]
