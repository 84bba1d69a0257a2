"""Reading a number out of what a language model wrote (Deshpande et al., 2023, A.3)."""

from __future__ import annotations

import re
from typing import Literal, get_args

from condsim.errors import unknown_name

__all__ = ["Parsing", "check_parsing", "parse_score"]

Parsing = Literal["strict", "first-number"]
"""``strict``: as the paper says, the text around the number is stripped and the rest must be one
number; ``first-number``: the first number of the text, as in the script its authors released."""

# A sign or a leading point counts where a word could begin: "Output:-1" is -1, "Score-3" is 3.
_NUMBER = r"(?<![\w.)])[-+\u2212]?\.\d+|(?<![\w.)])[-+\u2212]?\d+(?:\.\d+)?|\d+(?:\.\d+)?"
_FIRST = re.compile(_NUMBER)
_MORE = re.compile(r"\d")
_LIMIT = 1e9  # a longer row of digits is no score, and one in float32 would be infinite


def check_parsing(parsing: Parsing) -> None:
    """Refuses an unknown way of parsing.

    Args:
        parsing: ``strict`` or ``first-number``.

    Raises:
        InputError: If it is neither.
    """
    if parsing not in get_args(Parsing):
        raise unknown_name("way of parsing", str(parsing), get_args(Parsing))


def parse_score(text: str, *, parsing: Parsing = "strict") -> float | None:
    """Reads a score.

    Under ``strict`` the characters around the number and stray punctuation are stripped and what
    is left is cast; a text with two numbers ("3 out of 5", "0..0") is no answer. Decimal digits of
    all scripts count. Whether the number lies on the scale is not looked at.

    Args:
        text: What the model wrote.
        parsing: See `Parsing`.

    Returns:
        The number, or None if there is none below a thousand million.

    Examples:
        >>> parse_score("The Answer is 2.0.")
        2.0
        >>> parse_score("3 out of 5") is None
        True
        >>> parse_score("3 out of 5", parsing="first-number")
        3.0
    """
    match = _FIRST.search(text)
    if match is None:
        return None
    if parsing == "strict" and _MORE.search(text, match.end()):
        return None
    value = float(match.group().replace("\u2212", "-"))
    return value if abs(value) < _LIMIT else None
