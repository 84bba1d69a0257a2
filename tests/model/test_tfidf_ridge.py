from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from condsim.errors import InputError
from condsim.model.tfidf import TfIdfRidge

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
    # Two documents of one word each: idf is the same and rows have length 1, so the centred
    # features are +-1/2 in both columns, the centred targets +-1/2. With w = (a, -a):
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


def test_tfidf_ridge_constant_targets_predict_the_constant():
    model = TfIdfRidge()
    model.fit([["lamp"], ["table", "lamp"]], np.array([0.3, 0.3]))
    np.testing.assert_allclose(model.predict([["lamp"], ["chair"]]), [0.3, 0.3])


def test_tfidf_ridge_documents_without_terms_predict_the_mean():
    model = TfIdfRidge()
    model.fit([[], []], np.array([0.2, 0.4]))
    np.testing.assert_allclose(model.predict([[], ["lamp"]]), [0.3, 0.3])


def test_tfidf_ridge_many_documents_are_predicted_in_blocks(monkeypatch):
    train, targets = random_texts(seed=0, texts=40), np.random.default_rng(2).random(40)
    model = TfIdfRidge()
    model.fit(map(str.split, train), targets)
    whole = model.predict(map(str.split, train))
    monkeypatch.setattr("condsim.model.tfidf.BLOCK", 7)
    np.testing.assert_allclose(model.predict(map(str.split, train)), whole)


def test_tfidf_ridge_not_fitted_is_an_error():
    with pytest.raises(InputError, match="not been fitted"):
        TfIdfRidge().predict([["lamp"]])


def test_tfidf_ridge_two_lengths_is_an_error():
    with pytest.raises(InputError, match=r"one length\. Got 2 and 3"):
        TfIdfRidge().fit([["lamp"], ["table"]], np.zeros(3))


def test_tfidf_ridge_no_rows_is_an_error():
    with pytest.raises(InputError, match="at least one row"):
        TfIdfRidge().fit([], np.zeros(0))


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"max_features": 0}])
def test_tfidf_ridge_option_out_of_range_is_an_error(options):
    with pytest.raises(InputError, match=next(iter(options))):
        TfIdfRidge(**options)
