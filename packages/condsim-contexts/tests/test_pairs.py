from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from condsim.errors import InputError
from condsim_contexts.corpus import Corpus, prepare_corpus
from condsim_contexts.harvest import (
    PairDrawer,
    build_single_index,
    splits_of,
)
from condsim_contexts.index import TfidfIndex
from condsim_contexts.recipe import PAIR_KINDS, PairMix

TRAIN, DEV, TEST = range(3)


class Near:
    """Finds the chunk of the sentence's number and those after it; nothing for every third."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def search(self, sentences: Any, *, top_n: int = 20_000) -> list[Any]:
        numbers = [int(re.search(r"\d+", text)[0]) for text in sentences]
        chunks = [
            np.arange(number // 5, min(number // 5 + top_n, self.rows // 5))
            if number % 3
            else np.zeros(0, np.int64)
            for number in numbers
        ]
        return [(found, np.ones(len(found), np.float32)) for found in chunks]

    def likeness(self, sentence: str, others: Any) -> Any:
        return np.ones(len(others), np.float32)


@pytest.fixture
def numbered(numbered_corpus) -> Callable[[int], Corpus]:
    """Corpora of numbered sentences, in documents of 50 and chunks of 5."""
    return partial(numbered_corpus, chunk=5, document=50, text="Sentence {}  of them.")


@pytest.fixture
def drawer(numbered) -> Callable[..., PairDrawer]:
    def make(rows: int = 5_000, **options: Any) -> PairDrawer:
        return PairDrawer(numbered(rows), Near(rows), **options)

    return make


@pytest.mark.parametrize(
    ("rows", "least"), [(20_000, 200), (5_000, 50), (300, 10), (60, 6), (20, 2)]
)
def test_splits_are_98_1_1_and_ten_sentences_of_a_small_corpus(numbered, rows: int, least: int):
    sizes = np.bincount(splits_of(numbered(rows)), minlength=3)
    assert sizes.tolist() == [rows - 2 * least, least, least]


def test_splits_repeated_sentence_is_in_one_split(numbered):
    corpus = numbered(900)
    corpus.sentences = lambda ids: [f"Sentence {row // 3}  of them." for row in ids]
    splits = splits_of(corpus).reshape(300, 3)
    assert (splits == splits[:, :1]).all()
    assert set(splits[:, 0].tolist()) == {TRAIN, DEV, TEST}


def test_splits_too_small_corpus_raises(numbered):
    with pytest.raises(InputError, match=r"needs 20 sentences or more.* this corpus has 19"):
        splits_of(numbered(19))


def test_draw_pairs_are_98_1_1_and_no_sentence_is_in_two_splits(numbered, drawer):
    splits = splits_of(numbered(5_000))
    drawn = [drawer().draw(start, 500) for start in range(0, 2_000, 500)]
    assert sum(len(one.splits) for one in drawn) > 1_980
    for one in drawn:
        np.testing.assert_array_equal(splits[one.first], one.splits)
        np.testing.assert_array_equal(splits[one.second], one.splits)
    counts = Counter(np.concatenate([one.splits for one in drawn]).tolist())
    assert counts[DEV] == counts[TEST] == 20


def test_draw_kinds_are_what_the_mix_says_and_what_they_are_called(drawer):
    mix = PairMix(tfidf=0.5, document=0.3, random=0.2)
    one = drawer(mix=mix).draw(0, 3_000)
    kinds = np.bincount(one.kinds, minlength=3) / len(one.kinds)
    # A third of the sentences has no chunk to be found: their TF-IDF pairs are random ones.
    np.testing.assert_allclose(kinds, [0.5 * 2 / 3, 0.3, 0.2 + 0.5 / 3], atol=0.03)
    train = one.splits == TRAIN
    apart = np.abs(one.first - one.second)
    near = train & (one.kinds == PAIR_KINDS.index("document"))
    assert apart[near].max() <= 10
    assert (one.first // 50 == one.second // 50)[near].all()
    alike = train & (one.kinds == PAIR_KINDS.index("tfidf"))
    assert (one.first[alike] % 3 != 0).all()
    assert (one.second // 5 - one.first // 5)[alike].max() <= 20
    assert apart[one.kinds == PAIR_KINDS.index("random")].max() > 1_000
    assert (apart > 0).all()


def test_draw_depends_on_seed_and_number_alone(drawer):
    first = drawer(seed=1)
    first.draw(0, 100)
    again, other_seed = drawer(seed=1), drawer(seed=2)
    one, same = first.draw(300, 100), again.draw(300, 100)
    np.testing.assert_array_equal(one.first, same.first)
    np.testing.assert_array_equal(one.second, same.second)
    for other in (again.draw(400, 100), other_seed.draw(300, 100)):
        assert one.first.tolist() != other.first.tolist()


def test_draw_pair_drawn_twice_is_there_once(drawer):
    one = drawer(20, mix=PairMix(tfidf=0, document=0, random=1)).draw(0, 1_000)
    pairs = Counter(map(frozenset, zip(one.first.tolist(), one.second.tolist(), strict=True)))
    assert set(pairs.values()) == {1}
    assert len(pairs) == 16 * 15 / 2 + 1 + 1  # all there are in the three splits


def test_draw_tfidf_partner_is_one_of_the_ten_most_alike_and_shares_a_word(numbered):
    class Alike(Near):
        def likeness(self, sentence: str, others: Any) -> Any:
            numbers = [int(re.search(r"\d+", text)[0]) for text in others]
            return np.array([number % 100 if number % 2 else 0 for number in numbers], np.float32)

    one = PairDrawer(
        numbered(5_000), Alike(5_000), mix=PairMix(tfidf=1, document=0, random=0)
    ).draw(0, 500)
    alike = (one.kinds == PAIR_KINDS.index("tfidf")) & (one.splits == TRAIN)
    # Of the 100 sentences of 20 chunks half are alike; the ten highest odd numbers below 100, but
    # for the sentence itself and those of another split.
    assert (one.second[alike] % 2 == 1).all()
    assert (one.second[alike] % 100 > 70).all()
    assert len(set((one.second[alike] % 100).tolist())) >= 10


@pytest.fixture
def captions(tmp_path) -> Corpus:
    """200 documents of one sentence: 50 of each of four things; and one of four sentences."""
    things = ("red lorry", "old violin", "wet umbrella", "tall giraffe")
    towns = ("".join(letters) for letters in permutations("abcdef"))
    lines = [f"A {thing} seen from {next(towns)}." for _ in range(50) for thing in things]
    lines.append("The red lorry stops. It rains again. Nobody gets out. The old violin plays on.")
    (tmp_path / "captions.txt").write_text("\n\n".join(lines))
    return prepare_corpus([tmp_path / "captions.txt"], tmp_path / "corpus")


def test_draw_documents_of_one_sentence_have_partners_among_themselves(captions, tmp_path):
    index = TfidfIndex.build(
        captions.chunk_texts(), tmp_path / "index", revision=captions.revision, min_df=1
    )
    singles = build_single_index(captions, tmp_path / "index", min_df=2)
    assert len(singles) == 200
    one = PairDrawer(captions, index, singles, mix=PairMix(tfidf=0.5, document=0.5, random=0)).draw(
        0, 400
    )
    from_captions = ~captions.has_context[one.first]
    assert PAIR_KINDS.index("document") not in one.kinds[from_captions]
    assert PAIR_KINDS.index("random") in one.kinds
    alike = from_captions & (one.kinds == PAIR_KINDS.index("tfidf"))
    assert alike[one.splits == TRAIN].sum() > 100
    words = [
        [text.split()[2] for text in captions.sentences(ids[alike])]
        for ids in (one.first, one.second)
    ]
    assert words[0] == words[1]
    assert not captions.has_context[one.second[alike]].any()
