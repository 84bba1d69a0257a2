from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from condsim.contexts.scoring.equations import Weights
from condsim.contexts.scoring.selection import ContextSelector, Selection, diverse
from condsim.errors import InputError

ROWS, CHUNK = 60, 5


class Corpus:
    """60 sentences in chunks of 5; each chunk is a document."""

    revision = "0"
    has_context = np.ones(ROWS, dtype=np.bool_)
    chunk_starts = np.arange(0, ROWS + 1, CHUNK)

    def __len__(self) -> int:
        return ROWS

    def sentences(self, ids: Any) -> list[str]:
        return [f"word{row}" for row in ids]

    def chunk_of(self, ids: Any) -> Any:
        return np.asarray(ids) // CHUNK

    def neighbours(self, centres: Any, *, left: int = 2, right: int = 2) -> Any:
        steps = np.array([*range(-left, 0), *range(1, right + 1)])
        found = centres[:, None] + steps
        same = (found // CHUNK == centres[:, None] // CHUNK) & (found >= 0) & (found < ROWS)
        return np.where(same, found, -1)


class Index:
    """Finds as many chunks as the sentence has letters, the last ones first."""

    def search(self, sentences: Sequence[str], *, top_n: int = 20_000) -> list[Any]:
        chunks = [np.arange(12)[::-1][: min(len(text), top_n)] for text in sentences]
        return [(found, np.ones(len(found), np.float32)) for found in chunks]


class Terms:
    """Coherence falls with the id; the other terms rise with it. Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def terms(self, sentences: Any, centres: Any, names: Any) -> list[dict[str, Any]]:
        self.asked += [(name, len(one)) for name in names for one in centres]
        found = []
        for one in centres:
            values = {name: (one - 100).astype(np.float32) for name in names}
            if "coherence" in names:
                values["coherence"] = -one.astype(np.float32)
            found.append(values)
        return found


def sets(sentences: list[str], terms: Terms | None = None, **options: Any) -> Any:
    weights = options.pop("weights", Weights(centre=4))
    return ContextSelector(
        corpus=Corpus(),
        index=Index(),
        scorer=terms or Terms(),
        selection=Selection(**options),
        weights=weights,
    ).select(sentences)


def test_select_two_step_takes_the_best_of_each_chunk():
    # Three chunks (11, 10, 9) of five are found, all of them candidates; by Eq. 3 the highest id of
    # each is best.
    (found,) = sets(["abc"], size=5)
    assert found.centres.tolist() == [59, 54, 49]
    np.testing.assert_array_equal(found.terms["centre"], [-41, -46, -51])
    assert not found.random


def test_select_candidates_pass_by_coherence_first():
    terms = Terms()
    (found,) = sets(["abc"], terms, size=2, candidates=3)
    # 6 candidates of 3 chunks, the two most coherent of each: 45, 46, 50, 51, 55 and 56.
    assert found.centres.tolist() == [56, 51]
    assert terms.asked[0] == ("coherence", 15)
    assert ("centre", 6) in terms.asked


def test_select_without_coherence_does_not_compute_it():
    terms = Terms()
    sets(["abc"], terms, size=2, weights=Weights(coherence=0))
    assert "coherence" not in {name for name, _ in terms.asked}


def test_select_no_diversity_may_take_a_chunk_twice():
    (found,) = sets(["abc"], size=5, strategy="no-diversity")
    assert found.centres.tolist() == [59, 58, 57, 56, 55]


def test_select_random_depends_on_seed_and_sentence_alone():
    options = {"size": 7, "strategy": "random"}
    first, second = sets(["abc", "x"], **options)
    (again,) = sets(["x"], **options)
    assert again.centres.tolist() == second.centres.tolist()
    assert len(set(first.centres.tolist())) == 7
    (other,) = sets(["x"], seed=1, **options)
    assert other.centres.tolist() != second.centres.tolist()


def test_select_sentence_without_chunks_gets_random_contexts():
    found, empty = sets(["abc", ""], size=4)
    assert (found.random, empty.random) == (False, True)
    assert len(empty.centres) == 4


def test_select_random_contexts_are_not_from_where_the_sentence_stands():
    class OwnChunkAlone(Index):
        def search(self, sentences: Sequence[str], *, top_n: int = 20_000) -> list[Any]:
            return [(np.array([6]), np.ones(1, np.float32)) for _ in sentences]

    (found,) = ContextSelector(
        corpus=Corpus(),
        index=OwnChunkAlone(),
        scorer=Terms(),
        selection=Selection(size=100),
        weights=Weights(centre=4),
    ).select(["word30"])  # digits do not count, so it stands at 30 to 34
    assert found.random
    assert found.own.tolist() == [30, 31, 32, 33, 34]
    assert sorted(found.centres.tolist()) == [*range(20), *range(45, 60)]


def test_select_leaves_out_contexts_from_where_the_sentence_stands():
    class Known(Corpus):
        def sentences(self, ids: Any) -> list[str]:
            return ["It stands here." if row == 30 else chr(97 + row) for row in ids]

    def found(sentence: str) -> Any:
        (one,) = ContextSelector(
            corpus=Known(),
            index=Index(),
            scorer=Terms(),
            selection=Selection(size=12, candidates=5),
            weights=Weights(centre=4),
        ).select([sentence])
        return one

    inside, outside = found("it stands  HERE"), found("It stood there.")
    assert (inside.own.tolist(), outside.own.tolist()) == ([30], [])
    assert inside.centres.tolist() == [59, 54, 49, 44, 19, 14, 9, 4]  # not 20 to 40
    assert outside.centres.tolist() == [59 - 5 * chunk for chunk in range(12)]


def test_select_like_left_neighbours_are_left_out():
    class Alike(Corpus):
        def sentences(self, ids: Any) -> list[str]:
            return ["the same words" for _ in ids]

    found = ContextSelector(
        corpus=Alike(),
        index=Index(),
        scorer=Terms(),
        selection=Selection(size=5),
        weights=Weights(centre=4),
    ).select(["abc"])
    # One with that left neighbour, and of each other chunk the first sentence, which has none.
    assert found[0].centres.tolist() == [59, 50, 45]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "best"}, r"Unknown value of 'strategy': 'best'"),
        ({"size": 0}, r"Selection key 'size' must be at least 1\. Got 0"),
        ({"candidates": 0.5}, r"Selection key 'candidates' must be at least 1"),
        ({"likeness": 0}, r"Selection key 'likeness' must be above 0. Got 0"),
    ],
)
def test_selection_bad_values_raise(options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        Selection(**options)


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
