"""The data sets of a suite: one for each file, set of criteria or domain.

In the suites ``criteria`` and ``written`` a condition alone says nothing about the label, so models
are measured by Spearman and by how often they rank two conditions of one text pair as the labels
do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import TypeAdapter, ValidationError

from condsim.data.files import iter_rows
from condsim.data.labels import LIKERT
from condsim.data.load import load_task
from condsim.data.tasks import make_task
from condsim.data.written import is_written, load_written
from condsim.errors import InputError, check_name
from condsim.evaluation.metrics import Metrics, auroc_statistic, pair_wins
from condsim.evaluation.statistics import Statistic, bootstrap, weighted_mean
from condsim.evaluation.suite import SuiteSet
from condsim.paths import sha256_of
from condsim.types import BoolArray, Float64Array, FloatArray, IntArray, Scorer, Task

SUITE_FILE = "suite.json"

NEIGHBORS = 10
# A text with fewer texts of its value than this is not a query.
_MIN_PARTNERS = {"nearest": 5, "first_hit": 1}

PairMeasure = Literal["spearman", "auroc", "average_precision", "order"]
CollectionMeasure = Literal["nearest", "first_hit"]

GROUPS = ("trained on", "left out of training", "evaluation only")
"""Groups of the sets of criteria, in the order of the tables."""

CRITERIA_FILE = "dev_rows.csv"

_COLUMNS = ("set", "sentence1", "sentence2", "condition", "label")


@dataclass(frozen=True)
class TestSpec:
    """An entry of ``suite.json``."""

    __test__: ClassVar[bool] = False

    family: str
    title: str
    measure: PairMeasure | CollectionMeasure
    file: str
    condition: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class NaturalSet(SuiteSet):
    """A test of the suite; ``clusters`` are what a resample draws whole."""

    clusters: IntArray

    metric_names: ClassVar[tuple[str, ...]] = ("points",)

    @abstractmethod
    def figure(self, scores: Float64Array) -> Statistic:
        """Prepare the figure of scores ``(n,)``, a function of weights by row or query."""

    def values(self, scores: FloatArray) -> Float64Array:
        """Compute the figure, ``(1,)``."""
        return self.figure(np.asarray(scores, np.float64))(np.ones((1, len(self.clusters))))

    def draws(self, scores: Sequence[FloatArray], *, resamples: int, seed: int) -> Float64Array:
        """Compute the figure of each scorer on the same resamples; ``(scorers, 1, b)``."""
        figures = [self.figure(np.asarray(values, np.float64)) for values in scores]

        def statistic(weights: Float64Array) -> Float64Array:
            return np.stack([figure(weights)[None] for figure in figures])

        return bootstrap(statistic, self.clusters, resamples=resamples, seed=seed)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairTest(NaturalSet):
    """Pairs with labels; ``order`` are rows of one unit, the higher label first, ``(p, 2)``."""

    measure: PairMeasure
    order: IntArray

    def figure(self, scores: Float64Array) -> Statistic:
        """Prepare the figure as a function of weights ``(b, n)``."""
        gold = self.task.gold.astype(np.float64)
        if self.measure == "spearman":
            metrics = Metrics([scores], gold=gold, names=("spearman",))
            return lambda weights: metrics(weights)[0, 0]
        if self.measure == "order":
            wins = pair_wins(scores, high=self.order[:, 0], low=self.order[:, 1])
            return lambda weights: 100 * weighted_mean(wins, weights[:, self.order[:, 0]])
        figure = FIGURES[self.measure](scores, gold > 0.5)
        return lambda weights: 100 * figure(weights)


def average_precision(scores: Float64Array, positive: BoolArray) -> Statistic:
    """Average precision as a function of row weights; ties keep their order."""
    order = np.argsort(-scores, kind="stable")
    hits = positive[order]

    def statistic(weights: Float64Array) -> Float64Array:
        drawn = weights[:, order]
        right = drawn * hits
        precision = np.cumsum(right, axis=1) / np.maximum(np.cumsum(drawn, axis=1), 1)
        return weighted_mean(precision, right)

    return statistic


FIGURES: dict[str, Callable[[Float64Array, BoolArray], Statistic]] = {
    "auroc": auroc_statistic,
    "average_precision": average_precision,
}
"""Figures of pairs whose labels are 0 and 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CollectionTest(NaturalSet):
    """A collection whose texts are looked up in it; each row of the task is a pair of them.

    Attributes:
        places: Places of the two texts of each row, ``(n, 2)``.
        same: Whether two texts have the same value, ``(texts, texts)``; false for a text itself.
        queries: Places of the texts whose neighbors count, ``(q,)``.
    """

    measure: CollectionMeasure
    places: IntArray
    same: BoolArray
    queries: IntArray

    def figure(self, scores: Float64Array) -> Statistic:
        """Prepare the figure as a function of weights ``(b, q)``."""
        table = np.full(self.same.shape, -np.inf)
        first, second = self.places.T
        table[first, second] = table[second, first] = scores
        number = NEIGHBORS if self.measure == "nearest" else 1
        same = self.same[self.queries]
        nearest = np.argsort(-table[self.queries], axis=1, kind="stable")[:, :number]
        hits = np.take_along_axis(same, nearest, axis=1).sum(axis=1)
        shares: Float64Array = hits / np.minimum(number, same.sum(axis=1))
        return lambda weights: 100 * weighted_mean(shares, weights)


