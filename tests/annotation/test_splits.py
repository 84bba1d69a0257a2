from __future__ import annotations

import logging
import math
from itertools import combinations

import numpy as np
import pytest

from condsim.annotation.splits import (
    SplitRules,
    pair_groups,
    sentence_groups,
    sentence_key,
    split_rows,
)
from condsim.errors import InputError


def chains(count: int, length: int) -> list[tuple[str, str]]:
    """Chains of pairs that share sentences, two rows a pair."""
    return [
        (f"chain {chain} sentence {place}.", f"chain {chain} sentence {place + 1}.")
        for chain in range(count)
        for place in range(length)
        for _ in range(2)
    ]


def ring(size: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """One group that near neighbours connect, as candidates of near images are."""
    generator = np.random.default_rng(seed)
    starts = generator.integers(size, size=3 * size)
    ends = (starts + generator.integers(1, 10, size=3 * size)) % size
    return [(f"s {a}", f"s {b}") for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]


def sentences_of(pairs, split, number) -> set[str]:
    return {
        text for pair, where in zip(pairs, split, strict=True) if where == number for text in pair
    }


def test_sentence_key_case_and_punctuation_do_not_count():
    assert sentence_key("A dog, running.") == sentence_key(" a DOG running")
    assert sentence_key("?!") == "?!"


def test_sentence_groups_follow_shared_sentences():
    pairs = [("a", "b"), ("c", "d"), ("B.", "e"), ("f", "c"), ("g", "g")]
    assert sentence_groups(pairs).tolist() == [0, 1, 0, 1, 2]
    assert pair_groups([("a", "b"), ("b", "A"), ("a", "c")]).tolist() == [0, 0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_split_rows_no_sentence_crosses_and_ratios_hold(seed):
    pairs = chains(200, 3)
    made = split_rows(pairs, SplitRules(seed=seed))
    shares = np.bincount(made.split) / len(pairs)
    assert shares == pytest.approx([0.60, 0.15, 0.25], abs=0.01)
    for one, two in combinations(range(3), 2):
        assert sentences_of(pairs, made.split, one).isdisjoint(sentences_of(pairs, made.split, two))
    assert (made.groups, made.largest, made.cut) == (200, 6, 0)


def test_split_rows_by_pair_lets_sentences_cross_and_no_pair():
    pairs = chains(50, 6)
    made = split_rows(pairs, SplitRules(group="pair"))
    assert sentences_of(pairs, made.split, 0) & sentences_of(pairs, made.split, 2)
    of_pair = dict(zip(pairs, made.split.tolist(), strict=True))
    assert [of_pair[pair] for pair in pairs] == made.split.tolist()


def test_split_rows_seed_decides_and_order_of_rows_does_not():
    pairs = chains(60, 2)
    first = split_rows(pairs, SplitRules(seed=1)).split.tolist()
    assert first == split_rows(pairs, SplitRules(seed=1)).split.tolist()
    assert first != split_rows(pairs, SplitRules(seed=2)).split.tolist()
    backwards = split_rows(pairs[::-1], SplitRules(seed=1)).split.tolist()
    assert first == backwards[::-1]


def test_split_rows_large_group_stays_whole_with_a_warning(caplog):
    pairs = chains(1, 40) + chains(21, 1)[2:]
    with caplog.at_level(logging.WARNING, logger="condsim"):
        made = split_rows(pairs, SplitRules())
    assert len(set(made.split[:80].tolist())) == 1
    assert "train has 66.7 % of the rows, not 60.0 %" in caplog.text
    assert "--oversize cut" in caplog.text


def test_split_rows_one_group_alone_is_refused_with_the_fix():
    with pytest.raises(
        InputError, match=r"validation would have no rows.*--oversize cut, or --gro"
    ):
        split_rows(ring(200), SplitRules())


def test_split_rows_cut_group_loses_few_rows_and_no_sentence_crosses():
    pairs = ring(400)
    made = split_rows(pairs, SplitRules(oversize="cut"))
    assert made.cut == 1
    assert made.rows(-1) < 0.15 * len(pairs)
    for one, two in combinations(range(3), 2):
        assert sentences_of(pairs, made.split, one).isdisjoint(sentences_of(pairs, made.split, two))
    shares = [made.rows(number) / (len(pairs) - made.rows(-1)) for number in range(3)]
    assert shares == pytest.approx([0.60, 0.15, 0.25], abs=0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ratios": (60, 0, 40)}, r"Splits key 'ratios\[1\]' must be above 0\. Got 0"),
        ({"ratios": (60, math.inf, 40)}, r"Splits key 'ratios\[1\]' must be a number\. Got inf"),
        ({"seed": -1}, r"Splits key 'seed' must be at least 0\. Got -1"),
    ],
)
def test_split_rules_out_of_range_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        SplitRules(**wrong)
