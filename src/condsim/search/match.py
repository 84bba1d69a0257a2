"""Matches between two collections: the nearest text of the second for each text of the first.

Every pair is compared, in blocks. With several conditions the score of a pair is its lowest one.
One to one is greedy: pairs are taken by falling score, and a text that is taken is free no more. So
a threshold only cuts the list, and a precision that is promised for a threshold holds for the cut.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from condsim.console import Progress, silent
from condsim.errors import InputError, ModelError
from condsim.evaluation.threshold import Threshold, find_threshold
from condsim.model.base import COLLECTION_SHARE, check_fraction, check_rows
from condsim.model.embedding import EmbeddingScorer
from condsim.model.legibility import collect_unread
from condsim.search.vectors import ConditionInput, condition_list, cosine_scores, encode_texts
from condsim.types import ROWS_SHOWN, BoolArray, FloatArray, IntArray, Scorer, html_table

# Scores of a block of pairs in memory.
_PAIRS_PER_BLOCK = 1 << 22
# Nearest texts that are remembered of each; more are looked up where all of them are taken.
_CANDIDATES = 16


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of a text of the first collection and one of the second, by falling score.

    Attributes:
        rows1: Rows of the first collection, ``(m,)``, each at most once.
        rows2: Rows of the second, ``(m,)``.
        score: Score of each pair, ``(m,)``: the lowest under the conditions.
        gap: How far the score is above the best with any other text of the second collection,
            ``(m,)``: near 0 where two are alike, below 0 where a nearer text was taken, and NaN if
            there is no other.
        scores: Score under each condition, ``(m,)`` each; the key None is the texts as a whole.
        sizes: Number of texts of both collections.
        threshold: The threshold that labeled pairs gave, with its precision; None without labels.
    """

    rows1: IntArray
    rows2: IntArray
    score: FloatArray
    gap: FloatArray
    scores: Mapping[str | None, FloatArray]
    sizes: tuple[int, int]
    threshold: Threshold | None = None

    def __repr__(self) -> str:
        return f"Matches({len(self.rows1):,} of {self.sizes[0]:,} and {self.sizes[1]:,} texts)"

    def _repr_html_(self) -> str:
        columns = (self.rows1, self.rows2, self.score, self.gap)
        rows = list(zip(*(column[:ROWS_SHOWN].tolist() for column in columns), strict=True))
        head = ("row 1", "row 2", "score", "gap")
        return html_table(repr(self), head, rows, more=len(self.rows1) - len(rows))

    @property
    def unmatched1(self) -> IntArray:
        """Rows of the first collection without a match, ascending."""
        return np.setdiff1d(np.arange(self.sizes[0]), self.rows1)

    @property
    def unmatched2(self) -> IntArray:
        """Rows of the second collection without a match, ascending."""
        return np.setdiff1d(np.arange(self.sizes[1]), self.rows2)

    def _where(self, chosen: BoolArray, threshold: Threshold | None) -> Matches:
        return replace(
            self,
            rows1=self.rows1[chosen],
            rows2=self.rows2[chosen],
            score=self.score[chosen],
            gap=self.gap[chosen],
            scores={name: column[chosen] for name, column in self.scores.items()},
            threshold=threshold,
        )


@collect_unread()
def find_matches(
    texts1: Sequence[str],
    texts2: Sequence[str],
    scorer: Scorer,
    condition: ConditionInput,
    *,
    at_least: float | None = None,
    labels: Mapping[tuple[int, int], bool] | None = None,
    precision: float = 0.95,
    one_to_many: bool = False,
    overall: float = COLLECTION_SHARE,
    progress: Progress = silent,
) -> Matches:
    """Match the texts of two collections with respect to one or more conditions.

    Each text of the first collection gets at most one of the second: its nearest that is free, by
    falling score. All pairs are compared, and the vectors of both collections are in memory.

    Args:
        texts1: First collection, length n.
        texts2: Second collection, length m.
        scorer: A bi- or tri-encoder.
        condition: What matches have in common: one condition, or several that must all hold; None
            compares texts as a whole.
        at_least: Lowest score of a match under every condition, in [0, 1]; by default all nearest
            texts are matches.
        labels: Some matches that a person has judged, by their rows: True if they are the same. The
            lowest threshold with the promised precision takes the place of ``at_least``. Pairs that
            are not matches without a threshold are left out.
        precision: Precision that is promised with ``labels``; see `find_threshold`.
        one_to_many: Whether a text of the second collection may be the match of several.
        overall: Share of the similarity without the condition, in [0, 1].
        progress: Called with the stage, what is done and what there is.

    Returns:
        The matches, the highest score first.

    Raises:
        InputError: If the input breaks a rule, or no threshold keeps the promise.
        ModelError: If the scorer has no embeddings.

    Example:
        >>> import condsim
        >>> ours, theirs = ["A red car.", "A blue bus."], ["A bus, blue.", "A car, red."]
        >>> found = find_matches(ours, theirs, condsim.load(), "the vehicle")
        >>> sorted(zip(found.rows1.tolist(), found.rows2.tolist(), strict=True))
        [(0, 1), (1, 0)]
    """
    if not isinstance(scorer, EmbeddingScorer):
        raise ModelError(f"{scorer.name} gives only scores; this needs a bi- or tri-encoder.")
    if isinstance(texts1, str) or isinstance(texts2, str) or not (len(texts1) and len(texts2)):
        raise InputError("Give two lists of texts, each with one or more.")
    if labels is not None and at_least is not None:
        raise InputError("Give either 'at_least', or 'labels' that choose it.")
    check_fraction("share", overall=overall)
    check_fraction("score", at_least=at_least or 0.0)
    sides = [list(check_rows(None, texts=texts).sentences[0]) for texts in (texts1, texts2)]
    pairs = _Pairs(scorer, condition_list(condition, scorer), sides, overall, progress)
    matches = pairs.matches(one_to_many=one_to_many)
    if labels is None:
        return matches._where(matches.score >= np.float32(at_least or 0.0), None)
    keys = list(zip(matches.rows1.tolist(), matches.rows2.tolist(), strict=True))
    judged = np.array([key in labels for key in keys], np.bool_)
    marks = np.array([bool(labels[key]) for key in keys if key in labels], np.bool_)
    if not marks.any():
        raise InputError(
            f"None of the {len(labels):,} labeled pairs is a match and labeled as the same. Label "
            "pairs that are found without a threshold."
        )
    threshold = find_threshold(matches.score[judged], marks, precision=precision)
    return matches._where(matches.score >= np.float32(threshold.value), threshold)


