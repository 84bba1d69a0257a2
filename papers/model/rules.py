"""Training rows by rule, for what turns on one detail.

Negation that decides and two opinions in one text, units and amounts, dates and times, who does
what to whom, codes, cause against effect. The words are in ``data/details/forms.yaml``. Every
generator takes the part it draws for: forms whose hash falls into the last fifth are in no
training row, and the forms of the test part have their own lists.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from papers.model.groups import Group, percentile
from papers.model.sources import ONE_SILENT_LABEL, ONE_SILENT_WEIGHT

FORMS = Path(__file__).resolve().parents[2] / "data" / "details" / "forms.yaml"
TRAIN_FORMS_PERCENT = 80
TEXTS_PER_GROUP = 6

Member = tuple[str, Hashable]
"""A text and its value; None where it says nothing."""


@cache
def forms(name: str) -> dict[str, Any]:
    """The words and forms of a rule."""
    lists: dict[str, Any] = yaml.safe_load(FORMS.read_text(encoding="utf-8"))[name]
    return lists


def of_part(lists: dict[str, Any], name: str, part: str) -> list[Any]:
    """The forms of a list that may be drawn for a part; those for ``test`` are a list apart."""
    if part == "test":
        return list(lists[f"test_{name}"])
    return [
        form
        for form in lists[name]
        if (percentile(str(form["past"] if name == "verbs" else form)) < TRAIN_FORMS_PERCENT)
        == (part == "train")
    ] or lists[name][:1]


def labeled_group(condition: str, members: Sequence[Member]) -> Group:
    """All pairs of different texts, alike if their values are equal."""
    members = list(dict(members).items())
    rows = []
    for (a, (_, one)), (b, (_, two)) in combinations(enumerate(members), 2):
        if one is None and two is None:
            continue
        if one is None or two is None:
            rows.append((a, b, ONE_SILENT_LABEL, ONE_SILENT_WEIGHT))
        else:
            rows.append((a, b, float(one == two), 1.0))
    return Group([(condition, text) for text, _ in members], rows)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _opinion_clause(aspect: str, positive: bool, draw: random.Random, part: str) -> str:
    words = forms("opinions")["aspects"][aspect]
    turned = draw.random() < 0.5
    form = draw.choice(of_part(forms("opinions"), "turned" if turned else "same", part))
    adjectives = words["positive" if positive != turned else "negative"]
    return str(form.format(s=words["subject"], a=draw.choice(adjectives)))


def opinions(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Texts with opinions about one or two aspects, negated or not, under each of the aspects."""
    lists = forms("opinions")
    for _ in range(number):
        aspects = draw.sample(sorted(lists["aspects"]), 2)
        texts: list[str] = []
        values: list[list[bool | None]] = []
        for _ in range(TEXTS_PER_GROUP - 1):
            own: list[bool | None] = [draw.random() < 0.5, draw.random() < 0.5]
            if draw.random() < 0.4:
                own[draw.randrange(2)] = None
            clauses = [
                _opinion_clause(aspect, value, draw, part)
                for aspect, value in zip(aspects, own, strict=True)
                if value is not None
            ]
            draw.shuffle(clauses)
            text = clauses[0] + "".join(
                draw.choice(lists["joins"]).format(clause) for clause in clauses[1:]
            )
            text = _capital(draw.choice(lists["openers"]) + text)
            texts.append(text + draw.choice((".", ".", "!", "")))
            values.append(own)
        for place, aspect in enumerate(aspects):
            condition = draw.choice(lists["conditions"])
            condition = condition.format(aspect, bare=aspect.removeprefix("the "))
            members = [(text, own[place]) for text, own in zip(texts, values, strict=True)]
            group = labeled_group(condition, members)
            if group.rows:
                yield group


