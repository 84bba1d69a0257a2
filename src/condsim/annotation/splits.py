"""Train, validation and test split, 60 : 15 : 25 (C-STS §3), and what a data set gives away."""

# The released C-STS keeps sentence pairs whole and lets single sentences cross: 718 sentences of
# the re-annotated train file are in its validation file. Here groups of connected pairs are kept
# whole; the pair-only grouping is an option. Conditions tell the label, too ("the color" is rated
# lower than "the animal"): on the re-annotated C-STS they alone reach a Spearman of 42.

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from condsim.config import Settings
from condsim.data.statistics import TaskStatistics, describe
from condsim.errors import InputError, require
from condsim.evaluation.bootstrap import Metric
from condsim.evaluation.evaluate import FEWEST_ROWS, evaluate
from condsim.model.baselines import ConditionOnlyScorer, SentencesOnlyScorer
from condsim.types import IntArray, Task

_NO_WORD = re.compile(r"\W+")


def sentence_key(sentence: str) -> str:
    """Makes sentences equal that differ in letter case, punctuation or white space only."""
    return _NO_WORD.sub(" ", sentence.casefold()).strip() or sentence


def pair_groups(pairs: Sequence[tuple[str, str]]) -> IntArray:
    """Groups rows by their sentence pair alone, in either order, as C-STS does, ``(n,)``."""
    ends = np.sort(_ends(pairs)[1], axis=1)
    return np.unique(ends, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def sentence_groups(pairs: Sequence[tuple[str, str]]) -> IntArray:
    """Groups rows so that no sentence, as `sentence_key` has it, is in two groups, ``(n,)``."""
    sparse = require("scipy.sparse", extra="build")
    graph = require("scipy.sparse.csgraph", extra="build")
    sentences, ends = _ends(pairs)
    links = sparse.coo_array(
        (np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(sentences), len(sentences))
    )
    _, component = graph.connected_components(links, directed=False)  # (sentences,)
    _, lowest, rank = np.unique(component, return_index=True, return_inverse=True)
    return np.unique(lowest[rank[ends[:, 0]]], return_inverse=True)[1].astype(np.int64)


def communities(pairs: Sequence[tuple[str, str]], *, seed: int) -> IntArray:
    """Gives both sentences of each row their community by Louvain's method (2008), ``(n, 2)``."""
    networkx = require("networkx", extra="build")
    sentences, ends = _ends(pairs)
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(sentences)))
    edges, rows = np.unique(np.sort(ends, axis=1), axis=0, return_counts=True)
    weighted = np.column_stack([edges, rows])[edges[:, 0] != edges[:, 1]]
    graph.add_weighted_edges_from(weighted.tolist())
    of_sentence = np.zeros(len(sentences), np.int64)
    found = networkx.community.louvain_communities(graph, seed=seed)
    for number, members in enumerate(sorted(found, key=min)):
        of_sentence[list(members)] = number
    return np.asarray(of_sentence[ends])


def _ends(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], IntArray]:
    """All sentence keys by the alphabet, and the places of each row's two, ``(n, 2)``."""
    keys = [sentence_key(sentence) for pair in pairs for sentence in pair]
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    return list(place), np.array([place[key] for key in keys], np.int64).reshape(-1, 2)


SPLITS = ("train", "validation", "test")  # in the order of the ratios
RATIOS = (60.0, 15.0, 25.0)  # C-STS §3
OFF_BY = 0.02  # a split that is this share of all rows from its ratio is warned of
_LOGGER = logging.getLogger("condsim")
_Ratio = Annotated[float, Field(gt=0)]


class SplitRules(Settings):
    """How rows are split."""

    what = "splits"

    # Train, validation and test, in any unit.
    ratios: Annotated[tuple[_Ratio, _Ratio, _Ratio], Field(strict=False)] = RATIOS
    seed: Annotated[int, Field(ge=0)] = 0
    # ``sentence``: no sentence is in two splits; ``pair``: no sentence pair is, which is what the
    # paper's splits keep to.
    group: Literal["sentence", "pair"] = "sentence"
    # What becomes of a group with more rows than the smallest split should have, by ``sentence``:
    # ``keep`` leaves it whole, so the ratios may be missed; ``cut`` divides it into communities and
    # drops the rows whose two sentences end in different splits.
    oversize: Literal["keep", "cut"] = "keep"


@dataclass(frozen=True, eq=False)
class Splitting:
    """Which row is in which split."""

    split: IntArray  # number in SPLITS, (n,); -1 where the sentences of the row are in two
    groups: int  # before any was cut
    largest: int  # rows of the largest of them
    cut: int  # groups that were cut

    def rows(self, split: int) -> int:
        """Counts the rows of a split."""
        return int((self.split == split).sum())


