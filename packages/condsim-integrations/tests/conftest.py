"""Models of which the scores are known, and that have no embeddings."""

from __future__ import annotations

import numpy as np
import pytest
from tests.words import WordEncoder

from condsim.model.base import PairScorer


class Ranker(PairScorer):
    """Scores, but has no embeddings."""

    name = "no embeddings"

    def _score_rows(self, rows, scale):
        return np.ones(len(rows), np.float32)


@pytest.fixture
def scorer():
    return WordEncoder()


@pytest.fixture
def ranker_only():
    return Ranker()
