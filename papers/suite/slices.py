"""Slices of written pairs on which small encoders fail.

Words decide which rows are in a slice, so that it is the same for every model.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from condsim.data.written import load_written
from condsim.evaluation.suite import SuiteSet
from condsim.evaluation.suite_data import load_written_sets, written_files
from condsim.types import IntArray, Task

SLICE_GROUP = "slices"
_MIN_SLICE_ROWS = 3

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")

# Words that end in "n't" negate too; without the apostrophe they are common misspellings.
_NEGATIONS = frozenset(
    "no not none nobody nothing nowhere never neither nor without cannot hardly barely scarcely "
    "aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt shouldnt wasnt werent wont "
    "wouldnt".split()
)
_NUMBER_WORDS = frozenset(
    "age amount amounts budget cost costs count date day days deadline depth distance dose doses "
    "duration fee fees frequency height hours length mileage minutes month months number numbers "
    "percentage period population price prices quantity quantities salary size speed temperature "
    "time times total weekday weight width year years".split()
)
_NUMBER_QUESTIONS = (
    *("how many", "how much", "how long", "how often", "how far", "how old", "how soon"),
    *("how early", "how late", "how fast", "how quickly", "how tall", "how big", "how heavy"),
    *("when", "until when", "since when", "at what time"),
)
# A condition with one of these words asks for something else: "the opinion about the price".
_OTHER_QUESTIONS = frozenset(
    "opinion opinions attitude thinks feels feeling satisfaction direction kind type".split()
)


def load_written_slices(path: Path) -> tuple[SuiteSet, ...]:
    """Load written pairs, a data set for each domain, by file; then the slices of each file."""
    files = written_files(path)
    slices: list[SuiteSet] = []
    for file in files:
        task = load_written(file)
        prefix, suffix = ("", "") if len(files) == 1 else (f"{task.name}/", f" ({task.name})")
        for name, select in SLICES.items():
            indices = select(task)
            if len(indices) >= _MIN_SLICE_ROWS:
                key, rows = f"{prefix}slice:{name}", task.take(indices)
                slices.append(SuiteSet(key, f"{name}{suffix}", rows, group=SLICE_GROUP))
    return (*load_written_sets(path), *slices)


def has_negation(text: str) -> bool:
    """Detect a negation word, or one that ends in ``n't``, in any case.

    Example:
        >>> [has_negation(text) for text in ("It doesn't fit.", "It fits.", "Dont buy it")]
        [True, False, True]
    """
    words = [word.lower().replace("\u2019", "'") for word in _WORD.findall(text)]
    return any(word in _NEGATIONS or word.endswith("n't") for word in words)


def asks_for_number(condition: str) -> bool:
    """Detect a condition that asks for a number, a quantity, a time or a price.

    Example:
        >>> conditions = ("waiting time", "How many guests?", "the opinion about the price")
        >>> [asks_for_number(condition) for condition in conditions]
        [True, True, False]
    """
    words = _WORD.findall(condition.lower())
    if _OTHER_QUESTIONS.intersection(words):
        return False
    start = f"{' '.join(words)} "
    is_question = start.startswith(tuple(f"{question} " for question in _NUMBER_QUESTIONS))
    return is_question or not _NUMBER_WORDS.isdisjoint(words)


def negation_rows(task: Task) -> IntArray:
    """Return the indices of the rows of which exactly one text has a negation word, ``(m,)``."""
    pairs = zip(task.sentences1, task.sentences2, strict=True)
    return np.flatnonzero([has_negation(first) != has_negation(second) for first, second in pairs])


def number_rows(task: Task) -> IntArray:
    """Return the indices of the rows whose condition asks for a number, ``(m,)``."""
    return np.flatnonzero([asks_for_number(condition) for condition in task.conditions or ()])


SLICES = {"negation": negation_rows, "numbers": number_rows}
"""The slices of written pairs, by name."""
