from __future__ import annotations

import numpy as np
import pytest

from condsim.construction.vector_cache import cached_rows, unit_length
from condsim.errors import InputError


def silent(stage, done, total):
    pass


def cached(path, compute):
    return cached_rows(path, compute, rows=10, block=4, stage="s", progress=silent)


def test_cached_rows_killed_half_way_go_on_from_there(tmp_path):
    whole = np.arange(20, dtype=np.float32).reshape(10, 2)
    asked = []

    def compute(start, stop, *, dies_at=None):
        if start == dies_at:
            raise KeyboardInterrupt
        asked.append(start)
        return whole[start:stop]

    path = tmp_path / "cache" / "v.npy"
    with pytest.raises(KeyboardInterrupt):
        cached(path, lambda start, stop: compute(start, stop, dies_at=8))
    assert not path.exists()
    np.testing.assert_array_equal(cached(path, compute), whole)
    assert asked == [0, 4, 8]
    np.testing.assert_array_equal(cached(path, compute), whole)
    assert asked == [0, 4, 8]
    assert [one.name for one in path.parent.iterdir()] == ["v.npy"]


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_unit_length_of_no_direction_refused(bad):
    vectors = np.array([[3.0, 4.0], [bad, bad]], dtype=np.float32)
    np.testing.assert_allclose(unit_length(vectors[:1], what="v"), [[0.6, 0.8]], rtol=1e-6)
    with pytest.raises(InputError, match=r"v\.npy: every embedding .* row 11 \(from 0\)"):
        unit_length(vectors, what="v.npy", first=10)
