"""Functions on texts of any kind: opinions, numbers with units, times, dates and opposites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.util import find_spec

from condsim.construction.weak.functions import (
    Comparison,
    LabellingFunction,
    Reader,
    built_in,
    yes_or_no,
)
from condsim.construction.weak.language import Sentence, all_words, listed, words_of
from condsim.construction.weak.quantities import (
    Quantity,
    Token,
    compare_clocks,
    compare_dates,
    compare_quantities,
    compare_years,
    counted_of,
    quantities,
    read_clock,
    read_date,
    read_field,
    read_year,
    say_clock,
    tokens_of,
)
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


_NOT = frozenset("not no never n't cannot without neither nor".split())
_REACH = 3
_LONGEST = 2  # words of a phrase


@dataclass(frozen=True)
class Opposites:
    """An attribute with two sides."""

    name: str  # the attribute, in the words of a condition
    sides: Mapping[tuple[str, ...], int]  # 1 or -1 by word or phrase
    swaps: Mapping[str, str]  # the opposite of each word or phrase


@cache
def opposites() -> dict[str, Opposites]:
    """Gives the attributes by their names."""
    found: dict[str, Opposites] = {}
    sides: dict[tuple[str, ...], int] = {}
    swaps: dict[str, str] = {}
    for entry in listed("opposites", "opposites"):
        if entry.depth == 1:
            sides, swaps = {}, {}
            found[entry.name] = Opposites(entry.name, sides, swaps)
            continue
        for one, two in zip(entry.words, entry.hints, strict=False):
            swaps.setdefault(one, two)
            swaps.setdefault(two, one)
        for side, words in ((1, entry.words), (-1, entry.hints)):
            for word in words:
                sides.setdefault(words_of(word), side)
    return found


@cache
def _neighbours(heading: str) -> dict[str, frozenset[str]]:
    return {one.name: frozenset(one.words[1:]) for one in listed("opposites", heading)}


def stands_alone(words: list[str], place: int) -> bool:
    """Whether a word is the one that has an opposite there, and no part of another phrase."""
    word = words[place]
    before = words[place - 1] if place else ""
    following = words[place + 1] if place + 1 < len(words) else ""
    wanted = _neighbours("only after").get(word)
    barred = _neighbours("not before").get(word, frozenset())
    return following not in barred and (wanted is None or before in wanted)


def side_of(words: list[str], known: Mapping[tuple[str, ...], int]) -> int | None:
    """Says on which side of an attribute a text is; None if on neither or on both."""
    # A negation up to three words before a word turns it.
    found: set[int] = set()
    at = 0
    while at < len(words):
        for length in range(_LONGEST, 0, -1):
            side = known.get(tuple(words[at : at + length]))
            if side is not None and (length > 1 or stands_alone(words, at)):
                before = words[max(0, at - _REACH) : at]
                turned = any(word in _NOT or word.endswith("n't") for word in before)
                found.add(-side if turned else side)
                at += length - 1
                break
        at += 1
    return found.pop() if len(found) == 1 else None


def swapped(tokens: list[Token], place: int, known: Opposites) -> str | None:
    """Gives the opposite of the word at a place."""
    words = [token.word for token in tokens]
    return known.swaps.get(words[place]) if stands_alone(words, place) else None


_PACKAGES = ("text_to_num", "vaderSentiment")
_WEIGHT = 0.3  # captions seldom say such things
_FORMS = {
    entry.name: re.compile(
        "|".join(re.escape(words).replace(r"\.\.\.", "(.+)") for words in entry.words)
    )
    for entry in listed("texts", "conditions")
}  # the conditions of each function as one expression

_FOR_HOW_MANY = re.compile(r"\b(?:for|of|party of|seats?)\W*$")
_RATED = re.compile(r"\b(?:rate|rating|rated|points?|score|mark)\b", re.IGNORECASE)
_GUESTS = frozenset("people person guest traveler traveller rider passenger seat ticket".split())


@dataclass(frozen=True)
class Pattern:
    """Makes a function for each condition of a form; None for one that it does not understand."""

    form: re.Pattern[str]
    make: Callable[[str], LabellingFunction | None]


def installed() -> bool:
    """Whether the packages that these functions need are there; the extra ``build`` brings them."""
    return all(find_spec(name) is not None for name in _PACKAGES)


def pattern_key(condition: str) -> str:
    """Gives a condition in the form that patterns look at."""
    return re.sub(r"^the ", "", condition.lower().strip(" .?!"))


def text_functions() -> Iterator[LabellingFunction]:
    """Gives those that have a name of their own, which are drawn."""
    yield from (_opinion(aspect) for aspect in ("", *aspects()))
    for name, kind in _MEASURED.items():
        yield _function(name, partial(_of_kind, kind=kind), compare_quantities, _say_quantity)
    yield _function("number", _any, compare_quantities, _say_quantity)
    yield _function("time", _of_text(read_clock), compare_clocks, say_clock)
    yield _function("date", _of_text(read_date), compare_dates, _say_date)
    yield _function("year", _of_text(read_year), compare_years, "{:.0f}".format, family="date")
    for field in ("weekday", "month"):
        yield _function(field, _of_text(partial(read_field, field=field)), yes_or_no, family="date")
    for known in opposites().values():
        if known.name in _FORMS and known.name != "overall opinion":
            yield _side(known)


def text_patterns() -> Iterator[Pattern]:
    """Gives those for the conditions of a form, such as "the opinion about the room"."""
    for function in text_functions():
        if function.name in _FORMS:
            yield Pattern(_FORMS[function.name], partial(_itself, function))
    yield Pattern(_FORMS["opinion about"], _opinion)
    yield Pattern(_FORMS["number of"], _number_of)


def _itself(function: LabellingFunction, _: str) -> LabellingFunction:
    return function


_MEASURED = {
    "price": "money",
    "duration": "duration",
    "distance": "length",
    "weight": "weight",
    "rating": "rating",
}
"""What the unit of a number measures, by function."""


def _function(
    name: str,
    read: Reader,
    compare: Comparison = yes_or_no,
    answer: Callable[..., str] = str,
    *,
    family: str = "",
) -> LabellingFunction:
    return built_in(name, read, compare, answer, family=family, weight=_WEIGHT)


def _of_text(read: Callable[[str], object]) -> Reader:
    return lambda sentence: read(sentence.text)


def _opinion(aspect: str) -> LabellingFunction:
    aspect = re.sub(r"^(?:the|its|their) ", "", aspect)
    name = f"opinion about the {aspect}" if aspect else "overall opinion"
    return _function(name, _of_text(partial(polarity, aspect=aspect)), family="opinion")


def _of_kind(sentence: Sentence, *, kind: str) -> Quantity | None:
    found = quantities(sentence.text)
    rated = kind == "rating" and _RATED.search(sentence.text)
    told = [q for q in found if q.kind == kind] or [q for q in found if rated and not q.kind]
    return next(iter(told), None)


def _any(sentence: Sentence) -> Quantity | None:
    return next(iter(quantities(sentence.text)), None)


def _number_of(things: str) -> LabellingFunction:
    words = things.split(" of ")[0].split(" ")
    last = next((word for word in words if word.endswith("s")), words[-1])
    single = re.sub(r"(?<=[^s])s$", "", last)
    read = partial(_count, things=frozenset((single, last)))
    name = f"number of {things}"
    return _function(name, read, compare_quantities, _say_quantity, family="number of things")


def _count(sentence: Sentence, *, things: frozenset[str]) -> Quantity | None:
    found = counted_of(sentence.text, things)
    if not found and things & _GUESTS:
        free = (one for one in quantities(sentence.text) if not one.kind)
        found = tuple(q for q in free if _FOR_HOW_MANY.search(sentence.text[: q.start].lower()))
    return next(iter(found), None)


def _say_quantity(value: Quantity) -> str:
    return f"{value.number:g}"


def _say_date(value: dict[str, str]) -> str:
    return " ".join(value.values())


def _side(known: Opposites) -> LabellingFunction:
    first = {side: " ".join(words) for words, side in reversed(list(known.sides.items()))}
    read = _of_text(lambda text: side_of(list(words_of(text)), known.sides))
    return _function(known.name, read, answer=lambda side: first[side])