def split_rows(pairs: Sequence[tuple[str, str]], rules: SplitRules) -> Splitting:
    """Splits rows by their sentence pairs.

    The larger groups are placed first, each in the split that is furthest below its share and has
    room for it, in an order that the seed decides among groups of one size. The order of the rows
    does not matter. A split that misses its ratio by more than 2 % of all rows is warned of
    (logger ``condsim``).

    Args:
        pairs: The two sentences of each row, ``n`` of them.

    Returns:
        The number of each row's split, ``split`` of shape ``(n,)``: 0 train, 1 validation, 2 test,
        -1 where the row is dropped because its sentences are in two; and the groups there were.

    Raises:
        InputError: If a split would have no rows.
        MissingExtraError: If scipy, or networkx for cutting, is not installed.
    """
    groups = pair_groups(pairs) if rules.group == "pair" else sentence_groups(pairs)
    sizes = np.bincount(groups, minlength=1)
    targets = np.array(rules.ratios) / sum(rules.ratios) * len(pairs)  # (3,), rows
    cuts = rules.oversize == "cut" and rules.group == "sentence"
    cut = np.flatnonzero((sizes > targets.min()) & cuts)
    if len(cut):
        split = _cut_and_place(pairs, groups, cut, targets, seed=rules.seed)
    else:
        split = _place(sizes, targets, seed=rules.seed)[groups]
    made = Splitting(split, groups=len(sizes), largest=int(sizes.max()), cut=len(cut))
    _check(made, targets, rules)
    return made


def _place(sizes: IntArray, targets: np.ndarray, *, seed: int) -> IntArray:
    """The split of each group from its rows, ``(groups,)``."""
    drawn = np.random.default_rng(seed).permutation(len(sizes))
    order = drawn[np.argsort(-sizes[drawn], kind="stable")]
    filled = np.zeros(len(targets))
    split = np.zeros(len(sizes), np.int64)
    for group in order.tolist():
        missing = targets - filled
        has_room = missing >= sizes[group]
        wanting = missing / targets + 2.0 * has_room  # one with room goes before any without
        best = np.flatnonzero(wanting >= wanting.max() - 1e-12)
        split[group] = best[np.argmax(targets[best])]
        filled[split[group]] += sizes[group]
    return split


def _cut_and_place(
    pairs: Sequence[tuple[str, str]],
    groups: IntArray,
    cut: IntArray,
    targets: np.ndarray,
    *,
    seed: int,
) -> IntArray:
    """The split of each row when some groups are placed community by community, ``(n,)``."""
    first, second = groups.copy(), groups.copy()  # the part of each sentence
    parts = int(groups.max()) + 1
    for group in cut.tolist():
        rows = np.flatnonzero(groups == group)
        found = communities([pairs[row] for row in rows.tolist()], seed=seed)  # (rows, 2)
        first[rows], second[rows] = found[:, 0] + parts, found[:, 1] + parts
        parts += int(found.max()) + 1
    # A row between two communities counts for its first: most such rows are kept or lost in both.
    split = _place(np.bincount(first, minlength=parts), targets, seed=seed)
    return np.where(split[first] == split[second], split[first], -1)


def _check(made: Splitting, targets: np.ndarray, rules: SplitRules) -> None:
    kept = len(made.split) - made.rows(-1)
    for number, name in enumerate(SPLITS):
        rows = made.rows(number)
        if not rows:
            raise InputError(
                f"Splits: {name} would have no rows. {len(made.split)} rows are {made.groups} "
                f"groups that must stay whole, the largest of {made.largest} rows"
                f"{_advice(made, rules)}."
            )
        share, wanted = rows / kept, targets[number] / targets.sum()
        if abs(share - wanted) > OFF_BY:
            _LOGGER.warning(
                "%s has %.1f %% of the rows, not %.1f %%: the largest of %d groups that must stay "
                "whole has %d rows%s",
                *(name, 100 * share, 100 * wanted),
                *(made.groups, made.largest, _advice(made, rules)),
            )


def _advice(made: Splitting, rules: SplitRules) -> str:
    if made.cut:
        return f", and cutting groups lost {made.rows(-1)} rows; give more sentence pairs"
    if rules.group == "sentence" and rules.oversize == "keep" and made.largest > 2:
        return "; give --oversize cut, or --group pair, or more sentence pairs"
    return "; give more sentence pairs"


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
