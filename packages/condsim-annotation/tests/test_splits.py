from __future__ import annotations

import json
import logging
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from condsim.data.csts import load_csts
from condsim.errors import InputError
from condsim.io import finite_values
from condsim.types import Task
from condsim_annotation.splits import (
    SplitRules,
    find_leakage,
    pair_groups,
    sentence_groups,
    split_rows,
)

CSTS = Path(__file__).parents[4] / "shared/data/csts-reannotated"


def chains(count: int, length: int) -> list[tuple[str, str]]:
    """Chains of pairs that share sentences, two rows for each pair."""
    return [
        (f"chain {chain} sentence {place}.", f"chain {chain} sentence {place + 1}.")
        for chain in range(count)
        for place in range(length)
        for _ in range(2)
    ]


def ring(size: int) -> list[tuple[str, str]]:
    """One group that near neighbors connect, as candidates of near images are."""
    generator = np.random.default_rng(0)
    starts = generator.integers(size, size=3 * size)
    ends = (starts + generator.integers(1, 10, size=3 * size)) % size
    return [(f"s {a}", f"s {b}") for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]


def crossing_sentences(pairs, split) -> set[str]:
    sentences: list[set[str]] = [set(), set(), set()]
    for pair, number in zip(pairs, split, strict=True):
        if number >= 0:
            sentences[number].update(pair)
    return set().union(*(first & second for first, second in combinations(sentences, 2)))


def test_groups_follow_shared_sentences_or_pairs():
    pairs = [("a", "b"), ("c", "d"), ("B.", "e"), ("f", "c"), ("g", "g")]
    assert sentence_groups(pairs).tolist() == [0, 1, 0, 1, 2]
    assert len(set(sentence_groups([("?!", "a"), ("...", "b")]).tolist())) == 2
    assert pair_groups([("a", "b"), ("b", "A"), ("a", "c")]).tolist() == [0, 0, 1]


def test_split_rows_no_sentence_crosses_and_ratios_hold():
    pairs = chains(200, 3)
    splitting = split_rows(pairs, SplitRules(seed=2))
    shares = np.bincount(splitting.split) / len(pairs)
    assert shares == pytest.approx([0.60, 0.15, 0.25], abs=0.01)
    assert not crossing_sentences(pairs, splitting.split)
    assert (splitting.groups, splitting.largest, splitting.cut) == (200, 6, 0)


def test_split_rows_by_pair_lets_sentences_cross_and_no_pair():
    pairs = chains(50, 6)
    split = split_rows(pairs, SplitRules(group="pair")).split.tolist()
    assert crossing_sentences(pairs, split)
    of_pair = dict(zip(pairs, split, strict=True))
    assert [of_pair[pair] for pair in pairs] == split


def test_split_rows_depends_on_the_seed_and_not_on_the_order():
    pairs = chains(60, 2)
    first = split_rows(pairs, SplitRules(seed=1)).split.tolist()
    assert first == split_rows(pairs[::-1], SplitRules(seed=1)).split.tolist()[::-1]
    assert first != split_rows(pairs, SplitRules(seed=2)).split.tolist()


def test_split_rows_large_group_stays_whole_with_a_warning(caplog):
    pairs = chains(1, 40) + chains(21, 1)[2:]
    with caplog.at_level(logging.WARNING, logger="condsim"):
        splitting = split_rows(pairs, SplitRules())
    assert len(set(splitting.split[:80].tolist())) == 1
    assert "train has 66.7 % of the rows, not 60.0 %" in caplog.text
    assert "--oversize cut" in caplog.text


def test_split_rows_single_group_is_refused_with_the_fix():
    with pytest.raises(InputError, match=r"validation would have no rows.*--oversize cut, or --gr"):
        split_rows(ring(200), SplitRules())


def test_split_rows_cut_group_loses_few_rows_and_no_sentence_crosses():
    pairs = ring(400)
    splitting = split_rows(pairs, SplitRules(oversize="cut"))
    assert splitting.cut == 1
    lost, *rows = np.bincount(splitting.split + 1)
    assert lost < 0.15 * len(pairs)
    assert not crossing_sentences(pairs, splitting.split)
    assert np.divide(rows, sum(rows)) == pytest.approx([0.60, 0.15, 0.25], abs=0.1)


