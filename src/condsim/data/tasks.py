"""Tasks: made of rows, joined, paired, and described as in the C-STS paper.

Deshpande et al. (2023), section 3 and figure 4, report rows, mean lengths in words (sentences 12.6,
conditions 5.3) and the distribution of the labels. The other figures show what a model can exploit
without reading the sentences.
"""

from __future__ import annotations

import hashlib
import logging
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, combinations
from pathlib import Path

import numpy as np

from condsim.errors import InputError, check_at_least
from condsim.paths import sha256_of, stem_of
from condsim.types import IntArray, Task

_LOGGER = logging.getLogger(__name__)


def make_task(
    path: Path,
    rows: Iterable[tuple[str, str, str | None, float]],
    *,
    label_range: tuple[float, float],
    name: str | None,
    revision: str | None = None,
) -> Task:
    """Make a task of the rows of a file: two sentences, a condition or None, and a label."""
    # Equal texts share one object: a million pairs take some hundred megabytes.
    texts: dict[str, str] = {}
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    labels = array("f")
    for *row_texts, label in rows:
        for column, text in zip(columns, row_texts, strict=True):
            if text is not None:
                column.append(texts.setdefault(text, text))
        labels.append(label)
    sentences1, sentences2, conditions = columns
    return Task(
        name=stem_of(path) if name is None else name,
        revision=sha256_of(path)[:12] if revision is None else revision,
        sentences1=tuple(sentences1),
        sentences2=tuple(sentences2),
        conditions=tuple(conditions) if conditions else None,
        labels=np.array(labels, np.float32),
        label_range=label_range,
    )


def join_tasks(tasks: Sequence[Task], *, name: str) -> Task:
    """Concatenate the rows of tasks.

    Args:
        tasks: One or more, all on one scale, all with conditions or all without.

    Returns:
        Their rows; the revision is made of their revisions.

    Raises:
        InputError: If there are none, or they differ in scale or in having conditions.
    """
    if not tasks:
        raise InputError("There are no tasks to join; at least one is needed.")
    first = tasks[0]
    for task in tasks[1:]:
        same_kind = (task.conditions is None) == (first.conditions is None)
        if not same_kind or task.label_range != first.label_range:
            raise InputError(
                "Joined tasks must have one label range, and all have conditions or none; "
                f"{first.name} and {task.name} differ."
            )
    conditions = tuple(chain.from_iterable(task.conditions or () for task in tasks))
    revisions = " ".join(task.revision for task in tasks)
    return Task(
        name=name,
        revision=hashlib.sha256(revisions.encode()).hexdigest()[:12],
        sentences1=tuple(chain.from_iterable(task.sentences1 for task in tasks)),
        sentences2=tuple(chain.from_iterable(task.sentences2 for task in tasks)),
        conditions=None if first.conditions is None else conditions,
        labels=np.concatenate([task.labels for task in tasks]),
        label_range=first.label_range,
    )


def compare_count(subject: str, *, rows: int, published: int) -> None:
    """Log a warning if a data set has another number of rows than published."""
    if rows != published:
        _LOGGER.warning(
            "%s: has %d rows, and %d are published; results are not comparable with published ones",
            subject,
            rows,
            published,
        )


def compare_split(path: Path, *, rows: int, published: Mapping[str, int]) -> None:
    """Compare the count of the split that the name of a file contains; see `compare_count`."""
    words = re.findall("[a-z]+", path.name.lower())
    splits = [split for split in published if split in words]
    if len(splits) == 1:
        compare_count(str(path), rows=rows, published=published[splits[0]])


@dataclass(frozen=True, eq=False)
class Pairing:
    """Rows of the same sentence pair with different labels.

    Attributes:
        pair_ids: Id of each row's sentence pair, from 0 in alphabetical order, ``(n,)``; -1 where
            the row is unlabeled.
        high: Row index of the higher-labeled row of each pair, ``(p,)``.
        low: Row index of its lower-labeled row, ``(p,)``.
        ties: Pairs of rows of one sentence pair whose labels are equal, in no pair.
        lone_rows: Labeled rows whose sentence pair has no second labeled row.
        unlabeled_rows: Rows without a label, never paired.
        larger_groups: Sentence pairs with more than two labeled rows; every two of these rows
            whose labels differ are a pair.
    """

    pair_ids: IntArray
    high: IntArray
    low: IntArray
    ties: int
    lone_rows: int
    unlabeled_rows: int
    larger_groups: int

    @property
    def pairs(self) -> int:
        """Number p of pairs of rows whose labels differ."""
        return len(self.high)


