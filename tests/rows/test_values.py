"""Which values are alike, which are different, and which are neither."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from condsim.errors import InputError
from condsim.rows.collection import ComparedCriterion
from condsim.rows.settings import CriterionSettings, derive_wordings


def _distances(answers: Sequence[Sequence[str]], **settings: Any) -> list[list[int | None]]:
    """The distance of each answer from the first one used, then from each other."""
    bins = settings.pop("bins", None)
    criterion = ComparedCriterion("c", answers, CriterionSettings(**settings), bins=bins)
    return [[criterion.distance(a, b) for b in criterion.numbers] for a in criterion.numbers]


@pytest.mark.parametrize(
    ("value1", "value2", "expected"),
    [
        ("The Eagle", "eagle's", 0),
        ("two beds", "2 beds", 0),
        ("tea", "coffee", 1),
        ("New York", "New York City", None),
        ("vegan", "not vegan", 1),
        ("-1", "1", 1),
        ("<30", ">30", 1),
        ("C", "C++", 1),
        ("B-", "B+", 1),
        ("blue-green", "blue green", 0),
        ("< 5", "<5", 0),
        ("1.0", "1", 0),
        ("0.0", "1.0", 1),
        ("4.5", "5", 1),
        ("4.5", "5.4", 1),
    ],
)
def test_distance_of_written_values_is_that_of_their_meaning(
    value1: str, value2: str, expected: int | None
) -> None:
    assert _distances([(value1,), (value2,)])[0][1] == expected


def test_distance_of_several_values_needs_all_or_none_in_common() -> None:
    distances = _distances([("red", "blue"), ("blue", "red"), ("red",), ("green", "black")])
    assert distances[0] == [0, 0, None, 1]


def test_distance_of_groups_in_the_settings_is_theirs() -> None:
    answers = [("song",), ("track",), ("album",), ("film",), ("other",)]
    distances = _distances(
        answers, same=[["Song", "track"]], near=[["song", "album"]], skip=["other"]
    )
    assert distances[0] == [0, 0, None, 1, None]
    assert distances[1][2] is None
    assert distances[4][4] is None


def test_distance_of_opinions_needs_one_pole_each() -> None:
    answers = [("positive",), ("negative",), ("neutral",), ("positive", "negative")]
    assert _distances(answers)[0] == [0, 1, None, None]
    assert _distances(answers, skip=[])[0] == [0, 1, 1, None]


def test_distance_of_ordered_values_is_that_of_ranks() -> None:
    answers = [("low",), ("normal",), ("high",), ("low", "high")]
    assert _distances(answers, order=["low", "normal", "high"])[0] == [0, 1, 2, None]
    with pytest.raises(InputError, match="the value 'high', which its 'order' does not list"):
        _distances(answers, order=["low", "normal"])


def test_distance_of_numbers_is_that_of_bins() -> None:
    answers = [("1",), ("2",), ("30",), ("4e1",)]
    assert _distances(answers, bins=2)[0] == [0, 0, 1, 1]
    assert _distances(answers, bins=9)[0] == [0, 1, 2, 3]
    with pytest.raises(InputError, match="has 'bins' and its values are not numbers"):
        ComparedCriterion("c", [("a",)], CriterionSettings(bins=3), bins=3)


def test_bins_of_uneven_numbers_hold_as_many_texts() -> None:
    criterion = ComparedCriterion(
        "c", [("1",), ("2",), ("3",)], CriterionSettings(), texts=[6, 3, 3], bins=2
    )
    assert criterion.numbers == [0, 1, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": [True, False]}, "write yes, no, true and false in quotes"),
        ({"order": ["a", "b"], "bins": 2}, "an 'order' of its values or 'bins', not both"),
        ({"wordings": [" "]}, "should have at least 1 character"),
    ],
)
def test_settings_of_a_wrong_kind_are_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CriterionSettings(**settings)


@pytest.mark.parametrize(
    ("name", "wordings"),
    [
        ("the opinion about the food", ("opinion of the food", "How good is the food?")),
        ("the kind of venue", ("type of venue", "which venue")),
        ("whether it is for business", ("Is it for business?",)),
        ("order_status", ("the order status", "Order status.")),
        ("how urgent it is", ("with regard to how urgent it is",)),
        ("the length of the stay", ("length of the stay",)),
    ],
)
def test_wordings_of_a_name_are_several_and_different(name: str, wordings: tuple[str, ...]) -> None:
    derived = derive_wordings(name)
    assert derived[0] == name.replace("_", " ")
    assert {*wordings} <= {*derived}
    assert len({*derived}) == len(derived) > 2
