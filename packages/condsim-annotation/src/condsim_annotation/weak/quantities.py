"""Numbers with their units, clock times and dates, read from any short text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from condsim.errors import require
from condsim_annotation.weak.language import all_words, listed, names_by_word

# "3-5" has no minus.
_DIGITS = re.compile(r"(?:(?<![\w)])(?<!\d )-)?\d+(?:,\d{3})*(?:\.\d+)?")
_TOKEN = re.compile(rf"{_DIGITS.pattern}|[a-z]+(?:n't|'[a-z]+)?|[^\s\w]|\w", re.IGNORECASE)
# 4.50 may be a price or a weight, but not 4.50 pm.
_CLOCK = re.compile(
    r"(?<![\d$€£])(?:(?P<hour>[01]?\d|2[0-4])(?:[:h]|\.(?=\d\d\s*[ap]\.?m\b))"
    r"(?P<minute>[0-5]\d)(?!\d|\s*%)\s*(?P<half>[ap]\.?m\b)?"
    r"|(?P<alone>1\d|2[0-4]|[1-9])\s*(?:(?P<half2>[ap]\.?\s?m)\b|o'?\s?clock))"
)
# "From 5 to 9" and "a scale of 5 to 10" are not times.
_SPOKEN = re.compile(
    r"(?<![\w.:$€£])(?P<minutes>(?:half|quarter|\d{1,2})(?=(?:\s+minutes)?\s+(?:past|after)\b)"
    r"|(?<!\bfrom )(?<!\bof )(?:quarter|\d?[05]|\d{1,2}(?=\s+minutes)))(?:\s+minutes)?\s+"
    r"(?P<side>past|to|after)\s+(?P<hour>1[0-2]|[1-9])\b(?P<half>\s*[ap]\.?m\b)?"
)
_AT = re.compile(
    r"\b(?:(?:at|by|until|till|around|before|after|from|since)\s+(?:about\s+)?"
    r"|(?:the|my)\s+(?=\d+\.)|for\s+(?=\d+ in the (?:morning|afternoon|evening)\b))"
    r"(?P<hour>1[0-2]|[1-9]|(?:[01]?\d|2[0-3])(?=\.[0-5]\d))(?:\.(?P<minute>[0-5]\d))?(?=\s*(?:$"
    r"|[.,;!?](?!\d)"
    r"|(?:in|on|and|is|was|this|tonight|tomorrow|today|sharp|for|at|to|the|every)\b))"
)
_SPOKEN_MINUTES = {"half": 30, "quarter": 15}
# What each unit measures, and how many of the base unit it is.
_UNITS: dict[str, tuple[str, float]] = {}
for _entry in listed("units", "units"):
    _kind, _factor = _entry.name.split(" ")
    _UNITS.update(dict.fromkeys(_entry.words, (_kind, float(_factor))))
_OTHER_NUMBERS = {word: float(name) for word, name in names_by_word("units", "numbers").items()}
# The longest phrases first.
_BOUNDS = sorted(names_by_word("units", "bounds").items(), key=lambda item: -len(item[0]))
_SCALES = {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "billion": 1e9}
# First and last hour of each part of the day, and its words.
_PARTS_OF_DAY: list[tuple[int, int, frozenset[str]]] = []
for _entry in listed("calendar", "part"):
    _first, _last = map(int, _entry.name.split(" ")[:2])
    _PARTS_OF_DAY.append((_first, _last, frozenset(_entry.words)))
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d(?=s?\b)")
# "One of them", "one day" and "this one." are not numbers.
_AFTER_PRONOUN = frozenset(("of", "day", ".", ","))
# Words and marks that end the things counted; not in "3 beds and baths", "12 people were hurt".
_ENDS = all_words("grammar", "bounds").union(".;:!?") - set("and or is are was were".split())
_SKIPPED = frozenset(("a", "an", "of", "-", "the", "more", "full", "whole"))


class Token(NamedTuple):
    """A word, number or mark of a text, with the methods that text2num needs."""

    word: str
    start: int
    stop: int

    def text(self) -> str:
        """Return the token in lower case."""
        return self.word

    def nt_separated(self, previous: Token) -> bool:
        """Return whether the token before it belongs to another number."""
        return self.start > previous.stop and previous.word.isdigit()

    def not_a_number_part(self) -> bool:
        """Return whether it is never part of a number."""
        return self.word in (",", ".", "and", "second")


class Quantity(NamedTuple):
    """A number in a text, from its first character to the one after its last."""

    # In the base unit, and in its own.
    value: float
    number: float
    # What the unit measures, such as "duration"; empty without one.
    kind: str
    # How the words before it limit it, such as "least"; empty for an exact number.
    bound: str
    start: int
    stop: int
    # Up to three words that follow it.
    nouns: tuple[str, ...]


def text_tokens(text: str) -> list[Token]:
    """Split a text into words, numbers and marks with their places."""
    # The curly apostrophe and the minus sign.
    plain = text.replace("\u2019", "'").replace("\u2212", "-")
    matches = _TOKEN.finditer(plain)
    return [Token(match.group().lower(), match.start(), match.end()) for match in matches]


# A sentence is read by several functions in turn.
@lru_cache(maxsize=16)
def quantities(text: str) -> tuple[Quantity, ...]:
    """Read the numbers of a text, in digits and in words, with their units."""
    tokens = text_tokens(text)
    numbers = [*_number_spans(tokens), (len(tokens), 0, 0.0)]
    return tuple(_measure(tokens, *number, following) for number, following in pairwise(numbers))


def _number_spans(tokens: list[Token]) -> Iterator[tuple[int, int, float]]:
    """Return the first token of each number, the one after its last, and its value."""
    library = require("text_to_num", extra="build")
    matches = library.find_numbers(tokens, "en", 0)
    spelled = {match.start: match for match in matches if not match.is_ordinal}
    at = 0
    while at < len(tokens):
        word, start = tokens[at].word, at
        if _DIGITS.fullmatch(word):
            value = float(word.replace(",", ""))
            at += 1
            if at < len(tokens) and tokens[at].word in _SCALES:
                value, at = value * _SCALES[tokens[at].word], at + 1
        elif at in spelled:
            value, at = float(spelled[at].value), int(spelled[at].end)
            following = tokens[at].word if at < len(tokens) else "."
            if value == 1 and following in _AFTER_PRONOUN:
                continue
            if following == "dozen":
                value, at = value * 12, at + 1
        elif word in _OTHER_NUMBERS:
            value, at = _OTHER_NUMBERS[word], at + 1
        else:
            at += 1
            continue
        if [t.word for t in tokens[at : at + 3]] == ["and", "a", "half"]:
            value, at = value + 0.5, at + 3
        if start and tokens[start - 1].word == "minus":
            value, start = -value, start - 1
        yield start, at, value


def _measure(
    tokens: list[Token], start: int, stop: int, number: float, following: tuple[int, int, float]
) -> Quantity:
    """Add the unit of a number and the bound that the words before it set."""
    after = [t.word for t in tokens[stop : stop + 5] if t.word not in _SKIPPED]
    before = tokens[start - 1].word if start else ""
    kind, factor = _UNITS.get(after[0], ("", 1.0)) if after else ("", 1.0)
    if after[:2] == ["per", "cent"]:
        kind, factor = "share", 1.0
    elif before in ("€", "$", "£"):
        kind, factor = "money", 1.0
    elif kind == "duration" and "old" in after[1:3]:
        kind = "age"
    elif after[:1] in (["out"], ["/"]):
        # "8 out of a possible 10".
        is_near = following[0] <= stop + 4
        scale = following[2] if is_near and following[2] >= 10 else 5.0
        # People take 4 out of 5 and 4 out of 6 for the same.
        kind, factor = "rating", 5 / scale
    leading = " ".join(t.word for t in tokens[max(0, start - 4) : start]).rstrip("€$£ ")
    bound = next((name for words, name in _BOUNDS if f" {leading}".endswith(f" {words}")), "")
    phrase = takewhile(lambda word: word not in _ENDS, after[:3])
    nouns = tuple(word for word in phrase if word.isalpha())
    span = tokens[start].start, tokens[stop - 1].stop
    return Quantity(number * factor, number, kind, bound, *span, nouns)


_DIRECTIONS = {"least": 1, "more": 1, "most": -1, "less": -1}


def compare_quantities(quantity1: Quantity, quantity2: Quantity) -> float | None:
    """Compare two numbers of one kind by their ratio and their bounds."""
    if quantity1.kind and quantity2.kind and quantity1.kind != quantity2.kind:
        return None
    # Without one of the units, the numbers are compared as written.
    same_kind = quantity1.kind == quantity2.kind
    low, high = sorted(q.value if same_kind else q.number for q in (quantity1, quantity2))
    if high < 0:
        low, high = -high, -low
    if not quantity1.kind and not quantity2.kind and 1500 <= low and high < 2100:
        return compare_years(low, high)
    ratio = 1.0 if low == high else low / high if low > 0 else 0.0
    label = 5.0 - sum(ratio < least for least in (1, 0.9, 0.7, 0.4))
    if quantity1.bound == quantity2.bound or label <= 3:
        return label
    directions = _DIRECTIONS.get(quantity1.bound, 0), _DIRECTIONS.get(quantity2.bound, 0)
    return max(1.0, label - (2 if directions[0] * directions[1] < 0 else 1))


class Clock(NamedTuple):
    """A time of day."""

    # From midnight, or of half a day if that is not known; None if only a part of the day is given.
    minute: int | None
    half_known: bool
    # First and last hour of the part of the day; None if it is not given.
    part: tuple[int, int] | None


def read_clock(text: str) -> Clock | None:
    """Read the first time of day of a text."""
    library = require("text_to_num", extra="build")
    text = library.alpha2digit(text.lower(), "en", 0)
    words = set(re.findall("[a-z]+", text))
    parts = ((first, last) for first, last, names in _PARTS_OF_DAY if words & names)
    part = next(parts, None)
    if words & {"noon", "midday"}:
        return Clock(720, True, (12, 13))
    if match := _SPOKEN.search(text):
        minutes = _SPOKEN_MINUTES.get(match["minutes"]) or int(match["minutes"])
        shift = -minutes if match["side"] == "to" else minutes
        return _clock(int(match["hour"]), shift, match["half"], part)
    if match := _CLOCK.search(text):
        hour = int(match["hour"] or match["alone"])
        return _clock(hour, int(match["minute"] or 0), match["half"] or match["half2"], part)
    if match := _AT.search(text):
        return _clock(int(match["hour"]), int(match["minute"] or 0), None, part)
    return None if part is None else Clock(None, True, part)


def _clock(hour: int, minutes: int, half: str | None, part: tuple[int, int] | None) -> Clock:
    half_known = half is not None or hour > 12 or hour == 0 or part is not None
    is_night = part is not None and part[0] in (0, 20) and hour % 12 < 6
    if half:
        is_late = half.strip().startswith("p")
    else:
        is_late = part is not None and part[0] >= 12 and not is_night
    if is_late and hour < 12:
        hour += 12
    elif hour == 12 and not is_late and (half or is_night):
        hour = 0
    return Clock((hour * 60 + minutes) % 1440, half_known, part)


def compare_clocks(clock1: Clock, clock2: Clock) -> float | None:
    """Compare two times of day."""
    if clock1.minute is None or clock2.minute is None:
        if not (clock1.half_known and clock2.half_known):
            return None
        (low1, high1), (low2, high2) = hours1, hours2 = _hours(clock1), _hours(clock2)
        # The night continues after midnight.
        meet = any(low1 < high2 + day and low2 + day < high1 for day in (-24, 0, 24))
        return 5.0 if hours1 == hours2 else 3.5 if meet else 1.0
    around = 1440 if clock1.half_known and clock2.half_known else 720
    apart = abs(clock1.minute - clock2.minute) % around
    return 5.0 - sum(min(apart, around - apart) > most for most in (0, 30, 90, 180))


def _hours(clock: Clock) -> tuple[float, float]:
    hour = (clock.minute or 0) / 60
    return clock.part or (hour, hour + 0.1)


def say_clock(value: Clock) -> str:
    """Write a time of day in digits, or a part of the day by its hours."""
    if value.minute is None:
        return "" if value.part is None else f"{value.part[0]}:00 to {value.part[1] % 24}:00"
    return f"{value.minute // 60}:{value.minute % 60:02}"


_CALENDAR = {field: names_by_word("calendar", field) for field in ("weekday", "month", "relative")}
_MONTHS = "|".join(_CALENDAR["month"])
_DAYS = [
    re.compile(r"\b([12]?\d|3[01])(?:st|nd|rd|th)\b"),
    re.compile(rf"\b(?:{_MONTHS})\.? (\d{{1,2}})\b"),
    re.compile(rf"\b(\d{{1,2}}) (?:of )?(?:{_MONTHS})\b"),
]
_NEXT = re.compile(r"\b(next|last|this|coming)\s+(week|month|year|weekend)\b")
# Verbs or other nouns as well.
_AMBIGUOUS = ("may", "march", "sun", "sat", "mon", "dec", "wed", "mar", "now")


def read_date(text: str) -> dict[str, str] | None:
    """Read the ``weekday``, ``month``, ``day``, ``year`` and ``relative`` date of a text."""
    lower = text.lower()
    fields = {field: read_field(text, field) for field in _CALENDAR}
    date = {field: value for field, value in fields.items() if value is not None}
    if match := next(filter(None, (day.search(lower) for day in _DAYS)), None):
        date["day"] = str(int(match[1]))
    if match := _YEAR.search(lower):
        date["year"] = match[0]
    if match := _NEXT.search(lower):
        date["relative"] = match[0]
    return date or None


def read_field(text: str, field: str) -> str | None:
    """Read one field of the calendar, such as ``"month"``."""
    for word in re.findall(r"[a-z]+", text.lower()):
        if word not in _CALENDAR[field]:
            continue
        is_capital = re.search(rf"\b{word.capitalize()}\b", text) is not None
        if word not in _AMBIGUOUS or word == "now" or is_capital:
            return _CALENDAR[field][word]
    return None


def compare_dates(date1: dict[str, str], date2: dict[str, str]) -> float:
    """Compare two dates by the fields that both have."""
    shared = [field for field in date1 if field in date2]
    if not shared:
        return 2.0
    same = sum(date1[field] == date2[field] for field in shared) / len(shared)
    if same == 1:
        return 5.0 if date1 == date2 else 4.0
    return 1.0 + 2 * same


def compare_years(year1: float, year2: float) -> float:
    """Compare two years."""
    return 5.0 - sum(abs(year1 - year2) > most for most in (0, 1, 5, 20))


def read_year(text: str) -> float | None:
    """Read the first year of a text."""
    match = _YEAR.search(text)
    return None if match is None else float(match[0])