def pair_rows(task: Task) -> Pairing:
    """Pair the labeled rows by equal (sentence1, sentence2) and by label.

    The order of the rows does not matter, except that the result names rows by their index. The
    counts are logged at level info.

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
    ties = 0
    for pair_id, key in enumerate(sorted(groups)):
        rows = sorted(groups[key], key=lambda row: (-labels[row], conditions[row]))
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
        lone_rows=sum(len(rows) == 1 for rows in groups.values()),
        unlabeled_rows=len(task) - int(task.valid.sum()),
        larger_groups=sum(len(rows) > 2 for rows in groups.values()),
    )
    # Without conditions there is nothing to contrast.
    if task.conditions is not None:
        counts = (pairing.pairs, ties, pairing.lone_rows, pairing.unlabeled_rows)
        _LOGGER.info(
            "%s: %d high-low pairs, %d ties, %d lone rows, %d unlabeled rows, %d larger groups",
            *(task.name, *counts, pairing.larger_groups),
        )
    return pairing


def draw_folds(pairs: Sequence[tuple[str, str]], *, folds: int, seed: int) -> IntArray:
    """Draw the fold of each sentence pair, ``(n,)``; equal pairs share one, in either order."""
    distinct_pairs = sorted(set(pairs))
    drawn = np.random.default_rng(seed).permutation(len(distinct_pairs)) % folds
    fold_of = dict(zip(distinct_pairs, drawn.tolist(), strict=True))
    # A pair that occurs in one order only keeps the fold that was drawn for it.
    for first, second in distinct_pairs:
        if (second, first) in fold_of:
            fold_of[second, first] = fold_of[first, second]
    return np.array([fold_of[pair] for pair in pairs], np.int64)


Counts = tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Lengths:
    """Mean and median length of texts in words, as white space separates them."""

    mean: float
    median: float


@dataclass(frozen=True)
class TaskStatistics:
    """Statistics of a task.

    Attributes:
        unlabeled_rows: Rows without a label, or invalid.
        sentence_pairs: Distinct (sentence1, sentence2), over all rows.
        high_low_pairs: Pairs of rows of one sentence pair whose labels differ.
        ties: With ``lone_rows`` and ``larger_groups`` as in `Pairing`.
        label_histogram: (label, rows), lowest label first.
        sentence_words: Lengths over both sentences of every row; ``condition_words`` is None
            without conditions.
        unique_sentences: Distinct sentences, over both columns; conditions ignore case.
        frequent_conditions: (condition in lower case, rows), the most frequent first and equally
            frequent ones in alphabetical order. "sport" and "sport." are two conditions.
        mean_gap: Mean of high minus low label over the high-low pairs; None without such pairs.
        gap_histogram: (high minus low label, high-low pairs), smallest gap first.
        repeated_condition_rows: Rows whose sentence pair has another row, labeled or not, with
            the very same condition.
        first_is_higher_share: Share in [0, 1] of the high-low pairs whose higher row comes first
            in the file; None without such pairs. Far from 0.5, the order of the rows reveals the
            labels and must not reach a model.
    """

    name: str
    revision: str
    rows: int
    labeled_rows: int
    unlabeled_rows: int
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
        """Return the attributes as plain values; histograms become objects from value to count."""
        histograms = {
            "label_histogram": {f"{label:g}": count for label, count in self.label_histogram},
            "gap_histogram": {f"{gap:g}": count for gap, count in self.gap_histogram},
            "frequent_conditions": dict(self.frequent_conditions),
        }
        return asdict(self) | histograms


def describe(task: Task, *, top: int = 10) -> TaskStatistics:
    """Compute the statistics of a task.

    Args:
        task: The rows, at least one.
        top: Number of the most frequent conditions to list.

    Raises:
        InputError: If the task has no rows, or ``top`` is negative.
    """
    check_at_least(0, top=top)
    if not len(task):
        raise InputError(f"{task.name}: has no rows to describe.")
    pairing = pair_rows(task)
    sentences = task.sentences1 + task.sentences2
    conditions = task.conditions or ()
    folded = Counter(condition.casefold() for condition in conditions)
    most_frequent = sorted(folded.items(), key=lambda item: (-item[1], item[0]))[:top]
    rows_of = Counter(zip(task.sentences1, task.sentences2, conditions, strict=bool(conditions)))
    gaps = task.labels[pairing.high] - task.labels[pairing.low]
    return TaskStatistics(
        name=task.name,
        revision=task.revision,
        rows=len(task),
        labeled_rows=len(task) - pairing.unlabeled_rows,
        unlabeled_rows=pairing.unlabeled_rows,
        sentence_pairs=len(set(zip(task.sentences1, task.sentences2, strict=True))),
        high_low_pairs=pairing.pairs,
        ties=pairing.ties,
        lone_rows=pairing.lone_rows,
        larger_groups=pairing.larger_groups,
        label_histogram=_histogram(task.labels[task.valid].tolist()),
        sentence_words=_lengths(sentences),
        condition_words=_lengths(conditions) if conditions else None,
        unique_sentences=len(set(sentences)),
        distinct_conditions=len(folded),
        frequent_conditions=tuple(most_frequent),
        mean_gap=float(gaps.mean(dtype=np.float64)) if pairing.pairs else None,
        gap_histogram=_histogram(gaps.tolist()),
        repeated_condition_rows=sum(count for count in rows_of.values() if count > 1),
        first_is_higher_share=(
            float((pairing.high < pairing.low).mean()) if pairing.pairs else None
        ),
    )


def _histogram(values: Iterable[float]) -> Counts:
    # With six digits a float32 label of 2.3 is 2.3 again.
    return tuple(sorted(Counter(float(f"{value:.6g}") for value in values).items()))


def _lengths(texts: Iterable[str]) -> Lengths:
    words = np.array([len(text.split()) for text in texts])
    return Lengths(mean=float(words.mean()), median=float(np.median(words)))
