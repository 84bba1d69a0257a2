"""Tables of texts with labeled attributes, and whether two texts agree in one of them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS)}
_ARTICLES = frozenset({"a", "an", "the"})
_NEGATIONS = frozenset({"no", "not", "non", "ineffective"})
_WORDS = re.compile(r"[^\W_]+|[£$%]")

Values = frozenset[str]


@dataclass(frozen=True)
class LabeledText:
    """A text and the values of its attributes."""

    text: str
    values: Mapping[str, Values]


@dataclass(frozen=True)
class LabeledTable:
    """Texts of one set.

    Attributes:
        name: Name of the set.
        texts: Its texts.
        same: By criterion, groups of values not to be called different.
    """

    name: str
    texts: tuple[LabeledText, ...]
    same: Mapping[str, Sequence[Values]]

    def alike(self, criterion: str, first: int, second: int) -> bool | None:
        """Return whether two texts agree; None where that is unclear or a text is silent."""
        values = [self.texts[row].values.get(criterion) for row in (first, second)]
        if values[0] is None or values[1] is None:
            return None
        if values[0] == values[1]:
            return True
        groups = self.same.get(criterion, ())
        if any(_near(a, b, groups) for a in values[0] for b in values[1]):
            return None
        return False


def _near(first: str, second: str, groups: Sequence[Values]) -> bool:
    if first == second or any(first in group and second in group for group in groups):
        return True
    a, b = set(first.split()), set(second.split())
    return not (a ^ b) & _NEGATIONS and (a <= b or b <= a)


def _canonical(value: object) -> str:
    words = _WORDS.findall(re.sub("['\N{RIGHT SINGLE QUOTATION MARK}]s\\b", "", str(value).lower()))
    kept = [_DIGITS.get(word, word) for word in words if word not in _ARTICLES]
    return " ".join(kept) or str(value).lower()


def _values(criterion: str, raw: object, skip: Sequence[object]) -> Values | None:
    values = raw if isinstance(raw, list) else [raw]
    opinion = criterion.startswith("the opinion about")
    if opinion and (len(values) != 1 or values[0] not in ("positive", "negative")):
        return None
    if any(value in skip for value in values):
        return None
    return frozenset(map(_canonical, values))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a JSON Lines file, gzipped or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def read_table(path: Path, name: str, meta: Mapping[str, Any], *, most_words: int) -> LabeledTable:
    """Read texts with attributes; longer texts, and criteria that show seldom, are left out."""
    absent = set(meta.get("leave_out", []))
    skip = meta.get("skip", {})
    texts = []
    for line in read_lines(path):
        if len(line["text"].split()) > most_words:
            continue
        values = {
            criterion: _values(criterion, raw, skip.get(criterion, []))
            for criterion, raw in line["attributes"].items()
            if criterion not in absent
        }
        present = {criterion: value for criterion, value in values.items() if value}
        texts.append(LabeledText(line["text"], present))
    same = {
        criterion: [frozenset(map(_canonical, group)) for group in groups]
        for criterion, groups in meta.get("same", {}).items()
    }
    return LabeledTable(name, tuple(texts), same)
