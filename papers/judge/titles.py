"""Pairs of titles of products with the verdict that a rule gives them.

Two titles of one product are duplicates, titles of products of another number, size, or color are
related, and titles that share neither brand nor kind are new.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from papers.model.labeled import read_lines
from papers.model.sources import ROOT, drawn

COLORS = "black white red blue green yellow pink purple silver gray brown orange".split()
WRITTEN = (
    "product-titles-from-web-shops",
    "product-titles-of-electronics",
    "product-titles-of-shoes-and-clothes",
    "product-offers-on-the-web",
)
MOST_NEAR, MOST_NEW, MOST_WRITTEN = 480, 450, 60
LEAST_OVERLAP = 0.4
# Words that titles of unlike products share.
_COMMON = frozenset("with for and the of to in a w new set pack inch kit".split()) | set(COLORS)


def _words(title: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", title.lower()))


def altered(first: str, second: str, draw: random.Random) -> str | None:
    """Return the second title with another color, number, or size than both have, or None."""
    shared = _words(first) & _words(second)
    colors = sorted(shared & set(COLORS))
    numbers = sorted(word for word in shared if re.search(r"\d", word))
    if not colors and not numbers:
        return None
    # The longest is a number of the model rather than a count.
    word = draw.choice(colors) if colors and draw.random() < 0.5 else ""
    word = word or (max(numbers, key=len) if numbers else colors[0])
    if word in COLORS:
        other = draw.choice([color for color in COLORS if color not in shared])
    else:
        place = draw.choice([match.start() for match in re.finditer(r"\d", word)])
        digit = draw.choice([digit for digit in "123456789" if digit != word[place]])
        other = word[:place] + digit + word[place + 1 :]
    pattern = rf"(?<![^\W_]){re.escape(word)}(?![^\W_])"
    return re.sub(pattern, other, second, flags=re.IGNORECASE)


def shop_titles(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield verdicts and titles of two shops."""
    draw = random.Random(0)
    lines = read_lines(data / "criteria" / "walmart_amazon" / "train.jsonl.gz")
    near: list[tuple[float, str, str]] = []
    for line in lines:
        first, second, labels = line["text1"], line["text2"], line["labels"]
        words, others = _words(first), _words(second)
        if labels["the product"]:
            yield "duplicate", first, second
            other = altered(first, second, draw)
            if other is not None:
                yield "related", first, other
        elif labels["the brand"] and labels["the product category"]:
            detail = any(re.search(r"\d", word) or word in COLORS for word in words ^ others)
            overlap = len(words & others) / len(words | others)
            if detail and overlap >= LEAST_OVERLAP:
                near.append((overlap, first, second))
    for _, first, second in drawn(draw, near, MOST_NEAR):
        yield "related", first, second
    titles = sorted({line[side] for line in lines for side in ("text1", "text2")})
    yield from _unlike(titles, draw)


def _unlike(titles: Sequence[str], draw: random.Random) -> Iterator[tuple[str, str, str]]:
    pairs: dict[bool, list[tuple[str, str]]] = {False: [], True: []}
    for _ in range(100 * MOST_NEW):
        first, second = draw.sample(titles, 2)
        shared = _words(first) & _words(second)
        if shared <= _COMMON:
            pairs[bool(shared)].append((first, second))
    # Half of them share a word that says nothing on what they are.
    for chosen in pairs.values():
        yield from (("new", *pair) for pair in chosen[: MOST_NEW // 2])


def _moved(title: str, draw: random.Random) -> str | None:
    """Return a title with its parts in another order, or None if it has too few."""
    parts = title.rstrip(".").split(", ")
    if len(parts) < 3 or "." in title.rstrip("."):
        return None
    tail = draw.sample(parts[1:], len(parts) - 1)
    return ", ".join([parts[0], *tail]) if tail != parts[1:] else None


def written_titles() -> Iterator[tuple[str, str, str]]:
    """Yield verdicts and titles of the attribute tables, whose first criterion is the kind."""
    draw = random.Random(1)
    for name in WRITTEN:
        lines = read_lines(ROOT / "data" / "attributes" / f"{name}.jsonl")
        kind = next(iter(lines[0]["attributes"]))
        related, new = [], []
        for line, other in combinations(lines, 2):
            values, others = line["attributes"], other["attributes"]
            same = sum(values[key] == others[key] for key in values.keys() & others.keys())
            if values.get(kind) == others.get(kind) and same >= 3:
                related.append((line["text"], other["text"]))
            elif not same and kind in values and kind in others:
                new.append((line["text"], other["text"]))
        for verdict, pairs in (("related", related), ("new", new)):
            for first, second in drawn(draw, pairs, MOST_WRITTEN):
                yield verdict, first, second
        yield from _reordered(name, lines, draw)


def _reordered(
    name: str, lines: Sequence[dict[str, Any]], draw: random.Random
) -> Iterator[tuple[str, str, str]]:
    for line in lines:
        title = line["text"]
        moved = _moved(title, draw)
        if moved is not None:
            yield "duplicate", title, moved
            # An offer's other number may be its price.
            other = None if "offers" in name else altered(title, moved, draw)
            if other is not None:
                yield "related", title, other
