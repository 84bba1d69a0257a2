"""Compare what a command did with what is recorded, on any processor.

Texts, names, lists, whole numbers and settings must be equal. Int8 scores round differently on
some processors, so decimals may differ by `SCORE_TOLERANCE`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

SCORE_TOLERANCE = 0.02
# An entry of a normalized embedding of width 384 is about 0.05.
ENTRY_TOLERANCE = 0.002
# The spaces before a decimal and the length of a bar depend on the score.
_DECIMAL = re.compile(r" *(?<![\w.])[-+]?\d+\.\d+(?:[eE][-+]?\d+)?(?!\w|\.\w)")
_BAR = re.compile(r" *[▏▎▍▌▋▊▉█]+")


def differences(
    old: Any, new: Any, place: str, tolerance: float = SCORE_TOLERANCE
) -> Iterator[str]:
    """List where two JSON values differ; a tolerance of 0 compares everything exactly."""
    if isinstance(old, dict) and isinstance(new, dict):
        if old.keys() != new.keys():
            yield f"{place}: {sorted(old.keys() ^ new.keys())} are in one only"
        if "dtype" in old:
            tolerance = min(tolerance, ENTRY_TOLERANCE)
        for key in old.keys() & new.keys():
            yield from differences(old[key], new[key], f"{place}/{key}", tolerance)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{place}/{number}", tolerance)
    elif not _is_same(old, new, tolerance):
        if isinstance(old, str) and isinstance(new, str):
            old, new = _changed_lines(old, new)
        yield f"{place}: {old!r} -> {new!r}"


def _is_same(old: Any, new: Any, tolerance: float) -> bool:
    if type(old) is not type(new):
        return False
    if tolerance and isinstance(old, str):
        return _without_scores(old) == _without_scores(new) and all(
            math.isclose(float(before), float(after), rel_tol=0, abs_tol=tolerance)
            for before, after in zip(_DECIMAL.findall(old), _DECIMAL.findall(new), strict=True)
        )
    # A number with two decimals is a setting or a label.
    if tolerance and isinstance(old, float) and old != round(old, 2):
        return math.isclose(old, new, rel_tol=0, abs_tol=tolerance)
    return bool(old == new)


def _changed_lines(old: str, new: str) -> tuple[str, str]:
    """Drop the lines that two texts begin and end with, for a short message."""
    first, second = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for end in (0, -1):
        while first and second and first[end] == second[end]:
            del first[end], second[end]
    return "".join(first), "".join(second)


def _without_scores(text: str) -> str:
    return _BAR.sub("|", _DECIMAL.sub("#", text))
