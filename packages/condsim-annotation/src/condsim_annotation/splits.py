"""Train, validation and test split, 60 : 15 : 25 (C-STS §3), and leakage between splits.

The released C-STS keeps sentence pairs whole and lets single sentences cross: 718 sentences of the
re-annotated train file are in its validation file. Here groups of connected pairs stay whole, and
grouping by pair is an option. Conditions predict the label as well ("the color" is rated lower than
"the animal"): on the re-annotated C-STS they alone reach a Spearman of 42.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from statistics import fmean
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from condsim.config import Settings
from condsim.data.tasks import TaskStatistics, describe
from condsim.errors import InputError, require
from condsim.evaluation.evaluate import FEWEST_ROWS, evaluate
from condsim.evaluation.statistics import Metric
from condsim.model.baselines import ConditionOnlyScorer, SentencesOnlyScorer
from condsim.types import Float64Array, IntArray, Task

_LOGGER = logging.getLogger("condsim")
_NON_WORD = re.compile(r"\W+")

SPLITS = ("train", "validation", "test")
# A split whose share of all rows is this far from its ratio causes a warning.
RATIO_TOLERANCE = 0.02
# Warnings start at this Spearman x100 of a blind baseline (lower end of its interval), and at this
# share of rows that have a sentence of another split.
BLIND_SPEARMAN = 30.0
SHARED_ROWS = 0.01

_Ratio = Annotated[float, Field(gt=0, le=1e9)]


def sentence_key(sentence: str) -> str:
    """Normalize letter case, punctuation and white space."""
    return _NON_WORD.sub(" ", sentence.casefold()).strip() or sentence


def pair_groups(pairs: Sequence[tuple[str, str]]) -> IntArray:
    """Group rows by their sentence pair in either order, as C-STS does, ``(n,)``."""
    ends = np.sort(_sentence_numbers(pairs), axis=1)
    return np.unique(ends, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def sentence_groups(pairs: Sequence[tuple[str, str]]) -> IntArray:
    """Group rows so that no sentence, as `sentence_key` has it, is in two groups, ``(n,)``."""
    networkx = require("networkx", extra="build")
    ends = _sentence_numbers(pairs)
    return _numbered(networkx.connected_components(networkx.Graph(ends.tolist())))[ends[:, 0]]


def communities(pairs: Sequence[tuple[str, str]], *, seed: int) -> IntArray:
    """Return the community of both sentences of each row by Louvain's method (2008), ``(n, 2)``."""
    networkx = require("networkx", extra="build")
    ends = _sentence_numbers(pairs)
    graph = networkx.Graph()
    graph.add_nodes_from(range(int(ends.max()) + 1))
    edges, rows = np.unique(np.sort(ends, axis=1), axis=0, return_counts=True)
    weighted = np.column_stack([edges, rows])[edges[:, 0] != edges[:, 1]]
    graph.add_weighted_edges_from(weighted.tolist())
    return _numbered(networkx.community.louvain_communities(graph, seed=seed))[ends]


def _numbered(parts: Iterable[set[int]]) -> IntArray:
    """Return the part of each sentence; parts are numbered by the lowest of their sentences."""
    members = sorted(parts, key=min)
    number = np.zeros(sum(map(len, members)), np.int64)
    for index, sentences in enumerate(members):
        number[list(sentences)] = index
    return number


def _sentence_numbers(pairs: Sequence[tuple[str, str]]) -> IntArray:
    """Number the sentences by the order of their keys, ``(n, 2)``."""
    keys = [sentence_key(sentence) for pair in pairs for sentence in pair]
    index = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([index[key] for key in keys], np.int64).reshape(-1, 2)


class SplitRules(Settings):
    """Rules of a split.

    Attributes:
        ratios: Train, validation and test, in any unit.
        group: ``sentence``: no sentence is in two splits; ``pair``: no sentence pair is, as in the
            paper.
        oversize: What to do, by ``sentence``, with a group that has more rows than the smallest
            split should: ``keep`` leaves it whole, so the ratios may be missed; ``cut`` divides it
            into communities and drops the rows whose sentences are in different splits.
    """

    subject = "splits"

    ratios: Annotated[tuple[_Ratio, _Ratio, _Ratio], Field(strict=False)] = (60.0, 15.0, 25.0)
    seed: Annotated[int, Field(ge=0)] = 0
    group: Literal["sentence", "pair"] = "sentence"
    oversize: Literal["keep", "cut"] = "keep"


