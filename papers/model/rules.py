"""Training rows by rule, for what turns on one detail.

Negation that decides, two opinions in one text, units and amounts, dates and times, who does what to
whom, codes, cause against effect, and short queries for a value. Every generator takes the part it
draws for: forms whose key falls into the last fifth are in no training row.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from papers.model.groups import Group, Input, percentile

TRAIN_FORMS_PERCENT = 80


def in_part(key: str, part: str) -> bool:
    """Whether a form may be drawn for ``train`` or for ``dev``."""
    return (percentile(key) < TRAIN_FORMS_PERCENT) == (part == "train")


def labelled(
    condition: str, members: Sequence[tuple[str, object]], *, silent: float = 0.25
) -> Group:
    """All pairs of texts, alike if their values are equal; a value of None is a silent text."""
    rows = []
    for (a, (_, one)), (b, (_, two)) in combinations(enumerate(members), 2):
        if one is None and two is None:
            continue
        if one is None or two is None:
            rows.append((a, b, silent, 0.3))
        else:
            rows.append((a, b, float(one == two), 1.0))
    return Group([(condition, text) for text, _ in members], rows)


# --- opinions, with negation and a second aspect ------------------------------------------------

ASPECTS: dict[str, tuple[str, str, str]] = {
    # aspect: subject, positive words, negative words
    "the room": ("the room", "clean spotless quiet spacious bright cosy", "dirty filthy noisy cramped dark shabby"),
    "the staff": ("the staff", "friendly helpful polite attentive patient", "rude unhelpful impatient careless arrogant"),
    "the food": ("the food", "tasty fresh delicious excellent", "bland stale disgusting awful"),
    "the price": ("the price", "fair reasonable low attractive", "outrageous excessive steep ridiculous"),
    "the delivery": ("the delivery", "fast punctual smooth quick", "slow late chaotic sluggish"),
    "the battery": ("the battery", "strong reliable durable long-lasting", "weak unreliable feeble short-lived"),
    "the screen": ("the screen", "sharp bright crisp brilliant", "blurry dim dull grainy"),
    "the app": ("the app", "stable intuitive fast reliable", "buggy confusing slow unreliable"),
    "the course": ("the course", "useful clear engaging well-structured", "useless confusing boring muddled"),
    "the doctor": ("the doctor", "competent kind thorough caring", "incompetent cold careless dismissive"),
    "the film": ("the film", "gripping funny moving clever", "boring dull predictable silly"),
    "the seat": ("the seat", "comfortable soft roomy", "uncomfortable hard tight"),
    "the sound": ("the sound", "clear rich warm", "tinny muffled harsh"),
    "the location": ("the location", "convenient perfect central", "inconvenient remote terrible"),
    "the support": ("the support", "responsive competent quick", "unresponsive clueless slow"),
    "the packaging": ("the packaging", "sturdy neat careful", "flimsy sloppy torn"),
    "the coffee": ("the coffee", "strong hot excellent", "watery cold undrinkable"),
    "the instructions": ("the manual", "clear complete helpful", "unclear incomplete useless"),
    "the service": ("the service", "quick attentive excellent", "slow inattentive terrible"),
    "the build quality": ("the build", "solid robust premium", "flimsy cheap wobbly"),
}
_SAME = (
    "{s} was {a}",
    "{s} was really {a}",
    "{s} turned out to be {a}",
    "{s} could not have been more {a}",
    "no one could say {s} was not {a}",
    "I can't say {s} wasn't {a}",
    "there is no denying that {s} was {a}",
    "it would be wrong to claim {s} wasn't {a}",
    "never before has {s} been so {a}",
    "{s} was nothing if not {a}",
    "{s} was, without a doubt, {a}",
    "{s} is still {a}",
    "{s} didn't stop being {a} for a minute",
    "{s}: {a}",
    "not once was {s} anything other than {a}",
)
_TURNED = (
    "{s} was not {a}",
    "{s} wasn't {a} at all",
    "{s} was anything but {a}",
    "I can't say {s} was {a}",
    "nobody would call {s} {a}",
    "{s} was far from {a}",
    "{s} was hardly {a}",
    "{s} was never {a}",
    "{s} is no longer {a}",
    "don't believe those who say {s} is {a}",
    "they promised {s} would be {a}; it is not",
    "{s} was neither {a} nor anything close to it",
    "{s} failed to be {a}",
    "there was nothing {a} about {s}",
    "it's a myth that {s} is {a}",
)
_JOINS = (", but {}", " and {}", "; {}", ", although {}", ". {}", ", yet {}", ". On the other hand, {}")
_OPENERS = ("", "", "", "Honestly, ", "We stayed three nights: ", "In short, ", "Second time here, ", "As my wife put it, ", "To be fair, ")
_OPINION_CONDITIONS = (
    "the opinion about {}",
    "the opinion about {}",
    "what they think of {}",
    "is the writer happy with {}?",
    "whether {} is praised or criticised",
    "{}: good or bad",
    "how {} is judged, whatever is said about the rest",
    "{bare}",
    "satisfaction with {}",
)


def opinion_clause(aspect: str, positive: bool, draw: random.Random, part: str) -> str:
    """A clause of that polarity, negated or not."""
    subject, good, bad = ASPECTS[aspect]
    turned = draw.random() < 0.5
    wrappers = [form for form in (_TURNED if turned else _SAME) if in_part(form, part)]
    words = (good if positive != turned else bad).split()
    return draw.choice(wrappers).format(s=subject, a=draw.choice(words))


def _sentence(text: str, draw: random.Random) -> str:
    text = draw.choice(_OPENERS) + text
    return text[0].upper() + text[1:] + draw.choice((".", ".", "!", ""))


def opinions(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Texts with opinions about one or two aspects, under each of the aspects."""
    names = sorted(ASPECTS)
    for _ in range(number):
        aspect, second = draw.sample(names, 2)
        members: list[tuple[str, object, object]] = []
        for _ in range(5):
            values: list[bool | None] = [draw.random() < 0.5, draw.random() < 0.5]
            if draw.random() < 0.4:
                values[draw.randrange(2)] = None
            present = [
                (name, value)
                for name, value in zip((aspect, second), values, strict=True)
                if value is not None
            ]
            draw.shuffle(present)
            clauses = [opinion_clause(name, value, draw, part) for name, value in present]
            text = clauses[0] + "".join(draw.choice(_JOINS).format(c) for c in clauses[1:])
            members.append((_sentence(text, draw), *values))
        for name, place in ((aspect, 1), (second, 2)):
            bare = name.removeprefix("the ")
            condition = draw.choice(_OPINION_CONDITIONS).format(name, bare=bare)
            group = labelled(condition, [(row[0], row[place]) for row in members])
            if group.rows:
                yield group


