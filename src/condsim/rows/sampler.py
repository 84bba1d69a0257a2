"""Groups of texts under the conditions that they share, with all pairs of a group judged."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from condsim.rows.collection import CollectedPairs, CollectedTexts, word_overlap, word_set
from condsim.rows.settings import CriteriaSettings

_CRITERIA_PER_GROUP = 3
_CANDIDATES_PER_GROUP = 40
# Texts looked at with the same answer, with any answer, and with the same rare word.
_TEXTS_PER_ANSWER, _RANDOM_TEXTS, _TEXTS_PER_WORD = 16, 8, 8
_WORDS_PER_TEXT = 3
# Draws of a criterion in a row without a new row, before it is given up.
_MAX_FAILURES = 30
# A text may be in this many times the groups of an average text, and always in a few.
_MAX_USE_RATIO, _MIN_USES = 4, 10
# In the form of pairs: pairs of a text, and pairs skipped in a row since they unbalance rows.
_MAX_PAIRS_PER_TEXT, _MAX_SKIPPED = 6, 50
# The worth of a pair alike in one criterion and different in another, and of a full overlap of
# misleading words, in rows out of balance.
_CROSSING_WEIGHT, _OVERLAP_WEIGHT = 1.5, 15.0
# Rows out of balance that the next group may make up for.
_MAX_CARRY = 4.0


class JudgedPair(NamedTuple):
    """A pair of texts under a criterion, with the share of words that both have."""

    text1: int
    text2: int
    criterion: int
    # 0 if the texts are alike, up to the `ComparedCriterion.steps` if they are different.
    distance: int
    overlap: float

    @property
    def key(self) -> tuple[int, int, int]:
        """The texts in order, and the criterion."""
        return min(self.text1, self.text2), max(self.text1, self.text2), self.criterion


class TextGroup(NamedTuple):
    """Pairs of a few texts; a filler only serves to balance other groups."""

    judged: Sequence[JudgedPair]
    is_filler: bool = False


class GroupSampler:
    """Sampler of texts that share two or three criteria where they can.

    Under the first criterion of a group some pairs are alike and some are different. The other
    criteria cut across it where they can. All pairs are judged under each criterion, so that a
    trainer which encodes each text once under each condition learns from 15 pairs of 6 texts.
    """

    def __init__(self, texts: CollectedTexts, settings: CriteriaSettings) -> None:
        criteria = range(len(texts.criteria))
        self._texts, self._criteria, self._answers = texts.texts, texts.criteria, texts.answers
        self._random = random.Random(f"{settings.seed}/{texts.name}")
        # A group has no more texts than have pairs for the rows, or the first would be too large.
        self._size = min(settings.group_size, max(3, math.isqrt(2 * settings.rows)))
        self._hard = settings.hard
        self._by_answer = [texts.by_answer(criterion) for criterion in criteria]
        # The groups of two texts or more with one answer, drawn by the root of their sizes.
        self._shared = [[g for g in groups if len(g) > 1] for groups in self._by_answer]
        self._weights = [np.cumsum(np.sqrt([*map(len, s)])).tolist() for s in self._shared]
        self._answered = [np.flatnonzero(answers >= 0) for answers in texts.answers]
        self._by_word = texts.by_word() if settings.hard else {}
        self._names = [word_set(criterion.name) for criterion in texts.criteria]
        # Criteria that can still be drawn, with the failures in a row, and the rows of each.
        self._failures = dict.fromkeys(criteria, 0)
        self._rows = [0] * len(texts.criteria)
        # Rows that are alike less those that are different.
        self._surplus = [0.0] * len(texts.criteria)
        # Sum of the overlaps of alike rows less the overlaps of different rows, each less the mean.
        self._overlap_gap = self._mean_overlap = 0.0
        self._seen: set[tuple[int, int, int]] = set()
        self._uses = np.zeros(len(self._texts), np.int32)
        # A group has about two rows a pair of texts, but few of them serve the form of pairs.
        pairs_form = settings.form == "pairs"
        groups = settings.rows / (4 if pairs_form else self._size * (self._size - 1))
        mean_uses = groups * self._size / len(self._texts)
        self._max_uses = max(_MIN_USES, round(_MAX_USE_RATIO * mean_uses))

    def __iter__(self) -> Iterator[TextGroup]:
        """Draw groups until none has a new pair; the same seed draws the same groups."""
        while self._failures:
            criterion = min(self._failures, key=self._need)
            judged = self._draw(criterion)
            labels = {pair.distance for pair in judged if pair.criterion == criterion}
            middle = self._criteria[criterion].steps / 2
            if labels and min(labels) < middle < max(labels):
                self._failures[criterion] = 0
                self._count(judged)
                yield TextGroup(judged)
                continue
            self._failures[criterion] += 1
            if self._failures[criterion] >= _MAX_FAILURES:
                del self._failures[criterion]

    def _need(self, criterion: int) -> float:
        """Return the rows of a criterion by the root of its texts, with noise to break ties."""
        rows = self._rows[criterion] + self._random.random()
        return rows / math.sqrt(len(self._answered[criterion]))

    def _count(self, judged: Sequence[JudgedPair]) -> None:
        for pair in judged:
            alike = 1 - 2 * pair.distance / self._criteria[pair.criterion].steps
            self._seen.add(pair.key)
            self._rows[pair.criterion] += 1
            self._surplus[pair.criterion] += alike
            self._mean_overlap += (pair.overlap - self._mean_overlap) / sum(self._rows)
            self._overlap_gap += alike * (pair.overlap - self._mean_overlap)

    def _draw(self, first: int) -> list[JudgedPair]:
        """Draw a group under a criterion; return its new pairs."""
        anchor = self._anchor(first)
        if self._uses[anchor] >= self._max_uses:
            return []
        # Misleading words are sought only while words tell alike texts from different ones.
        hard = self._random.random() < self._hard and self._overlap_gap >= 0
        criteria = [first, *self._further_criteria(first, anchor)]
        candidates = self._candidates(criteria, anchor, hard=hard)
        fitting = self._fitting(criteria, candidates)
        # Where too few texts share the criteria, the others are judged under the first alone.
        if len(fitting) < self._size:
            under_first = self._fitting([first], candidates)
            fitting += [text for text in under_first if text not in fitting]
        if len(fitting) < 2:
            return []
        pool = self._random.sample(fitting, min(len(fitting), _CANDIDATES_PER_GROUP))
        members = self._choose([anchor, *pool], criteria, hard=hard)
        self._uses[members] += 1
        return self._judge(members, criteria)

    def _anchor(self, criterion: int) -> int:
        """Draw one of the least used texts with an answer that another text has, too."""
        (group,) = self._random.choices(
            self._shared[criterion], cum_weights=self._weights[criterion]
        )
        uses = self._uses[group]
        return int(self._random.choice(group[uses == uses.min()]))

    def _further_criteria(self, first: int, anchor: int) -> list[int]:
        """Return one or two more criteria of a text, those with the fewest rows first."""
        fitting = []
        for criterion in np.flatnonzero(self._answers[:, anchor] >= 0).tolist():
            # "the food" and "the quality of the food" say much the same.
            names = self._names[first], self._names[criterion]
            if not (names[0] <= names[1] or names[1] <= names[0]):
                fitting.append(criterion)
        number = self._random.randint(1, _CRITERIA_PER_GROUP - 1)
        return sorted(fitting, key=self._need)[:number]

    def _candidates(self, criteria: Sequence[int], anchor: int, *, hard: bool) -> list[int]:
        """Draw texts with an answer or a rare word of a text, and others at random."""
        candidates: set[int] = set()
        for criterion in criteria:
            same_answer = self._by_answer[criterion][self._answers[criterion, anchor]]
            candidates.update(self._some(same_answer, _TEXTS_PER_ANSWER))
            candidates.update(self._some(self._answered[criterion], _RANDOM_TEXTS))
        if hard:
            words = sorted(word_set(self._texts[anchor]) & self._by_word.keys())
            for word in self._random.sample(words, min(_WORDS_PER_TEXT, len(words))):
                candidates.update(self._some(self._by_word[word], _TEXTS_PER_WORD))
        return sorted(candidates - {anchor})

    def _some(self, texts: NDArray[np.integer], most: int) -> list[int]:
        """Draw a few texts with replacement, or return all if they are few."""
        if len(texts) > most:
            texts = texts[[int(self._random.random() * len(texts)) for _ in range(most)]]
        chosen: list[int] = texts.tolist()
        return chosen

    def _fitting(self, criteria: Sequence[int], texts: Sequence[int]) -> list[int]:
        """Return the texts that have an answer to every criterion and are not used up."""
        answered = (self._answers[np.ix_(criteria, texts)] >= 0).all(axis=0)
        fitting = np.array(texts)[answered & (self._uses[texts] < self._max_uses)]
        return list(map(int, fitting))

    def _choose(self, pool: list[int], criteria: Sequence[int], *, hard: bool) -> list[int]:
        """Add the best text to the first one until the group is full.

        The best text keeps each criterion balanced, makes pairs that are alike in one criterion and
        different in another and, in hard groups, misleads by its words under the first criterion.
        """
        answers = self._answers[np.ix_(criteria, pool)].tolist()
        words = [word_set(self._texts[text]) for text in pool] if hard else []
        # Surplus of each criterion with the chosen texts, and what each text would add to it.
        surplus = np.clip(
            [self._surplus[criterion] for criterion in criteria], -_MAX_CARRY, _MAX_CARRY
        )
        gains = np.zeros((len(criteria), len(pool)))
        costs = np.array([self._random.random() for _ in pool])
        chosen = [0]
        while len(chosen) < min(self._size, len(pool)):
            last = chosen[-1]
            signs = np.array(
                [self._signs(c, row, row[last]) for c, row in zip(criteria, answers, strict=True)]
            )
            gains += signs
            costs -= _CROSSING_WEIGHT * ((signs.min(axis=0) < 0) & (signs.max(axis=0) > 0))
            if hard:
                overlaps = [word_overlap(words[last], text_words) for text_words in words]
                costs += _OVERLAP_WEIGHT * signs[0] * overlaps
            score = np.abs(surplus[:, None] + gains).sum(axis=0) + costs
            score[chosen] = np.inf
            best = int(score.argmin())
            chosen.append(best)
            surplus = surplus + gains[:, best]
        self._random.shuffle(chosen)
        return [pool[member] for member in chosen]

    def _signs(self, criterion: int, answers: Sequence[int], last: int) -> list[float]:
        """Return 1 for answers alike to the last one, -1 for different and 0 for unknown ones."""
        signs: dict[int, float] = {}
        for answer in set(answers):
            distance = self._criteria[criterion].distance(last, answer)
            steps = self._criteria[criterion].steps
            signs[answer] = 0.0 if distance is None else 1 - 2 * distance / steps
        return [signs[answer] for answer in answers]

    def _judge(self, members: Sequence[int], criteria: Sequence[int]) -> list[JudgedPair]:
        """Judge all pairs of a group, and return those that were in no group before."""
        words = {text: word_set(self._texts[text]) for text in members}
        judged = []
        for text1, text2 in combinations(members, 2):
            overlap = word_overlap(words[text1], words[text2])
            for criterion in criteria:
                answers = self._answers[criterion]
                distance = self._criteria[criterion].distance(answers[text1], answers[text2])
                if distance is not None:
                    judged.append(JudgedPair(text1, text2, criterion, distance, overlap))
        return [pair for pair in judged if pair.key not in self._seen]


def groups_of_pairs(pairs: CollectedPairs, settings: CriteriaSettings) -> Iterator[TextGroup]:
    """Return each pair as a group, in random order.

    Pairs that are not alike in one criterion and different in another are fillers.
    """
    order = list(range(len(pairs.labels)))
    random.Random(f"{settings.seed}/{pairs.name}").shuffle(order)
    for index in order:
        text1, text2, labels = 2 * index, 2 * index + 1, pairs.labels[index]
        overlap = word_overlap(word_set(pairs.texts[text1]), word_set(pairs.texts[text2]))
        judged, sides = [], set()
        for criterion, (name, steps) in enumerate(pairs.steps.items()):
            if name in labels:
                distance = round((1 - labels[name]) * steps)
                judged.append(JudgedPair(text1, text2, criterion, distance, overlap))
                sides.add(distance * 2 > steps)
        yield TextGroup(judged, is_filler=len(sides) < 2)


def crossing_pairs(groups: Iterable[TextGroup], steps: Sequence[int]) -> Iterator[TextGroup]:
    """Return the pairs that are alike in one criterion and different in another, as two rows each.

    Pairs that would unbalance their criteria come when many others were no better, or at the end.
    Rows of other pairs that are alike or entirely different are fillers.
    """
    skipped: list[TextGroup] = []
    since_chosen = 0
    uses: Counter[int] = Counter()
    # Rows that are alike less those that are different, by criterion.
    surplus = [0] * len(steps)
    for group in groups:
        for texts, judged in groupby(group.judged, key=lambda pair: pair[:2]):
            alike: list[JudgedPair] = []
            different: list[JudgedPair] = []
            for row in judged:
                if row.distance in (0, steps[row.criterion]):
                    (different if row.distance else alike).append(row)
            fillers = alike + different
            if alike and different and max(uses[text] for text in texts) < _MAX_PAIRS_PER_TEXT:
                high = min(alike, key=lambda row: surplus[row.criterion])
                low = max(different, key=lambda row: surplus[row.criterion])
                since_chosen += 1
                if (
                    surplus[high.criterion] > surplus[low.criterion]
                    and since_chosen <= _MAX_SKIPPED
                ):
                    skipped.append(TextGroup([high, low]))
                else:
                    since_chosen = 0
                    uses.update(texts)
                    surplus[high.criterion] += 1
                    surplus[low.criterion] -= 1
                    yield TextGroup([high, low])
                fillers = [row for row in fillers if row not in (high, low)]
            for row in fillers:
                yield TextGroup([row], is_filler=True)
    yield from skipped
