"""The weights of Eq. 3 from held-out text: a fit by hand, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from condsim.contexts.recipe import Weights
from condsim.contexts.weights import fit_weights
from condsim.errors import InputError

WEIGHTS = Weights(coherence=0, right=0)  # of centre and left


class Corpus:
    def neighbours(self, rows: Any, *, left: int, right: int) -> Any:
        around = np.stack([rows - 1, rows + 1], 1)
        around[np.asarray(rows) % 3 == 1] = -1  # one in three stands at an edge
        return around

    def sentences(self, rows: Any) -> list[str]:
        return [str(row) for row in rows]


def scorer(terms: Callable[[int], tuple[int, str | None]]) -> Any:
    """Terms of 0 but one of 1: of the n-th sentence, in which of its 16 contexts and which term."""

    def terms_less_means(texts: list[str], centres: list[Any]) -> list[dict[str, Any]]:
        found = []
        for number, (text, contexts) in enumerate(zip(texts, centres, strict=True)):
            assert contexts[0] == int(text)  # its own context comes first
            values = {name: np.zeros(16, np.float32) for name in WEIGHTS.used}
            place, name = terms(number)
            if name is not None:
                values[name][place] = 1
            found.append(values)
        return found

    return SimpleNamespace(weights=WEIGHTS, terms_less_means=terms_less_means)


def test_fit_weights_of_two_terms_are_those_by_hand():
    # Each term speaks of every other sentence. The centre finds the own context of 15 in 16, so
    # e^λ / (e^λ + 15) = 15/16 and λ = log 225; the left side of 1 in 2, so λ = log 15: 2 to 1.
    def terms(number: int) -> tuple[int, str]:
        name, period = ("centre", 16) if number % 2 == 0 else ("left", 2)
        return int(number // 2 % period == 0), name

    rows = np.arange(0, 6_000, 20)
    found = fit_weights(scorer(terms), Corpus(), rows, sentences=140)
    assert found.sentences == 64  # half of 8 whole groups
    assert found.weights.values == pytest.approx([0, 0.667, 0.333, 0], abs=0.001)
    assert found.accuracy == found.equal == pytest.approx((15 / 16 + 1 / 2) / 2)
    # By itself a term says nothing of half of the sentences, and a guess is right in one of 16.
    assert found.alone == pytest.approx({"centre": 1 / 2, "left": (1 / 2 + 1 / 16) / 2})
    assert found.setting.startswith("scoring.weights={coherence: 0, centre: 0.66")
    assert found.summary().startswith("own context found among 16, of 64 held-out sentences: 71.9%")


def test_fit_weights_does_not_count_contexts_from_near_the_sentence():
    rows = np.arange(3, 3_000)
    rows = rows[rows % 20 < 3]  # neighbours, then far from all others
    corpus = Corpus()
    corpus.neighbours = lambda rows, **_: np.zeros((len(rows), 2))  # type: ignore[method-assign]
    near: list[Any] = []

    def terms_less_means(texts: list[str], centres: list[Any]) -> list[dict[str, Any]]:
        found = []
        for contexts in centres:
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
        (np.arange(900), r"No term \(centre, left\) tells the context of a held-out sentence"),
    ],
)
def test_fit_weights_of_nothing_to_learn_from_is_refused(rows, message):
    with pytest.raises(InputError, match=message):
        fit_weights(scorer(lambda number: (0, None)), Corpus(), rows)
