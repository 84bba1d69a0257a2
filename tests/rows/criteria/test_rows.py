"""Rows of labelled texts: balanced, in groups that cut across each other."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.data.tables import CriteriaPair, CriteriaText
from condsim.errors import InputError
from condsim.evaluation.correlation import spearman
from condsim.rows.criteria.balance import GroupRow, PairRow
from condsim.rows.criteria.build import criteria_rows
from condsim.rows.criteria.collection import LabelledTexts, collect_texts
from condsim.rows.criteria.sampler import GroupSampler
from condsim.rows.criteria.settings import CriteriaSettings

_TOPICS = ("bill", "parcel", "app", "shop", "refund")
_WORDS = "late broken fine odd quick slow dear new old red big odd loud calm".split()


def _texts(number: int = 300, seed: int = 0) -> list[CriteriaText]:
    """Texts whose intent is a part of their topic, whose mood is free and whose size is graded."""
    draw = random.Random(seed)
    made = []
    for place in range(number):
        topic, mood = draw.choice(_TOPICS), draw.choice(("positive", "negative"))
        intent, size = f"{topic} {draw.choice(('ask', 'complain', 'change'))}", draw.choice("SML")
        text = f"{topic} {mood[:4]} {' '.join(draw.sample(_WORDS, 4))} {place}"
        values = {"topic": (topic,), "the intent": (intent,), "mood": (mood,), "size": (size,)}
        if draw.random() < 0.3:
            del values["mood"]
        made.append(CriteriaText(text, values))
    return made


_GRADED = {"size": {"order": ["S", "M", "L"]}}


def _rows(**changes: object) -> list[GroupRow]:
    settings = CriteriaSettings(**{"rows": 1500, "criteria": _GRADED, **changes})
    return [row for row in criteria_rows(_texts(), settings) if isinstance(row, GroupRow)]


def _collected(settings: CriteriaSettings) -> LabelledTexts:
    return collect_texts(_texts(), settings, name="texts", held_out=HeldOutTexts())


def _balance(rows: Sequence[GroupRow | PairRow]) -> dict[tuple[str, str], float]:
    """How far the labels of each wording are from the middle, together."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        found[row.criterion, row.condition] += row.label - 3
    return found


def test_rows_of_each_wording_are_as_often_alike_as_different() -> None:
    rows = _rows()
    assert 1400 < len(rows) <= 1500
    balance = _balance(rows)
    assert set(balance.values()) == {0.0}
    assert len(balance) > 12
    assert {row.label for row in rows if row.criterion == "size"} == {1.0, 3.0, 5.0}
    assert {row.label for row in rows if row.criterion != "size"} == {1.0, 5.0}
    means = [np.mean([r.label for r in rows if r.condition == row.condition]) for row in rows]
    assert np.isnan(spearman(means, [row.label for row in rows]))  # the mean is 3 for each


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
        one, two = values[row.sentence1][row.criterion], values[row.sentence2][row.criterion]
        expected = (
            5 - 2 * abs("SML".index(one[0]) - "SML".index(two[0]))
            if row.criterion == ("size")
            else (5 if one == two else 1)
        )
        assert row.label == expected
    keys = Counter((frozenset((r.sentence1, r.sentence2)), r.criterion) for r in rows)
    assert set(keys.values()) == {1}


def test_groups_cut_across_their_first_criterion() -> None:
    settings = CriteriaSettings(rows=1500, criteria=_GRADED)
    texts = _collected(settings)
    both = crossing = 0
    for _, group in zip(range(40), GroupSampler(texts, settings), strict=False):
        distances = defaultdict(set)
        for pair in group.judged:
            distances[pair.criterion].add(pair.distance)
        assert any(min(of) == 0 < max(of) for of in distances.values())
        pairs = defaultdict(set)
        for one in group.judged:
            pairs[one[:2]].add(one.distance == 0)
        both += len(pairs)
        crossing += sum(len(found) == 2 for found in pairs.values())
    assert crossing > both / 4


def test_hard_groups_have_words_that_tell_less() -> None:
    def overlap(hard: float) -> float:
        settings = CriteriaSettings(rows=1000, hard=hard, balance="none")
        texts = _collected(settings)
        drawn = [
            one
            for _, g in zip(range(60), GroupSampler(texts, settings), strict=False)
            for one in g.judged
            if one.criterion == g.judged[0].criterion
        ]
        return spearman([one.overlap for one in drawn], [-one.distance for one in drawn])

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
    rows = _rows(balance="none")
    assert set(_balance(rows).values()) != {0.0}
    assert len(rows) <= 1500