@pytest.mark.parametrize("ratios", [(60, 0, 40), (1e308, 1e308, 1e308)])
def test_split_rules_out_of_range_are_refused(ratios):
    with pytest.raises(InputError, match="ratios"):
        SplitRules(ratios=ratios)


def task(name: str, rows: list[tuple[str, str, str, float]]) -> Task:
    sentences1, sentences2, conditions, labels = zip(*rows, strict=True)
    return Task(name, "0", sentences1, sentences2, conditions, np.array(labels, np.float32))


def rows_of(first: int, count: int, *, revealing: bool) -> list[tuple[str, str, str, float]]:
    """Pairs of two rows in random order; if ``revealing``, conditions give the label away."""
    generator = np.random.default_rng(first)
    rows = []
    for number in range(first, first + count):
        sentences = (f"A dog number {number} runs.", f"A cat number {number} sleeps.")
        conditions = ["the color", "the animal"]
        if not revealing and generator.random() < 0.5:
            conditions.reverse()
        both = [(*sentences, conditions[0], 5.0), (*sentences, conditions[1], 1.0)]
        rows += both if generator.random() < 0.5 else both[::-1]
    return rows


def leakage_of(train, test, resamples=50):
    splits = {"train": task("train", train), "test": task("test", test)}
    return find_leakage(splits, resamples=resamples)


def test_find_leakage_warns_of_conditions_that_give_the_label_away():
    report = leakage_of(rows_of(0, 60, revealing=True), rows_of(60, 40, revealing=True))
    condition_only, sentences_only = report.baselines
    assert (condition_only.baseline, condition_only.split) == ("condition-only", "test")
    assert condition_only.spearman.value > 99
    assert sentences_only.baseline == "sentences-only"
    assert any("conditions alone give much of the label away" in text for text in report.warnings)
    (shared,) = report.shared
    assert (shared.sentences, shared.pairs, shared.conditions) == (0, 0, 2)
    assert (shared.sentence_rows, shared.condition_rows) == (0, 1)
    json.dumps(finite_values(report), allow_nan=False)


def test_find_leakage_clean_splits_have_no_warnings():
    report = leakage_of(rows_of(0, 60, revealing=False), rows_of(60, 40, revealing=False))
    assert report.warnings == ()


def test_find_leakage_warns_of_shared_texts_and_order():
    train = rows_of(0, 40, revealing=False)
    crossing = [("a dog number 3 RUNS", f"Another {n}.", "the place", n % 5 + 1) for n in range(4)]
    ordered = sorted(rows_of(60, 40, revealing=False), key=lambda row: (row[0], -row[3]))
    report = leakage_of(train, [*ordered, *crossing, train[0]])
    (shared,) = report.shared
    assert (shared.pairs, shared.triplets, shared.sentences) == (1, 1, 3)
    assert shared.sentence_rows == pytest.approx(5 / 85)
    text = " ".join(report.warnings)
    assert "train and test share 1 sentence pairs." in text
    assert "share 3 sentences" in text
    assert "in test the higher row comes first in 100.0%" in text


@pytest.mark.skipif(not CSTS.is_dir(), reason="needs the re-annotated C-STS of ../shared")
def test_find_leakage_of_csts_has_the_known_result():
    report = find_leakage(
        {"train": load_csts(CSTS / "train.csv"), "dev": load_csts(CSTS / "dev.csv")}, resamples=20
    )
    assert report.baselines[0].spearman.value == pytest.approx(42.4, abs=0.1)
    assert report.first_is_higher["train"] == pytest.approx(0.82, abs=0.01)
    assert report.shared[0].sentences > 500


def test_find_leakage_of_too_few_rows_measures_no_baselines():
    rows = rows_of(0, 20, revealing=True)
    assert leakage_of(rows, rows_of(30, 1, revealing=True), 5).baselines == ()
