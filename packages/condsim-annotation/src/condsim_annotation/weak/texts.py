"""Functions on texts of any kind: opinions, numbers with units, times, dates and opposites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

from condsim.errors import require
from condsim_annotation.weak.functions import Comparison, LabelingFunction, built_in, yes_or_no
from condsim_annotation.weak.language import all_words, listed, names_by_word, plural
from condsim_annotation.weak.quantities import (
    Quantity,
    compare_clocks,
    compare_dates,
    compare_quantities,
    compare_years,
    quantities,
    read_clock,
    read_date,
    read_field,
    read_year,
    say_clock,
    text_tokens,
)

_NEGATIONS = all_words("opinions", "negations")
_TURNS = all_words("opinions", "turns")
_CLAUSE_MARKS = frozenset(".;!?:")
# Words after a negation for which the opposite holds.
_NEGATED_WORDS = 4
# Words between an aspect and a word about it.
_MAX_WORDS_TO_ASPECT = 5
# Smallest sum of polarities that is an opinion.
_MIN_POLARITY = 0.6
_EXTRA_POLARITY = {w: float(name) for w, name in names_by_word("opinions", "general").items()}
_ASPECT_POLARITY: dict[str, dict[str, float]] = {}
for _entry in listed("opinions", "polar"):
    _aspect, _, _sign = _entry.name.rpartition(" ")
    _words = dict.fromkeys(_entry.words, 2.5 * float(_sign))
    _ASPECT_POLARITY.setdefault(_aspect, {}).update(_words)
_ASPECTS = {entry.name: entry.words for entry in listed("opinions", "aspects")}


@cache
def _lexicon() -> dict[str, float]:
    """Return the polarity of words from -4 to 4: VADER's (Hutto and Gilbert, 2014) and ours."""
    vader = require("vaderSentiment.vaderSentiment", extra="build")
    return {**vader.SentimentIntensityAnalyzer().lexicon, **_EXTRA_POLARITY}


@lru_cache(maxsize=256)
def words_of_aspect(aspect: str) -> frozenset[str]:
    """Return the words that stand for an aspect: those listed, or its own."""
    own = frozenset(word for word in aspect.split(" ") if word not in ("the", "of", "and", "in"))
    return own.union(*(_ASPECTS.get(name, ()) for name in (aspect, *own)))


def _polarities(text: str, aspect: str) -> Iterator[tuple[str, int, float]]:
    """Return each word with its clause and its polarity after negations and turns."""
    lexicon, special = _lexicon(), _ASPECT_POLARITY.get(aspect, {})
    clause, negated = 0, -_NEGATED_WORDS - 1
    words = [token.word for token in text_tokens(text)]
    for index, word in enumerate(words):
        if word in _CLAUSE_MARKS or word in _TURNS:
            clause, negated = clause + 1, -_NEGATED_WORDS - 1
        pair = f"{word} {words[index + 1]}" if index + 1 < len(words) else word
        value = special.get(word, lexicon.get(word, 0.0))
        if word == ",":
            negated = -_NEGATED_WORDS - 1
        elif pair == "not only":
            value = 0.0
        elif word in _NEGATIONS or pair in _NEGATIONS or word.endswith("n't"):
            negated, value = index, 0.0
        elif value and index - negated <= _NEGATED_WORDS:
            value *= -0.8
        elif value > 0 and index and words[index - 1] == "too":
            value = -value
        yield word, clause, value


# Only answers are cached: the words of a long text take a megabyte.
@lru_cache(maxsize=1024)
def polarity(text: str, aspect: str = "") -> str | None:
    """Return the opinion of a text on an aspect, or as a whole: "good", "bad" or None."""
    rows = list(enumerate(_polarities(text, aspect)))
    own_words = words_of_aspect(aspect)
    mentions = [(index, clause) for index, (word, clause, _) in rows if word in own_words]
    total = 0.0
    for index, (_, clause, value) in rows:
        distances = [abs(index - mention) for mention, inside in mentions if inside == clause]
        distance = min(distances, default=_MAX_WORDS_TO_ASPECT + 1)
        if not aspect:
            total += value
        elif value and distance <= _MAX_WORDS_TO_ASPECT:
            total += value / (1 + 0.15 * distance)
    if abs(total) < _MIN_POLARITY:
        return None
    return "good" if total > 0 else "bad"


_NOT = frozenset("not no never n't cannot without neither nor".split())
_WORDS_BEFORE_TURNED = 3
_MAX_PHRASE_WORDS = 2
_ONLY_AFTER = {entry.name: entry.words[1:] for entry in listed("opposites", "only after")}
_LAST_AFTER = {entry.name: entry.hints for entry in listed("opposites", "only after")}
_NOT_BEFORE = {entry.name: entry.words[1:] for entry in listed("opposites", "not before")}


class Opposites(NamedTuple):
    """An attribute with two sides, in the words of a condition."""

    name: str
    # 1 or -1 by word or phrase.
    sides: dict[tuple[str, ...], int]
    # The opposite of each word or phrase.
    swaps: dict[str, str]


@cache
def opposites() -> list[Opposites]:
    """Return the attributes with two sides."""
    attributes: list[Opposites] = []
    for entry in listed("opposites", "opposites"):
        if entry.depth == 1:
            attributes.append(Opposites(entry.name, {}, {}))
            continue
        sides, swaps = attributes[-1].sides, attributes[-1].swaps
        for phrase1, phrase2 in zip(entry.words, entry.hints, strict=False):
            swaps.setdefault(phrase1, phrase2)
            swaps.setdefault(phrase2, phrase1)
        for side, phrases in ((1, entry.words), (-1, entry.hints)):
            for phrase in phrases:
                sides.setdefault(tuple(phrase.split(" ")), side)
    return attributes


