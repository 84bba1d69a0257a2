"""Slices of conditional data on which small encoders fail: negation and numbers.

The word lists decide by surface alone, so that a slice is the same for every model.
"""

from __future__ import annotations

import re

import numpy as np

from condsim.types import IntArray, Task

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")

NEGATIONS = frozenset(
    "no not none nobody nothing nowhere never neither nor without cannot hardly barely scarcely "
    "aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont "
    "wouldnt".split()
)
"""Words that negate; words that end in ``n't`` do, too, and those above without an apostrophe are
how people type them."""

NUMBERS = frozenset(
    "age amount amounts budget cost costs count date day days deadline depth distance dose doses "
    "duration fee fees frequency height hours length mileage minutes month months number numbers "
    "percentage period population price prices quantity quantities salary size speed temperature "
    "time times total weekday weight width year years".split()
)
"""Words of conditions that ask for a number, a quantity, a time or a price."""

NUMBER_QUESTIONS = (
    *("how many", "how much", "how long", "how often", "how far", "how old", "how soon"),
    *("how early", "how late", "how fast", "how quickly", "how tall", "how big", "how heavy"),
    *("when", "until when", "since when", "at what time"),
)
"""Beginnings of conditions that ask for one."""

NO_NUMBERS = frozenset(
    "opinion opinions attitude thinks feels feeling satisfaction direction kind type".split()
)
"""Words of conditions that ask for something else, as in "the opinion about the price"."""


def has_negation(text: str) -> bool:
    """Whether a text holds a negation word.

    Returns:
        True for a word of `NEGATIONS` or one that ends in ``n't``, in any case.

    Example:
        >>> [has_negation(text) for text in ("It doesn't fit.", "It fits.", "Dont buy it")]
        [True, False, True]
    """
    words = (word.lower().replace("\u2019", "'") for word in _WORD.findall(text))
    return any(word in NEGATIONS or word.endswith("n't") for word in words)


def asks_for_number(condition: str) -> bool:
    """Whether a condition asks for a number, a quantity, a time or a price.

    Returns:
        True if it has a word of `NUMBERS` or begins as one of `NUMBER_QUESTIONS`, and has no word
        of `NO_NUMBERS`.

    Example:
        >>> conditions = ("waiting time", "How many guests?", "the opinion about the price")
        >>> [asks_for_number(condition) for condition in conditions]
        [True, True, False]
    """
    words = _WORD.findall(condition.lower())
    if NO_NUMBERS.intersection(words):
        return False
    begins = f"{' '.join(words)} ".startswith(tuple(f"{start} " for start in NUMBER_QUESTIONS))
    return begins or not NUMBERS.isdisjoint(words)


def negation_rows(task: Task) -> IntArray:
    """Indices of the rows of which exactly one text holds a negation word, ``(m,)``."""
    texts = zip(task.sentences1, task.sentences2, strict=True)
    return np.flatnonzero([has_negation(one) != has_negation(two) for one, two in texts])


def number_rows(task: Task) -> IntArray:
    """Indices of the rows whose condition asks for a number, ``(m,)``."""
    return np.flatnonzero([asks_for_number(condition) for condition in task.conditions or ()])


SLICES = {"negation": negation_rows, "numbers": number_rows}
"""The slices, by name."""
