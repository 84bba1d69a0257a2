"""The data sets of the STS suite, found in a folder by their released file names."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from condsim.data.load import load_task
from condsim.data.nli_triplets import Triplets, load_triplets
from condsim.data.tasks import join_tasks
from condsim.errors import InputError, check_name
from condsim.evaluation.metrics import triplet_wins
from condsim.evaluation.statistics import bootstrap
from condsim.evaluation.suite import SuiteColumn, SuiteSet
from condsim.types import Float64Array, FloatArray, Task
from papers.data.afs import load_afs_topics
from papers.data.sections import draw_section_triplets, load_wiki_sections
from papers.data.sick import load_sick
from papers.data.sts import STS_COUNTS, STS_YEARS, load_sts_year, subset_of

Aggregation = Literal["all", "mean", "wmean"]
"""Ways to make one correlation for a year of STS, whose test set is several subsets.

``all``: the subsets put one after the other, then one Spearman (SBERT, SimCSE, SSBC, MTEB);
``mean``: the mean of the Spearman of each subset (Giorgi et al., 2021, DeCLUTR); ``wmean``: the
same, each weighted by its rows (BERT-flow, BERT-whitening). Results of different kinds are not
comparable (SimCSE, Gao et al., 2021, appendix B, the source of this; SSBC does not say
which, but its baselines come from SBERT). ``mean`` and ``wmean`` do not ask a model to rank the
pairs of different subsets together.
"""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class StsSet(SuiteSet):
    """A data set measured by Spearman and Pearson, perhaps of several subsets.

    Attributes:
        subsets: Number of rows of each subset in order; empty if there are none.
        names: Names of the subsets.
        aggregation: How the subsets become one number.
    """

    subsets: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    aggregation: Aggregation = "all"

    metric_names: ClassVar[tuple[str, ...]] = ("spearman", "pearson")

    def values(self, scores: FloatArray) -> Float64Array:
        """Compute the metrics, x 100, of raw similarities ``(n,)``; ``(metrics,)``."""
        parts = [part.values(scores[rows]) for rows, part in self._parts()]
        return np.asarray(np.average(parts, axis=0, weights=self._weights()))

    def draws(self, scores: Sequence[FloatArray], *, resamples: int, seed: int) -> Float64Array:
        """Compute the metrics of scorers on the same resamples; ``(scorers, metrics, b)``."""
        # Pairs are drawn with all their rows; for a mean of the subsets each is drawn on its own.
        drawn = []
        for number, (rows, part) in enumerate(self._parts()):
            part_scores = [values[rows] for values in scores]
            drawn.append(part.draws(part_scores, resamples=resamples, seed=seed + number))
        return np.asarray(np.average(drawn, axis=0, weights=self._weights()))

    def describe(self) -> SuiteColumn:
        """Describe the data set for the report."""
        subsets = dict(zip(self.names, self.subsets, strict=True))
        return replace(super().describe(), subsets=subsets, conditions=None, pairs=None)

    def _parts(self) -> Iterator[tuple[slice, _Part]]:
        """Yield the rows that are measured together."""
        ends = np.cumsum(self.subsets or (len(self.task),)).tolist()
        bounds = list(zip([0, *ends[:-1]], ends, strict=True))
        if self.aggregation == "all":
            bounds = [(0, len(self.task))]
        for start, end in bounds:
            yield slice(start, end), _Part("", "", self.task.take(np.arange(start, end)))

    def _weights(self) -> Sequence[int] | None:
        return (self.subsets or None) if self.aggregation == "wmean" else None


class _Part(SuiteSet):
    """Rows of a data set that are measured together."""

    metric_names: ClassVar[tuple[str, ...]] = StsSet.metric_names


@dataclass(frozen=True, eq=False)
class TripletSet(SuiteSet):
    """A data set measured by accuracy on triplets; the pairs with the positive come first."""

    published: bool = False

    metric_names: ClassVar[tuple[str, ...]] = ("accuracy",)

    def values(self, scores: FloatArray) -> Float64Array:
        """Compute the accuracy in %, ``(1,)``."""
        return np.array([100 * triplet_wins(scores).mean()])

    def draws(self, scores: Sequence[FloatArray], *, resamples: int, seed: int) -> Float64Array:
        """Compute the accuracy of scorers on the same resamples, ``(scorers, 1, b)``."""
        wins = np.stack([triplet_wins(values) for values in scores])  # (scorers, triplets)
        return 100 * bootstrap(
            lambda weights: (wins @ weights.T / wins.shape[1])[:, None],
            np.arange(wins.shape[1]),
            resamples=resamples,
            seed=seed,
        )

    def describe(self) -> SuiteColumn:
        """Describe the data set for the report."""
        return SuiteColumn(
            key=self.key,
            title=self.title,
            figure=self.metric_names[0],
            revision=self.task.revision,
            rows=len(self.task) // 2,
            subsets={},
            published=self.published,
        )


_MAX_DEPTH = 2
_YEAR_IN_NAME = re.compile(r"(?:sts.{0,3}?(?:20)?|(?<!\d)20)(1[2-6])(?!\d)", re.IGNORECASE)


class DataFolder:
    """The files of a folder, the shallow ones first and then by name."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(
                f"{root}: no such folder; expected the folder that contains the data sets."
            )
        self.root = root
        self._folders: dict[Path, list[Path]] = defaultdict(list)
        patterns = ["*/" * depth + "*" for depth in range(_MAX_DEPTH + 1)]
        for path in (path for pattern in patterns for path in sorted(root.glob(pattern))):
            if path.is_file():
                self._folders[path.parent].append(path)

    def file(self, *names: str, of: str | None = None) -> Path | None:
        """Find a file of one of these names, below a folder whose name contains ``of``."""
        root = self.root.resolve().name
        paths = [
            path
            for folder, files in self._folders.items()
            if of is None or of in f"{root}/{folder.relative_to(self.root)}".casefold()
            for path in files
        ]
        named = (
            path for name in names for path in paths if path.name.casefold() == name.casefold()
        )
        return next(named, None)

    def folder_of(self, pattern: str) -> Path | None:
        """Find a folder with a file that matches a pattern."""
        folders = self._folders.items()
        return next((f for f, files in folders if any(p.match(pattern) for p in files)), None)

    def sts_year(self, year: int) -> Path | None:
        """Find the folder with the subsets of a year of STS."""
        for folder, files in self._folders.items():
            subsets = [subset for file in files if (subset := subset_of(file)) is not None]
            if any(subset_year == year for subset_year, _ in subsets):
                return folder
            yearless = {subset for subset_year, subset in subsets if subset_year is None}
            years = _YEAR_IN_NAME.findall(folder.name)
            if yearless and years:
                if f"{year % 100}" in years:
                    return folder
            elif yearless >= set(STS_COUNTS[year]):
                return folder
        return None


