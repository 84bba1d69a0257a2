"""Several models on several data sets: one table with intervals and paired differences."""

from __future__ import annotations

import csv
import logging
import math
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from condsim import __version__
from condsim.console import Progress, silent
from condsim.data.tasks import Pairing, pair_rows
from condsim.errors import InputError, MissingExtraError, check_at_least, check_name
from condsim.evaluation.evaluate import check_scores, score_rows
from condsim.evaluation.metrics import Metrics
from condsim.evaluation.report import ResultFile, loaded_versions
from condsim.evaluation.statistics import Difference, Metric, bootstrap
from condsim.io import replacing
from condsim.model.baselines import BASELINES, UNFITTED_BASELINES, baseline, out_of_fold
from condsim.types import Float64Array, FloatArray, Scorer, Task

AVERAGE = "avg"
"""Key of the mean over all data sets that are averaged."""

LIBRARIES = ("numpy", "onnxruntime", "scikit-learn", "torch", "transformers", "bert-score")
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SuiteSet:
    """A data set of a suite.

    Attributes:
        key: Short name, unique in a suite.
        task: The labeled rows.
        group: Heading in tables, such as ``left out of training``; each group has a mean.
        averaged: Whether it counts in the means.
        train: Rows to fit baselines on; by default they are predicted out of fold.
    """

    key: str
    title: str
    task: Task
    group: str | None = None
    averaged: bool = False
    train: Task | None = None

    metric_names: ClassVar[tuple[str, ...]] = ("spearman", "pair_accuracy")
    """Names of the metrics, the main one first."""

    @cached_property
    def pairing(self) -> Pairing:
        """Pairs of rows of one sentence pair with different labels."""
        return pair_rows(self.task)

    def values(self, scores: FloatArray) -> Float64Array:
        """Compute the metrics, x 100, of raw similarities ``(n,)``; ``(metrics,)``."""
        values: Float64Array = self.statistic([scores]).point()[0]
        return values

    def draws(self, scores: Sequence[FloatArray], *, resamples: int, seed: int) -> Float64Array:
        """Compute the metrics of scorers on the same resamples; ``(scorers, metrics, b)``."""
        clusters = self.pairing.pair_ids
        return bootstrap(self.statistic(scores), clusters, resamples=resamples, seed=seed)

    def statistic(self, scores: Sequence[FloatArray]) -> Metrics:
        """Prepare the metrics of scorers for the bootstrap."""
        return Metrics(
            [np.asarray(values, np.float64) for values in scores],
            gold=self.task.gold.astype(np.float64),
            high=self.pairing.high,
            low=self.pairing.low,
            names=self.metric_names,
        )

    def describe(self) -> SuiteColumn:
        """Describe the data set for the report."""
        best = self.values(self.task.gold)
        undefined = [
            name for name, value in zip(self.metric_names, best, strict=True) if np.isnan(value)
        ]
        return SuiteColumn(
            key=self.key,
            title=self.title,
            figure=self.metric_names[0],
            revision=self.task.revision,
            rows=len(self.task),
            subsets={},
            published=True,
            group=self.group,
            conditions=len(set(self.task.conditions or ())),
            pairs=self.pairing.pairs,
            undefined=tuple(undefined),
        )


@dataclass(frozen=True)
class SuiteColumn:
    """A data set of a report.

    Attributes:
        figure: The main metric: ``spearman``, or ``accuracy`` of triplets.
        rows: Number of labeled rows, or of triplets.
        subsets: Number of rows by name of the subset; empty if there are none.
        published: Whether it has the rows that published results are of.
        pairs: Number of pairs of rows of one text pair with different labels.
        undefined: Metrics that its labels do not define; they are left out of the means.
    """

    key: str
    title: str
    figure: str
    revision: str
    rows: int
    subsets: Mapping[str, int]
    published: bool
    group: str | None = None
    conditions: int | None = None
    pairs: int | None = None
    undefined: tuple[str, ...] = ()


