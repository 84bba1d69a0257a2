"""What a text thinks of something: the polarity of the words about it, with negation."""

from __future__ import annotations

from functools import cache, lru_cache

from condsim.construction.weak.quantities import tokens_of
from condsim.construction.weak.words import all_words, listed
from condsim.errors import require

_NEGATIONS = all_words("opinions", "negations")
_TURNS = all_words("opinions", "turns")
_MARKS = frozenset(".;!?:")
_SCOPE = 4  # words after a negation for which the opposite holds
_FARTHEST = 5  # words between an aspect and a word about it
_LEAST = 0.6  # sum of polarities of a text that thinks well or ill of it
_EXTRA = {
    word: float(entry.name) for entry in listed("opinions", "general") for word in entry.words
}
_POLAR: dict[str, dict[str, float]] = {}
for _entry in listed("opinions", "polar"):
    _aspect, _, _sign = _entry.name.rpartition(" ")
    _POLAR.setdefault(_aspect, {}).update(dict.fromkeys(_entry.words, 2.5 * float(_sign)))
_ASPECTS = {entry.name: entry.words for entry in listed("opinions", "aspects")}


@cache
def lexicon() -> dict[str, float]:
    """Gives the polarity of words from -4 to 4: VADER's (Hutto and Gilbert, 2014) and ours."""
    vader = require("vaderSentiment.vaderSentiment", extra="build")
    known: dict[str, float] = vader.SentimentIntensityAnalyzer().lexicon
    return {**known, **_EXTRA}


@cache
def words_of_aspect(aspect: str) -> frozenset[str]:
    """Gives the words that stand for an aspect: those listed, or its own."""
    own = frozenset(word for word in aspect.split(" ") if word not in ("the", "of", "and", "in"))
    return own.union(*(_ASPECTS.get(name, ()) for name in (aspect, *own)))


def aspects() -> tuple[str, ...]:
    """Names the aspects that words are listed for."""
    return tuple(_ASPECTS)


@lru_cache(maxsize=8192)
def _polarities(text: str, aspect: str) -> tuple[tuple[str, int, int, float], ...]:
    """The words of a text with place, clause and polarity, negation and turns taken in."""
    known, special = lexicon(), _POLAR.get(aspect, {})
    found = []
    clause, negated = 0, -_SCOPE - 1
    words = [token.word for token in tokens_of(text)]
    for place, word in enumerate(words):
        if word in _MARKS or word in _TURNS:
            clause, negated = clause + 1, -_SCOPE - 1
        pair = f"{word} {words[place + 1]}" if place + 1 < len(words) else word
        value = special.get(word, known.get(word, 0.0))
        if word in _NEGATIONS or pair in _NEGATIONS or word.endswith("n't"):
            negated, value = place, 0.0
        elif value and place - negated <= _SCOPE:
            value *= -0.8
        elif value > 0 and place and words[place - 1] == "too":
            value = -value
        found.append((word, place, clause, value))
    return tuple(found)


def polarity(text: str, aspect: str = "") -> str | None:
    """Says what a text thinks of an aspect, or as a whole: ``"good"``, ``"bad"`` or None.

    Example:
        >>> polarity("The staff was rude but the food is delicious.", "food")
        'good'
    """
    rows = _polarities(text, aspect)
    own = words_of_aspect(aspect)
    places = [(place, clause) for word, place, clause, _ in rows if word in own]
    total = 0.0
    for _, place, clause, value in rows:
        near = min((abs(place - at) for at, inside in places if inside == clause), default=None)
        if not aspect:
            total += value
        elif value and near is not None and near <= _FARTHEST:
            total += value / (1 + 0.15 * near)
    if abs(total) < _LEAST:
        return None
    return "good" if total > 0 else "bad"
