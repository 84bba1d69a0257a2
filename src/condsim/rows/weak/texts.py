"""Functions on texts of any kind: opinions, numbers with units, times, dates and opposites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.util import find_spec

from condsim.errors import require
from condsim.rows.weak.functions import LabellingFunction, Reader, built_in, yes_or_no
from condsim.rows.weak.language import Sentence, all_words, listed
from condsim.rows.weak.quantities import (
    Quantity,
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


@lru_cache(maxsize=256)
def words_of_aspect(aspect: str) -> frozenset[str]:
    """Gives the words that stand for an aspect: those listed, or its own."""
    own = frozenset(word for word in aspect.split(" ") if word not in ("the", "of", "and", "in"))
    return own.union(*(_ASPECTS.get(name, ()) for name in (aspect, *own)))


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
        if word == ",":
            negated = -_SCOPE - 1
        elif pair == "not only":
            value = 0.0
        elif word in _NEGATIONS or pair in _NEGATIONS or word.endswith("n't"):
            negated, value = place, 0.0
        elif value and place - negated <= _SCOPE:
            value *= -0.8
        elif value > 0 and place and words[place - 1] == "too":
            value = -value
        found.append((word, place, clause, value))
    return tuple(found)


@lru_cache(maxsize=1024)  # of the answers: the words of a long text take a megabyte
def polarity(text: str, aspect: str = "") -> str | None:
    """Says what a text thinks of an aspect, or as a whole: ``"good"``, ``"bad"`` or None."""
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
    sides: dict[tuple[str, ...], int]  # 1 or -1 by word or phrase
    swaps: dict[str, str]  # the opposite of each word or phrase


@cache
def opposites() -> list[Opposites]:
    """Gives the attributes."""
    found: list[Opposites] = []
    for entry in listed("opposites", "opposites"):
        if entry.depth == 1:
            found.append(Opposites(entry.name, {}, {}))
            continue
        sides, swaps = found[-1].sides, found[-1].swaps
        for one, two in zip(entry.words, entry.hints, strict=False):
            swaps.setdefault(one, two)
            swaps.setdefault(two, one)
        for side, phrases in ((1, entry.words), (-1, entry.hints)):
            for phrase in phrases:
                sides.setdefault(tuple(phrase.split(" ")), side)
    return found


_ONLY_AFTER = {entry.name: entry.words[1:] for entry in listed("opposites", "only after")}
_LAST_AFTER = {entry.name: entry.hints for entry in listed("opposites", "only after")}
_NOT_BEFORE = {entry.name: entry.words[1:] for entry in listed("opposites", "not before")}


def stands_alone(words: Sequence[str], place: int) -> bool:
    """Whether a word is the one that has an opposite there, and no part of another phrase."""
    word = words[place]
    before = words[place - 1] if place else ""
    following = words[place + 1] if place + 1 < len(words) else ""
    wanted = _ONLY_AFTER.get(word, (before,))
    if not following.isalnum() or following in ("and", "or", *_TURNS):
        wanted += _LAST_AFTER.get(word, ())
    return before in wanted and following not in _NOT_BEFORE.get(word, ())


def side_of(text: str, known: Mapping[tuple[str, ...], int]) -> int | None:
    """Says on which side of an attribute a text is; None if on neither or on both."""
    # A negation up to three words before a word turns it, unless a comma is between them.
    words = [token.word for token in tokens_of(text)]
    found: set[int] = set()
    at = 0
    while at < len(words):
        for length in range(_LONGEST, 0, -1):
            side = known.get(tuple(words[at : at + length]))
            if side is not None and (length > 1 or stands_alone(words, at)):
                before = " ".join(words[max(0, at - _REACH) : at]).rpartition(", ")[2].split()
                turned = any(word in _NOT or word.endswith("n't") for word in before)
                found.add(-side if turned else side)
                at += length - 1
                break
        at += 1
    return found.pop() if len(found) == 1 else None


_function = partial(built_in, weight=0.3)  # captions seldom say such things
_FORMS = {
    entry.name: re.compile(
        "|".join(re.escape(words).replace(r"\.\.\.", "(.+)") for words in entry.words)
    )
    for entry in listed("texts", "conditions")
}  # the conditions of each function as one expression

_FOR_HOW_MANY = re.compile(r"\b(?:for|of|party of|seats?)\W*$")
_RATED = re.compile(r"\b(?:rate|rating|rated|points?|score|mark)\b", re.IGNORECASE)
_GUESTS = frozenset("people person guest traveler traveller rider passenger seat ticket".split())


def installed() -> bool:
    """Whether the packages that these functions need are there; the extra ``build`` brings them."""
    return all(find_spec(name) is not None for name in ("text_to_num", "vaderSentiment"))


@lru_cache(maxsize=256)
def function_by_form(condition: str) -> LabellingFunction | None:
    """Gives the function for a condition of a known form, such as "the opinion about the room"."""
    key = re.sub(r"^the ", "", condition.lower().strip(" .?!"))
    for name, form in _FORMS.items():
        if match := form.fullmatch(key):
            thing = next(filter(None, match.groups()), "")  # what the dots of the form stand for
            make = _MADE.get(name)
            return text_functions()[name] if make is None else make(thing)
    return None


@cache
def text_functions() -> dict[str, LabellingFunction]:
    """Gives those that have a name of their own, by name; these are drawn."""
    return {function.name: function for function in _named()}


def _named() -> Iterator[LabellingFunction]:
    yield from (_opinion(aspect) for aspect in ("", *_ASPECTS))
    for name, kind in _MEASURED.items():
        yield _function(name, partial(_of_kind, kind=kind), compare_quantities, _say_quantity)
    yield _function("number", _any, compare_quantities, _say_quantity)
    yield _function("time", _of_text(read_clock), compare_clocks, say_clock)
    yield _function("date", _of_text(read_date), compare_dates, _say_date)
    yield _function("year", _of_text(read_year), compare_years, "{:.0f}".format, family="date")
    for field in ("weekday", "month"):
        yield _function(field, _of_text(partial(read_field, field=field)), yes_or_no, family="date")
    for known in opposites():
        if known.name in _FORMS and known.name != "overall opinion":
            yield _side(known)


_MEASURED = {
    "price": "money",
    "duration": "duration",
    "distance": "length",
    "weight": "weight",
    "rating": "rating",
}
"""What the unit of a number measures, by function."""


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
    read = _of_text(partial(side_of, known=known.sides))
    return _function(known.name, read, answer=lambda side: first[side])


_MADE = {"opinion about": _opinion, "number of": _number_of}
"""What makes the function of a thing, by form."""
