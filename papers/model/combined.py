"""Rows under conditions that leave a respect out, or join two: by rule from labeled tables."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations

from papers.model.groups import Group, Input
from papers.model.labeled import LabeledTable
from papers.model.sources import TEXTS_PER_TABLE, Sources, drawn, open_sets, own_tables

EXCEPT = (
    "everything except {}",
    "everything but {}",
    "everything other than {}",
    "everything apart from {}",
    "all but {}",
    "all aspects except {}",
    "all the rest, but not {}",
    "anything but {}",
    "ignoring {}",
    "ignore {}",
    "if you ignore {}",
    "apart from {}",
    "are they the same apart from {}?",
    "except for {}",
    "except {}",
    "other than {}",
    "aside from {}",
    "{} aside",
    "setting {} aside",
    "leaving {} out",
    "leaving out {}",
    "regardless of {}",
    "irrespective of {}",
    "disregarding {}",
    "without regard to {}",
    "not counting {}",
    "excluding {}",
    "never mind {}",
    "{} doesn't matter",
    "do not consider {}",
    "whatever {} may be",
)
BOTH = (
    "{} and {}",
    "{} and {}",
    "both {} and {}",
    "{} as well as {}",
    "{} together with {}",
    "{}, and {}",
    "{} plus {}",
    "{} & {}",
    "{} and also {}",
    "are both {} and {} the same?",
)
EITHER = (
    "{} or {}",
    "{} or {}",
    "either {} or {}",
    "at least one of {} and {}",
    "{} or else {}",
    "is {} or {} the same?",
)
GROUPS_PER_TABLE, GROUPS_PER_DOMAIN = 400, 30
CANDIDATES = 40
LEAST_CRITERIA = 3
"""Criteria that two texts must both have, so that two remain without the one left out."""

Respect = tuple[str, Sequence[str]]
"""Kind of a combined condition, and its criteria."""


def combined(sources: Sources) -> Iterator[Group]:
    """Draw groups under *all but A*, *A and B*, *A or B*, and under A, from every labeled table."""
    draw = random.Random(11)
    tables = [(table, GROUPS_PER_TABLE) for table in open_sets(sources, "train")]
    tables += [(table, GROUPS_PER_DOMAIN) for table in own_tables()]
    for table, number in tables:
        yield from combined_groups(table, draw, number=number)


def combined_groups(table: LabeledTable, draw: random.Random, *, number: int) -> Iterator[Group]:
    """Draw groups of a text and others that are like it in some respects and not in others."""
    texts = [text for text in table.texts if len(text.values) >= LEAST_CRITERIA]
    draw.shuffle(texts)
    table = LabeledTable(table.name, tuple(texts[:TEXTS_PER_TABLE]), table.same)
    if len(table.texts) < 8:
        return
    rows = range(len(table.texts))
    for _ in range(number):
        anchor = draw.choice(rows)
        criteria = sorted(table.texts[anchor].values)
        left_out, other = draw.sample(criteria, 2)
        others = [row for row in drawn(draw, rows, CANDIDATES) if row != anchor]
        members = [anchor, *_spread(table, anchor, left_out, others)]
        kind = draw.choice(("except", "except", "both", "either"))
        respects: list[Respect] = [(kind, (left_out, other)), ("one", (left_out,))]
        group = _group(table, members, respects, draw)
        if group is not None:
            yield group


def _spread(table: LabeledTable, anchor: int, criterion: str, others: Sequence[int]) -> list[int]:
    """Choose the texts whose likeness in a criterion says least about their likeness elsewhere."""
    surprise = {}
    for row in others:
        rest = label_of(table, ("except", (criterion,)), anchor, row)
        alike = table.alike(criterion, anchor, row)
        if rest is not None and alike is not None:
            surprise[row] = rest - float(alike)
    ordered = sorted(surprise, key=lambda row: surprise[row])
    return list(dict.fromkeys([*ordered[:2], *ordered[-2:]]))


def label_of(table: LabeledTable, respect: Respect, first: int, second: int) -> float | None:
    """Label two texts under a combined condition; None where a text is silent or in doubt."""
    kind, criteria = respect
    if kind == "except":
        left_out = criteria[0]
        shared = table.texts[first].values.keys() & table.texts[second].values.keys()
        known = [table.alike(name, first, second) for name in sorted(shared - {left_out})]
        if None in known or len(known) < LEAST_CRITERIA - 1:
            return None
        return sum(map(bool, known)) / len(known)
    alike = [table.alike(name, first, second) for name in criteria]
    if None in alike:
        return None
    return float(any(alike)) if kind == "either" else sum(map(bool, alike)) / len(alike)


def _group(
    table: LabeledTable, members: Sequence[int], respects: Sequence[Respect], draw: random.Random
) -> Group | None:
    wordings = {"except": EXCEPT, "both": BOTH, "either": EITHER, "one": ("{}",)}
    inputs: list[Input] = []
    rows = []
    for respect in respects:
        kind, criteria = respect
        condition = draw.choice(wordings[kind]).format(*criteria)
        start = len(inputs)
        inputs += [(condition, table.texts[row].text) for row in members]
        for one, two in combinations(range(len(members)), 2):
            label = label_of(table, respect, members[one], members[two])
            if label is not None:
                rows.append((start + one, start + two, label, 1.0))
    return Group(inputs, rows, share=0.1) if len(rows) >= 4 else None
