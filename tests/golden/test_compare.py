"""The comparison of golden results sees every change but a small one of a score."""

from __future__ import annotations

from typing import Any

import pytest
from tests.golden.compare import SCORE_TOLERANCE, differences

TABLE = "text           score\n────────────────────\nA man eats.     0.870 ███████\n3 rows\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TABLE, "nonsense"),
        (TABLE, TABLE.replace("A man", "A boy")),
        (TABLE, TABLE.replace("3 rows", "4 rows")),
        (TABLE, TABLE.replace("0.870", "0.901")),
        (TABLE, TABLE.replace("\n3 rows", "3 rows")),
        (TABLE, TABLE + "0.870\n"),
        ([1, 2, 3], []),
        ([1, 2, 3], [1, 3, 2]),
        (["csv", "tsv"], ["csv"]),
        ({"a.csv": 1}, {"a.csv": 1, "b.csv": 1}),
        ({"score": 0.87123}, {"score": 0.90123}),
        ({"score": 0.87123}, {"score": None}),
        ({"ratio": 0.5}, {"ratio": 0.51}),
        (1, 1.0),
        (True, 1),
        ({"dtype": "float32", "first": [0.0126]}, {"dtype": "float32", "first": [0.0226]}),
    ],
)
def test_differences_of_other_content_are_listed(old: Any, new: Any) -> None:
    assert list(differences(old, new, "case"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TABLE, TABLE),
        (TABLE, TABLE.replace("0.870 ███████", "0.855 ██████")),
        (TABLE.replace("    0.870", "    0.001"), TABLE.replace("    0.870", "   -0.001")),
        ({"score": 0.87123}, {"score": 0.88321}),
        ({"dtype": "float32", "first": [0.0126]}, {"dtype": "float32", "first": [0.0127]}),
    ],
)
def test_differences_of_near_scores_are_none(old: Any, new: Any) -> None:
    assert not list(differences(old, new, "case"))


def test_differences_name_the_place_and_the_changed_lines() -> None:
    old, new = ({"a": [1, {"b": f"same\n{text}\nsame\n"}]} for text in "xy")

    assert list(differences(old, new, "case")) == ["case/a/1/b: 'x\\n' -> 'y\\n'"]


@pytest.mark.parametrize(
    "new",
    [
        ["--top integer = 3"],
        ["--top integer = 3", "--at-least float = 0.3", "--plain boolean"],
        ["--top integer = 3", "--at-least float = 0.31"],
    ],
)
def test_differences_of_options_are_exact(new: list[str]) -> None:
    old = ["--top integer = 3", "--at-least float = 0.3"]

    assert list(differences(old, new, "options/search", tolerance=0))
    assert abs(0.3 - 0.31) < SCORE_TOLERANCE
