"""Results as plain values, for manifests and ``--json``."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["plain_values"]


def plain_values(result: DataclassInstance) -> dict[str, object]:
    """Gives a result as JSON can hold it.

    Args:
        result: A dataclass of numbers, texts, tuples, mappings and dataclasses.

    Returns:
        Its fields by name; tuples are lists and NaN is None.
    """
    return {name: _plain(value) for name, value in dataclasses.asdict(result).items()}


def _plain(value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
