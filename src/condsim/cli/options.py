"""Options that several commands share, the texts they read, and the tables they print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from typer import Option

from condsim.cli.files import Output
from condsim.data.batch import Batch, BlankRows
from condsim.data.files import check_file, column_names, read_batches
from condsim.data.formats import open_writer
from condsim.data.row import header_hint, missing_columns
from condsim.data.text import DETECTED, FileFormat
from condsim.errors import InputError, require
from condsim.io import write_json
from condsim.paths import check_suffix
from condsim.types import BoolArray, IntArray

COMPARED_TEXTS = 2_000
"""Most texts that are grouped again without a condition, to tell whether it changes anything."""

Model: TypeAlias = Annotated[
    str | None, Option(help="Model folder or Hub name.", show_default="the default model")
]
JudgeName: TypeAlias = Annotated[
    str | None, Option("--judge", help="Another judge: large, of condsim-judge, or a folder.")
]
Text1: TypeAlias = Annotated[str, Option("--text1", help="Column of the first texts.")]
Text2: TypeAlias = Annotated[str, Option("--text2", help="Column of the second texts.")]
ConditionColumn: TypeAlias = Annotated[str, Option(help="Column of the conditions.")]
Conditions: TypeAlias = Annotated[
    list[str] | None,
    Option("--condition", help="Condition for every row, in place of a column. Repeatable."),
]
Condition: TypeAlias = Annotated[
    str | None, Option("--condition", help="Condition for every row, in place of a column.")
]
TextColumn: TypeAlias = Annotated[str, Option("--column", help="Column of the texts.")]
Separator: TypeAlias = Annotated[
    str | None, Option(help="Character between the cells, or 'tab'.", show_default="detected")
]
Encoding: TypeAlias = Annotated[
    str | None, Option(help="Character set, such as latin-1.", show_default="detected")
]
LabelColumn: TypeAlias = Annotated[str, Option("--label", help="Column of the labels.")]
Positive: TypeAlias = Annotated[
    str | None,
    Option(
        help="Lowest label that counts as alike, or the word that means alike.",
        show_default="4 of 1 to 5, 0.75 of 0 to 1, 'alike', 'yes' or 'true'",
    ),
]
LabelScale: TypeAlias = Annotated[
    str | None,
    Option(
        "--scale",
        help="Lowest and highest label, such as 0-1, 1-5, 0-100 or -1-1.",
        show_default="told by the labels",
    ),
]
Seed: TypeAlias = Annotated[int, Option(min=0, help="Seed of all random draws.")]
Resamples: TypeAlias = Annotated[
    int, Option(min=1, max=100_000, help="Bootstrap resamples of the sentence pairs.")
]
RowFile: TypeAlias = Annotated[Path, Option(help="CSV or Parquet file to write."), Output(".csv")]
Exclude: TypeAlias = Annotated[
    list[Path] | None,
    Option(help="Data file whose texts are left out, or a .sha256 list of their hashes."),
]
Device: TypeAlias = Annotated[
    str | None, Option(help="Where torch runs, such as cpu or cuda.", show_default="torch chooses")
]
Scale: TypeAlias = Annotated[
    Literal["unit", "likert", "raw"],
    Option(help="unit: from 0 to 1, 0.5 is the middle. likert: from 1 to 5. raw: the cosine."),
]
Plain: TypeAlias = Annotated[
    bool, Option("--plain", help="Compare texts as a whole, without a condition.")
]
Overall: TypeAlias = Annotated[
    float, Option(min=0, max=1, help="Share of the similarity without the condition, 0 to 1.")
]
Strict: TypeAlias = Annotated[
    bool, Option("--strict", help="Stop at a row without text instead of skipping it.")
]
JsonFile: TypeAlias = Annotated[
    Path | None,
    Option(
        "--json",
        metavar="[FILE]",
        help="Also write the report as JSON; without a name, print it in place of all else.",
    ),
    Output(".json", alone=True),
]


def given(**options: object) -> dict[str, Any]:
    """Return the options that have a value; settings hold paths as texts."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in options.items()
        if value is not None
    }