@dataclass(frozen=True)
class WithoutCondition:
    """A model that is not told the conditions; ``scorer`` is an `UnloadedScorer` until `open`."""

    scorer: Any

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.scorer.name}, no condition"

    def revision(self) -> str | None:
        """Return the version of the model."""
        version: str | None = self.scorer.revision()
        return version

    def open(self) -> Scorer:
        """Load the model."""
        return replace(self, scorer=self.scorer.open())

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        /,
    ) -> FloatArray:
        """Score each pair without its condition, ``(n,)``."""
        options = {"scale": "raw"} if hasattr(self.scorer, "calibration") else {}
        scores: FloatArray = self.scorer.score(sentences1, sentences2, None, **options)
        return scores


def load_natural_sets(path: Path) -> tuple[SuiteSet, ...]:
    """Load the tests that the ``suite.json`` of a folder lists."""
    listing = path / SUITE_FILE
    try:
        specs = TypeAdapter(list[TestSpec]).validate_json(listing.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: has no data of the suite 'natural': no {SUITE_FILE}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(f"{listing}: {where}: {first['msg']}.") from error
    return tuple(
        _load_collection(path / spec.file, spec)
        if spec.measure in _MIN_PARTNERS
        else _load_pairs(path / spec.file, spec)
        for spec in specs
    )


def _load_pairs(path: Path, spec: TestSpec) -> PairTest:
    units: list[str] = []
    rows = []
    for row in iter_rows(
        path, columns=("text1", "text2", "condition", "label"), optional=("unit",)
    ):
        label = row.score("label", label_range=(-1e6, 1e6))
        rows.append((row.text("text1"), row.text("text2"), row.text("condition"), label))
        units.append(str(row.cells["unit"] or len(units)))
    by_unit: dict[str, list[int]] = defaultdict(list)
    for index, unit in enumerate(units):
        by_unit[unit].append(index)
    labels = [label for *_, label in rows]
    order = [
        (a, b) if labels[a] > labels[b] else (b, a)
        for places in by_unit.values()
        for a, b in combinations(places, 2)
        if labels[a] != labels[b]
    ]
    if len(set(labels)) < 2 or (spec.measure == "order" and not order):
        raise InputError(f"{path}: its labels do not differ, so that nothing can be measured.")
    if spec.measure in FIGURES and set(labels) != {0.0, 1.0}:
        raise InputError(f"{path}: the measure {spec.measure!r} needs labels 0 and 1.")
    label_range = (min(labels), max(labels))
    return PairTest(
        key=f"{spec.family}: {spec.title}",
        title=spec.title,
        task=make_task(path, rows, label_range=label_range, name=spec.title),
        group=spec.family,
        averaged=True,
        clusters=np.unique(units, return_inverse=True)[1].astype(np.int64),
        measure=spec.measure,  # type: ignore[arg-type]
        order=np.array(order, np.int64).reshape(-1, 2),
    )


def _load_collection(path: Path, spec: TestSpec) -> CollectionTest:
    if not spec.condition:
        raise InputError(f"{path}: {SUITE_FILE} must give a collection its 'condition'.")
    texts: list[str] = []
    values: list[str] = []
    sides: list[str] = []
    for row in iter_rows(path, columns=("text", "value"), optional=("side",)):
        texts.append(row.text("text"))
        values.append(row.text("value"))
        sides.append(str(row.cells["side"] or ""))
    value_ids = np.unique(values, return_inverse=True)[1]
    same = value_ids[:, None] == value_ids[None, :]
    np.fill_diagonal(same, False)
    first, second = (np.flatnonzero([side == name for side in sides]) for name in "12")
    pairs = list(combinations(range(len(texts)), 2))
    is_query = np.ones(len(texts), bool)
    if len(first):
        pairs = list(product(first.tolist(), second.tolist()))
        is_query[second] = False
        same[np.ix_(first, first)] = False
    is_query &= same.sum(axis=1) >= _MIN_PARTNERS[spec.measure]
    queries = np.flatnonzero(is_query)
    if not len(queries):
        raise InputError(f"{path}: no text has enough other texts of its value.")
    rows = [(texts[a], texts[b], spec.condition, float(same[a, b])) for a, b in pairs]
    return CollectionTest(
        key=f"{spec.family}: {spec.title}",
        title=spec.title,
        task=make_task(path, rows, label_range=(0.0, 1.0), name=spec.title),
        group=spec.family,
        averaged=True,
        clusters=np.arange(len(queries)),
        measure=spec.measure,  # type: ignore[arg-type]
        places=np.array(pairs, np.int64),
        same=same,
        queries=queries,
    )


def load_suite(path: Path | str, suite: str) -> tuple[SuiteSet, ...]:
    """Load the data sets of a suite.

    Args:
        path: The folder of the data, or the file itself.
        suite: A name in `SUITES`.

    Returns:
        The data sets in the order of the tables.

    Raises:
        InputError: If the suite is unknown, there is no such folder, it has no data of the suite,
            or a file breaks a rule of its format.
    """
    check_name("suite", suite, SUITES)
    return SUITES[suite](Path(path))


def load_files(
    paths: Sequence[Path], load: Callable[[Path], Task] | None = None
) -> tuple[SuiteSet, ...]:
    """Load a data set from each file, by `condsim.data.load_task` or another function."""
    load = load or partial(load_task, require_labels=True)
    sets: dict[str, SuiteSet] = {}
    for path in paths:
        task = load(path).labeled()
        # Two files may have one name.
        key = task.name if task.name not in sets else str(path)
        sets[key] = SuiteSet(key, key, task, averaged=len(paths) > 1)
    return tuple(sets.values())


def load_criteria_sets(path: Path) -> tuple[SuiteSet, ...]:
    """Load rows drawn from labeled texts, a data set for each name in the column ``set``."""
    files = [path] if path.is_file() else []
    for pattern in (CRITERIA_FILE, f"*/{CRITERIA_FILE}", f"*/*/{CRITERIA_FILE}"):
        files += sorted(path.glob(pattern))
    if not files:
        raise InputError(
            f"{path}: has no data of the suite 'criteria': no {CRITERIA_FILE}, there or two levels "
            "below."
        )
    rows: dict[str, list[tuple[str, str, str | None, float]]] = {}
    evaluation_only: set[str] = set()
    for row in iter_rows(files[0], columns=_COLUMNS, optional=("use",)):
        name = row.text("set")
        texts = (row.text("sentence1"), row.text("sentence2"), row.text("condition"))
        rows.setdefault(name, []).append((*texts, row.score("label", label_range=LIKERT)))
        if row.cells["use"] == GROUPS[2]:
            evaluation_only.add(name)
    revision = sha256_of(files[0])[:12]
    sets = []
    for name, set_rows in sorted(rows.items()):
        task = make_task(files[0], set_rows, label_range=LIKERT, name=name, revision=revision)
        group = GROUPS[2] if name in evaluation_only else GROUPS[1]
        sets.append(SuiteSet(name, name, task, group=group, averaged=True))
    return _by_group(sets)


def mark_trained(sets: Sequence[SuiteSet], names: Sequence[str]) -> tuple[SuiteSet, ...]:
    """Move sets of criteria, by key, into the group of those that a model was trained on."""
    keys = [suite_set.key for suite_set in sets]
    for name in names:
        check_name("set of the suite 'criteria'", name, keys)
    return _by_group(
        replace(suite_set, group=GROUPS[0]) if suite_set.key in names else suite_set
        for suite_set in sets
    )


def _by_group(sets: Iterable[SuiteSet]) -> tuple[SuiteSet, ...]:
    return tuple(sorted(sets, key=lambda suite_set: GROUPS.index(str(suite_set.group))))


def load_written_sets(path: Path) -> tuple[SuiteSet, ...]:
    """Load written pairs, a data set for each domain, by file."""
    files = written_files(path)
    sets: list[SuiteSet] = []
    for file in files:
        task = load_written(file)
        prefix = "" if len(files) == 1 else f"{task.name}/"
        domains = np.array(task.domains)
        for domain in sorted(set(task.domains)):
            rows = task.take(np.flatnonzero(domains == domain))
            sets.append(SuiteSet(f"{prefix}{domain}", domain, rows, group=task.name, averaged=True))
    return tuple(sets)


def written_files(path: Path) -> list[Path]:
    """List the files of written pairs in a folder, or the file itself."""
    files = [path]
    if not path.is_file():
        # Of a file that is also there gzipped, the plain one is read.
        listed = chain(path.glob("*.txt.gz"), path.glob("*.txt"))
        by_name = {file.name.removesuffix(".gz"): file for file in listed}
        files = [by_name[name] for name in sorted(by_name)]
    files = [file for file in files if is_written(file)]
    if not files:
        raise InputError(
            f"{path}: has no data of the suite 'written': expected a .txt file in the written form "
            "'domain ||| text 1 ||| text 2 ||| condition = label', or a folder of them."
        )
    return files


SUITES: dict[str, Callable[[Path], tuple[SuiteSet, ...]]] = {
    "criteria": load_criteria_sets,
    "written": load_written_sets,
    "natural": load_natural_sets,
}
"""Loaders of the suites by name; each takes the folder of the data, or the file itself."""
