from __future__ import annotations

import numpy as np
from papers.suite.arrays import ArrayCache, CachedArray


def test_array_cache_damaged_file_counts_as_missing(tmp_path):
    store, key = ArrayCache(tmp_path / "arrays"), {"rows": "a"}
    store.put(key, CachedArray(np.arange(3), {"seconds": 1}))
    found = ArrayCache(tmp_path / "arrays").get(key)
    assert found is not None
    assert (found.values.tolist(), found.facts) == ([0, 1, 2], {"seconds": 1})
    assert store.get({"rows": "b"}) is None
    (file,) = (tmp_path / "arrays").iterdir()
    file.write_bytes(file.read_bytes()[:40])
    assert store.get(key) is None
