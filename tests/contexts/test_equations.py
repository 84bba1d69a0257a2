"""Equations 3 and 4, and the terms they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from condsim.contexts.equations import ContextTerms, PairTerms, context_scores, similarity
from condsim.contexts.recipe import TERMS, Weights


def test_context_scores_four_terms_is_the_weighted_mean():
    # (1 * -1 + 2 * -2 + 3 * -3 + 4 * -4) / 10 = -30 / 10
    terms = {name: np.float32([-place]) for place, name in enumerate(TERMS, start=1)}
    assert context_scores(terms, Weights(centre=2, left=3, right=4)).tolist() == [-3.0]


def test_context_scores_context_without_a_side_has_the_mean_of_the_others():
    terms = {name: np.float32([-place, -place, -2 * place]) for place, name in enumerate(TERMS, 1)}
    terms["left"][1] = np.nan
    # left is -3 and -6 in the others, so -4.5 here: (-1 - 2 - 4.5 - 4) / 4.
    assert context_scores(terms, Weights()).tolist() == pytest.approx([-2.5, -2.875, -5])


def test_context_scores_context_without_any_term_is_nan():
    assert np.isnan(
        context_scores({"left": np.float32([np.nan])}, Weights(coherence=0, centre=0, right=0))
    ).all()
    terms = {"centre": np.float32([-1, np.nan]), "left": np.float32([np.nan, np.nan])}
    np.testing.assert_array_equal(
        context_scores(terms, Weights(coherence=0, right=0)), [-1, np.nan]
    )


def test_similarity_is_the_cosine_worked_by_hand():
    pair = PairTerms(
        first={"centre": np.float32([-1, -2])},
        second={"centre": np.float32([-2, -1])},
        means={"centre": np.float32([-1.5, -1])},
    )
    only = Weights(coherence=0, left=0, right=0)
    # (2 + 2) / (sqrt 5 * sqrt 5) = 0.8; centred (0.5, -1) and (-0.5, 0): -0.25 / (sqrt 1.25 * 0.5).
    assert similarity(pair, weights=only, center="none") == pytest.approx(0.8)
    assert similarity(pair, weights=only, center="context") == pytest.approx(-0.25 / 0.5590169944)


def test_similarity_pmi_worked_by_hand():
    pair = PairTerms(
        first={"centre": np.float32([-1, -3]), "left": np.float32([-4, -5])},
        second={"centre": np.float32([-6, -4]), "left": np.float32([-5, -4])},
        means={"left": np.float32([-5, -5])},
        alone={"centre": np.float32([-3, -6])},
    )
    # Of the sentences: (2, 0) and (0, 2). Of the contexts: (1, 0) and (0, 1). Means of both terms:
    # (1.5, 0) and (0, 1.5), which are at a right angle.
    assert similarity(pair, weights=Weights(coherence=0, right=0), center="pmi") == pytest.approx(
        0.0
    )
    # Four times the left term: (2 + 4, 0) / 5 and (0, 2 + 4) / 5; the same angle.
    assert similarity(
        pair, weights=Weights(coherence=0, left=4, right=0), center="pmi"
    ) == pytest.approx(0.0)
    shifted = PairTerms(pair.first, pair.second, pair.means, {"centre": np.float32([-4, -6])})
    # (3, 1) and (0, 2): 2 / (sqrt 10 * 2).
    found = similarity(shifted, weights=Weights(coherence=0, left=0, right=0), center="pmi")
    assert found == pytest.approx(2 / (2 * 10**0.5))


def test_similarity_context_that_lacks_all_terms_is_left_out():
    pair = PairTerms(
        first={"left": np.float32([-1, np.nan])},
        second={"left": np.float32([-3, np.nan])},
        means={},
    )
    assert similarity(
        pair, weights=Weights(coherence=0, centre=0, right=0), center="none"
    ) == pytest.approx(1.0)


class Coherence:
    """Log-probability: minus the length of the sentence times the centre."""

    def encode(self, sentences: Any) -> Any:
        return np.float32([[len(text)] for text in sentences])

    def log_probability(self, vectors: Any, centres: Any) -> Any:
        return -vectors * centres.astype(np.float32)


class Generators:
    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def scores(self, tasks: Any, sentences: Any, centres: Any) -> Any:
        self.asked.append(tuple(tasks))
        return {
            task: [np.full(len(one), -len(task), np.float32) for one in centres] for task in tasks
        }


CENTRES = [np.array([1, 2]), np.array([], np.int64), np.array([5])]


def test_terms_come_from_the_model_of_each():
    generators = Generators()
    found = ContextTerms(Coherence(), generators).terms(
        ["a", "bb", "ccc"], CENTRES, ("coherence", "centre", "left", "right")
    )
    assert [list(terms) for terms in found] == [["coherence", "centre", "left", "right"]] * 3
    assert found[0]["coherence"].tolist() == [-1, -2]
    assert found[1]["coherence"].tolist() == []
    assert found[2]["coherence"].tolist() == [-15]
    assert found[0]["left"].tolist() == [-4, -4]
    assert generators.asked == [("centre", "left", "right")]  # at once, to share encoder states


def test_terms_not_asked_for_are_not_computed():
    generators = Generators()
    found = ContextTerms(None, generators).terms(["a"], CENTRES[:1], ("right",))
    assert list(found[0]) == ["right"]
    assert generators.asked == [("right",)]
    assert list(ContextTerms(Coherence(), None).terms(["a"], CENTRES[:1], ("coherence",))[0]) == [
        "coherence"
    ]
