"""Functions on texts of any kind: opinions, numbers with units, times, dates and opposites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from condsim.construction.weak.functions import (
    Comparison,
    LabellingFunction,
    Reader,
    built_in,
    yes_or_no,
)
from condsim.construction.weak.language import Sentence
from condsim.construction.weak.opinions import aspects, polarity
from condsim.construction.weak.opposites import Opposites, opposites, side_of
from condsim.construction.weak.quantities import (
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
)
from condsim.construction.weak.words import listed, words_of

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
