"""Which of the judged pairs become rows: each wording as often alike as different."""

from __future__ import annotations

import random
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from condsim.console import Progress
from condsim.rows.criteria.collect import Labelled
from condsim.rows.criteria.draw import Judged, TextGroup
from condsim.rows.criteria.settings import CriteriaSettings, derive_wordings
from condsim.rows.records import TableRow

_EASY_FIRST = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)  # how far easy rows are left out first
_MOST_USES = 6  # pairs of one text, in the form of pairs
_WAITING = 50  # pairs that wait for others that balance them
_ROWS_OF_WORDING = 45  # of a criterion that bring in one more wording


@dataclass(frozen=True, slots=True)
class CriteriaRow(TableRow):
    """Two texts under a condition, and the criterion that it words."""

    sentence1: str
    sentence2: str
    condition: str  # a wording of the criterion
    label: float  # from 1 (different) to 5 (alike)
    criterion: str  # the criterion, as the table names it
    set: str  # the set that both texts are from


@dataclass(frozen=True, slots=True)
class GroupRow(CriteriaRow):
    """A row for training; the rows of a ``group`` have a few texts and conditions in common."""

    group: str


@dataclass(frozen=True, slots=True)
class PairRow(CriteriaRow):
    """A row for evaluation; two with one ``pair_id`` are one pair of texts, alike and different."""

    pair_id: str


