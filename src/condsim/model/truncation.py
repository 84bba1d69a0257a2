"""Nothing is cut without a word: one warning a run says how many inputs a model cut, and where."""

# A bi- or tri-encoder reads a long text in pieces. A bi-encoder refuses a condition that leaves no
# room for them; a tri-encoder cuts one that is longer than it reads, a cross-encoder and BERTScore
# cut anything.

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_Cuts = Counter[tuple[str, int]]

_LOGGER = logging.getLogger("condsim")
_CUTS: ContextVar[_Cuts | None] = ContextVar("cuts", default=None)


@contextmanager
def one_warning() -> Iterator[None]:
    """Counts the inputs that models cut, and warns once at the end; inside another, at its end."""
    if _CUTS.get() is not None:
        yield
        return
    cuts: _Cuts = Counter()
    outside = _CUTS.set(cuts)
    try:
        yield
    finally:
        _CUTS.reset(outside)
        for (name, limit), number in cuts.items():
            _LOGGER.warning(
                "%s cut %d %s at %d tokens, the most it reads; nothing beyond has any influence.",
                name,
                number,
                "input" if number == 1 else "inputs",
                limit,
            )


def count_cut(name: str, limit: int, number: int) -> None:
    """Counts inputs that a model cut at so many tokens."""
    cuts = _CUTS.get()
    if number and cuts is not None:
        cuts[name, limit] += number
