"""Statistics of a data file: those of the C-STS paper, and the traps in the data."""

# Deshpande et al. (2023), §3 and Figure 4, report rows, mean lengths in words (sentences 12.6,
# conditions 5.3) and the distribution of the labels. The other figures show what a model can
# exploit without reading the sentences.

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from condsim.errors import InputError
from condsim.types import IntArray, Task

_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which rows belong together, and which of two is the higher.

    Attributes:
        pair_ids: Id of each row's sentence pair, from 0 in alphabetical order, ``(n,)``; -1 where
            the row is unlabelled.
        high: Row index of the higher-labelled row of each pair, ``(p,)``.
        low: Row index of its lower-labelled row, ``(p,)``.
        ties: Pairs of rows of one sentence pair whose labels are equal, in no pair.
        lone_rows: Labelled rows whose sentence pair has no second labelled row.
        unlabelled_rows: Rows without a label, never paired.
        larger_groups: Sentence pairs with more than two labelled rows; every two of these rows
            whose labels differ are a pair.
    """

    pair_ids: IntArray
    high: IntArray
    low: IntArray
    ties: int
    lone_rows: int
    unlabelled_rows: int
    larger_groups: int

    @property
    def pairs(self) -> int:
        """Number p of pairs of rows whose labels differ."""
        return len(self.high)


def pair_rows(task: Task) -> Pairing:
    """Pairs the rows by equal (sentence1, sentence2) and by label.

    The order of the rows does not matter, except that the result names rows by their index. The
    counts are logged in one line at level info (logger ``condsim``).

    Args:
        task: The rows; those without a label take no part.

    Returns:
        The pairs, ordered by sentence pair, then from the highest labels down.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in np.flatnonzero(task.valid).tolist():
        groups[task.sentences1[row], task.sentences2[row]].append(row)

    labels: list[float] = task.labels.tolist()
    conditions = task.conditions or ("",) * len(task)
    pair_ids = np.full(len(task), -1, np.int64)
    high: list[int] = []
    low: list[int] = []
    ties = lone_rows = larger_groups = 0
    for pair_id, key in enumerate(sorted(groups)):
        rows = sorted(groups[key], key=lambda row: (-labels[row], conditions[row]))
        lone_rows += len(rows) == 1
        larger_groups += len(rows) > 2
        pair_ids[rows] = pair_id
        for first, second in combinations(rows, 2):
            if labels[first] > labels[second]:
                high.append(first)
                low.append(second)
            else:
                ties += 1

    pairing = Pairing(
        pair_ids=pair_ids,
        high=np.array(high, np.int64),
        low=np.array(low, np.int64),
        ties=ties,
        lone_rows=lone_rows,
        unlabelled_rows=len(task) - int(task.valid.sum()),
        larger_groups=larger_groups,
    )
    if task.conditions is not None:  # without conditions there is nothing to contrast
        _LOGGER.info(
            "%s: %d high-low pairs, %d ties, %d lone rows, %d unlabelled rows, %d larger groups",
            task.name,
            pairing.pairs,
            ties,
            lone_rows,
            pairing.unlabelled_rows,
            larger_groups,
        )
    return pairing


class Fold(NamedTuple):
    """A fold to test on, and all other folds to train on."""

    train: Task
    test: Task


def cross_validation(task: Task, *, folds: int = 10, seed: int = 0) -> tuple[Fold, ...]:
    """Splits the labelled rows of a task for cross-validation, as AFS needs it (SSBC §4.4).

    Rows of one sentence pair, in either order, are in one fold, whatever the order of the rows. A
    sentence may be in pairs of several folds: those of AFS mostly are, as in all published results.

    Args:
        folds: Number of folds, at least 2.
        seed: Seed of the split, 0 or more.

    Returns:
        The folds, named after the task; their sizes differ by one sentence pair at most.

    Raises:
        InputError: If ``folds`` is below 2, ``seed`` below 0, or there are fewer labelled sentence
            pairs than folds.
    """
    if folds < 2 or seed < 0:
        raise InputError(
            "Cross-validation needs at least 2 'folds' and a 'seed' of 0 or more. Got "
            f"{folds} and {seed}."
        )
    task = task.labelled()
    pairs = [(min(pair), max(pair)) for pair in zip(task.sentences1, task.sentences2, strict=True)]
    if len(set(pairs)) < folds:
        raise InputError(
            f"{task.name}: {folds} folds need as many labelled sentence pairs. Got "
            f"{len(set(pairs))}; ask for fewer folds."
        )
    fold = draw_folds(pairs, folds=folds, seed=seed)
    return tuple(
        Fold(task.take(np.flatnonzero(fold != number)), task.take(np.flatnonzero(fold == number)))
        for number in range(folds)
    )


def draw_folds(pairs: Sequence[tuple[str, str]], *, folds: int, seed: int) -> IntArray:
    """Draws the fold of each sentence pair; equal pairs share one, in either order.

    Args:
        pairs: The pairs, length n.
        folds: Number of folds, at least 2; some are empty if there are few distinct pairs.

    Returns:
        The folds, ``(n,)``, each in [0, folds).
    """
    distinct = sorted(set(pairs))
    drawn = np.random.default_rng(seed).permutation(len(distinct)) % folds
    fold_of = dict(zip(distinct, drawn.tolist(), strict=True))
    for one, two in distinct:
        if (two, one) in fold_of:  # where one order alone is there, its fold stays as drawn
            fold_of[two, one] = fold_of[one, two]
    return np.array([fold_of[pair] for pair in pairs], np.int64)