_Loader = Callable[[DataFolder], SuiteSet | None]


def _sts(files: DataFolder, *, year: int) -> SuiteSet | None:
    folder = files.sts_year(year)
    if folder is None:
        return None
    return _joined(f"STS{year % 100}", load_sts_year(folder, year=year), averaged=True)


def _joined(name: str, subsets: Iterable[Task], *, averaged: bool = False) -> StsSet:
    parts = [task.labeled() for task in subsets]
    return StsSet(
        name.lower(),
        name,
        join_tasks(parts, name=name),
        subsets=tuple(map(len, parts)),
        names=tuple(part.name for part in parts),
        averaged=averaged,
    )


def _labeled(
    key: str, title: str, path: Path | None, *, train: Path | None = None, averaged: bool = False
) -> SuiteSet | None:
    if path is None:
        return None
    task = load_task(path, name=title, require_labels=True)
    train_task = None if train is None else load_task(train, require_labels=True)
    return StsSet(key, title, task.labeled(), train=train_task, averaged=averaged)


def _stsb(files: DataFolder) -> SuiteSet | None:
    path = files.file("sts-test.csv", "stsb-test.tsv", "stsbenchmark-test.tsv")
    return _labeled("sts-b", "STS-B", path, averaged=True)


def _stsb_dev(files: DataFolder) -> SuiteSet | None:
    path = files.file("sts-dev.csv", "stsb-dev.tsv", "stsbenchmark-dev.tsv")
    # The test rows of GLUE have no scores.
    path = path or files.file("dev.tsv", of="sts-b")
    return _labeled("sts-b-dev", "STS-B dev", path)