# --- amounts ------------------------------------------------------------------------------------

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(number: int) -> str:
    """A whole number below a million in words."""
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


def _number(value: float, draw: random.Random) -> str:
    whole = round(value)
    if abs(value - whole) > 1e-6:
        if abs(value * 2 - round(value * 2)) < 1e-6 and draw.random() < 0.4:
            base = int(value)
            return f"{in_words(base)} and a half" if base else "half"
        return f"{value:g}"
    forms = [str(whole), f"{whole:,}"]
    if whole < 100 or whole % 100 == 0:
        forms.append(in_words(whole))
    if 1000 < whole < 10_000 and whole % 100 == 0 and whole % 1000:
        forms.append(f"{in_words(whole // 100)} hundred")
    if whole >= 1000 and whole % 100 == 0:
        forms.append(f"{whole / 1000:g}k")
    if whole in (12, 24):
        forms.append("a dozen" if whole == 12 else "two dozen")
    return draw.choice(forms)


# kind: units with their size, templates, conditions
AMOUNTS: dict[str, tuple[dict[str, float], tuple[str, ...], tuple[str, ...]]] = {
    "duration": (
        {"minutes": 1, "min": 1, "hours": 60, "h": 60, "days": 1440, "weeks": 10_080, "seconds": 1 / 60},
        ("The journey took {}.", "Repairs will last {}.", "It ran for {} before it stopped.", "Please allow {} for delivery.", "Bake it for {}.", "We waited {} at the desk.", "Outage resolved after {}.", "The film lasts {}.", "The battery holds {}.", "{} is how long the tour goes on."),
        ("the duration", "how long it took", "the time it takes", "how long does it last?", "the length of time"),
    ),
    "weight": (
        {"g": 1, "grams": 1, "kg": 1000, "kilos": 1000, "kilograms": 1000, "tonnes": 1_000_000},
        ("Add {} of flour.", "The parcel weighs {}.", "The laptop is {}.", "Maximum load: {}.", "She caught a fish of {}.", "We ordered {} of gravel.", "Baggage allowance is {}.", "{} of rice per bag."),
        ("the weight", "how heavy it is", "the amount", "how much does it weigh?"),
    ),
    "length": (
        {"mm": 0.001, "cm": 0.01, "centimetres": 0.01, "m": 1, "metres": 1, "km": 1000, "kilometres": 1000},
        ("The desk is {} wide.", "The path is {} long.", "They live {} away.", "Cut the pipe to {}.", "Snow depth reached {}.", "The tower is {} high.", "The cable measures {}.", "The race is over {}."),
        ("the length", "the distance", "the size", "how far or how long in metres", "what is the measurement?"),
    ),
    "volume": (
        {"ml": 1, "millilitres": 1, "cl": 10, "l": 1000, "litres": 1000},
        ("Pour in {} of milk.", "The tank holds {}.", "Drink {} a day.", "The bottle contains {}.", "We lost {} of fuel.", "A dose is {}."),
        ("the volume", "the quantity", "how much liquid", "the capacity"),
    ),
    "money": (
        {"euros": 1, "EUR": 1, "euro": 1},
        ("The rent is {}.", "Refund of {} issued.", "They charged me {}.", "The fine was {}.", "The ticket costs {}.", "He owes the bank {}.", "Budget: {}.", "Sold for {} at auction."),
        ("the price", "the amount of money", "how much was it?", "the sum", "the cost"),
    ),
    "count": (
        {"people": 1, "persons": 1},
        ("{} were hurt.", "A table for {} please.", "The hall seats {}.", "{} signed up for the course.", "Police arrested {}.", "There were {} in the queue.", "The team lost {}."),
        ("the number of people", "how many people", "how many?", "the count"),
    ),
}
_SIZES = {
    "duration": (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 36, 45, 48, 60, 72, 90),
    "weight": (0.5, 1, 1.5, 2, 2.5, 3, 5, 10, 20, 25, 50, 100, 250, 500, 750),
    "length": (0.5, 1, 1.5, 2, 3, 5, 10, 12, 20, 25, 50, 75, 100, 150, 200, 500),
    "volume": (0.5, 1, 1.5, 2, 5, 10, 20, 25, 33, 50, 100, 250, 330, 500),
    "money": (5, 12, 15, 40, 50, 80, 99, 150, 250, 500, 900, 1000, 1200, 1500, 1600, 2500, 5000, 15_000),
    "count": (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 20, 24, 30, 40, 50, 100, 120, 200),
}