@dataclass(frozen=True)
class SuiteRow:
    """The results of one scorer.

    Attributes:
        figures: Metrics x 100 by key of the data set, then by name, the main one first. The key
            ``avg`` is the mean over the averaged data sets, ``avg:GROUP`` that over a group.
        comparison: By key, the main metric minus the reference's.
        seconds: Time to load and score; None if all scores were cached.
        versions: Versions of the libraries that scored.
        numbers: Number format of an encoder.
    """

    name: str
    baseline: bool
    revision: str | None
    figures: Mapping[str, Mapping[str, Metric]]
    comparison: Mapping[str, Difference]
    seconds: float | None
    versions: Mapping[str, str]
    numbers: Literal["float32", "bfloat16", "float16"] | None = None


class SuiteReport(ResultFile):
    """The result of an evaluation of several models on several data sets.

    Attributes:
        columns: The data sets.
        rows: The scorers, baselines first.
        against: Name of the reference scorer of the comparisons; None without a bootstrap.
        aggregation: How the subsets of a data set became one number.
        condition: The condition of pairs that come without one, if one was given.
        resamples: Number of bootstrap resamples; 0 without intervals.
        versions: Versions of condsim and Python.
        created: Time of the evaluation, in UTC, ISO 8601.
    """

    format: Literal[1] = 1
    columns: tuple[SuiteColumn, ...]
    rows: tuple[SuiteRow, ...]
    against: str | None
    aggregation: Literal["all", "mean", "wmean"] = "all"
    condition: str | None = None
    resamples: int
    seed: int
    versions: Mapping[str, str]
    created: str

    def to_csv(self, path: Path | str) -> None:
        """Write a line for every metric; an earlier file is replaced in one step."""
        head = ["model", "task", "figure", "value", "low", "high", "difference", "p_value"]
        with (
            replacing(Path(path)) as partial,
            partial.open("w", encoding="utf-8", newline="") as stream,
        ):
            csv.writer(stream, lineterminator="\n").writerows([head, *self._csv_lines()])

    def _csv_lines(self) -> Iterator[list[str]]:
        for row in self.rows:
            for key, metrics in row.figures.items():
                difference = row.comparison.get(key)
                for name, metric in metrics.items():
                    numbers = [metric.value, metric.low, metric.high]
                    if difference is not None:
                        numbers += [difference.value, difference.p_value]
                        difference = None
                    cells = ["" if math.isnan(value) else f"{value:.4f}" for value in numbers]
                    yield [row.name, key, name, *cells, *[""] * (5 - len(cells))]


@runtime_checkable
class UnloadedScorer(Protocol):
    """A scorer by name that is loaded when it is needed, such as `condsim.loading.NamedScorer`."""

    @property
    def name(self) -> str:
        """Name in tables."""

    def open(self) -> Scorer:
        """Load it."""

    def revision(self) -> str | None:
        """Find its version without loading it; None if it is unknown."""


@dataclass
class ScoredModel:
    """Raw similarities of a scorer, ``(n,)`` by key of the data set, and their provenance."""

    name: str
    scores: dict[str, FloatArray]
    revision: str | None = None
    seconds: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    baseline: bool = False


