from __future__ import annotations

import numpy as np
import pytest

from condsim.contexts.scoring.equations import ScoringSettings, Weights
from condsim.contexts.scoring.selection import Cost, Selection, cost_of, expected_distinct


def cost(**options: object) -> Cost:
    given = {
        "sentences": 10,
        "pairs": 6,
        "corpus": 1_000,
        "selection": Selection(size=20, candidates=3),
    }
    scoring = {"center": "context", "references": 4}
    for key, value in options.items():
        (given if key in given else scoring)[key] = value
    return cost_of(**given, scoring=ScoringSettings(**scoring))


def test_cost_counts_choice_crosswise_and_means():
    found = cost()
    # 10 sentences x 60 candidates, 6 pairs x 2 x 20 crosswise, 10 x 20 contexts x 4 references.
    assert found.sequences == 3 * (600 + 240 + 800)
    assert found.tokens == 25 * found.sequences
    assert (found.pairs, found.contexts, found.models) == (6, 40, 3)


def test_cost_of_random_contexts_has_no_candidates():
    found = cost(selection=Selection(size=20, strategy="random"), center="none")
    assert found.sequences == 3 * (200 + 240)


def test_cost_of_pmi_takes_the_centre_term_off_sentences():
    # 10 sentences x 4 references for the centre, 10 x 20 contexts x 4 for each side.
    assert cost(center="pmi").sequences == 3 * (600 + 240) + 40 + 2 * 800
    alone = cost(center="pmi", weights=Weights(left=0, right=0))
    assert alone.sequences == 600 + 240 + 40


def test_cost_of_coherence_alone_is_nothing():
    assert cost(weights=Weights(centre=0, left=0, right=0)).sequences == 0


def test_cost_is_bounded_by_the_corpus():
    found = cost(corpus=15)
    assert found.contexts == 30
    assert found.sequences == 3 * (10 * 15 + 2 * 6 * 15 + 15 * 4)


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.4, "12 s"), (300, "5 min"), (5_399, "90 min"), (9_000, "2.5 h")]
)
def test_cost_says_its_time_in_the_unit_that_suits(seconds: float, text: str):
    found = Cost(
        pairs=1_000, contexts=40, models=3, sequences=5_000, tokens=50_000, seconds=seconds
    )
    assert str(found) == (
        "1,000 pairs x 40 contexts x 3 generators: about 5,000 sequences of 50,000 tokens in all, "
        f"about {text}"
    )


def test_cost_that_was_not_timed_says_no_time():
    assert str(cost()).endswith("sequences of 123,000 tokens in all")


def test_expected_distinct_is_the_mean_of_draws():
    random = np.random.default_rng(0)
    drawn = [len(np.unique(random.integers(300, size=400))) for _ in range(200)]
    assert expected_distinct(400, of=300) == pytest.approx(np.mean(drawn), abs=1)
    assert expected_distinct(5, of=1) == 1
    assert expected_distinct(0, of=10) == 0