Counts = tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Lengths:
    """Mean and median length of texts in words, as white space separates them."""

    mean: float
    median: float


@dataclass(frozen=True)
class TaskStatistics:
    """What `describe` finds in a task.

    Attributes:
        revision: Revision of its data.
        labelled_rows: Rows with a label.
        unlabelled_rows: Rows without one, or invalid.
        sentence_pairs: Distinct (sentence1, sentence2), over all rows.
        high_low_pairs: Pairs of rows of one sentence pair whose labels differ.
        ties: Pairs of rows of one sentence pair whose labels are equal.
        lone_rows: Labelled rows whose sentence pair has no second labelled row.
        larger_groups: Sentence pairs with more than two labelled rows.
        label_histogram: (label, rows), lowest label first.
        sentence_words: Lengths over both sentences of every row.
        condition_words: Lengths over the condition of every row; None without conditions.
        unique_sentences: Distinct sentences, over both columns.
        distinct_conditions: Distinct conditions, letter case ignored.
        frequent_conditions: (condition in lower case, rows), the most frequent first and equally
            frequent ones by the alphabet. Letter case is ignored; nothing else is: "the sport",
            "sport" and "sport." are three conditions.
        mean_gap: Mean of high minus low label over the high-low pairs (ties left out); None
            without such pairs.
        gap_histogram: (high minus low label, high-low pairs), smallest gap first.
        repeated_condition_rows: Rows whose sentence pair has another row, labelled or not, with
            the very same condition.
        first_is_higher_share: Share in [0, 1] of the high-low pairs whose higher row comes first
            in the file; None without such pairs. Far from 0.5, the order of the rows gives the
            labels away and must not reach a model.
    """

    name: str
    revision: str
    rows: int
    labelled_rows: int
    unlabelled_rows: int
    sentence_pairs: int
    high_low_pairs: int
    ties: int
    lone_rows: int
    larger_groups: int
    label_histogram: Counts
    sentence_words: Lengths
    condition_words: Lengths | None
    unique_sentences: int
    distinct_conditions: int
    frequent_conditions: tuple[tuple[str, int], ...]
    mean_gap: float | None
    gap_histogram: Counts
    repeated_condition_rows: int
    first_is_higher_share: float | None

    def to_dict(self) -> dict[str, object]:
        """Gives the attributes by name, as JSON can hold them.

        Histograms and frequent conditions become objects from the value, as text ("3", "2.5"), to
        its count.
        """
        histograms = {
            "label_histogram": {f"{label:g}": count for label, count in self.label_histogram},
            "gap_histogram": {f"{gap:g}": count for gap, count in self.gap_histogram},
            "frequent_conditions": dict(self.frequent_conditions),
        }
        return asdict(self) | histograms


def describe(task: Task, *, top: int = 10) -> TaskStatistics:
    """Computes the statistics of a task.

    Args:
        top: How many of the most frequent conditions to list, 0 or more.

    Raises:
        InputError: If the task has no rows, or ``top`` is negative.
    """
    if top < 0:
        raise InputError(f"The 'top' parameter must be 0 or more. Got {top} instead.")
    if not len(task):
        raise InputError(f"Task {task.name!r} has no rows; there is nothing to describe.")
    pairing = pair_rows(task)
    sentences = task.sentences1 + task.sentences2
    conditions = task.conditions or ()
    folded = Counter(condition.casefold() for condition in conditions)
    rows_of = Counter(zip(task.sentences1, task.sentences2, conditions, strict=bool(conditions)))
    gaps = task.labels[pairing.high] - task.labels[pairing.low]
    return TaskStatistics(
        name=task.name,
        revision=task.revision,
        rows=len(task),
        labelled_rows=len(task) - pairing.unlabelled_rows,
        unlabelled_rows=pairing.unlabelled_rows,
        sentence_pairs=len(set(zip(task.sentences1, task.sentences2, strict=True))),
        high_low_pairs=pairing.pairs,
        ties=pairing.ties,
        lone_rows=pairing.lone_rows,
        larger_groups=pairing.larger_groups,
        label_histogram=_counts(task.labels[task.valid].tolist()),
        sentence_words=_lengths(sentences),
        condition_words=_lengths(conditions) if conditions else None,
        unique_sentences=len(set(sentences)),
        distinct_conditions=len(folded),
        frequent_conditions=tuple(sorted(folded.items(), key=lambda one: (-one[1], one[0]))[:top]),
        mean_gap=float(gaps.mean(dtype=np.float64)) if pairing.pairs else None,
        gap_histogram=_counts(gaps.tolist()),
        repeated_condition_rows=sum(count for count in rows_of.values() if count > 1),
        first_is_higher_share=(
            float((pairing.high < pairing.low).mean()) if pairing.pairs else None
        ),
    )


def _counts(values: Iterable[float]) -> Counts:
    # Six digits: a float32 label of 2.3 is 2.3 again.
    return tuple(sorted(Counter(float(f"{value:.6g}") for value in values).items()))


def _lengths(texts: Iterable[str]) -> Lengths:
    words = np.array([len(text.split()) for text in texts])
    return Lengths(mean=float(words.mean()), median=float(np.median(words)))
