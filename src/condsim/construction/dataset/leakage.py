"""What a data set gives away: texts that are in two splits, and conditions that tell the label.

A C-STS condition says much of the answer ("the color" is rated lower than "the animal"): on the
re-annotated C-STS, conditions alone reach a Spearman of 42. A data set says so at birth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from condsim.construction.dataset.splits import sentence_key
from condsim.errors import InputError
from condsim.evaluation import FEWEST_ROWS, Metric, evaluate
from condsim.scorers import ConditionOnlyScorer, SentencesOnlyScorer
from condsim.tasks import TaskStatistics, describe
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


@dataclass(frozen=True)
class BaselineScore:
    """What a scorer that sees only a part of the row reaches."""

    baseline: str  # "condition-only" or "sentences-only", fitted on the train split
    split: str  # measured on
    rows: int
    spearman: Metric  # x100 with its 95 % interval; NaN if it predicts a constant
    pair_accuracy: Metric  # share x100 of the high-low pairs it orders rightly


@dataclass(frozen=True)
class LeakageReport:
    """What the splits share, and what a blind model reaches."""

    shared: tuple[Shared, ...]  # every two splits
    baselines: tuple[BaselineScore, ...]  # on each split but the first, if it has 3 rows
    first_is_higher: dict[str, float | None]  # share of high-low pairs whose higher row is first
    warnings: tuple[str, ...]  # what a user of the data must know; empty is good


def find_leakage(
    splits: Mapping[str, Task], *, resamples: int = 1000, seed: int = 0
) -> LeakageReport:
    """Looks for what the splits give away.

    Args:
        splits: Rows with conditions by the name of their split; what comes first is trained on.
        resamples: Bootstrap resamples for the intervals.
        seed: Seed of the resamples.

    Raises:
        InputError: If there are fewer than two splits, one has no conditions, or no row of the
            first has a label.
    """
    if len(splits) < 2:
        raise InputError(f"Leakage is between two splits or more. Got {len(splits)}.")
    for name, task in splits.items():
        if task.conditions is None:
            raise InputError(f"{name}: leakage is looked for in rows with conditions. Got none.")
    texts = {name: _Texts(task) for name, task in splits.items()}
    shared = tuple(_shared(one, texts[one], two, texts[two]) for one, two in combinations(texts, 2))
    train, *others = splits
    baselines = tuple(
        score
        for name in others
        if int(splits[name].valid.sum()) >= FEWEST_ROWS
        for score in _baselines(splits[train], name, splits[name], resamples=resamples, seed=seed)
    )
    statistics = {name: describe(task, top=0) for name, task in splits.items()}
    return LeakageReport(
        shared,
        baselines,
        first_is_higher={name: one.first_is_higher_share for name, one in statistics.items()},
        warnings=tuple(_warnings(shared, baselines, statistics)),
    )


class _Texts:
    """The texts of a task as `sentence_key` has them."""

    def __init__(self, task: Task) -> None:
        first, second, self.conditions = (
            [sentence_key(text) for text in column]
            for column in (task.sentences1, task.sentences2, task.conditions or ())
        )
        self.sentences = {*first, *second}
        self.pairs = [(min(pair), max(pair)) for pair in zip(first, second, strict=True)]
        self.triplets = set(zip(self.pairs, self.conditions, strict=True))


def _shared(first: str, seen: _Texts, second: str, here: _Texts) -> Shared:
    conditions = set(seen.conditions)
    return Shared(
        first=first,
        second=second,
        sentences=len(seen.sentences & here.sentences),
        pairs=len(set(seen.pairs) & set(here.pairs)),
        triplets=len(seen.triplets & here.triplets),
        conditions=len(conditions & set(here.conditions)),
        sentence_rows=fmean(not seen.sentences.isdisjoint(pair) for pair in here.pairs),
        condition_rows=fmean(condition in conditions for condition in here.conditions),
    )


def _baselines(
    train: Task, name: str, task: Task, *, resamples: int, seed: int
) -> Iterator[BaselineScore]:
    """Both baselines, fitted on train, on one split."""
    report = evaluate(
        SentencesOnlyScorer().fit_task(train),
        task,
        condition_only=ConditionOnlyScorer().fit_task(train),
        resamples=resamples,
        seed=seed,
    )
    for one in (report.baselines[0], report.model):
        metrics = one.metrics
        yield BaselineScore(
            one.name, name, report.valid_rows, metrics["spearman"], metrics["pair_accuracy"]
        )


def _warnings(
    shared: Sequence[Shared],
    baselines: Sequence[BaselineScore],
    statistics: Mapping[str, TaskStatistics],
) -> Iterator[str]:
    for one in shared:
        where = f"{one.first} and {one.second}"
        if one.pairs:
            yield f"{where} share {one.pairs} sentence pairs."
        if one.sentence_rows > FREQUENT:
            yield (
                f"{where} share {one.sentences} sentences: {one.sentence_rows:.1%} of the rows of "
                f"{one.second} have one of them."
            )
    for blind in baselines:
        if blind.spearman.low >= GIVEN_AWAY:
            seen = "conditions" if blind.baseline == "condition-only" else "sentences"
            yield (
                f"The {seen} alone give much of the label away: a ridge regression on their words "
                f"reaches a Spearman of {blind.spearman.value:.1f} [{blind.spearman.low:.1f}, "
                f"{blind.spearman.high:.1f}] on {blind.split}. Report it beside every result."
            )
    for name, counted in statistics.items():
        share = counted.first_is_higher_share
        # Half, give or take three standard errors, is what shuffled rows show.
        if share is not None and abs(share - 0.5) > 1.5 / math.sqrt(counted.high_low_pairs):
            yield (
                f"The order of rows gives labels away: in {name} the higher row comes first in "
                f"{share:.1%} of the pairs. Shuffle the rows of each pair."
            )