class Splitting(NamedTuple):
    """Index of each row's split in `SPLITS`, ``(n,)``; -1 if its sentences are in two.

    Also the number of groups, the rows of the largest, and how many were cut.
    """

    split: IntArray
    groups: int
    largest: int
    cut: int


def split_rows(pairs: Sequence[tuple[str, str]], rules: SplitRules) -> Splitting:
    """Split rows by their sentence pairs; the order of the rows does not matter.

    Larger groups are placed first, each in the split that is furthest below its share and has room
    for it; the seed decides the order of groups of one size. A split that misses its ratio by more
    than 2 % of all rows causes a warning (logger ``condsim``).
    """
    groups = pair_groups(pairs) if rules.group == "pair" else sentence_groups(pairs)
    sizes = np.bincount(groups)
    targets = np.array(rules.ratios) / sum(rules.ratios) * len(pairs)
    may_cut = rules.oversize == "cut" and rules.group == "sentence"
    oversized = np.flatnonzero((sizes > targets.min()) & may_cut)
    part1, part2 = groups.copy(), groups.copy()
    parts = len(sizes)
    for group in oversized.tolist():
        rows = np.flatnonzero(groups == group)
        ends = communities([pairs[row] for row in rows.tolist()], seed=rules.seed)
        part1[rows], part2[rows] = ends[:, 0] + parts, ends[:, 1] + parts
        parts += int(ends.max()) + 1
    # A row between two communities counts for its first; most such rows share one fate.
    placed = _place_groups(np.bincount(part1, minlength=parts), targets, seed=rules.seed)
    split = np.where(placed[part1] == placed[part2], placed[part1], -1)
    result = Splitting(split, groups=len(sizes), largest=int(sizes.max()), cut=len(oversized))
    _check_ratios(result, targets, rules)
    return result


def _place_groups(sizes: IntArray, targets: Float64Array, *, seed: int) -> IntArray:
    """Return the split of each group, ``(groups,)``; targets are in rows, ``(3,)``."""
    shuffled = np.random.default_rng(seed).permutation(len(sizes))
    filled = np.zeros(len(targets))
    split = np.zeros(len(sizes), np.int64)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")].tolist():
        missing = targets - filled
        # A split with room comes before any without.
        need = missing / targets + 2.0 * (missing >= sizes[group])
        best = np.flatnonzero(need >= need.max() - 1e-12)
        split[group] = best[np.argmax(targets[best])]
        filled[split[group]] += sizes[group]
    return split


def _check_ratios(splitting: Splitting, targets: Float64Array, rules: SplitRules) -> None:
    """Warn of splits that miss their ratio; reject empty ones."""
    lost, *rows = np.bincount(splitting.split + 1, minlength=1 + len(SPLITS)).tolist()
    advice = "; give more sentence pairs"
    if splitting.cut:
        advice = f", and cutting groups lost {lost} rows{advice}"
    elif rules.group == "sentence" and rules.oversize == "keep" and splitting.largest > 2:
        advice = "; give --oversize cut, or --group pair, or more sentence pairs"
    for name, count, target in zip(SPLITS, rows, targets / targets.sum(), strict=True):
        if not count:
            raise InputError(
                f"Splits: {name} would have no rows. {len(splitting.split)} rows are "
                f"{splitting.groups} groups that must stay whole, the largest of "
                f"{splitting.largest} rows{advice}."
            )
        share, ratio = 100 * count / sum(rows), 100 * target
        if abs(share - ratio) > 100 * RATIO_TOLERANCE:
            _LOGGER.warning(
                f"{name} has {share:.1f} % of the rows, not {ratio:.1f} %: the largest of "
                f"{splitting.groups} groups that must stay whole has {splitting.largest} rows"
                f"{advice}"
            )


@dataclass(frozen=True)
class SharedTexts:
    """Distinct texts, as `sentence_key` has them, that two splits share.

    Triplets are pairs with the same condition; ``sentence_rows`` and ``condition_rows`` are shares
    of the rows of the second split that have a sentence or the condition of the first.
    """

    first: str
    second: str
    sentences: int
    pairs: int
    triplets: int
    conditions: int
    sentence_rows: float
    condition_rows: float


@dataclass(frozen=True)
class BaselineScore:
    """Result, x100, of a scorer that sees only a part of each row, fitted on the train split."""

    baseline: str
    split: str
    rows: int
    spearman: Metric
    pair_accuracy: Metric


