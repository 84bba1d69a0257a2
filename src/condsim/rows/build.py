"""Conditional rows drawn from labeled tables, and the report on them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from condsim.console import Progress, silent
from condsim.data.batch import BlankRows
from condsim.data.files import column_names
from condsim.data.held_out import HeldOutTexts, held_out_texts
from condsim.data.tables import CriteriaPair, CriteriaText, has_criteria_columns, iter_criteria
from condsim.data.text import DETECTED, FileFormat
from condsim.errors import InputError, check_name
from condsim.evaluation.statistics import spearman
from condsim.io import check_not_input
from condsim.paths import stem_of
from condsim.rows.collection import Collected, collect_pairs, collect_texts
from condsim.rows.records import TableRow, counted, write_provenance, write_rows
from condsim.rows.sampler import (
    GroupSampler,
    JudgedPair,
    TextGroup,
    crossing_pairs,
    groups_of_pairs,
)
from condsim.rows.settings import CriteriaSettings, derive_wordings

# Rows of a criterion that bring in one more wording.
_ROWS_PER_WORDING = 45
# Weights of the rule that leaves rows out first whose words give their label away.
_EASY_FIRST_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)

_NO_TEXTS = HeldOutTexts()
_SPLITS = frozenset(("train", "dev", "test", "val", "valid", "validation"))


@dataclass(frozen=True, slots=True)
class CriteriaRow(TableRow):
    """Two texts under a condition, a wording of the criterion; label from 1 to 5."""

    sentence1: str
    sentence2: str
    condition: str
    label: float
    criterion: str
    set: str


@dataclass(frozen=True, slots=True)
class GroupRow(CriteriaRow):
    """A row for training; the rows of a ``group`` have a few texts and conditions in common."""

    group: str


@dataclass(frozen=True, slots=True)
class PairRow(CriteriaRow):
    """A row for evaluation; two with one ``pair_id`` are one pair of texts, alike and different."""

    pair_id: str


class ChosenPair(NamedTuple):
    """A judged pair with the number of its wording and of its group."""

    pair: JudgedPair
    wording: int
    group: int


class Wordings:
    """Wordings of one criterion, and the rows of each by distance, ``(wordings, steps + 1)``."""

    def __init__(
        self, name: str, steps: int, settings: CriteriaSettings, generator: random.Random
    ) -> None:
        own = settings.of(name)
        derived = derive_wordings(own.name or name)
        alternatives = list(derived[1:] if own.wordings is None else own.wordings)
        generator.shuffle(alternatives)
        self.names = list(dict.fromkeys((own.name or derived[0], *alternatives)))
        self.counts = np.zeros((len(self.names), steps + 1), np.int64)
        self._own_share = settings.own_name if len(self.names) > 1 else 1.0

    def gains(self, distances: Sequence[int]) -> NDArray[np.int64]:
        """Return how many more rows are in balance if these are added, by wording."""
        added = np.bincount(distances, minlength=self.counts.shape[1])
        return _in_balance(self.counts + added) - _in_balance(self.counts)

    def choose(self, distances: Sequence[int]) -> int:
        """Choose the own name in its share of the rows, or the wording that gains most."""
        balanced = _in_balance(self.counts)
        if self._own_share > 0 and balanced[0] <= self._own_share * balanced.sum():
            return 0
        # A few rows spread over all wordings would leave most of them out of balance.
        allowed = 2 + int(balanced[1:].sum()) // _ROWS_PER_WORDING
        order = np.lexsort((self.counts.sum(axis=1), -self.gains(distances)))
        return int(order[(order > 0) & (order < allowed)][0])

    def rows(self, settings: CriteriaSettings) -> int:
        """Return how many rows will be written."""
        rows, balanced = int(self.counts.sum()), int(_in_balance(self.counts).sum())
        if settings.balance == "none":
            return rows
        # In the form of pairs, rows out of balance get a partner; in groups they are left out.
        return 2 * rows - balanced if settings.form == "pairs" else balanced


def _in_balance(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count rows that have one at the opposite distance, ``(..., distances)`` to ``(...)``."""
    rows: NDArray[np.int64] = np.minimum(counts, counts[..., ::-1]).sum(axis=-1)
    return rows


