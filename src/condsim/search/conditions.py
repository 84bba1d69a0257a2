"""Conditions of a collection: the one place that says what a condition may be."""

from __future__ import annotations

from collections.abc import Sequence

from condsim.errors import InputError
from condsim.model.base import Condition, check_rows
from condsim.model.criterion import Criterion
from condsim.model.embedding import EmbeddingScorer

ConditionInput = Condition | Sequence[Condition] | None
"""One condition, several, or None to compare texts as a whole."""


def condition_list(condition: ConditionInput, scorer: EmbeddingScorer) -> list[str | None]:
    """Return the conditions by name as a list, checked; ``[None]`` where there is none."""
    if condition is None:
        return [None]
    given = [condition] if isinstance(condition, str | Criterion) else list(condition)
    # A learned criterion is called by its name from here on.
    conditions = [scorer.named(item) if isinstance(item, Criterion) else item for item in given]
    if not conditions or len(set(conditions)) < len(conditions):
        raise InputError("Give at least one condition, and each condition once.")
    check_rows(conditions)
    return [*conditions]
