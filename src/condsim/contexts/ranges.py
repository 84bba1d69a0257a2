"""Ranges of the numbers of a recipe, so that a mistake is told before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from condsim.errors import InputError

Range = tuple[str, Callable[[Any], bool]]


ABOVE_0: Range = ("above 0", lambda value: value > 0)


BELOW_1: Range = ("at least 0 and below 1", lambda value: 0 <= value < 1)


SHARE: Range = ("above 0 and below 1", lambda value: 0 < value < 1)


def at_least(low: int) -> Range:
    """The numbers from one on."""
    return f"at least {low}", lambda value: value >= low


TRAINING = {
    "dropout": BELOW_1,
    "epochs": at_least(1),
    "max_steps": at_least(1),
    "learning_rate": ABOVE_0,
    "warmup": BELOW_1,
    "weight_decay": at_least(0),
    "evaluations": at_least(1),
    "patience": at_least(1),
    "held_out": SHARE,
    "seed": at_least(0),
}


def check_ranges(section: str, settings: object, **ranges: Range) -> None:
    """Checks numbers."""
    for name, (text, holds) in ranges.items():
        value = getattr(settings, name)
        if value is not None and not holds(value):
            raise InputError(f"'{section}.{name}' must be {text}. Got {value}.")