class _Wordings:
    """The wordings of one criterion, and how often each is alike and different."""

    def __init__(
        self, name: str, steps: int, settings: CriteriaSettings, generator: random.Random
    ) -> None:
        given = settings.of(name)
        derived = derive_wordings(given.name or name)
        others = list(derived[1:] if given.wordings is None else given.wordings)
        generator.shuffle(others)
        self.names = list(dict.fromkeys((given.name or derived[0], *others)))
        self._own_name = settings.own_name
        self._counts = [[0] * (steps + 1) for _ in self.names]  # rows by distance

    def take(self, distances: Sequence[int]) -> int:
        """Chooses the wording of a group's rows, and counts them."""
        place = self._next(distances)
        for distance in distances:
            self._counts[place][distance] += 1
        return place

    def untake(self, place: int, distances: Sequence[int]) -> None:
        """Takes rows back."""
        for distance in distances:
            self._counts[place][distance] -= 1

    def count(self) -> tuple[int, int]:
        """Rows, and those of them that have one which is as alike as they are different."""
        return sum(map(sum, self._counts)), sum(map(_paired, self._counts))

    def lacking(self) -> Iterator[tuple[int, int, int]]:
        """Wordings and distances that need rows, and how many."""
        for place, counts in enumerate(self._counts):
            for distance, (have, want) in enumerate(zip(counts, reversed(counts), strict=True)):
                if have < want:
                    yield place, distance, want - have

    def gain(self, place: int, distances: Sequence[int]) -> int:
        """How many more stay if these rows are added under a wording."""
        counts = self._counts[place][:]
        before = _paired(counts)
        for distance in distances:
            counts[distance] += 1
        return _paired(counts) - before

    def best_gain(self, distances: Sequence[int]) -> int:
        """The gain under the wording that needs the rows most."""
        return max(self.gain(place, distances) for place in range(len(self.names)))

    def _next(self, distances: Sequence[int]) -> int:
        rows = [_paired(counts) for counts in self._counts]
        share = self._own_name if len(self.names) > 1 else 1.0
        if rows[0] <= share * sum(rows) and share > 0:
            return 0
        allowed = range(1, min(len(self.names), 2 + sum(rows[1:]) // _ROWS_OF_WORDING))
        return min(
            allowed, key=lambda place: (-self.gain(place, distances), sum(self._counts[place]))
        )


def _paired(counts: Sequence[int]) -> int:
    return sum(map(min, counts, reversed(counts)))


def choose_rows(
    source: Labelled, groups: Iterable[TextGroup], settings: CriteriaSettings, *, progress: Progress
) -> Iterator[tuple[CriteriaRow, int, float]]:
    """Gives rows until there are enough, each with the number of its group and its overlap."""
    # Rows come by group, shuffled in a condition.
    selection = _Selection(source, settings)
    for group in groups:
        if not selection.add(group):
            break
        progress("rows", selection.size, settings.rows)
    yield from selection.rows()


class _Selection:
    """Rows of groups, while groups are drawn."""

    def __init__(self, source: Labelled, settings: CriteriaSettings) -> None:
        self._random = random.Random(f"{settings.seed}/{source.name}/rows")
        self._wordings = [_Wordings(*one, settings, self._random) for one in source.steps.items()]
        self._steps = np.array(list(source.steps.values()))
        self._source, self._settings = source, settings
        self._in_pairs, self._exact = settings.form == "pairs", settings.balance == "exact"
        # Text1, text2, criterion, distance, wording and group of each row, and its overlap.
        self._drawn, self._overlap = array("i"), array("f")
        self._spare: dict[tuple[int, int], list[Judged]] = defaultdict(list)
        self._waiting: list[list[Judged]] = []  # pairs that may be chosen later
        self._uses: Counter[int] = Counter()  # pairs of each text
        self._surplus = [0] * len(self._steps)  # pairs alike in a criterion less those different
        self._groups = 0
        self.size = 0  # rows that there will be

    def add(self, group: TextGroup) -> bool:
        """Adds the rows of a group, or as many of its criteria as there is room for; then False."""
        for chosen in self._pairs(group) if self._in_pairs else [list(group.judged)]:
            by_criterion = defaultdict(list)
            for one in chosen:
                by_criterion[one.criterion].append(one)
            taken, size = [], self.size
            for criterion, judged in by_criterion.items():
                wordings, distances = self._wordings[criterion], [one.distance for one in judged]
                if group.filler and self._exact and not wordings.best_gain(distances):
                    continue
                before = self._count(criterion)
                taken.append((criterion, wordings.take(distances), judged))
                size += self._count(criterion) - before
            is_full = size > self._settings.rows
            # A pair of texts has both of its rows or none.
            while taken and is_full and (self._in_pairs or size > self._settings.rows):
                criterion, wording, judged = taken.pop()
                before = self._count(criterion)
                self._wordings[criterion].untake(wording, [one.distance for one in judged])
                size += self._count(criterion) - before
            self.size = size
            for _, wording, judged in taken:
                for one in judged:
                    self._draw(one, wording)
            self._groups += 1
            if is_full:
                return False
        return True

    def _draw(self, one: Judged, wording: int) -> None:
        self._drawn.extend((*one[:4], wording, self._groups))
        self._overlap.append(one.overlap)

    def rows(self) -> Iterator[tuple[CriteriaRow, int, float]]:
        """The rows that are written; see `choose_rows`."""
        if self._in_pairs and self._exact:
            self._fill()
        whole = np.frombuffer(self._drawn, np.int32).reshape(-1, 6)
        overlap = np.frombuffer(self._overlap, np.float32)
        kept = self._balanced(whole, overlap) if self._exact else np.arange(len(whole))
        noise = np.random.default_rng(self._settings.seed).random(len(kept))
        block = np.zeros(len(kept)) if self._in_pairs else whole[kept, 2]
        kind = PairRow if self._in_pairs else GroupRow
        source, criteria = self._source, list(self._source.steps)
        for place in kept[np.lexsort((noise, block, whole[kept, 5]))].tolist():
            text1, text2, criterion, distance, wording, group = whole[place].tolist()
            row = kind(
                source.texts[text1],
                source.texts[text2],
                self._wordings[criterion].names[wording],
                5 - 4 * distance / int(self._steps[criterion]),
                criteria[criterion],
                source.name,
                f"{source.name}-{group:05d}",
            )
            yield row, group, float(overlap[place])

    def _count(self, criterion: int) -> int:
        """Rows that a criterion will have."""
        rows, paired = self._wordings[criterion].count()
        if not self._exact:
            return rows
        return 2 * rows - paired if self._in_pairs else paired

    def _pairs(self, group: TextGroup) -> Iterator[list[Judged]]:
        """Pairs of texts with a criterion in which they are alike and one in which they are not."""
        # A pair that would unbalance its criteria waits for others, until many wait.
        for both, rows in groupby(group.judged, key=lambda one: one[:2]):
            judged = list(rows)
            self._random.shuffle(judged)
            fresh = max(self._uses[text] for text in both) < _MOST_USES and not group.filler
            if fresh and self._crossing(judged) is not None:
                self._uses.update(both)
                self._waiting.append(judged)
            else:
                self._spare_all(judged)
        while self._waiting:
            found = [one for one in map(self._crossing, self._waiting) if one is not None]
            place = min(range(len(found)), key=lambda place: found[place][0])
            unbalance, alike, different = found[place]
            if unbalance > 0 and len(found) <= _WAITING:
                break
            self._surplus[alike.criterion] += 1
            self._surplus[different.criterion] -= 1
            self._spare_all(one for one in self._waiting.pop(place) if one not in found[place])
            yield [alike, different]

    def _spare_all(self, judged: Iterable[Judged]) -> None:
        for one in judged:
            self._spare[one.criterion, one.distance].append(one)

    def _crossing(self, judged: Sequence[Judged]) -> tuple[int, Judged, Judged] | None:
        """The rows of a pair that balance best, and by how much they unbalance their criteria."""
        alike = [one for one in judged if one.distance == 0]
        different = [one for one in judged if one.distance == self._steps[one.criterion]]
        if not alike or not different:
            return None
        first = min(alike, key=lambda one: self._surplus[one.criterion])
        second = max(different, key=lambda one: self._surplus[one.criterion])
        return self._surplus[first.criterion] - self._surplus[second.criterion], first, second

    def _fill(self) -> None:
        """Adds single rows where a wording lacks them."""
        for rows in self._spare.values():
            self._random.shuffle(rows)
        for criterion, wordings in enumerate(self._wordings):
            for wording, distance, wanted in list(wordings.lacking()):
                spare = self._spare[criterion, distance]
                for one in spare[-wanted:]:
                    self._draw(one, wording)
                    self._groups += 1
                del spare[-wanted:]

    def _balanced(
        self, whole: NDArray[np.int32], overlap: NDArray[np.float32]
    ) -> NDArray[np.int64]:
        """Places of the rows that leave each wording as often alike as different."""
        # Rows whose words give their label away are left out first, but no more of them than makes
        # shared words tell nothing.
        criterion, distance, wording = whole[:, 2].astype(np.int64), whole[:, 3], whole[:, 4]
        last = self._steps[criterion]
        known = (wording * len(self._steps) + criterion) * (int(self._steps.max()) + 1)
        same, mirrored = known + distance, known + last - distance
        counts = np.bincount(same, minlength=int(mirrored.max(initial=0)) + 1)
        starts = np.cumsum(counts) - counts
        alike = 1 - 2 * distance / last
        easy = np.argsort(np.argsort(alike * overlap)) / max(1, len(alike))
        noise = np.random.default_rng(self._settings.seed).random(len(alike))
        found = []
        for share in _EASY_FIRST:
            order = np.lexsort((share * easy + (1 - share) * noise, same))
            rank = np.arange(len(order)) - starts[same[order]]  # within its wording and distance
            kept: NDArray[np.int64] = order[rank < counts[mirrored[order]]]
            found.append((abs(float((alike[kept] * overlap[kept]).sum())), share, kept))
        return min(found, key=lambda one: one[:2])[2]
