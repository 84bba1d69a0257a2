"""Equations 3 and 4, the contexts that are chosen by them, and the fit of λ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from condsim.errors import InputError
from condsim_contexts.equations import (
    ContextSelector,
    PairTerms,
    context_scores,
    fit_weights,
    similarity,
)
from condsim_contexts.recipe import TERMS, Selection, Weights


def test_context_scores_worked_by_hand():
    terms = {name: np.float32([-place, -place, -2 * place]) for place, name in enumerate(TERMS, 1)}
    terms["left"][1] = np.nan
    # left is -3 and -6 in the others, so -4.5 in the second: (-1 - 2 - 4.5 - 4) / 4.
    assert context_scores(terms, Weights()).tolist() == pytest.approx([-2.5, -2.875, -5])
    # (1 * -1 + 2 * -2 + 3 * -3 + 4 * -4) / 10 = -30 / 10
    assert context_scores(terms, Weights(center=2, left=3, right=4))[0] == -3.0


def test_context_scores_context_without_any_term_is_nan():
    nothing, left = np.float32([np.nan, np.nan]), Weights(coherence=0, center=0, right=0)
    assert np.isnan(context_scores({"left": nothing}, left)).all()
    terms = {"center": np.float32([-1, np.nan]), "left": nothing}
    scores = context_scores(terms, Weights(coherence=0, right=0))
    np.testing.assert_array_equal(scores, [-1, np.nan])


def test_similarity_is_the_cosine_worked_by_hand():
    pair = PairTerms(
        first={"center": np.float32([-1, -2])},
        second={"center": np.float32([-2, -1])},
        means={"center": np.float32([-1.5, -1])},
    )
    only = Weights(coherence=0, left=0, right=0)
    # (2 + 2) / (sqrt 5 * sqrt 5) = 0.8; centered (0.5, -1) and (-0.5, 0):
    # -0.25 / (sqrt 1.25 * 0.5).
    assert similarity(pair, weights=only, center="none") == pytest.approx(0.8)
    assert similarity(pair, weights=only, center="context") == pytest.approx(-0.25 / 0.5590169944)


def test_similarity_pmi_worked_by_hand():
    pair = PairTerms(
        first={"center": np.float32([-1, -3]), "left": np.float32([-4, -5])},
        second={"center": np.float32([-6, -4]), "left": np.float32([-5, -4])},
        means={"left": np.float32([-5, -5])},
        alone={"center": np.float32([-3, -6])},
    )
    # Of the sentences: (2, 0) and (0, 2). Of the contexts: (1, 0) and (0, 1). Means of both terms:
    # (1.5, 0) and (0, 1.5), which are at a right angle.
    found = similarity(pair, weights=Weights(coherence=0, right=0), center="pmi")
    assert found == pytest.approx(0.0)
    shifted = PairTerms(pair.first, pair.second, pair.means, {"center": np.float32([-4, -6])})
    # (3, 1) and (0, 2): 2 / (sqrt 10 * 2).
    found = similarity(shifted, weights=Weights(coherence=0, left=0, right=0), center="pmi")
    assert found == pytest.approx(2 / (2 * 10**0.5))


def test_similarity_context_that_lacks_all_terms_is_left_out():
    pair = PairTerms({"left": np.float32([-1, np.nan])}, {"left": np.float32([-3, np.nan])})
    left = Weights(coherence=0, center=0, right=0)
    assert similarity(pair, weights=left, center="none") == pytest.approx(1.0)


WEIGHTS = Weights(coherence=0, right=0)  # of center and left


class Corpus:
    def neighbors(self, rows: Any, *, left: int, right: int) -> Any:
        around = np.stack([rows - 1, rows + 1], 1)
        around[np.asarray(rows) % 3 == 1] = -1  # one in three stands at an edge
        return around

    def sentences(self, rows: Any) -> list[str]:
        return [str(row) for row in rows]


def scorer(terms: Callable[[int], tuple[int, str | None]]) -> Any:
    """Terms of 0 but one of 1: of the n-th sentence, in which of its 16 contexts and which term."""

    def terms_less_means(texts: list[str], centers: list[Any]) -> list[dict[str, Any]]:
        found = []
        for number, (text, contexts) in enumerate(zip(texts, centers, strict=True)):
            assert contexts[0] == int(text)  # its own context comes first
            values = {name: np.zeros(16, np.float32) for name in WEIGHTS.used}
            place, name = terms(number)
            if name is not None:
                values[name][place] = 1
            found.append(values)
        return found

    return SimpleNamespace(weights=WEIGHTS, terms_less_means=terms_less_means)


def test_fit_weights_of_two_terms_are_those_by_hand():
    # Each term speaks of every other sentence. The center finds the own context of 15 in 16, so
    # e^λ / (e^λ + 15) = 15/16 and λ = log 225; the left side of 1 in 2, so λ = log 15: 2 to 1.
    def terms(number: int) -> tuple[int, str]:
        name, period = ("center", 16) if number % 2 == 0 else ("left", 2)
        return int(number // 2 % period == 0), name

    rows = np.arange(0, 6_000, 20)
    found = fit_weights(scorer(terms), Corpus(), rows, sentences=140)
    assert found.sentences == 64  # half of 8 whole groups
    assert found.weights.values == pytest.approx([0, 0.667, 0.333, 0], abs=0.001)
    assert found.accuracy == found.equal == pytest.approx((15 / 16 + 1 / 2) / 2)
    # By itself a term says nothing of half of the sentences, and a guess is right in one of 16.
    assert found.alone == pytest.approx({"center": 1 / 2, "left": (1 / 2 + 1 / 16) / 2})
    assert found.setting.startswith("scoring.weights={coherence: 0, center: 0.66")
    assert found.summary().startswith("own context found among 16, of 64 held-out sentences: 71.9%")


def test_fit_weights_does_not_count_contexts_from_near_the_sentence():
    rows = np.arange(3, 3_000)
    rows = rows[rows % 20 < 3]  # neighbors, then far from all others
    corpus = Corpus()
    corpus.neighbors = lambda rows, **_: np.zeros((len(rows), 2))  # type: ignore[method-assign]
    near: list[Any] = []

    def terms_less_means(texts: list[str], centers: list[Any]) -> list[dict[str, Any]]:
        found = []
        for contexts in centers:
            apart = np.abs(contexts - contexts[0])
            near.extend(apart[(apart > 0) & (apart <= 10)])
            values = np.where(apart == 0, 1.0, np.where(apart <= 10, 5.0, 0.0))
            found.append(dict.fromkeys(WEIGHTS.used, values))
        return found

    fake: Any = SimpleNamespace(weights=WEIGHTS, terms_less_means=terms_less_means)
    found = fit_weights(fake, corpus, rows, sentences=320)
    assert near
    assert found.accuracy == 1.0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.arange(90), r"need 64 held-out sentences with a sentence on either side; got 59\."),
        (np.arange(900), r"No term \(center, left\) tells the context of a held-out sentence"),
    ],
)
def test_fit_weights_of_nothing_to_learn_from_is_refused(rows, message):
    with pytest.raises(InputError, match=message):
        fit_weights(scorer(lambda number: (0, None)), Corpus(), rows)


class Index:
    """Finds as many chunks as the sentence has letters, the last ones first."""

    def search(self, sentences: Sequence[str], *, top_n: int = 20_000) -> list[Any]:
        chunks = [np.arange(12)[::-1][: min(len(text), top_n)] for text in sentences]
        return [(numbers, np.ones(len(numbers), np.float32)) for numbers in chunks]


class Terms:
    """Coherence falls with the id; the other terms rise with it. Remembers the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def terms(self, sentences: Any, centers: Any, names: Any) -> list[dict[str, Any]]:
        self.calls += [(name, len(contexts)) for name in names for contexts in centers]
        results = []
        for contexts in centers:
            values = {name: (contexts - 100).astype(np.float32) for name in names}
            if "coherence" in names:
                values["coherence"] = -contexts.astype(np.float32)
            results.append(values)
        return results


