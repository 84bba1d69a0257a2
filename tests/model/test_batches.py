from __future__ import annotations

import numpy as np

from condsim.model.base import token_batches


def test_token_batches_cover_every_text_within_the_limit():
    lengths = np.array([7, 3, 50, 12, 12, 3, 9, 20])
    batches = [batch.tolist() for batch in token_batches(lengths, tokens=40)]
    # By length: 3 3 7 9 (4 x 9 = 36), 12 12 (3 x 20 would be 60), 20, 50 above the limit alone.
    assert batches == [[1, 5, 0, 6], [3, 4], [7], [2]]


def test_token_batches_no_text_gives_none():
    assert list(token_batches(np.array([], np.int64), tokens=40)) == []
