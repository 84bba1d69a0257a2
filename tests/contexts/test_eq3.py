from __future__ import annotations

import numpy as np
import pytest

from condsim.contexts.eq3 import TERMS, Weights, fit
from condsim.errors import InputError


def test_fit_four_terms_is_the_weighted_mean():
    # (1 * -1 + 2 * -2 + 3 * -3 + 4 * -4) / 10 = -30 / 10
    terms = {name: np.float32([-place]) for place, name in enumerate(TERMS, start=1)}
    assert fit(terms, Weights(1, 2, 3, 4)).tolist() == [-3.0]


def test_fit_context_without_a_side_counts_by_the_terms_it_has():
    terms = {name: np.float32([-place, -place]) for place, name in enumerate(TERMS, start=1)}
    terms["left"][1] = np.nan
    assert fit(terms, Weights()).tolist() == pytest.approx([-2.5, -7 / 3])


def test_fit_context_without_any_term_is_nan():
    assert np.isnan(fit({"left": np.float32([np.nan])}, Weights(0, 0, 1, 0))).all()


def test_weights_zero_terms_are_not_used():
    assert Weights(left=0, right=0).used == ("coherence", "centre")


@pytest.mark.parametrize("values", [(0, 0, 0, 0), (-1, 1, 1, 1), (float("nan"), 1, 1, 1)])
def test_weights_that_leave_nothing_raise(values: tuple[float, ...]):
    with pytest.raises(InputError, match=r"must be at least 0 and one of them above 0"):
        Weights(*values)
