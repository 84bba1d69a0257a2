"""Groups of labelled pairs: each pair is one, judged under its own criteria."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest

from condsim.construction.criteria.collecting import words_of
from condsim.construction.criteria.drawing import Judged, TextGroup, overlap_of
from condsim.construction.criteria.settings import CriteriaSettings
from condsim.errors import InputError
from condsim.tasks import CriteriaPair, HeldOutTexts, text_digest

_GRADES = 4  # steps that labels between 0 and 1 are rounded to


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs of texts with a label for each criterion."""

    name: str
    texts: list[str]  # two of each pair
    labels: list[dict[str, float]]  # of each pair, by criterion
    criteria: list[tuple[str, int]]  # name and steps
    excluded: int
    repeated: int
    unused: list[str]


def collect_pairs(
    items: Iterable[CriteriaPair], settings: CriteriaSettings, *, name: str, held_out: HeldOutTexts
) -> LabelledPairs:
    """Collects labelled pairs; raises `InputError` if no criterion can be used."""
    texts: list[str] = []
    labels: list[dict[str, float]] = []
    seen: set[frozenset[bytes]] = set()
    found: Counter[tuple[str, bool]] = Counter()  # alike or different
    graded: set[str] = set()
    excluded = repeated = 0
    for item in items:
        both = (item.text1, item.text2)
        key = frozenset(map(text_digest, both))
        if any(text in held_out for text in both):
            excluded += 1
        elif key in seen or len(key) < 2:
            repeated += 1
        else:
            seen.add(key)
            texts += both
            labels.append(dict(item.labels))
            found.update((criterion, label > 0.5) for criterion, label in item.labels.items())
            graded.update(name for name, label in item.labels.items() if 0 < label < 1)
    names = sorted({criterion for criterion, _ in found})
    used = [
        one
        for one in names
        if found[one, True] and found[one, False] and not settings.of(one).leave_out
    ]
    if not used:
        raise InputError(
            f"{name}: rows need a criterion with a pair that is alike and one that is not. Of "
            f"{len(labels):,} pairs ({excluded:,} left out, {repeated:,} repeated) with the "
            f"criteria {', '.join(names) or 'none'}, none has that; give more pairs."
        )
    criteria = [(one, _GRADES if one in graded else 1) for one in used]
    unused = [one for one in names if one not in used]
    return LabelledPairs(name, texts, labels, criteria, excluded, repeated, unused)


def groups_of_pairs(pairs: LabelledPairs, settings: CriteriaSettings) -> Iterator[TextGroup]:
    """The pairs in random order, those that are alike in one criterion and different in another.

    The others are fillers, between them as they are needed, or in the form ``pairs`` before them
    all, since that form draws its fillers at the end.
    """
    order = list(range(len(pairs.labels)))
    random.Random(f"{settings.seed}/{pairs.name}").shuffle(order)
    steps = [steps for _, steps in pairs.criteria]
    crossing, others = [], []
    for place in order:
        judged = _judged(pairs, place)
        sides = {one.distance * 2 > steps[one.criterion] for one in judged}
        if len(sides) > 1:
            crossing.append(TextGroup(judged))
        else:
            others.append(TextGroup(judged, filler=True))
    if settings.form == "pairs":
        return iter(others + crossing)
    both = chain.from_iterable(zip_longest(crossing, others))
    return (group for group in both if group is not None)


def _judged(pairs: LabelledPairs, place: int) -> tuple[Judged, ...]:
    one, two = 2 * place, 2 * place + 1
    overlap = overlap_of(words_of(pairs.texts[one]), words_of(pairs.texts[two]))
    return tuple(
        Judged(one, two, criterion, round((1 - pairs.labels[place][name]) * steps), overlap)
        for criterion, (name, steps) in enumerate(pairs.criteria)
        if name in pairs.labels[place]
    )
