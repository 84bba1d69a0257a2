"""Rows of labeled texts: balanced, in groups that cut across each other."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.data.tables import CriteriaPair, CriteriaText
from condsim.errors import InputError
from condsim.evaluation.statistics import spearman
from condsim.rows.build import CriteriaRow, PairRow, criteria_rows
from condsim.rows.collection import CollectedTexts, collect_texts
from condsim.rows.sampler import GroupSampler
from condsim.rows.settings import CriteriaSettings

_TOPICS = ("bill", "parcel", "app", "shop", "refund")
_WORDS = "late broken fine odd quick slow dear new old red big odd loud calm".split()
_GRADED = {"size": {"order": ["S", "M", "L"]}}


def _texts(number: int = 300, seed: int = 0) -> list[CriteriaText]:
    """Texts whose intent is a part of their topic, whose mood is free and whose size is graded."""
    draw = random.Random(seed)
    texts = []
    for place in range(number):
        topic, mood = draw.choice(_TOPICS), draw.choice(("positive", "negative"))
        intent, size = f"{topic} {draw.choice(('ask', 'complain', 'change'))}", draw.choice("SML")
        text = f"{topic} {mood[:4]} {' '.join(draw.sample(_WORDS, 4))} {place}"
        values = {"topic": (topic,), "the intent": (intent,), "mood": (mood,), "size": (size,)}
        if draw.random() < 0.3:
            del values["mood"]
        texts.append(CriteriaText(text, values))
    return texts


def _rows(**changes: object) -> list[CriteriaRow]:
    return criteria_rows(
        _texts(), CriteriaSettings(**{"rows": 1500, "criteria": _GRADED, **changes})
    )


def _collected(settings: CriteriaSettings) -> CollectedTexts:
    return collect_texts(_texts(), settings, name="texts", held_out=HeldOutTexts())


def _balance(rows: list[CriteriaRow]) -> dict[tuple[str, str], float]:
    """How far the labels of each wording are from the middle, together."""
    balance: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        balance[row.criterion, row.condition] += row.label - 3
    return balance


def test_rows_of_each_wording_are_as_often_alike_as_different() -> None:
    rows = _rows()
    assert 1400 < len(rows) <= 1500
    balance = _balance(rows)
    assert set(balance.values()) == {0.0}
    assert len(balance) > 12
    assert {row.label for row in rows if row.criterion == "size"} == {1.0, 3.0, 5.0}
    assert {row.label for row in rows if row.criterion != "size"} == {1.0, 5.0}


def test_rows_of_a_group_share_texts_and_wordings() -> None:
    groups = defaultdict(list)
    for row in _rows():
        groups[row.group].append(row)
    for rows in groups.values():
        assert len({text for row in rows for text in (row.sentence1, row.sentence2)}) <= 6
        wordings = {(row.criterion, row.condition) for row in rows}
        assert len(wordings) == len({row.criterion for row in rows}) <= 3
    assert np.mean([len(rows) for rows in groups.values()]) > 20


def test_rows_are_true_and_never_twice() -> None:
    values = {item.text: item.attributes for item in _texts()}
    rows = _rows()
    for row in rows:
        (value1,), (value2,) = (
            values[text][row.criterion] for text in (row.sentence1, row.sentence2)
        )
        expected = 5 if value1 == value2 else 1
        if row.criterion == "size":
            expected = 5 - 2 * abs("SML".index(value1) - "SML".index(value2))
        assert row.label == expected
    keys = Counter((frozenset((r.sentence1, r.sentence2)), r.criterion) for r in rows)
    assert set(keys.values()) == {1}


def test_groups_cut_across_their_first_criterion() -> None:
    settings = CriteriaSettings(rows=1500, criteria=_GRADED)
    crossing = []
    for _, group in zip(range(40), GroupSampler(_collected(settings), settings), strict=False):
        distances, pairs = defaultdict(set), defaultdict(set)
        for pair in group.judged:
            distances[pair.criterion].add(pair.distance)
            pairs[pair[:2]].add(pair.distance == 0)
        assert any(min(of) == 0 < max(of) for of in distances.values())
        crossing += [len(sides) == 2 for sides in pairs.values()]
    assert np.mean(crossing) > 0.25


def test_hard_groups_have_words_that_tell_less() -> None:
    def overlap(hard: float) -> float:
        settings = CriteriaSettings(rows=1000, hard=hard, balance="none")
        sampler = GroupSampler(_collected(settings), settings)
        drawn = [
            pair
            for _, group in zip(range(60), sampler, strict=False)
            for pair in group.judged
            if pair.criterion == group.judged[0].criterion
        ]
        return spearman([pair.overlap for pair in drawn], [-pair.distance for pair in drawn])

    assert overlap(1.0) < overlap(0.0) - 0.1


def test_rows_of_a_seed_are_the_same_and_of_another_are_not() -> None:
    assert _rows() == _rows()
    assert _rows() != _rows(seed=1)


def test_rows_with_the_own_name_alone_have_one_condition_each() -> None:
    assert {row.condition for row in _rows(own_name=1.0)} == {"topic", "the intent", "mood", "size"}
    share = np.mean([row.condition == row.criterion for row in _rows()])
    assert 0.4 < share < 0.6
    assert "topic" not in {row.condition for row in _rows(own_name=0.0)}


def test_rows_without_balance_are_all_kept() -> None:
    assert set(_balance(_rows(balance="none")).values()) != {0.0}


def test_pairs_are_alike_in_one_criterion_and_different_in_another() -> None:
    settings = CriteriaSettings(rows=400, form="pairs", own_name=1.0)
    rows = criteria_rows(_texts(), settings)
    assert 330 < len(rows) <= 400
    assert set(_balance(rows).values()) == {0.0}
    pairs = defaultdict[str, list[PairRow]](list)
    for row in rows:
        assert isinstance(row, PairRow)
        pairs[row.pair_id].append(row)
    both = [pair for pair in pairs.values() if len(pair) == 2]
    assert len(both) > len(pairs) / 2
    for row1, row2 in both:
        assert (row1.sentence1, row1.sentence2) == (row2.sentence1, row2.sentence2)
        assert {row1.label, row2.label} == {1.0, 5.0}
        assert row1.criterion != row2.criterion


@pytest.mark.parametrize("form", ["groups", "pairs"])
def test_rows_of_labeled_pairs_are_balanced(form: str) -> None:
    draw = random.Random(0)
    pairs = [
        CriteriaPair(
            f"red lamp {place}",
            f"blue lamp {place} {draw.random()}",
            {"the brand": float(draw.random() < 0.8), "the product": draw.choice((0, 0.5, 1.0))},
        )
        for place in range(200)
    ]
    rows = criteria_rows(pairs, CriteriaSettings(rows=150, form=form, own_name=1.0), name="lamps")
    assert 60 < len(rows) <= 150
    assert {row.set for row in rows} == {"lamps"}
    names = "the brand", "the product"
    assert _balance(rows) == {(name, name): 0.0 for name in names}


def test_rows_leave_out_texts_that_are_held_out_or_repeated() -> None:
    texts = _texts()
    held_out = HeldOutTexts(frozenset(text_digest(item.text) for item in texts[:150]))
    kept = collect_texts([*texts, texts[-1]], CriteriaSettings(), name="texts", held_out=held_out)
    assert len(kept.texts) == 150
    assert kept.left_out == {"excluded": 150, "repeated": 1}
    rows = criteria_rows(texts, CriteriaSettings(rows=300), held_out=held_out)
    assert not {item.text for item in texts[:150]} & {row.sentence1 for row in rows}


@pytest.mark.parametrize(
    ("form", "number"), [("groups", 2), ("groups", 20), ("groups", 50), ("pairs", 4), ("pairs", 20)]
)
def test_rows_of_a_small_number_are_drawn_and_balanced(form: str, number: int) -> None:
    for seed in range(5):
        settings = CriteriaSettings(rows=number, form=form, seed=seed, own_name=1.0)
        rows = criteria_rows(_texts(), settings)
        assert number / 2 <= len(rows) <= number
        assert sum(row.label - 3 for row in rows) == 0


def test_rows_of_too_few_texts_are_refused() -> None:
    pairs, topics = (
        CriteriaSettings(rows=2, form="pairs"),
        [CriteriaText(item.text, {"topic": item.attributes["topic"]}) for item in _texts()],
    )
    with pytest.raises(InputError, match="or ask for more than 2 rows"):
        criteria_rows(_texts(), pairs)
    with pytest.raises(InputError, match="more criteria"):
        criteria_rows(topics, pairs)
    assert len(criteria_rows(topics, CriteriaSettings(rows=100))) > 80
    different = [CriteriaText(f"text {n}", {"topic": (str(n),), "all": ("x",)}) for n in range(9)]
    with pytest.raises(InputError, match=r"two values that two texts each have; the 9 texts"):
        criteria_rows(different, CriteriaSettings())
    with pytest.raises(InputError, match=r"the 0 texts .* have no column of values"):
        criteria_rows([], CriteriaSettings())
    alike = [CriteriaPair("a", "b", {"brand": 1.0}), CriteriaPair("c", "d", {"brand": 0.9})]
    with pytest.raises(InputError, match="a pair that is alike and one that is not"):
        criteria_rows(alike, CriteriaSettings())