_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(number: int) -> str:
    """A whole number below a million in words.

    Example:
        >>> in_words(1512)
        'one thousand five hundred and twelve'
    """
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens] + (f"-{_ONES[ones]}" if ones else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{_ONES[hundreds]} hundred" + (f" and {in_words(rest)}" if rest else "")
    thousands, rest = divmod(number, 1000)
    return f"{in_words(thousands)} thousand" + (f" {in_words(rest)}" if rest else "")


def _number_text(value: float, draw: random.Random) -> str:
    whole = round(value)
    if abs(value - whole) > 1e-6:
        if abs(value * 2 - round(value * 2)) < 1e-6 and draw.random() < 0.4:
            base = int(value)
            return f"{in_words(base)} and a half" if base else "half"
        return f"{value:g}"
    texts = [str(whole), f"{whole:,}"]
    if whole < 100 or whole % 100 == 0:
        texts.append(in_words(whole))
    if 1000 < whole < 10_000 and whole % 100 == 0 and whole % 1000:
        texts.append(f"{in_words(whole // 100)} hundred")
    if whole >= 1000 and whole % 100 == 0:
        texts.append(f"{whole / 1000:g}k")
    if whole in (12, 24):
        texts.append("a dozen" if whole == 12 else "two dozen")
    return draw.choice(texts)


def _amount_text(size: float, units: dict[str, float], draw: random.Random) -> str | None:
    """The size in one of the units in which it is a plain number."""
    fitting = [(unit, size / own) for unit, own in units.items() if 0.25 <= size / own <= 20_000]
    fitting = [(unit, value) for unit, value in fitting if abs(value * 4 - round(value * 4)) < 1e-6]
    if not fitting:
        return None
    unit, value = draw.choice(fitting)
    text = f"{_number_text(value, draw)} {unit}"
    return text.removesuffix("s") if value == 1 and len(unit) > 3 else text


def amount_label(first: float, second: float) -> float:
    """1 for equal amounts, below a half for others, by their ratio."""
    ratio = abs(math.log(first / second))
    return 1.0 if ratio < 1e-6 else 0.45 * math.exp(-1.2 * ratio)


def amounts(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Amounts of one kind in several units and forms; the same digits may be another amount."""
    kinds = forms("amounts")
    while number:
        kind = kinds[draw.choice(sorted(kinds))]
        units, templates = kind["units"], of_part(kind, "templates", part)
        digits, unit = draw.choice(kind["sizes"]), draw.choice(sorted(units))
        size = digits * units[unit]
        others = [
            digits * units[draw.choice(sorted(units))],
            draw.choice(kind["sizes"]) * units[unit],
        ]
        sizes = [size, size, size, *others, draw.choice(others)]
        rendered = [_amount_text(one, units, draw) for one in sizes]
        if not all(rendered):
            continue
        chosen = [draw.choice(templates)] if draw.random() < 0.4 else templates
        texts = [_capital(draw.choice(chosen).format(amount)) for amount in rendered]
        rows = [
            (a, b, amount_label(sizes[a], sizes[b]), 1.0)
            for a, b in combinations(range(len(texts)), 2)
            if texts[a] != texts[b]
        ]
        condition = draw.choice(kind["conditions"])
        number -= 1
        yield Group([(condition, text) for text in texts], rows)


_MONTHS = (
    "January February March April May June July August September October November December"
).split()


def date_text(day: int, month: int, year: int, draw: random.Random) -> str:
    """A date in one of many forms; of two numbers with a slash one is always above 12."""
    name = _MONTHS[month - 1]
    ending = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    texts = [
        f"{day} {name} {year}",
        f"{name} {day}, {year}",
        f"{name} {day}{ending}, {year}",
        f"the {day}{ending} of {name} {year}",
        f"{year}-{month:02}-{day:02}",
        f"{day}.{month}.{year}",
        f"{name[:3]} {day} {year}",
        f"{day:02} {name[:3]} '{year % 100:02}",
    ]
    if day > 12:
        texts += [f"{day:02}/{month:02}/{year}", f"{month}/{day}/{year}"]
    return draw.choice(texts)


def time_text(hour: int, minute: int, draw: random.Random) -> str:
    """A time of day in one of many forms."""
    twelve = hour % 12 or 12
    suffix = "am" if hour < 12 else "pm"
    span = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"
    spoken = in_words(twelve)
    texts = [
        f"{hour:02}:{minute:02}",
        f"{twelve}:{minute:02} {suffix}",
        f"{twelve}.{minute:02} {suffix}",
    ]
    if minute == 0:
        texts += [f"{twelve} {suffix}", f"{spoken} o'clock {span}", f"{hour:02}00 hours"]
    if minute == 30:
        texts.append(f"half past {spoken} {span}")
    if minute == 15:
        texts.append(f"a quarter past {spoken} {span}")
    # At 11:45 the hour that follows may be in another part of the day.
    if minute == 45 and twelve != 11:
        texts.append(f"a quarter to {in_words(twelve % 12 + 1)} {span}")
    if minute in (5, 10, 20):
        texts.append(f"{in_words(minute)} past {spoken} {span}")
    return draw.choice(texts)


def _near_days(draw: random.Random) -> Sequence[tuple[int, ...]]:
    day, month, year = draw.randrange(1, 29), draw.randrange(1, 13), draw.randrange(1990, 2031)
    near = [(day, month % 12 + 1, year), (day % 28 + 1, month, year), (day, month, year + 1)]
    return [(day, month, year)] * 3 + draw.sample(near, 2) + [draw.choice(near)]


def _near_times(draw: random.Random) -> Sequence[tuple[int, ...]]:
    hour, minute = draw.randrange(5, 23), draw.choice((0, 0, 5, 10, 15, 20, 30, 30, 45))
    near = [((hour + 12) % 24, minute), (hour, draw.choice((0, 15, 30, 45))), (hour + 1, minute)]
    return [(hour, minute)] * 3 + draw.sample(near, 2) + [draw.choice(near)]


def dates(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Dates and times in other forms, against those that differ in one number."""
    for _ in range(number):
        if draw.random() < 0.5:
            lists, values = forms("times"), _near_times(draw)
            rendered = [time_text(hour, minute, draw) for hour, minute in values]
        else:
            lists, values = forms("days"), _near_days(draw)
            rendered = [date_text(day, month, year, draw) for day, month, year in values]
        templates = of_part(lists, "templates", part)
        chosen = [draw.choice(templates)] if draw.random() < 0.4 else templates
        texts = [draw.choice(chosen).format(text) for text in rendered]
        members = list(zip(texts, values, strict=True))
        yield labeled_group(draw.choice(lists["conditions"]), members)


def _role_text(verb: dict[str, str], agent: str, patient: str, draw: random.Random) -> str:
    texts = [f"{agent} {verb['past']} {patient}", verb["converse"].format(a=agent, b=patient)]
    if "passive" in verb:
        texts.append(f"{patient} was {verb['passive']} {agent}")
    return draw.choice(texts)


def roles(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Who does what to whom: active, passive and converse forms, and the sides swapped."""
    lists = forms("roles")
    verbs = of_part(lists, "verbs", part)
    for _ in range(number):
        verb = draw.choice(verbs)
        first, second, third = draw.sample(lists["people"], 3)
        sides = ((first, second), (second, first), (third, second), (first, third))
        members = []
        for agent, patient in draw.choices(sides, (4, 4, 1, 1), k=TEXTS_PER_GROUP):
            text = _role_text(verb, agent, patient, draw) + draw.choice(lists["tails"])
            members.append((_capital(text) + ".", (agent, patient)))
        asks, suffers = [verb["doer"]], [verb.get("other", "the other side")]
        # Of a sale or a loan each side did something: neither buyer nor seller suffers it.
        if "other" not in verb:
            asks += ["who did it", "the one who acted"]
            suffers.append("whom it happened to")
        if "passive" in verb:
            participle = verb["passive"].split()[0]
            asks.append(f"who {verb['past']}?")
            suffers += [f"who was {participle}", f"who got {participle}?"]
        yield labeled_group(draw.choice(asks), [(text, own[0]) for text, own in members])
        yield labeled_group(draw.choice(suffers), [(text, own[1]) for text, own in members])


_LETTERS, _DIGITS = "ABCDEFGHKLMNPRSTVWX", "0123456789"
_CODE_FORMS = {
    "the model": ("{brand} {code} {thing}", "{thing} {brand} {code}", "{brand} {code}"),
    "the version": ("{brand} {code}: {said}", "{said} ({brand} {code})"),
}
_OTHER_CODE_FORMS = ("{code}: {said}", "{said}, {code}", "{said} ({code})", "Re: {code} {said}")


def _code(kind: str, draw: random.Random) -> tuple[str, ...]:
    if kind == "the version":
        return tuple(str(draw.randrange(0, 15)) for _ in range(3))
    letters = "".join(draw.choice(_LETTERS) for _ in range(draw.randrange(2, 4)))
    digits = str(draw.randrange(100, 9999))
    if kind == "the flight":
        return letters[:2], digits[:3]
    return (letters, digits, draw.choice("ABCX")) if draw.random() < 0.4 else (letters, digits)


def _code_text(kind: str, code: tuple[str, ...], draw: random.Random) -> str:
    if kind == "the version":
        text = ".".join(code)
        return draw.choice((text, f"v{text}", f"version {text}", f"release {text}"))
    text = draw.choice(("-", " ", "") if len(code) > 2 else ("-", " ", "", "/")).join(code)
    return draw.choice((text, text, text.lower(), f"#{text}" if "number" in kind else text))


def _other_code(code: tuple[str, ...], draw: random.Random) -> tuple[str, ...]:
    """The code with one sign changed, or one of its parts turned round."""
    place = draw.randrange(len(code))
    piece = code[place]
    at = draw.randrange(len(piece))
    signs = (_LETTERS if piece[at].isalpha() else _DIGITS).replace(piece[at], "")
    changed = piece[:at] + draw.choice(signs) + piece[at + 1 :]
    if len(piece) > 2 and piece != piece[::-1] and draw.random() < 0.3:
        changed = piece[::-1]
    return (*code[:place], changed, *code[place + 1 :])


def codes(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Model, order and flight numbers in several spellings, against those one sign off."""
    lists = forms("codes")
    brands = of_part(lists, "brands", part)
    for _ in range(number):
        kind = draw.choice(sorted(lists["kinds"]))
        things = lists["kinds"][kind]["things"]
        code, brand, thing = _code(kind, draw), draw.choice(brands), draw.choice(things)
        others = [_other_code(code, draw), _other_code(code, draw), _code(kind, draw)]
        members = []
        for value in (code, code, code, *others):
            said = thing if draw.random() < 0.6 else draw.choice(things)
            form = draw.choice(_CODE_FORMS.get(kind, _OTHER_CODE_FORMS))
            text = _code_text(kind, value, draw)
            members.append((form.format(brand=brand, code=text, thing=thing, said=said), value))
        yield labeled_group(draw.choice(lists["kinds"][kind]["conditions"]), members)


def causes(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Causes and effects that are combined freely, and chains turned round."""
    lists = forms("causes")
    templates = of_part(lists, "templates", part)
    for _ in range(number):
        topic = lists["topics"][draw.choice(sorted(lists["topics"]))]
        # Of two effects either may be said to have caused the other.
        pool = topic["effects" if draw.random() < 0.3 else "causes"]
        chosen_causes, chosen_effects = draw.sample(pool, 2), draw.sample(topic["effects"], 2)
        members = []
        for _ in range(TEXTS_PER_GROUP):
            cause, effect = draw.choice(chosen_causes), draw.choice(chosen_effects)
            if cause != effect:
                text = draw.choice(templates).format(c=draw.choice(cause), e=draw.choice(effect))
                members.append((_capital(text) + ".", (cause[0], effect[0])))
        if len(dict(members)) > 2:
            for place, key in enumerate(("cause_conditions", "effect_conditions")):
                yield labeled_group(
                    draw.choice(lists[key]), [(text, own[place]) for text, own in members]
                )


Rule = Callable[..., Iterator[Group]]
RULES: dict[str, tuple[Rule, int]] = {
    "opinions": (opinions, 2200),
    "amounts": (amounts, 2500),
    "dates": (dates, 1600),
    "roles": (roles, 1500),
    "codes": (codes, 1600),
    "causes": (causes, 1200),
}
"""Generators, and the number of draws for the training rows."""


def rule_groups(part: str = "train") -> Iterator[Group]:
    """Group of every rule."""
    for name, (generate, number) in RULES.items():
        yield from generate(random.Random(f"{name} {part}"), part, number=number)
