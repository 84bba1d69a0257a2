"""English words that carry no content of their own.

Articles, pronouns, auxiliaries, conjunctions, prepositions and a few adverbs: closed classes only.
C-STS does not name its list. Larger lists drop words that tell captions apart ("front", "fire",
"top", "two").
"""

from __future__ import annotations

from pathlib import Path

from condsim.errors import InputError

__all__ = ["ENGLISH_STOP_WORDS", "read_stop_words"]

ENGLISH_STOP_WORDS = frozenset(
    """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    who whom whose which what
    am is are was were be been being have has had having do does did doing
    can could may might must shall should will would
    and but or nor so yet if than then because while as until although though since unless whether
    of at by for with about against between into through during before after above below to from
    up down in out on off over under upon onto toward towards within without along across around
    behind beside besides beneath near among amid per via
    here there when where why how all any both each few more most other others some such no not only
    own same too very just now also another again further once
    s t d ll m re ve
    it's he's she's that's there's they're we're you're i'm isn't aren't wasn't weren't doesn't
    don't didn't can't couldn't won't wouldn't hasn't haven't hadn't
    """.split()
)
"""The default list, lower case."""


def read_stop_words(path: Path) -> frozenset[str]:
    """Reads a list of stop words.

    Args:
        path: UTF-8 text, words separated by white space; an empty file means none.

    Returns:
        The words in lower case.

    Raises:
        InputError: If the file cannot be read.
    """
    try:
        return frozenset(path.read_text(encoding="utf-8").casefold().split())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read the stop words {path}: {error}.") from error
