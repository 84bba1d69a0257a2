from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from papers.baselines import CorpusTfIdfScorer


class Texts:
    """Three sentences, whose first reading is interrupted."""

    folder, revision, interrupted = Path("corpus"), "0123456789abcdef", False

    def __len__(self):
        return 3

    def sentences(self, ids):
        if not self.interrupted:
            self.interrupted = True
            raise KeyboardInterrupt
        texts = ["The lamp is on the table.", "The table is red.", "Nothing else is here."]
        return [texts[number] for number in ids]


def test_corpus_tfidf_counts_sentences_and_counts_again_after_an_interrupt():
    scorer = CorpusTfIdfScorer(Texts())
    with pytest.raises(KeyboardInterrupt):
        scorer.score(["red lamp"], ["red oak"], None)
    # df of 3 sentences: red 1, lamp 1, oak 0: idf ln(4/2) + 1 = 1.693147 and ln(4/1) + 1 = 2.386294
    # cosine of (red, lamp) and (red, oak): 1.693147^2 / (2.394472 * 2.925919) = 0.409183
    scores = scorer.score(["red lamp"], ["red oak"], None)
    np.testing.assert_allclose(scores, [0.409183], atol=1e-5)
    again = scorer.score(["red lamp", "the red lamp"], ["red oak", "a blue lamp"], None)
    assert again[0] == pytest.approx(scores[0], abs=1e-6)
    assert scorer.fitted_on == "idf of corpus 0123456789ab"
