from __future__ import annotations

import numpy as np
import pytest

from condsim.contexts.scoring import diverse


def test_diverse_one_context_for_each_chunk():
    chunks = np.array([0, 0, 1, 0, 2, 1])
    assert diverse(chunks, ["a", "b", "c", "d", "e", "f"], count=9).tolist() == [0, 2, 4]


def test_diverse_like_left_neighbours_are_left_out():
    neighbours = ["the red dog ran", "The red dog sat", "a red dog ran off", "", ""]
    # 0 and 1 share 3 of 5 words (0.6); 0 and 2 share 3 of 6: exactly 0.5, which is not below it.
    assert diverse(np.arange(5), neighbours, count=9).tolist() == [0, 3, 4]
    assert diverse(np.arange(5), neighbours, count=9, likeness=0.55).tolist() == [0, 2, 3, 4]


def test_diverse_stops_at_the_count_and_at_the_end():
    assert diverse(np.arange(5), list("abcde"), count=2).tolist() == [0, 1]
    assert diverse(np.array([], np.int64), [], count=2).tolist() == []


@pytest.mark.parametrize("seed", range(3))
def test_diverse_equals_a_naive_loop(seed: int):
    random = np.random.default_rng(seed)
    chunks = random.integers(0, 30, 60)
    sentences = [" ".join(random.choice(list("abcdefgh"), random.integers(0, 6))) for _ in chunks]
    taken: list[int] = []
    for place, sentence in enumerate(sentences):
        words = set(sentence.split())
        near = [
            len(words & set(sentences[other].split())) / len(words | set(sentences[other].split()))
            for other in taken
            if words or sentences[other]
        ]
        if chunks[place] not in chunks[taken] and all(value < 0.5 for value in near):
            taken.append(place)
    assert diverse(chunks, sentences, count=60).tolist() == taken
