"""Numbers with their units, clock times and dates, read from any short text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, takewhile

from condsim.errors import require
from condsim.rows.weak.language import all_words, listed, names_by_word, plural

_DIGITS = re.compile(r"(?:(?<![\w)])(?<!\d )-)?\d+(?:,\d{3})*(?:\.\d+)?")  # "3-5" has no minus
_TOKEN = re.compile(rf"{_DIGITS.pattern}|[a-z]+(?:n't|'[a-z]+)?|[^\s\w]|\w", re.IGNORECASE)
_CLOCK = re.compile(  # 4.50 may be a price or a weight, but not 4.50 pm
    r"(?<![\d$€£])(?:(?P<hour>[01]?\d|2[0-4])(?:[:h]|\.(?=\d\d\s*[ap]\.?m\b))"
    r"(?P<minute>[0-5]\d)(?!\d|\s*%)\s*(?P<half>[ap]\.?m\b)?"
    r"|(?P<alone>1\d|2[0-4]|[1-9])\s*(?:(?P<half2>[ap]\.?\s?m)\b|o'?\s?clock))"
)
_SPOKEN = re.compile(  # "from 5 to 9" and "a scale of 5 to 10" are no times
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
_UNITS = {
    word: (entry.name.split(" ")[0], float(entry.name.split(" ")[1]))
    for entry in listed("units", "units")
    for word in entry.words
}  # what a unit measures, and how many of the base unit it is
_OTHER_NUMBERS = {word: float(name) for word, name in names_by_word("units", "numbers").items()}
_BOUNDS = sorted(names_by_word("units", "bounds").items(), key=lambda one: -len(one[0]))
_SCALES = {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "billion": 1e9}
_PARTS = [
    (int(entry.name.split(" ")[0]), int(entry.name.split(" ")[1]), frozenset(entry.words))
    for entry in listed("calendar", "part")
]
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d(?=s?\b)")
_NO_ONE = frozenset(("of", "day", ".", ","))  # "one of them", "one day", "this one."
# Words and marks that end the things counted; not in "3 beds and baths", "12 people were hurt".
_ENDS = all_words("grammar", "bounds").union(".;:!?") - set("and or is are was were".split())
_SKIPPED = frozenset(("a", "an", "of", "-", "the", "more", "full", "whole"))


@dataclass(frozen=True)
class Token:
    """A word, number or mark of a text; ``text`` is what text2num asks for."""

    word: str
    start: int
    stop: int

    def text(self) -> str:
        """The token in small letters."""
        return self.word

    def nt_separated(self, previous: Token) -> bool:
        """Whether something parts it from the token before it."""
        return self.start > previous.stop and previous.word.isdigit()

    def not_a_number_part(self) -> bool:
        """Whether it is no part of a number, as text2num asks."""
        return self.word in (",", ".", "and", "second")


@dataclass(frozen=True)
class Quantity:
    """A number, what it is of and where it stands."""

    value: float  # the number in the base unit
    kind: str  # what the unit measures, such as ``"duration"``; empty without one
    bound: str  # what is said about it, such as ``"least"``; empty for an exact number
    start: int  # first character of the number
    stop: int  # the one after its last
    nouns: tuple[str, ...]  # up to three words that follow it
    number: float  # the number as it is written, in its own unit


def tokens_of(text: str) -> list[Token]:
    """Cuts a text into words, numbers and marks with their places."""
    plain = text.replace("\u2019", "'").replace("\u2212", "-")  # the curly apostrophe, the minus
    found = _TOKEN.finditer(plain)
    return [Token(match.group().lower(), match.start(), match.end()) for match in found]


@lru_cache(maxsize=16)  # a sentence is read by several functions in turn
def quantities(text: str) -> tuple[Quantity, ...]:
    """Reads the numbers of a text, in digits and in words, with their units."""
    tokens = tokens_of(text)
    found = [*_numbers(tokens), (len(tokens), 0, 0.0)]
    return tuple(_measured(tokens, *one, following) for one, following in pairwise(found))


def _numbers(tokens: list[Token]) -> Iterator[tuple[int, int, float]]:
    """Gives the first token of each number, the one after its last, and its value."""
    numbers = require("text_to_num", extra="build")
    spelled = {
        one.start: one for one in numbers.find_numbers(tokens, "en", 0) if not one.is_ordinal
    }
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
            if value == 1 and following in _NO_ONE:
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


def _measured(
    tokens: list[Token], start: int, stop: int, number: float, following: tuple[int, int, float]
) -> Quantity:
    """Adds the unit of a number and what the words before it say of it."""
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
        near = following[0] <= stop + 4  # "8 out of a possible 10"
        scale = following[2] if near and following[2] >= 10 else 5.0
        kind, factor = "rating", 5 / scale  # people take 4 out of 5 and 4 out of 6 for the same
    leading = " ".join(t.word for t in tokens[max(0, start - 4) : start]).rstrip("€$£ ")
    bound = next((name for words, name in _BOUNDS if f" {leading}".endswith(f" {words}")), "")
    phrase = takewhile(lambda word: word not in _ENDS, after[:3])
    nouns = tuple(word for word in phrase if word.isalpha())
    span = tokens[start].start, tokens[stop - 1].stop
    return Quantity(number * factor, kind, bound, *span, nouns, number)


def counted_of(text: str, things: frozenset[str]) -> tuple[Quantity, ...]:
    """Gives the numbers of a text that count one of some things: those in the singular."""
    forms = {form for thing in things for form in (thing, plural(thing))}
    return tuple(q for q in quantities(text) if not q.kind and forms.intersection(q.nouns))


_OPPOSED = frozenset(("least", "more")), frozenset(("most", "less"))


def compare_quantities(one: Quantity, two: Quantity) -> float | None:
    """Compares two numbers of one kind: by their ratio, and by what is said about them."""
    if one.kind and two.kind and one.kind != two.kind:
        return None
    known = one.kind == two.kind  # without one of the units, the numbers as they are written
    low, high = sorted(q.value if known else q.number for q in (one, two))
    if high < 0:
        low, high = -high, -low
    if not one.kind and not two.kind and 1500 <= low and high < 2100:
        return compare_years(low, high)
    ratio = 1.0 if low == high else low / high if low > 0 else 0.0
    label = 5.0 - sum(ratio < least for least in (1, 0.9, 0.7, 0.4))
    if one.bound == two.bound:
        return label
    sides = [next((i for i, s in enumerate(_OPPOSED) if q.bound in s), None) for q in (one, two)]
    opposed = None not in sides and sides[0] != sides[1]
    return max(1.0, label - (2 if opposed else 1)) if label > 3 else label


@dataclass(frozen=True)
class Clock:
    """A time of day."""

    # Minutes from midnight, or of half a day if that is not said; None if only a part of the
    # day is.
    minute: int | None
    half: bool  # whether morning or afternoon is known
    # From and to, in hours, of the part of the day; None if it is not said.
    part: tuple[int, int] | None


def read_clock(text: str) -> Clock | None:
    """Reads the first time of day of a text."""
    numbers = require("text_to_num", extra="build")
    text = numbers.alpha2digit(text.lower(), "en", 0)
    words = set(re.findall("[a-z]+", text))
    part = next(((low, high) for low, high, names in _PARTS if words & names), None)
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
    known = half is not None or hour > 12 or hour == 0 or part is not None
    after_midnight = part is not None and part[0] in (0, 20) and hour % 12 < 6  # in the night
    if half:
        late = half.strip().startswith("p")
    else:
        late = part is not None and part[0] >= 12 and not after_midnight
    if late and hour < 12:
        hour += 12
    elif hour == 12 and not late and (half or after_midnight):
        hour = 0
    return Clock((hour * 60 + minutes) % 1440, known, part)


def compare_clocks(one: Clock, two: Clock) -> float | None:
    """Compares two times of day."""
    if one.minute is None or two.minute is None:
        if not (one.half and two.half):
            return None
        (low1, high1), (low2, high2) = hours1, hours2 = _hours(one), _hours(two)
        days = (-24, 0, 24)  # the night goes on after midnight
        meet = any(low1 < high2 + day and low2 + day < high1 for day in days)
        return 5.0 if hours1 == hours2 else 3.5 if meet else 1.0
    around = 1440 if one.half and two.half else 720
    apart = abs(one.minute - two.minute) % around
    return 5.0 - sum(min(apart, around - apart) > most for most in (0, 30, 90, 180))


def _hours(clock: Clock) -> tuple[float, float]:
    """From and to, in hours."""
    hour = (clock.minute or 0) / 60
    return clock.part or (hour, hour + 0.1)


def say_clock(value: Clock) -> str:
    """Says a time of day in digits, or a part of the day by its hours."""
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


def read_date(text: str) -> dict[str, str] | None:
    """Reads what a text says of dates: ``weekday``, ``month``, ``day``, ``year``, ``relative``."""
    lower = text.lower()
    read = {field: read_field(text, field) for field in _CALENDAR}
    found = {field: value for field, value in read.items() if value is not None}
    if match := next(filter(None, (day.search(lower) for day in _DAYS)), None):
        found["day"] = str(int(match[1]))
    if match := _YEAR.search(lower):
        found["year"] = match[0]
    if match := _NEXT.search(lower):
        found["relative"] = match[0]
    return found or None


def _is_date(word: str, text: str) -> bool:
    """Whether a word that is a verb or another noun as well stands for a month or day."""
    if word not in ("may", "march", "sun", "sat", "mon", "dec", "wed", "mar", "now"):
        return True
    return word == "now" or re.search(rf"\b{word.capitalize()}\b", text) is not None


def compare_dates(one: dict[str, str], two: dict[str, str]) -> float:
    """Compares what is said of two dates: the fields that both have, or none in common."""
    shared = [field for field in one if field in two]
    if not shared:
        return 2.0
    same = sum(one[field] == two[field] for field in shared) / len(shared)
    if same == 1:
        return 5.0 if one == two else 4.0
    return 1.0 + 2 * same


def read_field(text: str, field: str) -> str | None:
    """Reads one field of the calendar, such as ``"month"``."""
    known = _CALENDAR[field]
    words = re.findall(r"[a-z]+", text.lower())
    return next((known[w] for w in words if w in known and _is_date(w, text)), None)


def compare_years(one: float, two: float) -> float:
    """Compares two years."""
    return 5.0 - sum(abs(one - two) > most for most in (0, 1, 5, 20))


def read_year(text: str) -> float | None:
    """Reads the first year of a text."""
    match = _YEAR.search(text)
    return None if match is None else float(match[0])