def test_pairs_are_alike_in_one_criterion_and_different_in_another() -> None:
    settings = CriteriaSettings(rows=400, form="pairs", own_name=1.0)
    rows = [row for row in criteria_rows(_texts(), settings) if isinstance(row, PairRow)]
    assert 330 < len(rows) <= 400
    assert set(_balance(rows).values()) == {0.0}
    pairs = defaultdict(list)
    for row in rows:
        pairs[row.pair_id].append(row)
    whole = [pair for pair in pairs.values() if len(pair) == 2]
    assert len(whole) > len(pairs) / 2
    for one, two in whole:
        assert (one.sentence1, one.sentence2) == (two.sentence1, two.sentence2)
        assert {one.label, two.label} == {1.0, 5.0}
        assert one.criterion != two.criterion


def _labelled_pairs() -> list[CriteriaPair]:
    draw = random.Random(0)
    return [
        CriteriaPair(
            f"red lamp {place}",
            f"blue lamp {place} {draw.random()}",
            {"the brand": float(draw.random() < 0.8), "the product": draw.choice((0, 0.5, 1.0))},
        )
        for place in range(200)
    ]


@pytest.mark.parametrize("form", ["groups", "pairs"])
def test_rows_of_labelled_pairs_are_balanced(form: str) -> None:
    settings = CriteriaSettings(rows=150, form=form, own_name=1.0)
    rows = list(criteria_rows(_labelled_pairs(), settings, name="lamps"))
    assert 60 < len(rows) <= 150
    assert {row.set for row in rows} == {"lamps"}
    total: dict[str, float] = defaultdict(float)
    for row in rows:
        total[row.criterion] += row.label - 3
    assert total == {"the brand": 0.0, "the product": 0.0}


def test_rows_leave_out_texts_that_are_held_out_or_repeated() -> None:
    texts = _texts()
    held_out = HeldOutTexts(frozenset(text_digest(item.text) for item in texts[:150]))
    kept = collect_texts([*texts, texts[-1]], CriteriaSettings(), name="texts", held_out=held_out)
    assert (len(kept.texts), kept.excluded, kept.repeated) == (150, 150, 1)
    rows = criteria_rows(texts, CriteriaSettings(rows=300), held_out=held_out)
    assert not {item.text for item in texts[:150]} & {row.sentence1 for row in rows}


def test_pairs_of_one_criterion_are_refused() -> None:
    items = [CriteriaText(item.text, {"topic": item.attributes["topic"]}) for item in _texts()]
    with pytest.raises(InputError, match="more criteria"):
        list(criteria_rows(items, CriteriaSettings(form="pairs")))
    assert len(list(criteria_rows(items, CriteriaSettings(rows=100)))) > 80


@pytest.mark.parametrize(
    ("form", "number"), [("groups", 2), ("groups", 20), ("groups", 50), ("pairs", 4), ("pairs", 20)]
)
def test_rows_of_a_small_number_are_drawn_and_balanced(form: str, number: int) -> None:
    for seed in range(5):
        settings = CriteriaSettings(rows=number, form=form, seed=seed, own_name=1.0)
        rows = list(criteria_rows(_texts(), settings))
        assert number / 2 <= len(rows) <= number
        assert sum(row.label - 3 for row in rows) == 0


def test_pairs_fewer_than_balance_one_another_are_refused() -> None:
    with pytest.raises(InputError, match="or ask for more than 2 rows"):
        list(criteria_rows(_texts(), CriteriaSettings(rows=2, form="pairs")))


def test_rows_of_too_few_texts_are_refused() -> None:
    one = [CriteriaText(f"text {n}", {"topic": (str(n),), "all": ("x",)}) for n in range(9)]
    with pytest.raises(InputError, match=r"two values that two texts each have; the 9 texts"):
        list(criteria_rows(one, CriteriaSettings()))
    with pytest.raises(InputError, match="among the criteria none"):
        list(criteria_rows([], CriteriaSettings()))
    pairs = [CriteriaPair("a", "b", {"brand": 1.0}), CriteriaPair("c", "d", {"brand": 0.9})]
    with pytest.raises(InputError, match="a pair that is alike and one that is not"):
        list(criteria_rows(pairs, CriteriaSettings()))
