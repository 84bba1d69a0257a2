"""Decomposition: a condition as a question, and a sentence's short answer to it."""

from __future__ import annotations

from functools import lru_cache

from condsim.construction.weak.registry import REGISTRY, Registry
from condsim.construction.weak.sentence import Sentence

__all__ = ["answers"]

_RECENT = 1024  # sentences that are kept cut into words


def answers(condition: str, sentence: str, *, registry: Registry = REGISTRY) -> str | None:
    """Answers a condition from a sentence.

    Args:
        condition: In whatever wording.
        sentence: The sentence.
        registry: The functions to ask.

    Returns:
        A few words, such as ``"two"`` or ``"brown and white"``; None if no function understands the
        condition, or the sentence does not say.

    Example:
        >>> answers("The number of people.", "Two men talk to a girl.")
        'three'
    """
    function = registry.find(condition)
    if function is None:
        return None
    return function.say(function.read(_cut(sentence))) or None


@lru_cache(maxsize=_RECENT)
def _cut(text: str) -> Sentence:
    return Sentence(text)