def stands_alone(words: Sequence[str], index: int) -> bool:
    """Return whether a word is the one that has an opposite there, not part of another phrase."""
    word = words[index]
    before = words[index - 1] if index else ""
    following = words[index + 1] if index + 1 < len(words) else ""
    allowed = _ONLY_AFTER.get(word, (before,))
    if not following.isalnum() or following in ("and", "or", *_TURNS):
        allowed += _LAST_AFTER.get(word, ())
    return before in allowed and following not in _NOT_BEFORE.get(word, ())


def side_of(text: str, sides: Mapping[tuple[str, ...], int]) -> int | None:
    """Return the side of an attribute that a text is on; None if on neither or on both.

    A negation up to three words before a word turns it, unless a comma is between them.
    """
    words = [token.word for token in text_tokens(text)]
    text_sides: set[int] = set()
    index = 0
    while index < len(words):
        for length in range(_MAX_PHRASE_WORDS, 0, -1):
            side = sides.get(tuple(words[index : index + length]))
            if side is not None and (length > 1 or stands_alone(words, index)):
                start = max(0, index - _WORDS_BEFORE_TURNED)
                before = " ".join(words[start:index]).rpartition(", ")[2].split()
                turned = any(word in _NOT or word.endswith("n't") for word in before)
                text_sides.add(-side if turned else side)
                index += length - 1
                break
        index += 1
    return text_sides.pop() if len(text_sides) == 1 else None


# The conditions of each function as one expression.
_FORMS = {
    entry.name: re.compile(
        "|".join(re.escape(words).replace(r"\.\.\.", "(.+)") for words in entry.words)
    )
    for entry in listed("texts", "conditions")
}
_FOR_HOW_MANY = re.compile(r"\b(?:for|of|party of|seats?)\W*$")
_RATED = re.compile(r"\b(?:rate|rating|rated|points?|score|mark)\b", re.IGNORECASE)
_GUESTS = frozenset("people person guest traveler traveller rider passenger seat ticket".split())


@lru_cache(maxsize=256)
def function_by_form(condition: str) -> LabelingFunction | None:
    """Return the function for a condition of a known form, such as "the opinion about the room"."""
    key = re.sub(r"^the ", "", condition.lower().strip(" .?!"))
    for name, form in _FORMS.items():
        if match := form.fullmatch(key):
            # The words that the dots of the form stand for.
            thing = next(filter(None, match.groups()), "")
            if name == "opinion about":
                return _opinion_function(thing)
            return _count_function(thing) if name == "number of" else text_functions()[name]
    return None


@cache
def text_functions() -> dict[str, LabelingFunction]:
    """Return the functions that have their own name, by name; these are drawn."""
    functions = [_opinion_function(aspect) for aspect in ("", *_ASPECTS)]
    for name in ("price", "duration", "distance", "weight", "rating", "number"):
        functions.append(_quantity_function(name, partial(_read_measured, name=name), family=name))
    functions += [
        _function("time", read_clock, compare_clocks, say_clock),
        _function("date", read_date, compare_dates, lambda date: " ".join(date.values())),
        _function("year", read_year, compare_years, "{:.0f}".format, family="date"),
    ]
    for field in ("weekday", "month"):
        functions.append(_function(field, partial(read_field, field=field), family="date"))
    for name, sides, _ in opposites():
        if name in _FORMS and name != "overall opinion":
            # The first phrase of each side.
            answers = {side: " ".join(words) for words, side in reversed(list(sides.items()))}
            read = partial(side_of, sides=sides)
            functions.append(_function(name, read, answer=answers.__getitem__))
    return {function.name: function for function in functions}


def _function(
    name: str,
    read: Callable[[str], object],
    compare: Comparison = yes_or_no,
    answer: Callable[[Any], str] = str,
    *,
    family: str = "",
) -> LabelingFunction:
    # Captions seldom say such things.
    return built_in(
        name, lambda sentence: read(sentence.text), compare, answer, family=family, weight=0.3
    )


def _opinion_function(aspect: str) -> LabelingFunction:
    aspect = re.sub(r"^(?:the|its|their) ", "", aspect)
    name = f"opinion about the {aspect}" if aspect else "overall opinion"
    return _function(name, partial(polarity, aspect=aspect), family="opinion")


def _quantity_function(
    name: str, read: Callable[[str], Quantity | None], *, family: str
) -> LabelingFunction:
    return _function(name, read, compare_quantities, lambda q: f"{q.number:g}", family=family)


def _read_measured(text: str, *, name: str) -> Quantity | None:
    """Read the first number of a text, or the number of a unit."""
    numbers = quantities(text)
    # What the unit of the number measures.
    kind = {"price": "money", "distance": "length"}.get(name, name)
    measured = [number for number in numbers if name == "number" or number.kind == kind]
    if not measured and kind == "rating" and _RATED.search(text):
        measured = [number for number in numbers if not number.kind]
    return next(iter(measured), None)


def _count_function(things: str) -> LabelingFunction:
    words = things.split(" of ")[0].split(" ")
    last = next((word for word in words if word.endswith("s")), words[-1])
    single = re.sub(r"(?<=[^s])s$", "", last)
    read = partial(_read_number_of, things=frozenset((single, last)))
    return _quantity_function(f"number of {things}", read, family="number of things")


def _read_number_of(text: str, *, things: frozenset[str]) -> Quantity | None:
    forms = {form for thing in things for form in (thing, plural(thing))}
    numbers = [number for number in quantities(text) if not number.kind]
    counts = [number for number in numbers if forms.intersection(number.nouns)]
    if not counts and things & _GUESTS:
        counts = [n for n in numbers if _FOR_HOW_MANY.search(text[: n.start].lower())]
    return next(iter(counts), None)
