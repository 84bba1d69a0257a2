"""Rows in which one word makes the second text about another subject.

A written pair whose texts share the name of their subject becomes *related* when the second text
alone gets another name of the same kind.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from papers.model.sources import drawn

HEAD = 5
"""Words at the beginning of a text among which its subject is looked for."""
COPIES = 2
"""Most rows of one pair, each with another subject."""
FEMALE = (
    "Alma Amira Ana Anna Anneke Anouk Bea Bettina Birgit Clara Dalia Elif Eva Fatou Greta Hana "
    "Hanna Hannah Hedda Ilka Ilse Ines Ingrid Irma Jana Joana Johanna Leah Lena Lia Lina Lucia "
    "Ludmila Marit Marta Mia Morag Nadia Nina Nkechi Noor Nora Odile Paola Paula Petra Priya Rita "
    "Rosa Ruth Selma Tamsin Teresa Tessa Vera Wanda Yusra"
).split()
MALE = (
    "Abel Aldo Ansel Bruno Dario Emil Farid Farouk Femi Finn Guillaume Henrik Ilya Jonas Ken Klaus "
    "Leo Luca Lukas Marek Mauro Noah Oskar Otis Otto Paul Piet Piotr Radek Ralf Rasmus Rolf Ruben "
    "Samuel Tamas Theo Timo Tobias Tom Tomas Tomasz Vasile Yusuf"
).split()
SURNAMES = (
    "Abara Adeyemi Aoki Bergmann Brandt Carstens Danesh Falk Ferrer Haddad Halvorsen Holm Keller "
    "Lindqvist Lowry Okafor Okoro Olmedo Osei Papadakis Reyes Solheim Szabo Varga Vogt Weiss"
).split()
CITIES = (
    "Aarhus Basel Bilbao Ghent Graz Izmir Leeds Lisbon Lyon Oslo Ostrava Porto Skopje Tallinn "
    "Tampere Turin Utrecht Varna"
).split()
FIRMS = "Aldea Brenn Corvo Kelpa Korvex Lorne Nordfund Orbis Orvik Sella Skarn Tiss Vanto".split()
TEAMS = "Rovers Kestrels Bisons Otters Pirates Herons Comets Wolves".split()
WEEKDAYS = "Mondays Tuesdays Wednesdays Thursdays Fridays Saturdays Sundays".split()
TITLES = ("Mr", "Mrs", "Ms", "Dr", "Prof", "Coach", "Mayor", "Detective")
NUMBERED = (
    "aisle apartment batch bay bearing bed book bug build bus candidate case chapter clause "
    "compressor court crane dish electrode employee error escalator flat gate gearbox hangar "
    "headset highway hoist house invoice issue item kiln lab lane line locker migration milestone "
    "node order pallet plate platform press pump reactor release requirement room route row run "
    "sample section shelf ship sku space station step table tank terminal ticket track train tram "
    "truck unit valve well"
).split()
# Words of one kind, and the words of which one has to follow, if any.
SWAPPED: tuple[tuple[str, str], ...] = (
    (
        "left right",
        "ankle arm ear eye eyelid foot front hand headlight hip kidney knee leg lung mirror rear "
        "shoulder speaker thumb wing wrist",
    ),
    ("front rear", "axle brake door entrance light tire tyre wheel window"),
    ("upper lower", "back deck drawer floor hall jaw lid shelf"),
    (
        "morning afternoon evening",
        "bus class course dose flight group meeting run session shift slot surgery tour train yoga",
    ),
    ("staging production", ""),
    ("first second third fourth", "floor grade group lane shelf shift team"),
    (
        "north south east west northern southern eastern western",
        "bank coast entrance exit gate platform pier slope station tower wall wing",
    ),
    ("summer winter", "camp coat course festival hours menu schedule term tires tyres"),
    ("kitchen bathroom bedroom hallway cellar attic", ""),
    ("brother sister mother father son daughter uncle aunt grandfather grandmother", ""),
    ("iOS Android", ""),
    ("Windows macOS Linux", ""),
    ("Chrome Firefox Safari", ""),
    ("Redis PostgreSQL Kafka", ""),
    ("red blue green yellow black white", "bag bin bus car door house line shed tent van"),
    ("indoor outdoor", "court pool seating"),
    ("adult child", "fare ticket tickets"),
    ("junior senior", "choir squad team"),
    ("cat dog rabbit parrot", ""),
    ("library museum theatre pharmacy", ""),
    ("canteen gym sauna", ""),
)
_KIN = frozenset(SWAPPED[9][0].split())
_GENDERED = re.compile(r"\b(he|she|him|her|his|hers|himself|herself)\b", re.IGNORECASE)
# Where only one person can be it, another name contradicts the first text.
_ONLY_ONE = re.compile(
    r"\b(by|charge|responsible|chair\w*|captain\w*|leads?|led|head\w*|own\w*|won|win\w*|runs|"
    r"owner|manager|host\w*|job|task|is the|deputy|foreman|title|took over|takes? the|bought|buys?|"
    r"sold|sells?|sale|acquire\w*|merge[ds]?|presented|fix\w*|patch|brings|drives|founded|wrote|written|"
    r"invented|discovered|beat|beats|signed|directed|composed|successor|replace\w*|leaders?|president|"
    r"agent|mayor|minister|director|chief|boss|CEO|supplier|supplies|sponsor\w*)\b|, not ",
    re.IGNORECASE,
)
_COMPARED = re.compile(r"\b(only|same|also|too|both|instead|other|another|except)\b", re.IGNORECASE)
_SUBJECT_FIRST = re.compile(r"(?:The|A|An|Our|My|All|This|Her|His|Their)\b|\S+ (?:on|in|at|of) ")
_SPEAKER = re.compile(r"(?:I|We|User|You|My|Our)\b")


class Subject(NamedTuple):
    """The word that names the subject of both texts, and words to put in its place."""

    word: str
    others: Sequence[str]


def lower_words(texts: Sequence[str]) -> frozenset[str]:
    """Words that some text has in lower case, so that a capital at the beginning names nothing."""
    return frozenset(word for text in texts for word in re.findall(r"(?<!\w)[^\W\dA-Z_]+", text))


def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")


def _head(text: str) -> str:
    return " ".join(text.split()[:HEAD])


def _named(first: str, second: str, lower: frozenset[str]) -> Iterator[Subject]:
    """Find the one name at the beginning of a text that the second has, too."""
    shared = [
        name
        for name in dict.fromkeys(re.findall(r"(?<![\w-])[A-Z][^\W\dA-Z_]+(?![\w-])", first))
        if name.lower() not in lower and name not in TITLES and _whole(name).search(second)
    ]
    if not shared or not _whole(shared[0]).search(_head(first)):
        return
    name = shared[0]
    # Of two names the first is the subject if both texts begin with it.
    if len(shared) > 1 and not (first.startswith(name) and second.startswith(name)):
        return
    titled = re.compile(rf"\b(?:{'|'.join(TITLES)})\.? {name}\b")
    only_one = _ONLY_ONE.search(first) or _ONLY_ONE.search(second)
    if titled.match(first) and titled.search(second) and not only_one:
        yield Subject(name, SURNAMES)
        return
    # Part of a longer name, or a name with a number.
    longer = rf"[A-Z][^\W\d_]+ {name}\b|\b{name} [A-Z\d]"
    if re.search(longer, first) or re.search(longer, second):
        return
    if first.startswith(name) and not only_one:
        yield from (Subject(name, names) for names in (FEMALE, MALE, TEAMS) if name in names)
    if not _SPEAKER.match(first):
        yield from (Subject(name, names) for names in (CITIES, FIRMS, WEEKDAYS) if name in names)


def _numbered(first: str, second: str) -> Iterator[Subject]:
    """Find the thing with a number at the beginning of a text that the second has, too."""
    things = rf"(?:{'|'.join(NUMBERED)})s?"
    pattern = re.compile(rf"\b{things} #?([A-Z]?-?)(\d+)([a-zA-Z]?)(?![\w.,]\d|\w)", re.IGNORECASE)
    found = pattern.findall(first)
    if len(found) != 1 or not pattern.search(_head(first)) or found[0][1].startswith("0"):
        return
    before, digits, after = found[0]
    number = before + digits + after
    # A bare small number may count something.
    named = rf"\b(?:{things}|no\.|number|the|level) #?{re.escape(number)}(?![\w-])"
    in_second = _whole(number).findall(second)
    if in_second and (int(digits) > 99 or before or len(re.findall(named, second, re.I)) == 1):
        steps = [step for step in (-3, -2, -1, 1, 2, 3) if int(digits) + step > 0]
        yield Subject(number, [f"{before}{int(digits) + step}{after}" for step in steps])


def _of_a_kind(first: str, second: str) -> Iterator[Subject]:
    """Find a word of `SWAPPED` at the beginning of a text that the second has, too."""
    for words, after in SWAPPED:
        present = [word for word in words.split() if _whole(word).search(f"{first} {second}")]
        if len(present) != 1 or (present[0] in _KIN and _GENDERED.search(second)):
            continue
        follows = rf" (?:{'|'.join(after.split())})\b" if after else r"(?! \d)"
        pattern = re.compile(rf"(?<![\w-]){present[0]}(?![\w-]){follows}")
        starts = first.startswith(present[0]) or _SUBJECT_FIRST.match(first)
        if starts and pattern.search(_head(first)) and pattern.search(second):
            yield Subject(present[0], words.split())


def with_other_subjects(first: str, second: str, lower: frozenset[str]) -> list[str]:
    """Return the second text of a pair about other subjects, if a rule finds its subject."""
    if _COMPARED.search(first) or _COMPARED.search(second):
        return []
    found = [*_named(first, second, lower), *_numbered(first, second), *_of_a_kind(first, second)]
    if not found:
        return []
    both = f"{first} {second}"
    others = [word for word in found[0].others if not _whole(word).search(both)]
    chosen = drawn(random.Random(both), others, COPIES)
    return [_whole(found[0].word).sub(word, second) for word in chosen]


def subject_pairs(pairs: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the first texts of pairs, and their second texts about another subject."""
    texts = [pair[side] for pair in pairs for side in ("sentence1", "sentence2")]
    lower = lower_words(texts)
    for pair in pairs:
        if pair["verdict"] in ("duplicate", "update", "contradiction"):
            for second in with_other_subjects(pair["sentence1"], pair["sentence2"], lower):
                yield pair["sentence1"], second
