"""Conditions of a collection: the one place that says what a condition may be."""

from __future__ import annotations

from collections.abc import Sequence

from condsim.errors import InputError
from condsim.model.base import check_rows

ConditionInput = str | Sequence[str] | None
"""One condition, several, or None to compare texts as a whole."""


def condition_list(condition: ConditionInput) -> list[str | None]:
    """Return the conditions as a list, checked; ``[None]`` where there is none."""
    if condition is None:
        return [None]
    conditions = [condition] if isinstance(condition, str) else list(condition)
    if not conditions or len(set(conditions)) < len(conditions):
        raise InputError("Give at least one condition, and each condition once.")
    check_rows(conditions)
    return [*conditions]
