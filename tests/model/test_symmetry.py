"""Swapping the sentences changes nothing, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from condsim.data.rewordings import load_rewordings
from condsim.model import onnx as module
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER


@pytest.fixture(scope="module")
def bundled():
    return OnnxScorer(DEFAULT_FOLDER, threads=2)


@pytest.fixture(scope="module")
def rows():
    found = load_rewordings()
    return found.sentences1[::3], found.sentences2[::3], found.conditions[::3]  # of many lengths


@pytest.mark.parametrize("scale", ["raw", "unit", "likert"])
def test_bundled_score_batch_symmetric(bundled, rows, scale):
    one, two, conditions = rows
    scores = bundled.score(one, two, conditions, scale=scale)
    swapped = bundled.score(two, one, conditions, scale=scale)
    np.testing.assert_array_equal(scores, swapped)
    assert len(np.unique(scores)) > 50


def test_bundled_score_small_batches_symmetric(bundled, rows, monkeypatch):
    monkeypatch.setattr(module, "_TOKENS", 64)
    one, two, conditions = rows
    scores = bundled.score(one, two, conditions)
    np.testing.assert_array_equal(scores, bundled.score(two, one, conditions))


def test_bundled_score_some_rows_swapped_symmetric(bundled, rows):
    one, two, conditions = rows
    mixed = [pair if row % 2 else pair[::-1] for row, pair in enumerate(zip(one, two, strict=True))]
    scores = bundled.score(one, two, conditions)
    swapped = bundled.score(*(list(column) for column in zip(*mixed, strict=True)), conditions)
    np.testing.assert_array_equal(scores, swapped)


def test_bundled_single_pair_symmetric(bundled, rows):
    for one, two, condition in zip(*(column[:8] for column in rows), strict=True):
        assert bundled.score(one, two, condition) == bundled.score(two, one, condition)