class SuiteScoring:
    """Scores of a suite; a subclass may compute them in another way."""

    def __init__(self, sets: Sequence[SuiteSet], *, seed: int, progress: Progress) -> None:
        """Take the data sets and the seed of the folds of fitted baselines."""
        self.sets = {suite_set.key: suite_set for suite_set in sets}
        self.seed = seed
        self.progress = progress

    def score(self, scorer: UnloadedScorer | Scorer, *, revision: str | None = None) -> ScoredModel:
        """Load a scorer and score every data set; ``revision`` is its version, if known."""
        started = time.monotonic()
        self.progress(f"{scorer.name}: loading", 0, 0)
        opened = scorer.open() if isinstance(scorer, UnloadedScorer) else scorer
        scores = {}
        for done, (key, suite_set) in enumerate(self.sets.items()):
            self.progress(scorer.name, done, len(self.sets))
            raw = np.asarray(score_rows(opened, suite_set.task).raw, dtype=np.float32)
            check_scores(f"{scorer.name} on {suite_set.title}", raw, len(suite_set.task))
            scores[key] = raw
        return ScoredModel(
            scorer.name,
            scores,
            revision=revision or scorer_revision(scorer),
            seconds=time.monotonic() - started,
            facts={"versions": loaded_versions(*LIBRARIES)},
        )

    def score_baselines(self, names: Sequence[str]) -> list[ScoredModel]:
        """Score with baselines; those that need fitting come last, on data with conditions."""
        scored = []
        for name in names:
            if name in UNFITTED_BASELINES:
                try:
                    scored.append(self.score(baseline(name), revision=name))
                except MissingExtraError as error:
                    _LOGGER.warning("%s is left out: %s", name, error)
        conditional = {k: s for k, s in self.sets.items() if s.task.conditions is not None}
        for name in names if conditional else ():
            if name not in UNFITTED_BASELINES:
                scores = {key: self.score_fitted(name, own) for key, own in conditional.items()}
                scored.append(ScoredModel(name, scores))
        for entry in scored:
            entry.baseline = True
        return scored

    def score_fitted(self, name: str, suite_set: SuiteSet) -> FloatArray:
        """Fit a baseline, on training rows or out of fold, and score a data set."""
        self.progress(f"{name} on {suite_set.title}", 0, 0)
        task = suite_set.task
        if suite_set.train is None:
            return out_of_fold(task, name=name, seed=self.seed)
        fitted = baseline(name, train=suite_set.train)
        return fitted.score(task.sentences1, task.sentences2, task.conditions)

    def draws(
        self, models: Sequence[ScoredModel], suite_set: SuiteSet, *, resamples: int
    ) -> dict[str, Float64Array]:
        """Compute the metrics on resamples, ``(metrics, b)``, by name of the scorer."""
        self.progress(f"bootstrap of {suite_set.title}", 0, 0)
        scores = {
            model.name: model.scores[suite_set.key]
            for model in models
            if suite_set.key in model.scores
        }
        drawn = suite_set.draws(list(scores.values()), resamples=resamples, seed=self.seed)
        return dict(zip(scores, drawn, strict=True))


def scorer_revision(scorer: UnloadedScorer | Scorer) -> str | None:
    """Find the version of a scorer; None if it is unknown."""
    if isinstance(scorer, UnloadedScorer):
        return scorer.revision()
    revision = getattr(scorer, "revision", None)
    return f"{scorer.name}:{revision}" if isinstance(revision, str) else None


