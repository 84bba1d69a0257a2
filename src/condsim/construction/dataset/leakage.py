"""What a data set gives away: texts that are in two splits, and conditions that tell the label.

A C-STS condition says much of the answer ("the color" is rated lower than "the animal"): on the
re-annotated C-STS, conditions alone reach a Spearman of 42. A data set says so at birth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from condsim.construction.dataset.splits import sentence_key
from condsim.construction.row_files import plain_values
from condsim.errors import InputError
from condsim.evaluation import FEWEST_ROWS, Metric, evaluate
from condsim.scorers import ConditionOnlyScorer, SentencesOnlyScorer
from condsim.tasks import describe
from condsim.types import Task

# A warning is due from these bounds on.
GIVEN_AWAY = 30.0  # Spearman x100 of a blind baseline, lower end of its interval
FREQUENT = 0.01  # share of a split's rows that have a sentence of another split


@dataclass(frozen=True)
class Shared:
    """Texts in two splits; sentences and conditions as `sentence_key` has them."""

    first: str
    second: str
    sentences: int  # distinct sentences in both
    pairs: int  # distinct sentence pairs in both, in either order
    triplets: int  # distinct sentence pairs with the same condition in both
    conditions: int  # distinct conditions in both
    sentence_rows: float  # share of the rows of the second with a sentence of the first
    condition_rows: float  # share of the rows of the second whose condition is in the first

    @property
    def splits(self) -> str:
        """Both names."""
        return f"{self.first}, {self.second}"


@dataclass(frozen=True)
class BaselineScore:
    """What a scorer that sees only a part of the row reaches."""

    baseline: str  # "condition-only" or "sentences-only", fitted on the train split
    split: str  # measured on
    rows: int
    spearman: Metric  # x100 with its 95 % interval; NaN if it predicts a constant
    pair_accuracy: Metric  # share x100 of the high-low pairs it orders rightly

    @property
    def scored(self) -> str:
        """What was measured on what."""
        return f"{self.baseline}, {self.split}"


@dataclass(frozen=True)
class LeakageReport:
    """What the splits share, and what a blind model reaches."""

    shared: tuple[Shared, ...]  # every two splits
    baselines: tuple[BaselineScore, ...]  # on each split but the first, if it has 3 rows
    first_is_higher: dict[str, float | None]  # share of high-low pairs whose higher row is first
    warnings: tuple[str, ...]  # what a user of the data must know; empty is good

    def to_dict(self) -> dict[str, object]:
        """Gives values that JSON can hold by name; NaN is None."""
        return plain_values(self)


def find_leakage(
    splits: Mapping[str, Task], *, resamples: int = 1000, seed: int = 0
) -> LeakageReport:
    """Looks for what the splits give away.

    Args:
        splits: Rows with conditions by the name of their split; what comes first is trained on.
        resamples: Bootstrap resamples for the intervals.
        seed: Seed of the resamples.

    Returns:
        The report.

    Raises:
        InputError: If there are fewer than two splits, one has no conditions, or no row of the
            first has a label.
    """
    if len(splits) < 2:
        raise InputError(f"Leakage is between two splits or more. Got {len(splits)}.")
    for name, task in splits.items():
        if task.conditions is None:
            raise InputError(f"{name}: leakage is looked for in rows with conditions. Got none.")
    texts = {name: _texts(task) for name, task in splits.items()}
    shared = tuple(_shared(one, texts[one], two, texts[two]) for one, two in combinations(texts, 2))
    train, *others = splits
    baselines = tuple(
        score
        for name in others
        for score in _baselines(splits[train], name, splits[name], resamples=resamples, seed=seed)
    )
    statistics = {name: describe(task, top=0) for name, task in splits.items()}
    order = {name: one.first_is_higher_share for name, one in statistics.items()}
    pairs = {name: one.high_low_pairs for name, one in statistics.items()}
    warnings = (
        *_shared_warnings(shared),
        *_blind_warnings(baselines),
        *_order_warnings(order, pairs),
    )
    return LeakageReport(shared, baselines, order, warnings)


@dataclass(frozen=True, eq=False)
class _Texts:
    """The texts of a task as `sentence_key` has them, row by row."""

    sentences: set[str]
    pairs: list[tuple[str, str]]
    conditions: list[str]

    @property
    def triplets(self) -> set[tuple[tuple[str, str], str]]:
        return set(zip(self.pairs, self.conditions, strict=True))


def _texts(task: Task) -> _Texts:
    first = [sentence_key(sentence) for sentence in task.sentences1]
    second = [sentence_key(sentence) for sentence in task.sentences2]
    return _Texts(
        sentences={*first, *second},
        pairs=[(min(pair), max(pair)) for pair in zip(first, second, strict=True)],
        conditions=[sentence_key(condition) for condition in task.conditions or ()],
    )


def _shared(first: str, seen: _Texts, second: str, here: _Texts) -> Shared:
    conditions = set(seen.conditions)
    return Shared(
        first=first,
        second=second,
        sentences=len(seen.sentences & here.sentences),
        pairs=len(set(seen.pairs) & set(here.pairs)),
        triplets=len(seen.triplets & here.triplets),
        conditions=len(conditions & set(here.conditions)),
        sentence_rows=_share(not seen.sentences.isdisjoint(pair) for pair in here.pairs),
        condition_rows=_share(condition in conditions for condition in here.conditions),
    )


def _share(holds: Iterable[bool]) -> float:
    return float(np.mean(list(holds)))


def _baselines(
    train: Task, name: str, task: Task, *, resamples: int, seed: int
) -> tuple[BaselineScore, ...]:
    """Both baselines, fitted on train, on one split."""
    if int(task.valid.sum()) < FEWEST_ROWS:
        return ()
    report = evaluate(
        SentencesOnlyScorer().fit_task(train),
        task,
        condition_only=ConditionOnlyScorer().fit_task(train),
        resamples=resamples,
        seed=seed,
    )
    return tuple(
        BaselineScore(
            baseline=result.name,
            split=name,
            rows=report.valid_rows,
            spearman=result.metrics["spearman"],
            pair_accuracy=result.metrics["pair_accuracy"],
        )
        for result in (report.baselines[0], report.model)
    )


def _shared_warnings(shared: Sequence[Shared]) -> Iterator[str]:
    for one in shared:
        where = f"{one.first} and {one.second}"
        if one.pairs:
            yield f"{where} share {one.pairs} sentence pairs."
        if one.sentence_rows > FREQUENT:
            yield (
                f"{where} share {one.sentences} sentences: {one.sentence_rows:.1%} of the rows of "
                f"{one.second} have one of them."
            )


def _blind_warnings(baselines: Sequence[BaselineScore]) -> Iterator[str]:
    for one in baselines:
        seen = "conditions" if one.baseline == "condition-only" else "sentences"
        if one.spearman.low >= GIVEN_AWAY:
            yield (
                f"The {seen} alone give much of the label away: a ridge regression on their words "
                f"reaches a Spearman of {one.spearman.value:.1f} [{one.spearman.low:.1f}, "
                f"{one.spearman.high:.1f}] on {one.split}. Report it beside every result."
            )


def _order_warnings(order: Mapping[str, float | None], pairs: Mapping[str, int]) -> Iterator[str]:
    for name, share in order.items():
        # Half, give or take three standard errors, is what shuffled rows show.
        if share is not None and abs(share - 0.5) > 1.5 / math.sqrt(pairs[name]):
            yield (
                f"The order of rows gives labels away: in {name} the higher row comes first in "
                f"{share:.1%} of the pairs. Shuffle the rows of each pair."
            )