class RowSelection:
    """Rows of the groups that are drawn, until there are enough."""

    def __init__(self, source: Collected, settings: CriteriaSettings) -> None:
        # Rows that will be written.
        self.size = 0
        self._source, self._settings = source, settings
        generator = random.Random(f"{settings.seed}/{source.name}/rows")
        self._wordings = [
            Wordings(name, steps, settings, generator) for name, steps in source.steps.items()
        ]
        self._steps = np.array(list(source.steps.values()))
        self._chosen: list[ChosenPair] = []
        self._groups = 0

    def add(self, group: TextGroup) -> bool:
        """Add rows under one wording a criterion; return whether there is room for more.

        A filler adds only rows that bring others into balance. Of the group that is too large, as
        many criteria are added as there is room for; in the form of pairs, both rows or none.
        """
        exact, in_pairs = self._settings.balance == "exact", self._settings.form == "pairs"
        by_criterion: defaultdict[int, list[JudgedPair]] = defaultdict(list)
        for pair in group.judged:
            by_criterion[pair.criterion].append(pair)
        added: list[tuple[int, list[JudgedPair]]] = []
        for criterion, pairs in by_criterion.items():
            wordings, distances = self._wordings[criterion], [pair.distance for pair in pairs]
            wording = wordings.choose(distances)
            if group.is_filler and exact:
                gains = wordings.gains(distances)
                wording = int(gains.argmax())
                if gains[wording] <= 0:
                    continue
            self._count(wording, pairs)
            added.append((wording, pairs))
        is_full = self.size > self._settings.rows
        while added and is_full and (in_pairs or self.size > self._settings.rows):
            self._count(*added.pop(), times=-1)
        for wording, pairs in added:
            self._chosen += [ChosenPair(pair, wording, self._groups) for pair in pairs]
        self._groups += 1
        return not is_full

    def _count(self, wording: int, pairs: Sequence[JudgedPair], *, times: int = 1) -> None:
        """Count rows of a wording; -1 times takes them back."""
        wordings = self._wordings[pairs[0].criterion]
        before = wordings.rows(self._settings)
        np.add.at(wordings.counts[wording], [pair.distance for pair in pairs], times)
        self.size += wordings.rows(self._settings) - before

    def rows(self) -> tuple[list[CriteriaRow], list[float]]:
        """Return the rows, shuffled within a group and criterion, and the word overlap of each."""
        exact, in_pairs = self._settings.balance == "exact", self._settings.form == "pairs"
        chosen = self._leave_out() if exact else self._chosen
        noise = np.random.default_rng(self._settings.seed).random(len(chosen))
        order = sorted(
            range(len(chosen)),
            key=lambda i: (chosen[i].group, 0 if in_pairs else chosen[i].pair.criterion, noise[i]),
        )
        kind = PairRow if in_pairs else GroupRow
        source, criteria = self._source, list(self._source.steps)
        rows: list[CriteriaRow] = []
        for pair, wording, group in (chosen[index] for index in order):
            row = kind(
                source.texts[pair.text1],
                source.texts[pair.text2],
                self._wordings[pair.criterion].names[wording],
                5 - 4 * pair.distance / int(self._steps[pair.criterion]),
                criteria[pair.criterion],
                source.name,
                f"{source.name}-{group:05d}",
            )
            rows.append(row)
        return rows, [chosen[index].pair.overlap for index in order]

    def _leave_out(self) -> list[ChosenPair]:
        """Leave out the rows that have no row of their wording at the opposite distance.

        Rows whose words give their label away are left out first, but no more of them than makes
        shared words say nothing about the labels.
        """
        criterion = np.array([row.pair.criterion for row in self._chosen], np.int64)
        distance = np.array([row.pair.distance for row in self._chosen], np.int64)
        wording = np.array([row.wording for row in self._chosen], np.int64)
        overlap = np.array([row.pair.overlap for row in self._chosen])
        steps = self._steps[criterion]
        first_cell = (wording * len(self._steps) + criterion) * (self._steps.max() + 1)
        cell, opposite = first_cell + distance, first_cell + steps - distance
        counts = np.bincount(cell, minlength=int(opposite.max(initial=0)) + 1)
        starts = np.cumsum(counts) - counts
        alike = 1 - 2 * distance / steps
        easiness = np.argsort(np.argsort(alike * overlap)) / max(1, len(alike))
        noise = np.random.default_rng(self._settings.seed).random(len(alike))
        best, best_gap = np.array([], np.int64), np.inf
        for weight in _EASY_FIRST_WEIGHTS:
            order = np.lexsort((weight * easiness + (1 - weight) * noise, cell))
            rank_in_cell = np.arange(len(order)) - starts[cell[order]]
            remaining = order[rank_in_cell < counts[opposite[order]]]
            gap = abs(float((alike * overlap)[remaining].sum()))
            if gap < best_gap:
                best, best_gap = remaining, gap
        return [self._chosen[index] for index in best.tolist()]