def chosen_conditions(conditions: Sequence[str] | None, *, plain: bool) -> list[str] | None:
    """Return the conditions of a command, None with --plain; reject both and neither."""
    if plain == bool(conditions):
        raise InputError(
            "Give either --condition, the respect in which to compare, or --plain, which compares "
            "texts as a whole."
        )
    check_conditions(conditions or ())
    return None if plain else [*(conditions or ())]


def check_conditions(conditions: Sequence[str]) -> None:
    """Reject a condition that is given twice."""
    if len(set(conditions)) < len(conditions):
        raise InputError("--condition: give each condition once.")


def check_column(
    file: Path, column: str, file_format: FileFormat = DETECTED, *, advice: str = ""
) -> None:
    """Reject a file without a column; reading its rows finds all other faults."""
    names = column_names(file, file_format)
    if names and column.strip() not in names:
        raise missing_columns(str(file), [column], names, hint=header_hint(names), advice=advice)


def check_plot(path: Path | None, *, extra: str) -> None:
    """Reject a plot that cannot be drawn, before the work that it shows."""
    if path is not None:
        check_suffix(path, (".png",))
        require("matplotlib", extra=extra)


def write_report(path: Path | None, report: object) -> None:
    """Write the report of a command as JSON, if a file is given."""
    if path is not None:
        write_json(report, path)


def show_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    caption: str | None = None,
) -> None:
    """Print a table: names in the first column, figures in the others."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from condsim.terminal import Terminal

    table = Table(
        title=title and Text(title, style="table.title"),
        caption=caption and Text(caption, style="table.caption"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        show_header=any(head),
    )
    for index, name in enumerate(head):
        table.add_column(Text(name), justify="right" if index else "left", overflow="fold")
    # A name is never broken, however narrow the terminal; a long text may be.
    table.columns[0].min_width = min(24, max((len(row[0]) for row in rows), default=0))
    for row in rows:
        table.add_row(*map(Text, row))
    Terminal().print(table)


class TextFile:
    """Texts of a file that is read several times; all its rows are checked first.

    Attributes:
        blank: The rows without text.
        present: Which rows have a text, ``(rows,)``.
    """

    def __init__(
        self,
        path: Path,
        column: str,
        file_format: FileFormat,
        *,
        tables: bool,
        strict: bool,
        option: str = "--column",
    ) -> None:
        """Read all rows once; with ``tables``, reject what a table cannot hold."""
        check_file(path)
        check_column(path, column, file_format, advice=f" Name yours with {option}.")
        self.path, self.column, self.file_format = path, column.strip(), file_format
        self.blank = BlankRows(strict=strict)
        masks = []
        for batch in self._read():
            if tables:
                batch.check_flat()
            rows, _ = self.blank.texts(batch, [self.column])
            masks.append(np.isin(np.arange(len(batch)), rows))
        self.present: BoolArray = np.concatenate(masks)

    def _read(self, *other_columns: str) -> Iterator[Batch]:
        columns = tuple(dict.fromkeys((self.column, *other_columns)))
        return read_batches(self.path, columns=columns, file_format=self.file_format)

    def __iter__(self) -> Iterator[str]:
        for batch, rows in self.batches():
            yield from batch.take(np.flatnonzero(self.present[rows])).texts(self.column)

    def batches(self, *other_columns: str) -> Iterator[tuple[Batch, slice]]:
        """Yield batches of all rows, and their slice of the rows of the file."""
        start = 0
        for batch in self._read(*other_columns):
            rows = slice(start, start + len(batch))
            if rows.stop > len(self.present):
                raise InputError(f"{self.path}: changed while it was read. Start again.")
            yield batch, rows
            start = rows.stop

    def write(self, texts: BoolArray | IntArray, output: Path) -> BoolArray:
        """Write the rows of some texts, and those without text; return which these are."""
        chosen = ~self.present
        chosen[np.flatnonzero(self.present)[texts]] = True
        with open_writer(output) as writer:
            for batch, rows in self.batches():
                writer.write(batch.take(np.flatnonzero(chosen[rows])))
        return chosen
