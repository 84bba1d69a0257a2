"""Draws groups of texts under the conditions that they share."""

# All pairs of a group are judged under each of its criteria, so that a trainer which reads each
# text once under each condition learns from 15 pairs of 6 texts.

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, zip_longest
from typing import NamedTuple

import numpy as np

from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.data.tables import CriteriaPair
from condsim.errors import InputError
from condsim.rows.criteria.collect import Index, Labelled, LabelledTexts, words_of
from condsim.rows.criteria.settings import CriteriaSettings

_CRITERIA = 3  # of a group, at most
_FEW, _SOME = 8, 16  # texts looked at from one source
_POOL = 40  # texts that a group is chosen from
_FAILURES = 30  # draws of a criterion in a row without a new row, before it is given up
_DRIFT = 4.0  # rows that a group may make up for of those before
_CROSSING = 0.7  # what a pair alike in one criterion and different in another is worth, in rows
_HARD = 15.0  # what the overlap of words is worth, in rows
_UNCLEAR = 0.5  # what a pair that cannot be judged costs, in rows
_LEAST_USES = 10  # groups that a text may be in, at least


class Judged(NamedTuple):
    """A pair of texts under a criterion."""

    text1: int  # place of one text
    text2: int  # place of the other
    criterion: int  # place of the criterion
    distance: int  # 0 if they are alike, up to the `Criterion.steps` if they are different
    overlap: float  # shared words by all words of both, 0 to 1


@dataclass(frozen=True)
class TextGroup:
    """Texts whose pairs are judged under the same criteria."""

    judged: tuple[Judged, ...]  # the pairs that can be judged and were not in a group before
    filler: bool = False  # whether it only serves to balance others


def overlap_of(words1: frozenset[str], words2: frozenset[str]) -> float:
    """Shared words by all words of both, 0 to 1."""
    shared = len(words1 & words2)
    return shared / max(1, len(words1) + len(words2) - shared)


def draw_groups(texts: LabelledTexts, settings: CriteriaSettings) -> Iterator[TextGroup]:
    """Draws groups until none has a new pair; the same seed draws the same groups."""
    # The texts of a group share two or three criteria where they can. Under the first, some are
    # alike and some are different; the others cut across it where they can. Draws keep each
    # criterion about as often alike as different.
    drawing = _Drawing(texts, settings)
    while (first := drawing.next_criterion()) is not None:
        group = drawing.group(first)
        if group is not None:
            yield group