class NoRowsError(InputError):
    """No row can be drawn in the form that the settings name."""


def choose_rows(
    source: Collected,
    groups: Iterable[TextGroup],
    settings: CriteriaSettings,
    *,
    progress: Progress,
) -> tuple[list[CriteriaRow], list[float]]:
    """Choose rows until there are enough; return them and the word overlap of each."""
    selection = RowSelection(source, settings)
    if settings.form == "pairs":
        # With one criterion no pair is both alike and different, and all groups would be drawn.
        steps = list(source.steps.values())
        groups = crossing_pairs(groups, steps) if len(steps) > 1 else ()
    fillers: list[TextGroup] = []
    for group in groups:
        if group.is_filler:
            fillers.append(group)
        elif not selection.add(group):
            break
        progress("rows", selection.size, settings.rows)
    random.Random(settings.seed).shuffle(fillers)
    for filler in fillers:
        if not selection.add(filler):
            break
    return selection.rows()


@dataclass(frozen=True)
class SetReport:
    """Counts of the rows drawn from one table; groups are pairs in the form ``pairs``.

    Texts or pairs are excluded if they are held out, and repeated if they came before. The word
    overlap is the Spearman correlation of the labels with the share of words that both texts have,
    -1 to 1; NaN where all labels are the same.
    """

    name: str
    texts: int
    excluded: int
    repeated: int
    rows: int
    groups: int
    criteria: dict[str, int]
    unused: tuple[str, ...]
    word_overlap: float


@dataclass(frozen=True)
class CriteriaReport:
    """Number of rows that were drawn from all tables, and the report on each."""

    rows: int
    sets: tuple[SetReport, ...]


def build_criteria(
    paths: Sequence[Path],
    output: Path,
    settings: CriteriaSettings,
    *,
    text: str = "text",
    criteria: Sequence[str] | None = None,
    separator: str | None = None,
    file_format: FileFormat = DETECTED,
    blank: BlankRows | None = None,
    exclude: Sequence[Path] = (),
    progress: Progress = silent,
) -> CriteriaReport:
    """Write conditional rows of labeled tables and a manifest; the same input gives the same file.

    Each table is a separate set; forms and options are as in `iter_criteria`. Texts of ``exclude``
    are left out; see `condsim.data.held_out.held_out_texts`. The output is CSV or Parquet.
    """
    for path in (*paths, *exclude):
        check_not_input(output, path)
    held_out = held_out_texts(exclude)
    reports: list[SetReport] = []

    def rows() -> Iterator[CriteriaRow]:
        names: set[str] = set()
        for path, name in zip(paths, _set_names(paths), strict=True):
            items = iter_criteria(
                path,
                text=text,
                criteria=criteria,
                separator=separator,
                file_format=file_format,
                blank=blank,
            )
            is_table = has_criteria_columns(column_names(path, file_format))
            source, groups = _open_source(
                counted(items, progress, stage="read"),
                settings,
                name=name,
                held_out=held_out,
                refuse_numbers=criteria is None and settings.bins is None and is_table,
            )
            names.update(source.steps, source.unused)
            drawn, report = _draw_set(source, groups, settings, progress)
            reports.append(report)
            yield from drawn
        for name in settings.criteria:
            check_name("criterion in the settings:", name, names)

    written = write_rows(rows(), output, kind=PairRow if settings.form == "pairs" else GroupRow)
    report = CriteriaReport(written, tuple(reports))
    facts = {
        "excluded": [*map(str, exclude)],
        "columns": {"text": text, "criteria": criteria, "separator": separator},
        "settings": settings.model_dump(),
        "report": report,
    }
    write_provenance(output, kind="criteria rows", made_from=paths, facts=facts)
    return report


