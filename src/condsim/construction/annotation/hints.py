"""Hints at conditions that may break one of the six rules; they never block.

The rules are regular expressions that Python and JavaScript read alike, so the form for Mechanical
Turk gives the same hints while the annotator types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

NO_HINTS = "None so far. Hints never block: edit what you agree with."
"""What a page shows where there are none."""

_COLORS = (
    "black|blue|brown|gold|golden|gray|green|grey|orange|pink|purple|red|silver|tan|white|yellow|"
    "beige|maroon|teal|blond|blonde"
)
_COLORED = f"{_COLORS}|colou?rful|\\w*colored|snow|snowy|grass|grassy"
_SIZES = (
    "big|giant|gigantic|huge|large|larger|little|long|massive|mini|short|small|smaller|tall|tiny"
)
_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|several|many|few"
_GENDERS = (
    "boys?|boyfriend|bride|brothers?|dad|daughters?|fathers?|females?|gentlem[ae]n|girls?|"
    "girlfriend|groom|guys?|he|her|him|his|husband|lad(?:y|ies)|males?|m[ae]n|mom|mothers?|"
    "she|sisters?|sons?|wife|wom[ae]n|\\w+wom[ae]n|\\w+m[ae]n"
)
_AGES = (
    "adults?|aged|bab(?:y|ies)|boys?|child(?:ren)?|elderly|girls?|grand\\w+|infants?|kids?|"
    "m[ae]n|middle|old|older|puppy|students?|teen\\w*|toddlers?|wom[ae]n|years?|young|younger|youth"
)
_VALUES = f"{_COLORS}|{_SIZES}|{_NUMBERS}|male|female|young|old|elderly|happy|sad"

_VAGUE = (
    "action|activity|aspect|attribute|background|content|context|description|detail|event|idea|"
    "information|meaning|object|people|person|scenario|scene|setting|situation|subject|thing|"
    "theme|topic"
)
_ARTICLE = r"^\W*(?:the |an? |their |its )?"


@dataclass(frozen=True)
class HintRule:
    """When one of the six rules may be broken."""

    rule: int  # number of the rule in the guidelines, 1 to 6
    text: str  # what the annotator is told
    pattern: str  # a doubtful condition matches this; case does not count
    needed: str | None = None  # then it is doubtful only where a sentence does not match this


def _missing(what: str, attribute: str, values: str) -> HintRule:
    return HintRule(
        2,
        f"Do both sentences tell the {what}, or let a reader work it out?",
        rf"\b(?:{attribute})\b",
        rf"\b(?:{values})\b",
    )


HINT_RULES = (
    HintRule(1, "Write a phrase or a sentence of words.", r"^[^a-z]*$|^\W*\w{1,2}\W*$"),
    HintRule(1, "A word stands twice in a row.", r"\b(\w+) \1\b"),
    HintRule(1, "The end seems to be missing.", r"\b(?:an?|and|or|the)\W*$"),
    _missing("color", "colou?rs?", _COLORED),
    _missing("gender", "genders?|sex", _GENDERS),
    _missing("age", "ages?", _AGES),
    _missing("size", "sizes?", _SIZES),
    HintRule(
        3,
        "Name the aspect and not its value: 'the color', not 'the color is red'.",
        rf"^(?!\W*(?:what|how|who|whose|where|when|which|whether|why|if)\b).*"
        rf"\b(?:is|are|was|were) (?:not |both |all )?(?!\w+ing\b|(?:at|in|of|on|to|with)\b)\w+\W*$"
        rf"|{_ARTICLE}(?:{_VALUES})(?: \w+)?\W*$"
        rf"|\b(?:colou?r|size|number|age|gender)(?: being| of)? (?:{_VALUES})\W*$",
    ),
    HintRule(
        4,
        "Leave out 'the sentence' and the like: name the aspect alone.",
        r"\b(?:sentences?|captions?|texts?|statements?|phrases?|s1|s2)\b",
    ),
    HintRule(
        5,
        "Say which aspect: this one could be anything.",
        rf"{_ARTICLE}(?:main )?(?:{_VAGUE})s?(?: (?:in question|involved|described|shown))?\W*$",
    ),
    HintRule(
        6,
        "Is there a more abstract aspect: a feeling, a purpose, an occupation?",
        rf"{_ARTICLE}(?:number|amount|count|quantity|colou?rs?)\b|^\W*how (?:many|much)\b",
    ),
)
"""The rules in the order in which hints are given."""


def hints_of(condition: str, sentence1: str, sentence2: str) -> tuple[HintRule, ...]:
    """Finds the rules that a condition may break.

    Example:
        >>> [hint.rule for hint in hints_of("The activity.", "A man skis.", "A dog runs.")]
        [5]
    """
    text = " ".join(condition.split())
    found: dict[int, HintRule] = {}
    for rule in HINT_RULES:
        if rule.rule in found or not _compiled(rule.pattern).search(text):
            continue
        needed = rule.needed
        if needed is None or not all(
            _compiled(needed).search(sentence) for sentence in (sentence1, sentence2)
        ):
            found[rule.rule] = rule
    return tuple(found.values())


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
