from __future__ import annotations

import pytest

from condsim.annotation.records import Condition, Rating, row_id_of
from condsim.errors import InputError
from condsim.rows.pairs import pair_id_of


def test_pair_id_depends_on_source_and_texts_not_on_order():
    one = pair_id_of("s", "A cat.", "A dog.")
    assert one == pair_id_of("s", "A dog.", "A cat.")
    assert len({one, pair_id_of("t", "A cat.", "A dog."), pair_id_of("s", "A cat.", "A dog")}) == 3
    assert len(one) == 16
    assert int(one, 16) >= 0


def test_row_id_names_pair_and_condition():
    assert row_id_of("p", "the color").startswith("p-")
    assert row_id_of("p", "the color") != row_id_of("p", "the size")


@pytest.mark.parametrize("label", [0, 6, -2])
def test_rating_label_out_of_range_refused(label):
    with pytest.raises(InputError, match=f"from 1 to 5, or -1 .* got {label}"):
        Rating("r", "p", "a", "b", "c", "high", "ann", label)


def test_condition_intended_unknown_refused():
    with pytest.raises(InputError, match=r"'high' or 'low'; got 'medium'"):
        Condition("p", "a", "b", "c", "medium", "ann")
