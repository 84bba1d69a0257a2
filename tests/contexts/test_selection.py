"""Context sets: which contexts are chosen, and which are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from condsim.contexts.recipe import Selection, Weights
from condsim.contexts.selection import ContextSelector, diverse


class Index:
    """Finds as many chunks as the sentence has letters, the last ones first."""

    def search(self, sentences: Sequence[str], *, top_n: int = 20_000) -> list[Any]:
        chunks = [np.arange(12)[::-1][: min(len(text), top_n)] for text in sentences]
        return [(numbers, np.ones(len(numbers), np.float32)) for numbers in chunks]


class Terms:
    """Coherence falls with the id; the other terms rise with it. Remembers the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def terms(self, sentences: Any, centres: Any, names: Any) -> list[dict[str, Any]]:
        self.calls += [(name, len(contexts)) for name in names for contexts in centres]
        results = []
        for contexts in centres:
            values = {name: (contexts - 100).astype(np.float32) for name in names}
            if "coherence" in names:
                values["coherence"] = -contexts.astype(np.float32)
            results.append(values)
        return results


@pytest.fixture
def select(numbered_corpus) -> Callable[..., Any]:
    """Selects contexts of 60 sentences in chunks of 5; each chunk is a document."""

    def run(sentences: list[str], **options: Any) -> Any:
        corpus = numbered_corpus(60, chunk=5, document=5)
        if "texts" in options:
            corpus.sentences = options.pop("texts")
        return ContextSelector(
            corpus=corpus,
            index=options.pop("index", Index()),
            scorer=options.pop("terms", Terms()),
            weights=options.pop("weights", Weights(centre=4)),
            selection=Selection(**options),
        ).select(sentences)

    return run


def test_select_two_step_takes_the_best_of_each_chunk(select):
    # Three chunks (11, 10, 9) of five are found, all of them candidates; by Eq. 3 the highest id of
    # each is best.
    (contexts,) = select(["abc"], size=5)
    assert contexts.centres.tolist() == [59, 54, 49]
    np.testing.assert_array_equal(contexts.terms["centre"], [-41, -46, -51])
    assert not contexts.random


def test_select_candidates_pass_by_coherence_first(select):
    terms = Terms()
    (contexts,) = select(["abc"], terms=terms, size=2, candidates=3)
    # 6 candidates of 3 chunks, the two most coherent of each: 45, 46, 50, 51, 55 and 56.
    assert contexts.centres.tolist() == [56, 51]
    assert terms.calls[0] == ("coherence", 15)
    assert ("centre", 6) in terms.calls


def test_select_without_coherence_does_not_compute_it(select):
    terms = Terms()
    select(["abc"], terms=terms, size=2, weights=Weights(coherence=0))
    assert "coherence" not in {name for name, _ in terms.calls}


def test_select_no_diversity_may_take_a_chunk_twice(select):
    (contexts,) = select(["abc"], size=5, strategy="no-diversity")
    assert contexts.centres.tolist() == [59, 58, 57, 56, 55]


def test_select_random_depends_on_seed_and_sentence_alone(select):
    options = {"size": 7, "strategy": "random"}
    first, second = select(["abc", "x"], **options)
    (again,), (reseeded,) = select(["x"], **options), select(["x"], seed=1, **options)
    assert again.centres.tolist() == second.centres.tolist()
    assert len(set(first.centres.tolist())) == 7
    assert reseeded.centres.tolist() != second.centres.tolist()


def test_select_sentence_without_chunks_gets_random_contexts(select):
    contexts, empty = select(["abc", ""], size=4)
    assert (contexts.random, empty.random) == (False, True)
    assert len(empty.centres) == 4


def test_select_random_contexts_are_far_from_the_sentence(select):
    class OwnChunkAlone(Index):
        def search(self, sentences: Sequence[str], *, top_n: int = 20_000) -> list[Any]:
            return [(np.array([6]), np.ones(1, np.float32)) for _ in sentences]

    # Digits do not count, so the sentence is in the rows 30 to 34.
    (contexts,) = select(["word30"], index=OwnChunkAlone(), size=100)
    assert contexts.random
    assert contexts.own.tolist() == [30, 31, 32, 33, 34]
    assert sorted(contexts.centres.tolist()) == [*range(20), *range(45, 60)]


def test_select_leaves_out_contexts_near_the_sentence(select):
    def texts(ids: Any) -> list[str]:
        return ["It stands here." if row == 30 else chr(97 + row) for row in ids]

    options = {"texts": texts, "size": 12, "candidates": 5}
    inside, outside = select(["it stands  HERE", "It stood there."], **options)
    assert (inside.own.tolist(), outside.own.tolist()) == ([30], [])
    assert inside.centres.tolist() == [59, 54, 49, 44, 19, 14, 9, 4]
    assert outside.centres.tolist() == [59 - 5 * chunk for chunk in range(12)]


def test_select_similar_left_neighbours_are_left_out(select):
    (contexts,) = select(["abc"], texts=lambda ids: ["the same words"] * len(ids), size=5)
    # One with that left neighbour, and of each other chunk the first sentence, which has none.
    assert contexts.centres.tolist() == [59, 50, 45]


def test_diverse_equals_a_naive_loop():
    random = np.random.default_rng(0)
    chunks = random.integers(0, 30, 60)
    words = [set(random.choice(list("abcdefgh"), random.integers(0, 6))) for _ in chunks]
    picked: list[int] = []
    for row, own in enumerate(words):
        shares = [
            len(own & words[other]) / len(own | words[other])
            for other in picked
            if own or words[other]
        ]
        if chunks[row] not in chunks[picked] and all(share < 0.5 for share in shares):
            picked.append(row)
    assert diverse(chunks, [" ".join(own) for own in words], count=60).tolist() == picked