class _Drawing:
    def __init__(self, texts: LabelledTexts, settings: CriteriaSettings) -> None:
        self._texts, self._criteria, self._answers = texts.texts, texts.criteria, texts.answers
        # No more texts than have pairs for the rows, or the first group would be too large.
        self._size = min(settings.group_size, max(3, math.isqrt(2 * settings.rows)))
        self._hard = settings.hard
        self._random = random.Random(f"{settings.seed}/{texts.name}")
        self._index = [texts.by_answer(place) for place in range(len(self._criteria))]
        self._good = [np.flatnonzero(index.counts() > 1).tolist() for index in self._index]
        self._weights = [
            np.cumsum(np.sqrt(index.counts()[good])).tolist()
            for index, good in zip(self._index, self._good, strict=True)
        ]
        self._words: dict[str, int] = {}
        self._by_word: Index | None = None
        if self._hard:
            self._words, self._by_word = texts.by_word()
        # A criterion of few texts has fewer rows, but more for each text.
        self._share = [float(np.sqrt(len(index.places))) for index in self._index]
        self._rows = [0] * len(self._criteria)
        self._surplus = [0.0] * len(self._criteria)  # alike less different
        self._overlap = 0.0  # mean of all rows
        self._telling = 0.0  # words that alike pairs share more than different ones
        self._failures = [0] * len(self._criteria)
        self._open = list(range(len(self._criteria)))
        self._uses = np.zeros(len(self._texts), np.int32)
        # A group of texts has about two rows a pair, but in the form of pairs few pairs serve.
        groups = settings.rows / (4 if settings.form == "pairs" else self._size * (self._size - 1))
        self._most_uses = max(_LEAST_USES, round(4 * groups * self._size / len(self._texts)))
        self._seen: set[int] = set()
        self._nested = _nested([criterion.name for criterion in self._criteria])

    def next_criterion(self) -> int | None:
        """The criterion with the fewest rows for its texts, about; None if all are used up."""
        return min(self._open, key=self._need, default=None)

    def group(self, first: int) -> TextGroup | None:
        """Draws a group under a criterion; None if it has no new rows."""
        judged = self._judged(first)
        distances = [
            one.distance * 2 / self._criteria[first].steps - 1
            for one in judged
            if one.criterion == first
        ]
        if not judged or min(distances, default=0) >= 0 or max(distances) <= 0:
            self._failures[first] += 1
            if self._failures[first] >= _FAILURES:
                self._open.remove(first)
            return None
        self._failures[first] = 0
        for one in judged:
            self._seen.add(self._key(one))
            self._rows[one.criterion] += 1
            alike = 1 - 2 * one.distance / self._criteria[one.criterion].steps
            self._surplus[one.criterion] += alike
            self._overlap += (one.overlap - self._overlap) / sum(self._rows)
            self._telling += alike * (one.overlap - self._overlap)
        return TextGroup(tuple(judged))

    def _need(self, criterion: int) -> float:
        return (self._rows[criterion] + 15 * self._random.random()) / self._share[criterion]

    def _judged(self, first: int) -> list[Judged]:
        anchor = self._anchor(first)
        if self._uses[anchor] >= self._most_uses:
            return []
        hard = self._random.random() < self._hard and self._telling >= 0
        slots = [first, *self._others(first, anchor)]
        found = self._candidates(slots, anchor, hard=hard)
        pool = self._fitting(slots, found)
        if len(pool) < self._size:  # the others are judged under the first criterion alone
            pool += [place for place in self._fitting(slots[:1], found) if place not in pool]
        if len(pool) < 2:
            return []
        pool = self._random.sample(pool, min(len(pool), _POOL))
        return self._all_pairs(slots, [anchor, *pool], hard=hard)

    def _anchor(self, criterion: int) -> int:
        """A text whose answer some other text has too."""
        answer = self._random.choices(self._good[criterion], cum_weights=self._weights[criterion])
        return self._some(self._index[criterion], answer[0], 1)[0]

    def _others(self, first: int, anchor: int) -> list[int]:
        """One or two more criteria of a text, those with the fewest rows first."""
        known = np.flatnonzero(self._answers[:, anchor] >= 0).tolist()
        fitting = [c for c in known if c != first and (first, c) not in self._nested]
        return sorted(fitting, key=self._need)[: self._random.randint(1, _CRITERIA - 1)]

    def _candidates(self, slots: Sequence[int], anchor: int, *, hard: bool) -> set[int]:
        """Texts that may stand beside a text: alike or different in one criterion or in words."""
        alike = [
            place
            for slot in slots
            for place in self._some(self._index[slot], int(self._answers[slot, anchor]), _SOME)
        ]
        rivals = self._with_words_of(anchor) if hard else []
        rivals += alike
        rivals += [place for slot in slots for place in self._any(self._index[slot], _FEW)]
        found = {*rivals}
        first, own = slots[0], int(self._answers[slots[0], anchor])
        different = [
            answer
            for place in rivals
            if (answer := int(self._answers[first, place])) >= 0
            and self._criteria[first].distance(own, answer)
        ]
        for answer in different[:1] + self._random.sample(different, min(1, len(different))):
            found.update(self._some(self._index[first], answer, _FEW))
        found.discard(anchor)
        return found

    def _with_words_of(self, anchor: int) -> list[int]:
        """Texts that share a telling word with a text."""
        known = [self._words[w] for w in sorted(words_of(self._texts[anchor])) if w in self._words]
        if self._by_word is None or not known:
            return []
        chosen = self._random.sample(known, min(3, len(known)))
        return [place for word in chosen for place in self._some(self._by_word, word, _FEW)]

    def _some(self, index: Index, number: int, most: int) -> list[int]:
        """Texts of one answer or word, drawn with replacement."""
        start, stop = int(index.starts[number]), int(index.starts[number + 1])
        if stop - start <= most:
            found: list[int] = index.places[start:stop].tolist()
            self._random.shuffle(found)
            return found
        return self._between(index, start, stop, most)

    def _any(self, index: Index, most: int) -> list[int]:
        return self._between(index, 0, len(index.places), most)

    def _between(self, index: Index, start: int, stop: int, most: int) -> list[int]:
        width, draw, places = stop - start, self._random.random, index.places
        return [int(places[start + int(draw() * width)]) for _ in range(most)]

    def _fitting(self, slots: Sequence[int], found: set[int]) -> list[int]:
        """Texts that have an answer to every criterion and are not used up."""
        places = np.array(sorted(found), np.int64)
        known = (self._answers[np.ix_(np.array(slots), places)] >= 0).all(axis=0)
        fitting: list[int] = places[known & (self._uses[places] < self._most_uses)].tolist()
        return fitting

    def _all_pairs(self, slots: Sequence[int], pool: list[int], *, hard: bool) -> list[Judged]:
        """Chooses the texts of a group and judges all their pairs."""
        answers: list[list[int]] = self._answers[np.ix_(np.array(slots), np.array(pool))].tolist()
        words = [words_of(self._texts[place]) for place in pool] if hard else None
        chosen = self._choose(slots, answers, words)
        self._random.shuffle(chosen)
        self._uses[[pool[member] for member in chosen]] += 1
        said = {member: words_of(self._texts[pool[member]]) for member in chosen}
        judged = []
        for one, two in combinations(chosen, 2):
            overlap = overlap_of(said[one], said[two])
            for slot, column in zip(slots, answers, strict=True):
                distance = self._distance(slot, column[one], column[two])
                if distance is not None:
                    judged.append(Judged(pool[one], pool[two], slot, distance, overlap))
        return [one for one in judged if self._key(one) not in self._seen]

    def _choose(
        self,
        slots: Sequence[int],
        answers: Sequence[Sequence[int]],  # one list for each criterion
        words: Sequence[frozenset[str]] | None,
    ) -> list[int]:
        """Adds the best text to the first one, again and again; texts are places in the pool."""
        # The best keeps each criterion balanced, makes pairs that are alike in one criterion and
        # different in another, and misleads by its words if these are given.
        total = np.clip([self._surplus[slot] for slot in slots], -_DRIFT, _DRIFT)  # (slots,)
        sums = np.tile(total[:, None], len(answers[0]))  # surplus if the text is added
        costs = np.array([self._random.random() for _ in answers[0]])
        chosen = [0]
        while len(chosen) < min(self._size, len(costs)):
            last = chosen[-1]
            signs = np.array([self._signs(*one, last) for one in zip(slots, answers, strict=True)])
            sums += signs
            costs += _UNCLEAR * (signs == 0).sum(axis=0)
            costs -= _CROSSING * ((signs.min(axis=0) < 0) & (signs.max(axis=0) > 0))
            if words is not None:
                costs += _HARD * signs[0] * [overlap_of(words[last], one) for one in words]
            score = np.abs(sums).sum(axis=0) + costs
            score[chosen] = np.inf
            best = int(score.argmin())
            chosen.append(best)
            gained = sums[:, best] - total
            total = sums[:, best].copy()
            sums += gained[:, None]
        return chosen

    def _signs(self, slot: int, answers: Sequence[int], last: int) -> list[float]:
        """1 for texts alike to the last, -1 for different and 0 for unclear ones."""
        steps, own = self._criteria[slot].steps, answers[last]
        distances = {answer: self._distance(slot, own, answer) for answer in {*answers}}
        signs = {
            answer: 0.0 if distance is None else 1 - 2 * distance / steps
            for answer, distance in distances.items()
        }
        return [signs[answer] for answer in answers]

    def _distance(self, slot: int, answer1: int, answer2: int) -> int | None:
        known = answer1 >= 0 and answer2 >= 0
        return self._criteria[slot].distance(answer1, answer2) if known else None

    def _key(self, one: Judged) -> int:
        low, high = min(one.text1, one.text2), max(one.text1, one.text2)
        return (one.criterion * len(self._texts) + low) * len(self._texts) + high


