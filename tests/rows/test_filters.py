from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.rows.pairs import FilterCounts, FilterSettings, Measures


def measures():
    """Six pairs: each but the first and last breaks one rule; the last breaks two."""
    return Measures(
        same_text=np.array([False, True, False, False, False, False]),
        iou=np.array([0.2, 0.2, 0.21, 0.1, 0.1, 0.5]),
        text_cosine=np.array([0.4, 0.9, 0.5, 0.39, 0.5, 0.5], np.float32),
        length_ratio=np.array([0.7, 1, 1, 1, 0.69, 1]),
        min_length=np.array([48, 60, 60, 60, 60, 47]),
    )


def test_filters_bounds_themselves_pass_and_each_rejection_is_counted():
    counts = FilterCounts()
    settings = FilterSettings(max_iou=0.2, min_length_ratio=0.7, min_length=48)
    assert counts.keep(measures(), settings).tolist() == [True, False, False, True, False, False]
    assert counts.to_dict() == {
        "pairs": 6,
        "same_text": 1,
        "max_iou": 2,
        "min_text_cosine": 0,
        "min_length_ratio": 1,
        "min_length": 1,
        "passed": 2,
    }
    counts.add(counts)
    assert counts.pairs == 12


def test_filters_cosine_at_the_bound_passes():
    counts = FilterCounts()
    kept = counts.keep(measures(), FilterSettings(min_text_cosine=0.4))
    assert kept.tolist() == [True, False, True, False, True, True]


@pytest.mark.parametrize(
    ("bound", "value", "rule"),
    [
        ("max_iou", 1.5, "at most 1. Got 1.5"),
        ("min_text_cosine", -2, "at least -1. Got -2"),
        ("min_length_ratio", float("nan"), "a number. Got nan"),
    ],
)
def test_filters_bound_out_of_range_refused(bound, value, rule):
    with pytest.raises(InputError, match=f"Filter key '{bound}' must be {rule}"):
        FilterSettings(**{bound: value})
