"""From labelled tables to a file of conditional rows."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from condsim.console import Progress, silent
from condsim.data.held_out import HeldOutTexts, held_out_texts
from condsim.data.reading import column_names, stem_of
from condsim.data.tables import CriteriaPair, CriteriaText, iter_criteria
from condsim.errors import InputError
from condsim.evaluation.correlation import spearman
from condsim.io import check_not_input
from condsim.rows.criteria.balance import CriteriaRow, GroupRow, PairRow, choose_rows
from condsim.rows.criteria.collect import Labelled, check_names, collect_texts, is_number
from condsim.rows.criteria.draw import TextGroup, collect_pairs, draw_groups, groups_of_pairs
from condsim.rows.criteria.settings import CriteriaSettings
from condsim.rows.records import BLOCK, plain_values, write_provenance, write_rows

_NONE = HeldOutTexts()
_SPLITS = frozenset(("train", "dev", "test", "val", "valid", "validation"))


@dataclass(frozen=True)
class SetReport:
    """What was drawn from one table."""

    name: str
    texts: int  # texts that rows were drawn from
    excluded: int  # texts or pairs left out since they are held out
    repeated: int  # texts or pairs left out since they came before
    rows: int
    groups: int  # groups, or pairs in the form ``pairs``, that have a row
    criteria: dict[str, int]  # rows by criterion
    # Criteria without rows: left out, or without two values of two texts each.
    unused: tuple[str, ...]
    # Spearman correlation of the labels with the share of words that both texts have, -1 to 1; NaN
    # where all labels are the same.
    word_overlap: float


@dataclass(frozen=True)
class CriteriaReport:
    """What was drawn from all tables."""

    rows: int
    sets: tuple[SetReport, ...]  # what was drawn from each


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
    """Makes conditional rows of labelled tables; the same input gives the same file.

    Args:
        paths: The tables, each a set of its own; forms as `iter_criteria` reads them.
        output: A ``.csv`` or ``.parquet`` file to write; a manifest lies beside it.
        text: The column of texts in a table.
        criteria: The criteria to use; all if None.
        separator: What separates several values in a cell of a table.
        exclude: Files of texts to leave out; see `condsim.data.held_out.held_out_texts`.
        progress: Called with the stage, what is done and what there is.

    Raises:
        InputError: If a file cannot be read or written, no criterion of a table can be used, the
            settings name a criterion that is in no table, or a column of numbers was not asked for.
        MissingExtraError: If a file is Parquet and pyarrow is not installed.
    """
    for path in (*paths, *exclude):
        check_not_input(output, path)
    held_out = held_out_texts(exclude)
    reports: list[SetReport] = []
    names: set[str] = set()

    def rows() -> Iterator[CriteriaRow]:
        for path, name in zip(paths, _set_names(paths), strict=True):
            items = iter_criteria(path, text=text, criteria=criteria, separator=separator)
            if criteria is None and settings.bins is None and _is_table(path):
                items = _no_numbers(items, path, settings)
            items = _told(items, progress)
            source, groups = _open_source(items, settings, name=name, held_out=held_out)
            names.update(source.steps, source.unused)
            yield from _drawn(source, groups, settings, reports, progress)
        check_names(settings.criteria, names)

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
    held_out: HeldOutTexts = _NONE,
) -> Iterator[CriteriaRow]:
    """Draws conditional rows of texts with attributes, or of labelled pairs.

    Args:
        items: The texts or the pairs, read once and kept in memory.
        name: Name of the set; a part of the seed.
        held_out: Texts to leave out.

    Returns:
        Iterator over rows of the type `GroupRow`, or `PairRow` in the form ``pairs``.

    Raises:
        InputError: If no criterion can be used.

    Example:
        >>> names = ("Ann", "Bob", "Cy")
        >>> texts = [f"{name} {verb} a {thing}" for name in names
        ...          for verb in ("buys", "sells") for thing in ("car", "boat")]
        >>> items = [CriteriaText(text, {"the action": (text.split()[1],),
        ...                              "the vehicle": (text.split()[3],)}) for text in texts]
        >>> rows = list(criteria_rows(items, CriteriaSettings(rows=40, own_name=1.0)))
        >>> sorted({(row.condition, row.label) for row in rows})
        [('the action', 1.0), ('the action', 5.0), ('the vehicle', 1.0), ('the vehicle', 5.0)]
    """
    source, groups = _open_source(items, settings, name=name, held_out=held_out)
    return _drawn(source, groups, settings, [], silent)


def _open_source(
    items: Iterable[CriteriaText | CriteriaPair],
    settings: CriteriaSettings,
    *,
    name: str,
    held_out: HeldOutTexts,
) -> tuple[Labelled, Iterator[TextGroup]]:
    """Gives what rows are drawn from, and the groups that are drawn."""
    remaining = iter(items)
    first = list(islice(remaining, 1))
    both = chain(first, remaining)
    if first and isinstance(first[0], CriteriaPair):
        only_pairs = (item for item in both if isinstance(item, CriteriaPair))
        pairs = collect_pairs(only_pairs, settings, name=name, held_out=held_out)
        return pairs, groups_of_pairs(pairs, settings)
    only_texts = (item for item in both if isinstance(item, CriteriaText))
    texts = collect_texts(only_texts, settings, name=name, held_out=held_out)
    return texts, draw_groups(texts, settings)


def _drawn(
    source: Labelled,
    groups: Iterator[TextGroup],
    settings: CriteriaSettings,
    reports: list[SetReport],
    progress: Progress,
) -> Iterator[CriteriaRow]:
    """The rows of a set; its report is added at the end."""
    labels, overlaps, written = array("f"), array("f"), set()
    rows_of: Counter[str] = Counter()
    if settings.form == "pairs" and len(source.steps) < 2:
        groups = iter(())  # it would draw until all pairs are used up
    for row, group, overlap in choose_rows(source, groups, settings, progress=progress):
        labels.append(row.label)
        overlaps.append(overlap)
        written.add(group)
        rows_of[row.criterion] += 1
        yield row
    if not labels:
        why = (
            "pairs need texts that are alike in one criterion and different in another; give more "
            "criteria, or the form 'groups'"
            if settings.form == "pairs"
            else "no two texts can be told alike and no two different; give more texts"
        )
        why += f", or ask for more than {settings.rows} rows" if settings.rows < 10 else ""
        raise InputError(f"{source.name}: no row can be drawn: {why}.")
    reports.append(
        SetReport(
            name=source.name,
            texts=len(source.texts),
            excluded=source.excluded,
            repeated=source.repeated,
            rows=len(labels),
            groups=len(written),
            criteria=dict(rows_of.most_common()),
            unused=tuple(source.unused),
            word_overlap=spearman(labels, overlaps),
        )
    )


def _set_names(paths: Sequence[Path]) -> list[str]:
    """Names sets after their files; a file that is named after a split, after its folder."""
    stems = [stem_of(path) for path in paths]
    names = [
        path.absolute().parent.name if stem in _SPLITS or stems.count(stem) > 1 else stem
        for path, stem in zip(paths, stems, strict=True)
    ]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(
            f"Each table is a set, and two would be called {twice[0]!r}. Rename a file, or give "
            "each table once."
        )
    return names


def _is_table(path: Path) -> bool:
    """Whether a file has a column for each criterion."""
    names = column_names(path)
    return not any({*form} <= {*names} for form in (("text", "attributes"), ("text1", "labels")))


def _told(
    items: Iterable[CriteriaText | CriteriaPair], progress: Progress
) -> Iterator[CriteriaText | CriteriaPair]:
    """The items, while their number is shown."""
    for number, item in enumerate(items):
        if number % BLOCK == 0:
            progress("read", number, 0)
        yield item


def _no_numbers(
    items: Iterable[CriteriaText | CriteriaPair], path: Path, settings: CriteriaSettings
) -> Iterator[CriteriaText | CriteriaPair]:
    """Refuses columns of numbers that nobody named, such as an id or a price."""
    numeric: dict[str, bool] = {}
    for item in items:
        if isinstance(item, CriteriaText):
            for name, values in item.attributes.items():
                if numeric.get(name, True):
                    numeric[name] = all(map(is_number, values))
        yield item
    for name, found in numeric.items():
        if found and name not in settings.criteria:
            raise InputError(
                f"{path}: the column {name!r} holds numbers, which are not just alike or "
                "different. Grade them with --bins, or name the columns to use with --criteria."
            )
