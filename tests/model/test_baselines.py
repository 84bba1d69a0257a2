from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from condsim.errors import InputError
from condsim.model.baselines import (
    BASELINES,
    ConditionOnlyScorer,
    SentencesOnlyScorer,
    WordOverlapScorer,
    baseline,
)
from condsim.types import Scorer, Task

CONDITIONS = (
    "The colour of the lamp.",
    "the number of lamps",
    "The room's purpose",
    "the colour, the colour!",
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


def test_condition_only_equals_scikit_learn():
    vectorizer = TfidfVectorizer(ngram_range=(1, 2))
    features = vectorizer.fit_transform(CONDITIONS)
    unseen = ["the colour of the chairs", "purpose", "nothing known", "a b c"]
    for alpha in (1.0, 8.0):
        reference = Ridge(alpha=alpha).fit(features, GOLD)
        expected = reference.predict(vectorizer.transform(unseen))
        scorer = ConditionOnlyScorer(alpha=alpha).fit_task(make_task(4 * GOLD + 1))
        scores = scorer.score(unseen, unseen, unseen)
        np.testing.assert_allclose(scores, np.clip(expected, 0, 1), atol=1e-3)
        assert scores.dtype == np.float32


def test_condition_only_never_sees_the_sentences():
    scorer = ConditionOnlyScorer().fit_task(make_task(4 * GOLD + 1))
    assert (
        scorer.score(FIRST, SECOND, CONDITIONS) == scorer.score(SECOND[::-1], FIRST, CONDITIONS)
    ).all()


def test_condition_only_without_conditions_gives_every_row_one_score():
    scorer = ConditionOnlyScorer().fit_task(make_task(4 * GOLD + 1))
    assert len(set(scorer.score(FIRST, SECOND, None).tolist())) == 1


def test_sentences_only_never_sees_condition_nor_order():
    scorer = SentencesOnlyScorer().fit_task(make_task(4 * GOLD + 1))
    scores = scorer.score(FIRST, SECOND, CONDITIONS)
    assert len(set(scores.tolist())) > 2
    assert (scores == scorer.score(FIRST, SECOND, None)).all()
    np.testing.assert_allclose(scores, scorer.score(SECOND, FIRST, None), atol=1e-7)


def test_sentences_only_learns_from_shared_words():
    # the gold value is whether the two sentences share their colour
    generator = np.random.default_rng(0)
    colours = generator.choice("red green blue amber".split(), size=(300, 2))
    first = [f"a {colour} lamp" for colour in colours[:, 0]]
    second = [f"the {colour} lamp" for colour in colours[:, 1]]
    same = (colours[:, 0] == colours[:, 1]).astype(float)
    labels = same[:200].astype(np.float32)
    task = Task("x", "0", tuple(first[:200]), tuple(second[:200]), None, labels, (0, 1))
    scorer = SentencesOnlyScorer(alpha=0.1).fit_task(task)
    scores = scorer.score(first[200:], second[200:], None)
    assert stats.spearmanr(scores, same[200:]).statistic > 0.7


def test_word_overlap_hand_worked_values():
    # lower-cased: {the, red, lamp} and {lamp, red}: 2 of 3; nothing shared; one-letter words out
    scores = WordOverlapScorer().score(
        ["The RED lamp!", "a lamp", "a b"], ["lamp, red", "one table", "a b"], None
    )
    np.testing.assert_allclose(scores, [2 / 3, 0, 0], rtol=1e-6)
    assert scores.dtype == np.float32


def test_fit_task_unlabelled_rows_are_left_out():
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


def test_baseline_unknown_name_is_an_error():
    with pytest.raises(InputError, match=r"Unknown baseline 'conditon-only'\. Did you mean"):
        baseline("conditon-only")


@pytest.mark.parametrize("name", ["condition-only", "sentences-only"])
def test_baseline_scored_before_it_is_fitted_is_an_error(name):
    with pytest.raises(InputError, match="not been fitted"):
        baseline(name).score(FIRST, SECOND, CONDITIONS)


@pytest.mark.parametrize("name", ["condition-only", "sentences-only"])
def test_baseline_train_without_labels_is_an_error(name):
    with pytest.raises(InputError, match="at least one row"):
        baseline(name, train=make_task([np.nan] * 7))