@dataclass(frozen=True)
class LeakageReport:
    """Texts that splits share, results of blind baselines, and warnings; none is good.

    ``first_is_higher`` is the share of high-low pairs whose higher row is first, by split.
    """

    shared: tuple[SharedTexts, ...]
    baselines: tuple[BaselineScore, ...]
    first_is_higher: dict[str, float | None]
    warnings: tuple[str, ...]


def find_leakage(
    splits: Mapping[str, Task], *, resamples: int = 1000, seed: int = 0
) -> LeakageReport:
    """Find what the splits give away; baselines are fitted on the first of two or more."""
    texts = {name: _normalized(task) for name, task in splits.items()}
    shared = [_shared_texts(*first, *second) for first, second in combinations(texts.items(), 2)]
    train, *evaluated = splits.values()
    baselines: list[BaselineScore] = []
    for task in evaluated:
        if int(task.valid.sum()) >= FEWEST_ROWS:
            baselines += _blind_baselines(train, task, resamples, seed)
    statistics = {name: describe(task, top=0) for name, task in splits.items()}
    return LeakageReport(
        tuple(shared),
        tuple(baselines),
        first_is_higher={name: facts.first_is_higher_share for name, facts in statistics.items()},
        warnings=tuple(_warnings(shared, baselines, statistics)),
    )


class _Texts(NamedTuple):
    """Normalized texts of the rows of a split, each pair of sentences in alphabetical order."""

    pairs: list[tuple[str, str]]
    conditions: list[str]


def _normalized(task: Task) -> _Texts:
    pairs = []
    for sentences in zip(task.sentences1, task.sentences2, strict=True):
        first, second = sorted(map(sentence_key, sentences))
        pairs.append((first, second))
    return _Texts(pairs, [sentence_key(condition) for condition in task.conditions or ()])


def _shared_texts(name1: str, texts1: _Texts, name2: str, texts2: _Texts) -> SharedTexts:
    sentences1, sentences2 = set(chain(*texts1.pairs)), set(chain(*texts2.pairs))
    conditions1 = set(texts1.conditions)
    triplets1, triplets2 = set(zip(*texts1, strict=True)), set(zip(*texts2, strict=True))
    return SharedTexts(
        first=name1,
        second=name2,
        sentences=len(sentences1 & sentences2),
        pairs=len({*texts1.pairs} & {*texts2.pairs}),
        triplets=len(triplets1 & triplets2),
        conditions=len(conditions1 & {*texts2.conditions}),
        sentence_rows=fmean(not sentences1.isdisjoint(pair) for pair in texts2.pairs),
        condition_rows=fmean(condition in conditions1 for condition in texts2.conditions),
    )


def _blind_baselines(train: Task, task: Task, resamples: int, seed: int) -> Iterator[BaselineScore]:
    report = evaluate(
        SentencesOnlyScorer().fit_task(train),
        task,
        condition_only=ConditionOnlyScorer().fit_task(train),
        resamples=resamples,
        seed=seed,
    )
    for result in (report.baselines[0], report.model):
        metrics = (result.metrics["spearman"], result.metrics["pair_accuracy"])
        yield BaselineScore(result.name, task.name, report.valid_rows, *metrics)


def _warnings(
    shared: Sequence[SharedTexts],
    baselines: Sequence[BaselineScore],
    statistics: Mapping[str, TaskStatistics],
) -> Iterator[str]:
    for texts in shared:
        names = f"{texts.first} and {texts.second}"
        if texts.pairs:
            yield f"{names} share {texts.pairs} sentence pairs."
        if texts.sentence_rows > SHARED_ROWS:
            yield (
                f"{names} share {texts.sentences} sentences: {texts.sentence_rows:.1%} of the rows "
                f"of {texts.second} have one of them."
            )
    for blind in baselines:
        if blind.spearman.low >= BLIND_SPEARMAN:
            part = "conditions" if blind.baseline == "condition-only" else "sentences"
            yield (
                f"The {part} alone give much of the label away: a ridge regression on their words "
                f"reaches a Spearman of {blind.spearman.value:.1f} [{blind.spearman.low:.1f}, "
                f"{blind.spearman.high:.1f}] on {blind.split}. Report it with every result."
            )
    for name, facts in statistics.items():
        share = facts.first_is_higher_share
        # Shuffled rows have a share of a half, plus or minus three standard errors.
        if share is not None and abs(share - 0.5) > 1.5 / math.sqrt(facts.high_low_pairs):
            yield (
                f"The order of rows gives labels away: in {name} the higher row comes first in "
                f"{share:.1%} of the pairs. Shuffle the rows of each pair."
            )
