"""Conditional rows drawn from labelled tables, and the report on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import cast

from condsim.console import Progress, silent
from condsim.data.files import column_names
from condsim.data.held_out import HeldOutTexts, held_out_texts
from condsim.data.tables import CriteriaPair, CriteriaText, iter_criteria
from condsim.errors import InputError, unknown_name
from condsim.evaluation.correlation import spearman
from condsim.io import check_not_input, stem_of
from condsim.rows.criteria.balance import CriteriaRow, GroupRow, PairRow, choose_rows
from condsim.rows.criteria.collection import Labelled, collect_pairs, collect_texts
from condsim.rows.criteria.sampler import GroupSampler, TextGroup, groups_of_pairs
from condsim.rows.criteria.settings import CriteriaSettings
from condsim.rows.records import counted, plain_values, write_provenance, write_rows

_NO_TEXTS = HeldOutTexts()
_SPLITS = frozenset(("train", "dev", "test", "val", "valid", "validation"))


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
    exclude: Sequence[Path] = (),
    progress: Progress = silent,
) -> CriteriaReport:
    """Write conditional rows of labelled tables and a manifest; the same input gives the same file.

    Args:
        paths: The tables, each a separate set; forms and options as `iter_criteria` has them.
        output: A ``.csv`` or ``.parquet`` file.
        exclude: Files of texts to leave out; see `condsim.data.held_out.held_out_texts`.

    Raises:
        InputError: If a file cannot be read or written, no criterion of a table can be used, the
            settings name a criterion that is in no table, or a column of numbers is neither named
            nor cut into bins.
        MissingExtraError: If a file is Parquet and pyarrow is not installed.
    """
    for path in (*paths, *exclude):
        check_not_input(output, path)
    held_out = held_out_texts(exclude)
    reports: list[SetReport] = []

    def rows() -> Iterator[CriteriaRow]:
        names: set[str] = set()
        for path, name in zip(paths, _set_names(paths), strict=True):
            items = iter_criteria(path, text=text, criteria=criteria, separator=separator)
            source, groups = _open_source(
                counted(items, progress, stage="read"),
                settings,
                name=name,
                held_out=held_out,
                refuse_numbers=criteria is None and settings.bins is None and _is_table(path),
            )
            names.update(source.steps, source.unused)
            drawn, report = _draw_set(source, groups, settings, progress)
            reports.append(report)
            yield from drawn
        for name in settings.criteria:
            if name not in names:
                raise unknown_name("criterion in the settings:", name, names)

    written = write_rows(rows(), output, kind=PairRow if settings.form == "pairs" else GroupRow)
    report = CriteriaReport(written, tuple(reports))
    facts = {
        "excluded": [*map(str, exclude)],
        "columns": {"text": text, "criteria": criteria, "separator": separator},
        "settings": settings.model_dump(),
        "report": plain_values(report),
    }
    write_provenance(output, kind="criteria rows", made_from=paths, facts=facts)
    return report


def criteria_rows(
    items: Iterable[CriteriaText | CriteriaPair],
    settings: CriteriaSettings,
    *,
    name: str = "texts",
    held_out: HeldOutTexts = _NO_TEXTS,
) -> list[CriteriaRow]:
    """Draw conditional rows of texts with attributes, or of labelled pairs, read once.

    The name of the set is a part of the seed. Rows are of the type `GroupRow`, or `PairRow` in the
    form ``pairs``; InputError if no criterion can be used.

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
    source, groups = _open_source(items, settings, name=name, held_out=held_out)
    return _draw_set(source, groups, settings, silent)[0]


def _open_source(
    items: Iterable[CriteriaText | CriteriaPair],
    settings: CriteriaSettings,
    *,
    name: str,
    held_out: HeldOutTexts,
    refuse_numbers: bool = False,
) -> tuple[Labelled, Iterable[TextGroup]]:
    """Collect the items, which are all texts or all pairs, and return the groups to draw."""
    remaining = iter(items)
    first = list(islice(remaining, 1))
    all_items = chain(first, remaining)
    if first and isinstance(first[0], CriteriaPair):
        labelled = cast(Iterable[CriteriaPair], all_items)
        pairs = collect_pairs(labelled, settings, name=name, held_out=held_out)
        return pairs, groups_of_pairs(pairs, settings)
    attributed = cast(Iterable[CriteriaText], all_items)
    texts = collect_texts(
        attributed, settings, name=name, held_out=held_out, refuse_numbers=refuse_numbers
    )
    return texts, GroupSampler(texts, settings)


def _draw_set(
    source: Labelled, groups: Iterable[TextGroup], settings: CriteriaSettings, progress: Progress
) -> tuple[list[CriteriaRow], SetReport]:
    rows, overlaps = choose_rows(source, groups, settings, progress=progress)
    if not rows:
        raise InputError(
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


def _is_table(path: Path) -> bool:
    """Return whether a file has a column for each criterion."""
    names = set(column_names(path))
    return not (names >= {"text", "attributes"} or names >= {"text1", "labels"})
