from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from condsim.contexts.corpus import SeenKeys, near_duplicate_key


def test_seen_keys_agree_with_a_set() -> None:
    random = np.random.default_rng(0)
    seen, known = SeenKeys(), set[int]()
    for _ in range(200):
        keys = random.integers(2000, size=int(random.integers(40))).astype(np.uint64)
        expected = []
        for key in keys.tolist():
            expected.append(key not in known)
            known.add(key)
        assert seen.add(keys).tolist() == expected
    assert len(seen) == len(known)


def test_seen_keys_cost_eight_bytes_each() -> None:
    seen = SeenKeys()
    for begin in range(0, 300_000, 30_000):
        seen.add(np.arange(begin, begin + 30_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    runs = seen._runs
    assert sum(run.nbytes for run in runs) == 8 * 300_000
    assert all(len(one) >= 2 * len(two) for one, two in pairwise(runs))


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("It's 3.5 km away!", "its 12 KM away", True),
        ("Straße am See.", "STRASSE AM SEE", True),
        ("now here", "nowhere", True),
        ("one two", "two one", False),
        ("7 dogs", "seven dogs", False),
    ],
)
def test_near_duplicate_key_same_words_same_key(one: str, two: str, same: bool) -> None:
    assert (near_duplicate_key(one) == near_duplicate_key(two)) is same


def test_near_duplicate_key_without_letters_is_empty() -> None:
    assert near_duplicate_key("* * _ !") == b""
    assert len(near_duplicate_key("a")) == 8
