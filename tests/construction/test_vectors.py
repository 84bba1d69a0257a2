from __future__ import annotations

import numpy as np
import pytest

from condsim.construction.candidates import unit_length
from condsim.errors import InputError


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_unit_length_of_no_direction_refused(bad):
    vectors = np.array([[3.0, 4.0], [bad, bad]], dtype=np.float32)
    np.testing.assert_allclose(unit_length(vectors[:1], what="v"), [[0.6, 0.8]], rtol=1e-6)
    with pytest.raises(InputError, match=r"v\.npy: every embedding .* row 11 \(from 0\)"):
        unit_length(vectors, what="v.npy", first=10)