def _amount(size: float, units: dict[str, float], draw: random.Random) -> str | None:
    """The size in one of the units in which it is a plain number."""
    fitting = [(unit, size / own) for unit, own in units.items() if 0.25 <= size / own <= 20_000]
    fitting = [
        (unit, value) for unit, value in fitting if abs(value * 4 - round(value * 4)) < 1e-6
    ]
    if not fitting:
        return None
    unit, value = draw.choice(fitting)
    text = f"{_number(value, draw)} {unit}"
    if value == 1:
        text = text.removesuffix("s") if len(unit) > 3 else text
    return text


def amount_label(first: float, second: float) -> float:
    """1 for equal amounts, below a half for others, by their ratio."""
    ratio = abs(math.log(first / second))
    return 1.0 if ratio < 1e-6 else 0.45 * math.exp(-1.2 * ratio)


def amounts(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Amounts of one kind in several units and forms; the same digits may be another amount."""
    kinds = sorted(AMOUNTS)
    while number:
        kind = draw.choice(kinds)
        units, templates, conditions = AMOUNTS[kind]
        templates = tuple(form for form in templates if in_part(form, part))
        if not templates:
            continue
        digits = draw.choice(_SIZES[kind])
        unit = draw.choice(sorted(units))
        size = digits * units[unit]
        others = [digits * units[draw.choice(sorted(units))], draw.choice(_SIZES[kind]) * units[unit]]
        sizes = [size, size, size, *others, draw.choice(others)]
        rendered = [_amount(one, units, draw) for one in sizes]
        if not all(rendered):
            continue
        one_template = draw.random() < 0.4
        chosen = draw.choice(templates)
        texts = []
        for amount in rendered:
            form = chosen if one_template else draw.choice(templates)
            text = form.format(amount)
            texts.append(text[0].upper() + text[1:])
        condition = draw.choice(conditions)
        rows = [
            (a, b, amount_label(sizes[a], sizes[b]), 1.0)
            for a, b in combinations(range(len(texts)), 2)
            if texts[a] != texts[b]
        ]
        number -= 1
        yield Group([(condition, text) for text in texts], rows)


# --- dates and times ----------------------------------------------------------------------------

_MONTHS = "January February March April May June July August September October November December".split()
_DAY_TEMPLATES = ("The meeting is on {}.", "Invoice dated {}.", "She was born on {}.", "The offer ends on {}.", "We arrive on {}.", "Incident reported {}.", "{}: release of the new version.", "The lease starts on {}.", "Booked for {}, two nights.", "Deadline: {}")
_DAY_CONDITIONS = ("the date", "the day", "when is it?", "on which day it happens", "the date, however it is written")
_TIME_TEMPLATES = ("The train leaves at {}.", "Doors open at {}.", "Wake me at {}.", "Call with the client, {}.", "The alarm went off at {}.", "Kick-off is at {}.", "Server down since {}.", "Breakfast until {}.")
_TIME_CONDITIONS = ("the time", "what time is it?", "the hour", "when, by the clock", "the time of day")


def ordinal(day: int) -> str:
    """A day of the month with its ending."""
    ending = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def date_text(day: int, month: int, year: int, draw: random.Random) -> str:
    """A date in one of many forms; the two ends of a slash are never both below 13."""
    name = _MONTHS[month - 1]
    forms = [
        f"{day} {name} {year}",
        f"{name} {day}, {year}",
        f"{name} {ordinal(day)}, {year}",
        f"the {ordinal(day)} of {name} {year}",
        f"{year}-{month:02}-{day:02}",
        f"{day}.{month}.{year}",
        f"{name[:3]} {day} {year}",
        f"{day:02} {name[:3]} '{year % 100:02}",
    ]
    if day > 12:
        forms += [f"{day:02}/{month:02}/{year}", f"{month}/{day}/{year}"]
    return draw.choice(forms)


def time_text(hour: int, minute: int, draw: random.Random) -> str:
    """A time of day in one of many forms."""
    twelve = hour % 12 or 12
    suffix = "am" if hour < 12 else "pm"
    part = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"
    forms = [f"{hour:02}:{minute:02}", f"{twelve}:{minute:02} {suffix}", f"{twelve}.{minute:02} {suffix}"]
    after = in_words((twelve % 12) + 1)
    if minute == 0:
        forms += [f"{twelve} {suffix}", f"{in_words(twelve)} o'clock {part}", f"{hour:02}00 hours"]
    if minute == 30:
        forms.append(f"half past {in_words(twelve)} {part}")
    if minute == 15:
        forms.append(f"a quarter past {in_words(twelve)} {part}")
    if minute == 45 and twelve != 12:
        forms.append(f"a quarter to {after} {part}")
    if minute in (5, 10, 20):
        forms.append(f"{in_words(minute)} past {in_words(twelve)} {part}")
    return draw.choice(forms)


def dates(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Dates and times in other forms, against those that differ in one number."""
    for _ in range(number):
        clock = draw.random() < 0.5
        if clock:
            hour, minute = draw.randrange(5, 23), draw.choice((0, 0, 5, 10, 15, 20, 30, 30, 45))
            nearby = [((hour + 12) % 24, minute), (hour, draw.choice((0, 15, 30, 45))), (hour + 1, minute)]
            values = [(hour, minute)] * 3 + draw.sample(nearby, 2) + [draw.choice(nearby)]
            rendered = [time_text(h % 24, m, draw) for h, m in values]
            templates, conditions = _TIME_TEMPLATES, _TIME_CONDITIONS
        else:
            day, month, year = draw.randrange(1, 29), draw.randrange(1, 13), draw.randrange(1990, 2031)
            near = [(day, month % 12 + 1, year), (day % 28 + 1, month, year), (day, month, year + 1)]
            days = [(day, month, year)] * 3 + draw.sample(near, 2) + [draw.choice(near)]
            rendered = [date_text(*value, draw) for value in days]
            values, templates, conditions = days, _DAY_TEMPLATES, _DAY_CONDITIONS
        templates = tuple(form for form in templates if in_part(form, part))
        same_form = draw.random() < 0.4
        form = draw.choice(templates)
        texts = [(form if same_form else draw.choice(templates)).format(one) for one in rendered]
        members = list(dict(zip(texts, values, strict=True)).items())
        yield labelled(draw.choice(conditions), members)


# --- roles --------------------------------------------------------------------------------------

# verb: past, participle with its preposition, noun of the doer, converse form of the other side
VERBS: tuple[tuple[str, str, str, str], ...] = (
    ("defeated", "defeated by", "the winner", "{b} lost to {a}"),
    ("hired", "hired by", "the employer", "{b} got a job with {a}"),
    ("sued", "sued by", "the plaintiff", "{b} was taken to court by {a}"),
    ("called", "called by", "the caller", "{b} got a phone call from {a}"),
    ("paid", "paid by", "the one who paid", "{b} got the money from {a}"),
    ("taught", "taught by", "the teacher", "{b} took lessons from {a}"),
    ("overtook", "overtaken by", "the one in front now", "{b} fell behind {a}"),
    ("invited", "invited by", "the host", "{b} got an invitation from {a}"),
    ("blamed", "blamed by", "the accuser", "{b} got the blame from {a}"),
    ("followed", "followed by", "the one behind", "{b} walked ahead of {a}"),
    ("rescued", "rescued by", "the rescuer", "{b} owes {a} their life"),
    ("criticised", "criticised by", "the critic", "{b} drew criticism from {a}"),
    ("interviewed", "interviewed by", "the interviewer", "{b} answered questions from {a}"),
    ("replaced", "replaced by", "the successor", "{b} made way for {a}"),
    ("bought the car from", "sold the car to", "the buyer", "{b} sold the car to {a}"),
    ("lent money to", "lent money by", "the lender", "{b} borrowed money from {a}"),
    ("helped", "helped by", "the helper", "{b} had help from {a}"),
    ("arrested", "arrested by", "the one who made the arrest", "{b} was taken into custody by {a}"),
    ("pushed", "pushed by", "the one who pushed", "{b} got a shove from {a}"),
    ("promoted", "promoted by", "the superior", "{b} owes the promotion to {a}"),
    ("copied", "copied by", "the copycat", "{b} had the idea before {a}"),
    ("texted", "texted by", "the sender", "{b} got a message from {a}"),
    ("trained", "trained by", "the trainer", "{b} learned the trade from {a}"),
    ("visited", "visited by", "the visitor", "{b} had {a} over"),
)
PEOPLE = (
    "Anna", "Bob", "Carla", "the mayor", "the nurse", "the landlord", "the tenant", "the coach", "Leeds",
    "Porto", "the red team", "the driver", "the cyclist", "the editor", "my sister", "our neighbour",
    "the bank", "the start-up", "Dr Klein", "the intern", "Maria", "the captain", "the chef", "Tom",
)
_TAILS = ("", "", " yesterday", " last week", " in the end", " on Monday", ", as the paper reports", " again")


def roles(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Who does what to whom: active, passive and converse forms, and the sides swapped."""
    verbs = [verb for verb in VERBS if in_part(verb[0], part)]
    for _ in range(number):
        past, passive, doer, converse = draw.choice(verbs)
        first, second, third = draw.sample(PEOPLE, 3)
        members = []
        for agent, patient in draw.choices(
            ((first, second), (second, first), (third, second), (first, third)), (4, 4, 1, 1), k=6
        ):
            form = draw.randrange(3)
            if past.startswith("bought"):
                text = (f"{agent} {past} {patient}", converse.format(a=agent, b=patient))[form % 2]
            elif form == 0:
                text = f"{agent} {past} {patient}"
            elif form == 1:
                text = f"{patient} was {passive} {agent}"
            else:
                text = converse.format(a=agent, b=patient)
            text += draw.choice(_TAILS)
            members.append((text[0].upper() + text[1:] + ".", (agent, patient)))
        members = list(dict(members).items())
        base = "it" if " " in past else past
        asks = draw.choice((doer, f"who {past if ' ' not in past else 'did it'}?", "who did it", "the one who acted"))
        suffers = draw.choice((f"who was {passive.split()[0]}", "whom it happened to", "the other side", f"who got {passive.split()[0]}?"))
        if base == "it":
            suffers = "the other side"
        yield labelled(asks, [(text, value[0]) for text, value in members])
        yield labelled(suffers, [(text, value[1]) for text, value in members])


# --- codes --------------------------------------------------------------------------------------

_CODE_KINDS = {
    "the model": ("drill", "vacuum cleaner", "printer", "monitor", "dishwasher", "camera", "router", "e-bike", "headphones"),
    "the ticket number": ("login fails", "page is blank after the update", "invoice missing", "cannot reset my password"),
    "the order number": ("where is my parcel", "item arrived broken", "please cancel", "wrong size sent"),
    "the version": ("crashes at start", "release notes", "memory leak fixed", "upgrade fails"),
    "the flight": ("delayed by fog", "gate changed", "boarding now", "baggage lost"),
}
_BRANDS = ("Tarvo", "Kelmont", "Brusk", "Onyra", "Veltis", "Hadlock", "Miro", "Sandel")
_CODE_CONDITIONS = {
    "the model": ("the model", "the model number", "the product", "which model is it?"),
    "the ticket number": ("the ticket number", "the case", "the reference number"),
    "the order number": ("the order number", "the order", "which order is meant"),
    "the version": ("the version", "the release", "which version?"),
    "the flight": ("the flight", "the flight number"),
}


def _code(kind: str, draw: random.Random) -> tuple[str, ...]:
    letters = "".join(draw.choice("ABCDEFGHKLMNPRSTVWX") for _ in range(draw.randrange(2, 4)))
    digits = str(draw.randrange(100, 9999))
    if kind == "the version":
        return tuple(str(draw.randrange(0, 15)) for _ in range(3))
    if kind == "the flight":
        return letters[:2], digits[:3]
    return (letters, digits, draw.choice("ABCX")) if draw.random() < 0.4 else (letters, digits)


def _code_text(kind: str, parts: tuple[str, ...], draw: random.Random) -> str:
    if kind == "the version":
        text = ".".join(parts)
        return draw.choice((text, f"v{text}", f"version {text}", f"release {text}"))
    text = draw.choice(("-", " ", "", "/") if len(parts) < 3 else ("-", " ", "")).join(parts)
    return draw.choice((text, text, text.lower(), f"#{text}" if "number" in kind else text))


def _other_code(parts: tuple[str, ...], draw: random.Random) -> tuple[str, ...]:
    place = draw.randrange(len(parts))
    piece = parts[place]
    at = draw.randrange(len(piece))
    letters = "ABCDEFGHKLMNPRSTVWX" if piece[at].isalpha() else "0123456789"
    changed = piece[:at] + draw.choice(letters.replace(piece[at], "")) + piece[at + 1 :]
    if len(piece) > 2 and draw.random() < 0.3:
        changed = piece[::-1] if piece != piece[::-1] else changed
    return (*parts[:place], changed, *parts[place + 1 :])


def codes(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Model, order and flight numbers, however they are typed, against those one sign off."""
    brands = [brand for brand in _BRANDS if in_part(brand, part)] or list(_BRANDS[:1])
    for _ in range(number):
        kind = draw.choice(sorted(_CODE_KINDS))
        things = _CODE_KINDS[kind]
        code, brand, thing = _code(kind, draw), draw.choice(brands), draw.choice(things)
        values = [code, code, code, _other_code(code, draw), _other_code(code, draw), _code(kind, draw)]
        members = []
        for value in values:
            own = _code_text(kind, value, draw)
            said = thing if draw.random() < 0.6 else draw.choice(things)
            forms = {
                "the model": (f"{brand} {own} {thing}", f"{thing} {brand} {own}", f"{brand} {thing}, {own}", f"{brand} {own}"),
                "the version": (f"{brand} {own}: {said}", f"{said} ({brand} {own})"),
            }.get(kind, (f"{own}: {said}", f"{said}, {own}", f"{said} ({own})", f"Re: {own} {said}"))
            members.append((draw.choice(forms), value))
        yield labelled(draw.choice(_CODE_CONDITIONS[kind]), list(dict(members).items()))


# --- cause and effect ---------------------------------------------------------------------------

# topic: causes and effects, each as a noun phrase and in other words
CHAINS: dict[str, tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]] = {
    "train": (
        (("snow on the line", "heavy snowfall"), ("a signal failure", "broken signals"), ("a fallen tree", "a tree on the track"), ("a strike", "staff walking out")),
        (("a delay of an hour", "trains running sixty minutes late"), ("the cancellation of the train", "the train not running"), ("overcrowded platforms", "crowds at the station"), ("a missed connection", "passengers missing their next train")),
    ),
    "software": (
        (("a full disk", "no space left on the drive"), ("a wrong password", "invalid credentials"), ("an expired certificate", "a certificate past its date"), ("a memory leak", "memory that was never freed")),
        (("a crash at start", "the program dying on launch"), ("lost data", "records gone missing"), ("a slow website", "pages loading slowly"), ("users being logged out", "sessions ending by themselves")),
    ),
    "health": (
        (("lack of sleep", "too little rest"), ("too much sun", "hours in the blazing sun"), ("spoiled fish", "seafood that had gone off"), ("stress at work", "pressure in the office")),
        (("a headache", "pain in the head"), ("a skin rash", "red itchy skin"), ("vomiting", "throwing up"), ("a fainting fit", "passing out")),
    ),
    "flood": (
        (("a burst pipe", "a broken water main"), ("days of rain", "rain that did not stop"), ("a dam breach", "a dam giving way"), ("a blocked drain", "a clogged drain")),
        (("a flooded cellar", "water in the basement"), ("a power cut", "no electricity"), ("closed roads", "streets shut to traffic"), ("ruined stock", "spoiled goods")),
    ),
    "business": (
        (("rising energy prices", "dearer power"), ("a lost contract", "a big client leaving"), ("new competitors", "rivals entering the market"), ("a data breach", "stolen customer data")),
        (("job cuts", "layoffs"), ("higher prices", "customers paying more"), ("a falling share price", "stock losing value"), ("the resignation of the boss", "the chief executive stepping down")),
    ),
    "harvest": (
        (("a late frost", "frost in May"), ("a drought", "months without rain"), ("a beetle plague", "swarms of beetles"), ("hail", "hailstones")),
        (("a poor apple harvest", "few apples this year"), ("dearer bread", "higher bread prices"), ("dead vines", "vines that died"), ("import of grain", "grain bought abroad")),
    ),
    "road": (
        (("black ice", "an icy road"), ("a drunk driver", "a motorist who had been drinking"), ("a burst tyre", "a tyre that blew"), ("thick fog", "dense fog")),
        (("a pile-up", "a crash of many cars"), ("a long jam", "miles of queuing traffic"), ("a broken leg", "a leg fracture"), ("a closed bridge", "the bridge being shut")),
    ),
}
_CAUSAL = (
    "{c} led to {e}",
    "{e} because of {c}",
    "{e}: the reason was {c}",
    "{c} resulted in {e}",
    "after {c} came {e}",
    "{e} was brought about by {c}",
    "thanks to {c} we had {e}",
    "{e}, all due to {c}",
    "it was {c} that caused {e}",
    "what {c} meant was {e}",
)
_CAUSE_CONDITIONS = ("the cause", "why it happened", "the reason", "what was to blame", "what caused it?", "the cause, not the consequence")
_EFFECT_CONDITIONS = ("the consequence", "what it led to", "the effect", "the result", "what happened because of it?", "the outcome")


def causes(draw: random.Random, part: str, *, number: int) -> Iterator[Group]:
    """Causes and effects that are combined freely, and chains turned round."""
    templates = [form for form in _CAUSAL if in_part(form, part)]
    for _ in range(number):
        cause_forms, effect_forms = CHAINS[draw.choice(sorted(CHAINS))]
        if draw.random() < 0.3:
            # Of two effects either may be said to have caused the other.
            cause_forms = effect_forms
        causes_here, effects_here = draw.sample(cause_forms, 2), draw.sample(effect_forms, 2)
        members = []
        for _ in range(6):
            cause, effect = draw.choice(causes_here), draw.choice(effects_here)
            if cause == effect:
                continue
            text = draw.choice(templates).format(c=draw.choice(cause), e=draw.choice(effect))
            members.append((text[0].upper() + text[1:] + ".", (cause[0], effect[0])))
        members = list(dict(members).items())
        if len(members) > 2:
            yield labelled(draw.choice(_CAUSE_CONDITIONS), [(t, v[0]) for t, v in members])
            yield labelled(draw.choice(_EFFECT_CONDITIONS), [(t, v[1]) for t, v in members])


RULES: dict[str, tuple[Callable[..., Iterator[Group]], int]] = {
    "opinions": (opinions, 2200),
    "amounts": (amounts, 2500),
    "dates": (dates, 1600),
    "roles": (roles, 1500),
    "codes": (codes, 1600),
    "causes": (causes, 1200),
}
"""Generators, and groups of each in the training rows."""


def rule_groups(part: str = "train", *, share: float = 1.0) -> Iterator[Group]:
    """Groups of every rule."""
    for name, (generate, number) in RULES.items():
        draw = random.Random(f"{name} {part}")
        yield from generate(draw, part, number=max(1, round(share * number)))


def inputs_of(groups: Sequence[Group]) -> list[Input]:
    """All inputs of groups."""
    return [one for group in groups for one in group.inputs]
