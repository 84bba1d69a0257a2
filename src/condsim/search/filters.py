"""Filters in SQL: comparisons, logic, arithmetic and a few functions on the columns of an index."""

from __future__ import annotations

import re
from collections.abc import Iterable

from condsim.data.row import join_names, short_repr

FUNCTIONS = (
    "abs",
    "cast",
    "coalesce",
    "contains",
    "date_part",
    "ends_with",
    "length",
    "lower",
    "round",
    "starts_with",
    "upper",
)
"""Functions that a filter may call; none makes a long text of a short one."""

# Words that may stand before a bracket without being functions.
_LOGIC = ("and", "between", "ilike", "in", "like", "not", "or")
_MAX_CHARACTERS = 10_000
_TOKEN = re.compile(
    r"""\s+ | '(?:[^']|'')*' | "[^"]*" | `[^`]*` | \d[\w.]* | \w+
    | <=|>=|<>|!= | [=<>+\-*/%(),.]""",
    re.VERBOSE,
)
# LanceDB ends its messages with a place in its source.
_RUST_SOURCE = re.compile(r", \S*\.rs:\d+.*", re.DOTALL)


def check_expression(where: str) -> None:
    """Raise ValueError unless a text is one expression of what a filter may hold.

    LanceDB panics at a placeholder, and its functions can take all memory.
    """
    if len(where) > _MAX_CHARACTERS:
        raise ValueError(f"it has {len(where):,} characters; at most {_MAX_CHARACTERS:,} are read")
    depth, position, word = 0, 0, ""
    while position < len(where):
        token = _TOKEN.match(where, position)
        if token is None or where.startswith(("--", "/*"), position):
            raise ValueError(f"unexpected {where[position : position + 2].strip()!r}")
        position, mark = token.end(), token[0]
        if mark.isspace():
            continue
        if mark == "(" and word and word not in (*FUNCTIONS, *_LOGIC):
            raise ValueError(f"the function {word!r} is not one of these")
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if depth < 0:
            raise ValueError("unexpected ')'")
        word = mark.lower() if re.match(r"[^\W\d]", mark) else ""
    if depth:
        raise ValueError("a bracket is not closed")


def filter_message(where: str, reason: str, columns: Iterable[str]) -> str:
    """Say why a filter cannot be used, and what one may hold."""
    cast = ""
    if "could not convert to literal" in reason:
        cast = " A column of text is compared with a text, or as cast(column AS double)."
    return (
        f"The filter {short_repr(where)} cannot be used: {reason}.{cast} It must be one condition "
        "in SQL, such as \"year > 2020 AND kind = 'review'\", with comparisons, AND, OR, NOT, IN, "
        "LIKE, BETWEEN, IS NULL, arithmetic and the functions "
        f"{', '.join(FUNCTIONS)}, on the columns {join_names(list(columns))}."
    )


def short_reason(error: BaseException) -> str:
    """Return the first words of an error of LanceDB, without the places in its source."""
    text = _RUST_SOURCE.sub("", str(error))
    text = " ".join(text.removeprefix("Invalid input, ").split()).rstrip(".")
    return text if len(text) <= 160 else f"{text[:157]}..."