@pytest.fixture
def select(numbered_corpus) -> Callable[..., Any]:
    """Selects contexts of 60 sentences in chunks of 5; each chunk is a document."""

    def run(sentences: list[str], **options: Any) -> Any:
        corpus = numbered_corpus(60, chunk=5, document=5)
        if "texts" in options:
            corpus.sentences = options.pop("texts")
        return ContextSelector(
            corpus=corpus,
            index=options.pop("index", Index()),
            scorer=options.pop("terms", Terms()),
            weights=options.pop("weights", Weights(center=4)),
            selection=Selection(**options),
        ).select(sentences)

    return run


def test_select_two_step_takes_the_best_of_each_chunk(select):
    # Three chunks (11, 10, 9) of five are found, all of them candidates; by Eq. 3 the highest id of
    # each is best.
    (contexts,) = select(["abc"], size=5)
    assert contexts.centers.tolist() == [59, 54, 49]
    np.testing.assert_array_equal(contexts.terms["center"], [-41, -46, -51])
    assert not contexts.random


def test_select_candidates_pass_by_coherence_first(select):
    terms = Terms()
    (contexts,) = select(["abc"], terms=terms, size=2, candidates=3)
    # 6 candidates of 3 chunks, the two most coherent of each: 45, 46, 50, 51, 55 and 56.
    assert contexts.centers.tolist() == [56, 51]
    assert terms.calls[0] == ("coherence", 15)
    assert ("center", 6) in terms.calls


