"""Compare two records: ``python -m tests.golden.compare OLD.json NEW.json``.

Prints each difference with its kind and exits with 1 if there is any. Kinds:

- ``words``: a text that people read has other words and the same numbers;
- ``numbers``: a number differs by more than the tolerance;
- ``missing``, ``new``: a case, step, file, key or row that only one record has;
- ``other``: anything else, such as an exit status or a cell.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

TOLERANCE = 1e-6
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])")


class Difference(NamedTuple):
    """One place in which two records differ."""

    kind: str
    place: str
    detail: str


def differences(
    old: Any, new: Any, *, tolerance: float = TOLERANCE, place: str = ""
) -> Iterator[Difference]:
    """Walk through two JSON values."""
    if isinstance(old, dict) and isinstance(new, dict):
        tolerance = max(tolerance, old.get("tolerance", 0))
        for key in sorted(old.keys() | new.keys()):
            inner = f"{place}/{key}"
            if key not in new:
                yield Difference("missing", inner, _short(old[key]))
            elif key not in old:
                yield Difference("new", inner, _short(new[key]))
            else:
                yield from differences(old[key], new[key], tolerance=tolerance, place=inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, tolerance=tolerance, place=f"{place}/{number}")
    else:
        yield from _values(old, new, tolerance, place)


def _values(old: Any, new: Any, tolerance: float, place: str) -> Iterator[Difference]:
    if isinstance(old, list) and isinstance(new, list):
        detail = "\n".join(_changed(list(map(_short, old)), list(map(_short, new))))
        yield Difference("other", place, f"{len(old)} -> {len(new)} items\n{detail}")
    elif _is_number(old) and _is_number(new):
        if not close(old, new, tolerance):
            yield Difference("numbers", place, f"{old!r} -> {new!r}")
    elif isinstance(old, str) and isinstance(new, str):
        yield from _texts(old, new, tolerance, place)
    elif old != new:
        yield Difference("other", place, f"{_short(old)} -> {_short(new)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def close(old: float, new: float, tolerance: float = TOLERANCE) -> bool:
    """Whether two numbers are the same within the tolerance, relative above 1."""
    return abs(old - new) <= tolerance * max(1.0, abs(old), abs(new))


def _texts(old: str, new: str, tolerance: float, place: str) -> Iterator[Difference]:
    if old == new:
        return
    before, after = _numbers(old), _numbers(new)
    same_words = _NUMBER.sub("#", old).split() == _NUMBER.sub("#", new).split()
    same_numbers = len(before) == len(after) and all(
        close(one, two, tolerance) for one, two in zip(before, after, strict=True)
    )
    if same_words and same_numbers:
        return
    detail = "\n".join(_changed(old.splitlines(), new.splitlines()))
    if not same_numbers:
        yield Difference("numbers" if same_words else "other", place, detail)
    else:
        yield Difference("words", place, detail)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]


def _changed(old: list[str], new: list[str]) -> list[str]:
    lines = [
        line
        for line in difflib.unified_diff(old, new, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    return lines[:12] + ([f"... {len(lines) - 12} more lines"] if len(lines) > 12 else [])


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else text[:157] + "..."


def main() -> None:
    """Print the differences of two records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    parser.add_argument("--skip-words", action="store_true", help="leave out other words")
    parser.add_argument("--only", default="", help="regular expression over places")
    options = parser.parse_args()
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (options.old, options.new))
    shown = [
        difference
        for difference in differences(old, new, tolerance=options.tolerance)
        if re.search(options.only, difference.place)
        and not (options.skip_words and difference.kind == "words")
    ]
    for difference in sorted(shown, key=lambda one: one.place):
        detail = difference.detail.replace("\n", "\n    ")
        sys.stdout.write(f"[{difference.kind}] {difference.place}\n    {detail}\n")
    counts = ", ".join(
        f"{number} {kind}" for kind, number in Counter(d.kind for d in shown).items()
    )
    sys.stdout.write(f"{len(old)} and {len(new)} cases: {counts or 'no differences'}\n")
    sys.exit(bool(shown))


if __name__ == "__main__":
    main()
