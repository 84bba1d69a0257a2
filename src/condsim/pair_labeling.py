"""Label pairs of texts, the same or different, and learn a criterion from the answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from condsim.errors import InputError
from condsim.labeling import Session
from condsim.model.criterion import Criterion, features
from condsim.model.learned_pairs import learn_pairs
from condsim.types import FloatArray, IntArray, shortened

SAME = "same"
DIFFERENT = "different"
# The most texts of which all pairs are compared.
_MAX_TEXTS = 600
# Every third pair has a score unlike the others': the criterion may be sure and wrong.
_EXPLORE_EVERY = 3
# Cost of showing a text once more, next to differences of scores.
_REPEAT_COST = 0.05


class PairSession(Session[tuple[str, str]]):
    """A session in which pairs of texts are the same or different under the condition."""

    columns = ("sentence1", "sentence2", "condition", "label", "answer")
    start = "Eight pairs, some the same and some different, make a first figure."

    @staticmethod
    def key_of(texts: Sequence[str]) -> tuple[str, str]:
        """Return two texts in the order of the alphabet."""
        return min(texts), max(texts)

    @staticmethod
    def texts_of(key: tuple[str, str]) -> tuple[str, str]:
        """Return the two texts."""
        return key

    @classmethod
    def check(cls, value: str) -> None:
        """Refuse what is neither the same nor different, with an InputError."""
        if value not in (SAME, DIFFERENT):
            raise InputError(f"A pair is {SAME!r} or {DIFFERENT!r}; got {shortened(value, 60)!r}.")

    @cached_property
    def pool(self) -> list[str]:
        """Texts that are compared: all, or of many every second, third and so on."""
        return self.texts[:: -(-len(self.texts) // _MAX_TEXTS)]

    @cached_property
    def vectors(self) -> FloatArray:
        """Vectors of the pool, ``(m, 2 d)``, encoded at first use."""
        return features(self._encoder, self.pool, self.condition)

    @property
    def remaining(self) -> int:
        """Number of pairs of the pool without an answer."""
        return len(self.pool) * (len(self.pool) - 1) // 2 - len(self._answered())

    def next(self) -> tuple[str, str] | None:
        """Choose a pair whose score is unlike the others' at first, then an unsure one."""
        first, second = np.triu_indices(len(self.pool), 1)
        answered = self._answered()
        is_open = np.ones((len(self.pool), len(self.pool)), np.bool_)
        is_open[answered[:, 0], answered[:, 1]] = False
        is_open = is_open[first, second]
        if not is_open.any():
            return None
        criterion = self.criterion
        points = self.vectors if criterion is None else criterion.embed(self.vectors)
        cosines = points @ points.T
        scores = cosines if criterion is None else criterion.calibration.apply(cosines)
        asked = np.bincount(answered.ravel(), minlength=len(self.pool))
        if criterion is None or len(self.answers) % _EXPLORE_EVERY == 0:
            known = np.sort(scores[answered[:, 0], answered[:, 1]])
            dullness = -_distance(scores[first, second], known)
        else:
            dullness = np.abs(scores[first, second] - 0.5)
        dullness = dullness + _REPEAT_COST * (asked[first] + asked[second])
        best = int(np.where(is_open, dullness, np.inf).argmin())
        return self.key_of([self.pool[first[best]], self.pool[second[best]]])

    def counts(self) -> dict[str, int]:
        """Count the pairs that are the same, and the different ones."""
        values = list(self.labels.values())
        return {value: values.count(value) for value in (SAME, DIFFERENT)}

    def _answered(self) -> IntArray:
        """Indices in the pool of the pairs with an answer, ``(a, 2)``, the lower one first."""
        place = {text: row for row, text in enumerate(self.pool)}
        pairs = [
            sorted((place[first], place[second]))
            for first, second in self.answers
            if first in place and second in place
        ]
        return np.array(pairs, np.int64).reshape(-1, 2)

    def _learned(self) -> Criterion | None:
        if 0 in self.counts().values():
            return None
        first, second = zip(*self.labels, strict=True)
        same = [value == SAME for value in self.labels.values()]
        return learn_pairs(self._encoder, first, second, same, condition=self.condition)


def _distance(scores: FloatArray, known: FloatArray) -> FloatArray:
    """Distance of scores, ``(p,)``, to the nearest of some sorted ones; without any, the score."""
    if not len(known):
        return scores
    above = np.searchsorted(known, scores).clip(1, len(known) - 1) if len(known) > 1 else 0
    below = np.maximum(above - 1, 0)
    return np.asarray(np.minimum(abs(scores - known[above]), abs(scores - known[below])))