def test_select_no_diversity_may_take_a_chunk_twice(select):
    (contexts,) = select(["abc"], size=5, strategy="no-diversity")
    assert contexts.centers.tolist() == [59, 58, 57, 56, 55]


def test_select_random_depends_on_seed_and_sentence_alone(select):
    options = {"size": 7, "strategy": "random"}
    first, second = select(["abc", "x"], **options)
    (again,), (reseeded,) = select(["x"], **options), select(["x"], seed=1, **options)
    assert again.centers.tolist() == second.centers.tolist()
    assert len(set(first.centers.tolist())) == 7
    assert reseeded.centers.tolist() != second.centers.tolist()


def test_select_sentence_without_chunks_gets_random_contexts(select):
    contexts, empty = select(["abc", ""], size=4)
    assert (contexts.random, empty.random) == (False, True)
    assert len(empty.centers) == 4


def test_select_random_contexts_are_far_from_the_sentence(select):
    class OwnChunkAlone(Index):
        def search(self, sentences: Sequence[str], *, top_n: int = 20_000) -> list[Any]:
            return [(np.array([6]), np.ones(1, np.float32)) for _ in sentences]

    # Digits do not count, so the sentence is in the rows 30 to 34.
    (contexts,) = select(["word30"], index=OwnChunkAlone(), size=100)
    assert contexts.random
    assert contexts.own.tolist() == [30, 31, 32, 33, 34]
    assert sorted(contexts.centers.tolist()) == [*range(20), *range(45, 60)]


def test_select_leaves_out_contexts_near_the_sentence(select):
    def texts(ids: Any) -> list[str]:
        return ["It stands here." if row == 30 else chr(97 + row) for row in ids]

    options = {"texts": texts, "size": 12, "candidates": 5}
    inside, outside = select(["it stands  HERE", "It stood there."], **options)
    assert (inside.own.tolist(), outside.own.tolist()) == ([30], [])
    assert inside.centers.tolist() == [59, 54, 49, 44, 19, 14, 9, 4]
    assert outside.centers.tolist() == [59 - 5 * chunk for chunk in range(12)]


def test_select_similar_left_neighbors_are_left_out(select):
    (contexts,) = select(["abc"], texts=lambda ids: ["the same words"] * len(ids), size=5)
    # One with that left neighbor, and of each other chunk the first sentence, which has none.
    assert contexts.centers.tolist() == [59, 50, 45]