def criteria_rows(
    items: Iterable[CriteriaText | CriteriaPair],
    settings: CriteriaSettings,
    *,
    name: str = "texts",
    held_out: HeldOutTexts = _NO_TEXTS,
    refuse_numbers: bool = False,
    progress: Progress = silent,
) -> list[CriteriaRow]:
    """Draw conditional rows of texts with attributes, or of labeled pairs, read once.

    The name of the set is a part of the seed. Rows are of the type `GroupRow`, or `PairRow` in the
    form ``pairs``; InputError if no criterion can be used, or one is of numbers that no setting
    names and these are refused.

    Example:
        >>> names = ("Ann", "Bob", "Cy")
        >>> texts = [f"{name} {verb} a {thing}" for name in names
        ...          for verb in ("buys", "sells") for thing in ("car", "boat")]
        >>> items = [CriteriaText(text, {"the action": (text.split()[1],),
        ...                              "the vehicle": (text.split()[3],)}) for text in texts]
        >>> rows = criteria_rows(items, CriteriaSettings(rows=40, own_name=1.0))
        >>> sorted({(row.condition, row.label) for row in rows})
        [('the action', 1.0), ('the action', 5.0), ('the vehicle', 1.0), ('the vehicle', 5.0)]
    """
    source, groups = _open_source(
        items, settings, name=name, held_out=held_out, refuse_numbers=refuse_numbers
    )
    return _draw_set(source, groups, settings, progress)[0]


def _open_source(
    items: Iterable[CriteriaText | CriteriaPair],
    settings: CriteriaSettings,
    *,
    name: str,
    held_out: HeldOutTexts,
    refuse_numbers: bool = False,
) -> tuple[Collected, Iterable[TextGroup]]:
    """Collect the items, which are all texts or all pairs, and return the groups to draw."""
    remaining = iter(items)
    first = list(islice(remaining, 1))
    all_items = chain(first, remaining)
    if first and isinstance(first[0], CriteriaPair):
        labeled = cast(Iterable[CriteriaPair], all_items)
        pairs = collect_pairs(labeled, settings, name=name, held_out=held_out)
        return pairs, groups_of_pairs(pairs, settings)
    attributed = cast(Iterable[CriteriaText], all_items)
    texts = collect_texts(
        attributed, settings, name=name, held_out=held_out, refuse_numbers=refuse_numbers
    )
    return texts, GroupSampler(texts, settings)


def _draw_set(
    source: Collected, groups: Iterable[TextGroup], settings: CriteriaSettings, progress: Progress
) -> tuple[list[CriteriaRow], SetReport]:
    rows, overlaps = choose_rows(source, groups, settings, progress=progress)
    if not rows:
        raise NoRowsError(
            f"{source.name}: no row can be drawn; give more texts"
            + (", more criteria that cut across each other" if settings.form == "pairs" else "")
            + (f", or ask for more than {settings.rows} rows." if settings.rows < 10 else ".")
        )
    report = SetReport(
        name=source.name,
        texts=len(source.texts),
        excluded=source.left_out["excluded"],
        repeated=source.left_out["repeated"],
        rows=len(rows),
        groups=len({astuple(row)[-1] for row in rows}),
        criteria=dict(Counter(row.criterion for row in rows).most_common()),
        unused=tuple(source.unused),
        word_overlap=spearman([row.label for row in rows], overlaps),
    )
    return rows, report


def _set_names(paths: Sequence[Path]) -> list[str]:
    """Name sets after their files, or after their folders where a file is named after a split."""
    stems = [stem_of(path) for path in paths]
    names = [
        path.absolute().parent.name if stem in _SPLITS or stems.count(stem) > 1 else stem
        for path, stem in zip(paths, stems, strict=True)
    ]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(
            f"Each table must have a unique name, and two would be called {repeated[0]!r}; "
            "rename a file, or give each table once."
        )
    return names