def evaluate_suite(
    scorers: Sequence[Scorer | UnloadedScorer],
    sets: Sequence[SuiteSet],
    *,
    against: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
    baselines: Sequence[str] = (),
    progress: Progress = silent,
    scoring: SuiteScoring | None = None,
) -> SuiteReport:
    """Measure scorers on data sets, next to baselines.

    Metrics are of raw similarities: for encoders the cosine.

    Args:
        scorers: Scorers, or what loads them (`condsim.loading.named_scorer`).
        sets: The data sets; see `load_suite`.
        against: Name of the scorer that the others are compared with; the first of ``scorers`` by
            default, or the first baseline.
        resamples: Bootstrap resamples of the sentence pairs, for intervals and p-values; 0 for
            none.
        seed: Seed of the resamples and of the folds of baselines.
        baselines: Names in `condsim.model.baselines.BASELINES`.
        progress: Called with the stage, the number of finished steps and their total.
        scoring: What scores; by default every scorer is loaded and scores every row.

    Raises:
        InputError: If there is no data set or no scorer, two scorers have one name, ``against`` is
            not one of them, ``resamples`` is negative, or a baseline is unknown.
        ModelError: If a model cannot be loaded or gives a score that is not finite.
        MissingExtraError: If a model needs a library that is missing.
    """
    check_at_least(0, resamples=resamples)
    for name in baselines:
        check_name("baseline", name, BASELINES)
    has_conditions = any(suite_set.task.conditions is not None for suite_set in sets)
    names = [name for name in baselines if has_conditions or name in UNFITTED_BASELINES]
    for scorer in scorers:
        if scorer.name in names:
            raise InputError(f"Two scorers are called {scorer.name!r}; name one with LABEL=NAME.")
        names.append(scorer.name)
    if not names or not sets:
        raise InputError("A suite needs at least one data set and one scorer or baseline.")
    if against is not None:
        check_name("scorer to compare with", against, names)

    scoring = scoring or SuiteScoring(sets, seed=seed, progress=progress)
    models = scoring.score_baselines(baselines)
    models += [scoring.score(scorer) for scorer in scorers]
    reference = None
    if resamples:
        first = next((model.name for model in models if not model.baseline), models[0].name)
        reference = against or first
    columns = tuple(suite_set.describe() for suite_set in sets)
    samples = _samples(models, sets, scoring, resamples=resamples)
    _add_means(samples, sets, columns)
    return SuiteReport(
        columns=columns,
        rows=tuple(_suite_row(model, samples, reference) for model in models),
        against=reference,
        resamples=resamples,
        seed=seed,
        versions={"condsim": __version__, "python": platform.python_version()},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


# By name of the scorer, key of the data set and name of the metric: its value on the rows, then
# that on each resample, ``(1 + b,)``.
_Samples = dict[str, dict[str, dict[str, Float64Array]]]


def _samples(
    models: Sequence[ScoredModel],
    sets: Sequence[SuiteSet],
    scoring: SuiteScoring,
    *,
    resamples: int,
) -> _Samples:
    samples: _Samples = {model.name: {} for model in models}
    for suite_set in sets:
        drawn = scoring.draws(models, suite_set, resamples=resamples) if resamples else {}
        for model in models:
            if suite_set.key in model.scores:
                values = suite_set.values(model.scores[suite_set.key])[:, None]
                draws = drawn.get(model.name, np.empty((len(values), 0)))
                joined = np.concatenate([values, draws], axis=1)
                names = suite_set.metric_names
                samples[model.name][suite_set.key] = dict(zip(names, joined, strict=True))
    return samples


def mean_keys(sets: Sequence[SuiteSet]) -> dict[str, list[str]]:
    """Return the keys of the data sets that each mean is over, by its key."""
    averaged = [suite_set for suite_set in sets if suite_set.averaged]
    means = {AVERAGE: [suite_set.key for suite_set in averaged]} if averaged else {}
    for suite_set in averaged:
        if suite_set.group is not None:
            means.setdefault(group_average(suite_set.group), []).append(suite_set.key)
    return means


def group_average(group: str) -> str:
    """Return the key of the mean over the sets of a group."""
    return f"{AVERAGE}:{group}"


def _add_means(samples: _Samples, sets: Sequence[SuiteSet], columns: Sequence[SuiteColumn]) -> None:
    """Add the means over data sets to the results of each scorer that has all of them."""
    undefined = {column.key: column.undefined for column in columns}
    names = {suite_set.key: suite_set.metric_names for suite_set in sets}
    for mean, keys in mean_keys(sets).items():
        for results in samples.values():
            if not all(key in results for key in keys):
                continue
            results[mean] = {}
            for name in names[keys[0]]:
                # The mean is over the sets whose labels define the metric; NaN if none does.
                defined = [key for key in keys if name not in undefined[key]] or keys
                results[mean][name] = np.mean([results[key][name] for key in defined], axis=0)


def _suite_row(model: ScoredModel, samples: _Samples, reference: str | None) -> SuiteRow:
    figures = {
        key: {name: Metric.of(values[0], values[1:]) for name, values in metrics.items()}
        for key, metrics in samples[model.name].items()
    }
    comparison = {}
    if reference is not None and model.name != reference:
        for key, metrics in samples[model.name].items():
            if key in samples[reference]:
                main = next(iter(metrics))
                gaps = metrics[main] - samples[reference][key][main]
                comparison[key] = Difference.of(gaps[0], gaps[1:])
    return SuiteRow(
        name=model.name,
        baseline=model.baseline,
        revision=model.revision,
        figures=figures,
        comparison=comparison,
        seconds=model.seconds,
        versions=model.facts.get("versions", {}),
        numbers=model.facts.get("numbers"),
    )
