"""Aspects that a condition names: without the words of an instruction, several, or all but one.

The default models know conditions such as "the price". They follow no instructions, see the first
of two aspects in one condition, and hardly notice that one is to be left out. So rules for English
take such conditions apart (papers/docs/results/wordings.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_MARKS = " \t\n.?!:;,…"
_TEXTS = (
    "(?:(?:the|these|both|two|all) )*(?:texts?|sentences|passages|documents|items|pairs?|them|they)"
)
_ASK = f"(?:compare|judge|rate|score|match|group|cluster|sort) {_TEXTS}"
_BY = "(?:with (?:respect|regard) to|in terms of|regarding|concerning|based on|by|on|in|for)"
_ALL = "(?:everything|anything|all)"
_OPENINGS = (
    f"{_ASK} (?:only )?{_BY}",
    f"how (?:similar|alike) are {_TEXTS} {_BY}",
    "(?:focus|concentrate) (?:(?:only|just|solely|exclusively) )?on",
    "look only at",
    rf"(?:compare|consider|only)(?: only)?(?= the )(?! {_TEXTS}\b)",
    f"(?:ignore|ignoring) {_ALL}(?: else)? (?:but|except(?: for)?)",
    "with (?:respect|regard) to",
    "in terms of",
    "regarding",
    "when it comes to",
    "i (?:would like|want) to know(?: about)?(?= the )",
)
_REST = f"(?:and )?(?:nothing else|(?:ignore|ignoring|disregard|disregarding) {_ALL} else)"
_WITHOUT = (
    f"{_ALL}(?: aspects| respects)? (?:but|except(?: for)?|other than|apart from|aside from)",
    "(?:ignore|ignoring|disregard|disregarding|excluding|leaving out)",
    "(?:regardless|irrespective) of",
    "(?:apart|aside) from",
    "except(?: for)?",
    "not(?= the )",
)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace(" ", r"\s+"), re.IGNORECASE)


_OPENING = _pattern(rf"(?:please )?(?:{'|'.join(_OPENINGS)}) (?=\w)")
_CLOSING = _pattern(rf"[,;.]? {_REST}\Z")
_LEFT_OUT = _pattern(rf"(?:(?:please )?{_ASK},? )?(?:{'|'.join(_WITHOUT)}) (?=\w)")
_SAME = _pattern(
    r"(?:whether|if|is|are) (the .+?)(?: is| are)? (?:the same|alike|similar|identical|equal)\Z"
)
_BOTH = _pattern(r"\Aboth (?=the )")
_AND = _pattern(",? (?:and(?: also)?|as well as) (?=(?:the|what|whether|how) )")
_COMMA = _pattern(", (?=the )")
_CONTRAST = _pattern(",| but ")
_NESTED = _pattern("what |whether |how |.* the ")


@dataclass(frozen=True)
class Named:
    """Aspects that a condition names.

    Attributes:
        aspects: One or more.
        left_out: True if everything but these aspects is meant.
    """

    aspects: tuple[str, ...]
    left_out: bool = False


@lru_cache(maxsize=4096)
def named_aspect(condition: str) -> str:
    """Strip the marks at the end of a condition, and the words of an instruction.

    Example:
        >>> named_aspect("Focus only on the price, and ignore everything else.")
        'the price'
    """
    bare = condition.rstrip(_MARKS)
    bare = _CLOSING.sub("", bare).rstrip(_MARKS) or bare
    if same := _SAME.match(bare):
        return same[1]
    opening = _OPENING.match(bare)
    return bare[opening.end() :] if opening else bare or condition


@lru_cache(maxsize=4096)
def take_apart(condition: str) -> Named:
    """Find the aspects that a condition joins, or the one that it leaves out.

    Only aspects with an article, or questions, are joined. "The color of the shirt and the shoes"
    stays whole, as it may mean the color of both.

    Example:
        >>> take_apart("everything but the product and the problem")
        Named(aspects=('the product', 'the problem'), left_out=True)
    """
    whole = named_aspect(condition)
    found = _LEFT_OUT.match(whole)
    named = whole[found.end() :] if found else whole
    *most, last = _AND.split(_BOTH.sub("", named))
    parts = [aspect for part in most for aspect in _COMMA.split(part)] + [last]
    nested = [_NESTED.match(part) is not None for part in parts]
    if most and parts[0][:4].lower() == "the " and nested == sorted(nested):
        return Named(tuple(parts), found is not None)
    if found and not _CONTRAST.search(named):
        return Named((named,), left_out=True)
    return Named((whole,))