class _Pairs:
    """Scores of all pairs of two collections, by the vectors of both under each condition."""

    def __init__(
        self,
        scorer: EmbeddingScorer,
        conditions: Sequence[str | None],
        sides: Sequence[list[str]],
        overall: float,
        progress: Progress,
    ) -> None:
        self._scorer = scorer
        self._conditions = conditions
        self._sizes = len(sides[0]), len(sides[1])
        self._progress = progress
        self._vectors = [
            [encode_texts(scorer, texts, name, overall, progress) for texts in sides]
            for name in conditions
        ]

    def matches(self, *, one_to_many: bool) -> Matches:
        """Match every text of the first collection that is not left over."""
        candidates, scores = self._candidates()
        rows2 = candidates[:, 0] if one_to_many else self._greedy(candidates, scores)
        rows1 = np.flatnonzero(rows2 >= 0)
        rows2 = rows2[rows1]
        by_condition = {}
        for name, (first, second) in zip(self._conditions, self._vectors, strict=True):
            cosines = np.einsum("nd,nd->n", first[rows1], second[rows2])
            by_condition[name] = cosine_scores(self._scorer, cosines, name)
        score = np.min(np.stack([*by_condition.values()]), axis=0)
        # The best other text is the second where the match is the first, else the first.
        other = np.full(len(rows1), np.nan, np.float32)
        if self._sizes[1] > 1:
            is_best = candidates[rows1, 0] == rows2
            other = np.where(is_best, scores[rows1, 1], scores[rows1, 0])
        order = np.lexsort((rows1, -score))
        return Matches(
            rows1=rows1[order],
            rows2=rows2[order],
            score=score[order],
            gap=(score - other)[order],
            scores={name: column[order] for name, column in by_condition.items()},
            sizes=self._sizes,
        )

    def _scores(self, rows1: slice | IntArray) -> FloatArray:
        """Score rows of the first collection with all of the second, ``(b, m)``: the lowest."""
        columns = [
            cosine_scores(self._scorer, first[rows1] @ second.T, name)
            for name, (first, second) in zip(self._conditions, self._vectors, strict=True)
        ]
        lowest: FloatArray = np.minimum.reduce(columns)
        return lowest

    def _candidates(self) -> tuple[IntArray, FloatArray]:
        """Return the nearest texts of each and their scores, ``(n, k)``, best first."""
        number, others = self._sizes
        width = min(_CANDIDATES, others)
        nearest = np.empty((number, width), np.int64)
        best = np.empty((number, width), np.float32)
        size = max(1, _PAIRS_PER_BLOCK // others)
        for start in range(0, number, size):
            block = slice(start, min(start + size, number))
            scores = self._scores(block)
            nearest[block] = best_columns(scores, width)
            best[block] = np.take_along_axis(scores, nearest[block], axis=1)
            self._progress("compared", block.stop, number)
        return nearest, best

    def _greedy(self, candidates: IntArray, scores: FloatArray) -> IntArray:
        """Return the match of each text, -1 for none: free pairs by falling score."""
        candidates, scores = candidates.copy(), scores.copy()
        free = np.ones(self._sizes[1], np.bool_)
        match = np.full(len(candidates), -1, np.int64)
        place = np.zeros(len(candidates), np.int64)
        heap = [(-score, row) for row, score in enumerate(scores[:, 0].tolist())]
        heapq.heapify(heap)
        while heap and free.any():
            _, row = heapq.heappop(heap)
            if free[candidates[row, place[row]]]:
                match[row] = candidates[row, place[row]]
                free[match[row]] = False
                continue
            left = np.flatnonzero(free[candidates[row, place[row] :]])
            if len(left):
                place[row] += left[0]
            elif free.any():
                self._look_up(row, free, candidates[row], scores[row])
                place[row] = 0
            heapq.heappush(heap, (-float(scores[row, place[row]]), row))
        return match

    def _look_up(self, row: int, free: BoolArray, candidates: IntArray, scores: FloatArray) -> None:
        """Replace the candidates of a text by the nearest that are free, the last repeated."""
        others = np.flatnonzero(free)
        all_scores = self._scores(np.array([row]))[0, others]
        best = best_columns(all_scores[None], min(len(candidates), len(others)))[0]
        best = np.append(best, np.repeat(best[-1:], len(candidates) - len(best)))
        candidates[:], scores[:] = others[best], all_scores[best]


def best_columns(scores: FloatArray, number: int) -> IntArray:
    """Return the columns of the highest scores of each row, ``(b, number)``, best first."""
    columns = np.argpartition(-scores, number - 1, axis=1)[:, :number]
    # Of equal scores, the first column.
    columns = np.sort(columns, axis=1)
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)
