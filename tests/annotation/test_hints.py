from __future__ import annotations

import re

import pytest

from condsim.annotation.stages import HINT_RULES, hints_of

FIRST, SECOND = "A man in a red coat skis.", "A dog barks at a blue car."


def rules(condition, first=FIRST, second=SECOND):
    return [hint.rule for hint in hints_of(condition, first, second)]


@pytest.mark.parametrize(
    ("condition", "broken"),
    [
        ("The purpose of the action", []),
        ("the the sport", [1]),
        ("??", [1]),
        ("The color of the", [1, 6]),
        ("The age of the dog", [2]),
        ("The color of the car", [6]),
        ("The color is red", [3, 6]),
        ("two dogs", [3]),
        ("What the man is", []),
        ("The sport in the sentence", [4]),
        ("Topic of both captions.", [4]),
        ("The activity.", [5]),
        ("setting", [5]),
        ("The kind of activity", []),
        ("How many people there are", [6]),
    ],
)
def test_hints_of_condition_names_the_rules(condition, broken):
    assert rules(condition) == broken


def test_hints_of_missing_color_asks_for_it():
    (hint,) = (hint for hint in hints_of("The color", "A fox.", "A red car.") if hint.rule == 2)
    assert "color" in hint.text


def test_hint_rules_patterns_are_read_alike_by_javascript():
    """No syntax that only Python has: inline flags, named groups, look-behind, \\A and \\Z."""
    for rule in HINT_RULES:
        for pattern in (rule.pattern, rule.needed or ""):
            assert not re.search(r"\(\?(?![:!=])|\\[AZ]", pattern), pattern