def _sick(files: DataFolder) -> SuiteSet | None:
    if path := files.file("SICK_test_annotated.txt", "sick_test.tsv", "sick_test.txt"):
        task = load_sick(path, name="SICK-R")
    elif path := files.file("SICK.txt", "sick.tsv"):
        task = load_sick(path, name="SICK-R", split="test")
    else:
        return None
    return StsSet("sick-r", task.name, task, averaged=True)


def _csts(files: DataFolder) -> SuiteSet | None:
    path = files.file("csts_validation.csv") or files.file("dev.csv", "validation.csv", of="csts")
    train = files.file("csts_train.csv") or files.file("train.csv", of="csts")
    return _labeled("csts", "C-STS", path, train=train)


def _afs(files: DataFolder) -> SuiteSet | None:
    folder = files.folder_of("ArgPairs_*.csv")
    return None if folder is None else _joined("AFS", load_afs_topics(folder))


def _sections(files: DataFolder) -> SuiteSet | None:
    if path := files.file("test.csv", of="section") or files.file("test.csv", of="triplet"):
        return _triplets(load_wiki_sections(path), title="Wiki sections", published=True)
    if path := files.file("sections-dev.tsv"):
        return _triplets(load_triplets(path), title="Sections", published=False)
    if text := files.file("openstax.txt.gz", "sections.txt.gz", "sections.txt"):
        return _triplets(draw_section_triplets(text).dev, title="Sections", published=False)
    return None


def _triplets(triplets: Triplets, *, title: str, published: bool) -> SuiteSet:
    return TripletSet("wiki-sections", title, triplets.pairs(), published=published)


_LOADERS: Mapping[str, _Loader] = {
    **{f"sts{year % 100}": partial(_sts, year=year) for year in STS_YEARS},
    "sts-b-dev": _stsb_dev,
    "sts-b": _stsb,
    "sick-r": _sick,
    "cxc": lambda files: _labeled("cxc", "CxC", files.file("cxc_sts_test.tsv")),
    "afs": _afs,
    "wiki-sections": _sections,
    "csts": _csts,
}
_YEARS = tuple(f"sts{year % 100}" for year in STS_YEARS)
SUITES: Mapping[str, tuple[str, ...]] = {
    "sts": (*_YEARS, "sts-b", "sick-r"),
    "sts-b": ("sts-b-dev", "sts-b"),
    **{key: (key,) for key in ("csts", "afs", "wiki-sections")},
    "all": tuple(key for key in _LOADERS if key != "sts-b-dev"),
}
"""Keys of the data sets by suite; ``sts`` has the seven columns of SSBC Table 2."""

_AVERAGED_SETS = 7
_PAGE = "papers/docs/reproduce.md says which files are looked for"


def load_sts_suite(folder: Path | str, suite: str = "sts") -> tuple[SuiteSet, ...]:
    """Find and load the data sets of a suite.

    Files are found by their names, in the folder itself or up to two levels below it. If two
    folders have the same set, the shallower one wins, then the one whose name comes first.

    Returns:
        The data sets in the order of the tables. Missing ones are skipped with a warning; for
        ``all``, without.
    """
    check_name("suite", suite, SUITES)
    files = DataFolder(Path(folder))
    loaded = {key: _LOADERS[key](files) for key in SUITES[suite]}
    sets = tuple(suite_set for suite_set in loaded.values() if suite_set is not None)
    if not sets:
        raise InputError(f"{folder}: has no data of the suite {suite!r}; {_PAGE}.")
    missing = [key for key, suite_set in loaded.items() if suite_set is None]
    if missing and suite != "all":
        _LOGGER.warning("%s: no data of %s; %s", folder, ", ".join(missing), _PAGE)
    # SSBC Table 2 averages all seven of its columns.
    if sum(suite_set.averaged for suite_set in sets) < _AVERAGED_SETS:
        sets = tuple(replace(suite_set, averaged=False) for suite_set in sets)
    return sets
