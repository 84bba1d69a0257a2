from __future__ import annotations

import numpy as np
import pytest

from condsim.contexts.scoring import TERMS, Weights, fit
from condsim.errors import InputError
from condsim.settings import validated


def test_fit_four_terms_is_the_weighted_mean():
    # (1 * -1 + 2 * -2 + 3 * -3 + 4 * -4) / 10 = -30 / 10
    terms = {name: np.float32([-place]) for place, name in enumerate(TERMS, start=1)}
    assert fit(terms, Weights(centre=2, left=3, right=4)).tolist() == [-3.0]


def test_fit_context_without_a_side_has_the_mean_of_the_others():
    terms = {name: np.float32([-place, -place, -2 * place]) for place, name in enumerate(TERMS, 1)}
    terms["left"][1] = np.nan
    # left is -3 and -6 in the others, so -4.5 here: (-1 - 2 - 4.5 - 4) / 4.
    assert fit(terms, Weights()).tolist() == pytest.approx([-2.5, -2.875, -5])


def test_fit_edge_of_a_document_is_no_better_than_an_equal_context():
    # Coherence is near 0 and the others near -5: without its left side a context scored higher.
    terms = {name: np.float32([-5, -5]) for name in TERMS} | {"coherence": np.float32([-0.1, -0.1])}
    terms["left"][1] = np.nan
    one, other = fit(terms, Weights()).tolist()
    assert one == other


def test_fit_context_without_any_term_is_nan():
    assert np.isnan(
        fit({"left": np.float32([np.nan])}, Weights(coherence=0, centre=0, right=0))
    ).all()
    terms = {"centre": np.float32([-1, np.nan]), "left": np.float32([np.nan, np.nan])}
    np.testing.assert_array_equal(fit(terms, Weights(coherence=0, right=0)), [-1, np.nan])


def test_weights_zero_terms_are_not_used():
    assert Weights(left=0, right=0).used == ("coherence", "centre")


@pytest.mark.parametrize("values", [(0, 0, 0, 0), (-1, 1, 1, 1)])
def test_weights_that_leave_nothing_raise(values: tuple[float, ...]):
    with pytest.raises(InputError, match=r"must be at least 0 and one of them above 0"):
        validated(Weights, dict(zip(TERMS, values, strict=True)), what="weights", source="here")