def _nested(names: Sequence[str]) -> set[tuple[int, int]]:
    """Criteria whose names say much the same, such as "the food" and "the quality of the food"."""
    words = [words_of(name) for name in names]
    pairs = combinations(range(len(names)), 2)
    found = [(a, b) for a, b in pairs if words[a] <= words[b] or words[b] <= words[a]]
    return {*found, *((b, a) for a, b in found)}


_GRADES = 4  # steps that labels between 0 and 1 are rounded to


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledPairs(Labelled):
    """Pairs of texts, one after the other, with a label for each criterion."""

    labels: list[dict[str, float]]  # of each pair, by criterion


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
    return LabelledPairs(
        name=name,
        texts=texts,
        steps={one: _GRADES if one in graded else 1 for one in used},
        excluded=excluded,
        repeated=repeated,
        unused=[one for one in names if one not in used],
        labels=labels,
    )


def groups_of_pairs(pairs: LabelledPairs, settings: CriteriaSettings) -> Iterator[TextGroup]:
    """The pairs in random order, those that are alike in one criterion and different in another."""
    # The others are fillers, between them as they are needed, or in the form ``pairs`` before them
    # all, since that form draws its fillers at the end.
    order = list(range(len(pairs.labels)))
    random.Random(f"{settings.seed}/{pairs.name}").shuffle(order)
    steps = list(pairs.steps.values())
    crossing, others = [], []
    for place in order:
        judged = _judged_pair(pairs, place)
        sides = {one.distance * 2 > steps[one.criterion] for one in judged}
        if len(sides) > 1:
            crossing.append(TextGroup(judged))
        else:
            others.append(TextGroup(judged, filler=True))
    if settings.form == "pairs":
        return iter(others + crossing)
    both = chain.from_iterable(zip_longest(crossing, others))
    return (group for group in both if group is not None)


def _judged_pair(pairs: LabelledPairs, place: int) -> tuple[Judged, ...]:
    one, two = 2 * place, 2 * place + 1
    overlap = overlap_of(words_of(pairs.texts[one]), words_of(pairs.texts[two]))
    return tuple(
        Judged(one, two, criterion, round((1 - pairs.labels[place][name]) * steps), overlap)
        for criterion, (name, steps) in enumerate(pairs.steps.items())
        if name in pairs.labels[place]
    )
