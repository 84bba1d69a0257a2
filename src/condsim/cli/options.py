"""Options that several commands share, and the tables they print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from condsim.data.files import column_names
from condsim.data.row import join_names
from condsim.errors import InputError

Model: TypeAlias = Annotated[
    str | None, typer.Option(help="Model folder or Hub name.", show_default="the default model")
]
Text1: TypeAlias = Annotated[str, typer.Option("--text1", help="Column of the first texts.")]
Text2: TypeAlias = Annotated[str, typer.Option("--text2", help="Column of the second texts.")]
ConditionColumn: TypeAlias = Annotated[str, typer.Option(help="Column of the conditions.")]
LabelColumn: TypeAlias = Annotated[str, typer.Option("--label", help="Column of the labels.")]
Resamples: TypeAlias = Annotated[
    int, typer.Option(min=1, max=100_000, help="Bootstrap resamples of the sentence pairs.")
]
RowFile: TypeAlias = Annotated[Path, typer.Option(help="CSV or Parquet file to write.")]
Exclude: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(help="Data file whose texts are left out, or a .sha256 list of their hashes."),
]
Functions: TypeAlias = Annotated[
    list[Path] | None, typer.Option(help="Python file with your own labelling functions.")
]
Device: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Where torch runs, such as cpu or cuda.", show_default="torch chooses"),
]
Scale: TypeAlias = Annotated[
    Literal["unit", "likert", "raw"],
    typer.Option(
        help="unit: from 0 to 1, 0.5 is the middle. likert: from 1 to 5. raw: the cosine."
    ),
]
Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Stop at a row without text instead of skipping it.")
]
RayAddress: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Address of the Ray cluster.", show_default="one on this machine"),
]
RayWorkers: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Ray workers.", show_default="as many as fit")
]
Engine: TypeAlias = Annotated[
    Literal["local", "ray"],
    typer.Option(help="Work in this process, or on many files on a Ray cluster."),
]
JsonFile: TypeAlias = Annotated[
    Path | None, typer.Option("--json", help="Also write the report as JSON.")
]


def check_engine(engine: str, address: str | None, workers: int | None) -> None:
    """Reject options of a Ray cluster without one."""
    if engine == "local" and (address is not None or workers is not None):
        raise InputError("--address and --workers are for --engine ray.")


def whole_pair(
    sentence1: str | None, sentence2: str | None, condition: str | None
) -> tuple[str, str, str]:
    """Return the arguments of a command that takes a pair or --file."""
    if sentence1 is None or sentence2 is None or condition is None:
        raise InputError(
            "Give two sentences and a condition, or --file. The condition says in which respect to "
            "compare, such as 'the sport'."
        )
    return sentence1, sentence2, condition


def check_column(file: Path, column: str) -> None:
    """Reject a file without the column of the texts; reading its rows finds all other faults."""
    names = column_names(file)
    if names and column.strip() not in names:
        raise InputError(
            f"{file}: there is no column {column!r}; found {join_names(names)}. Name the column of "
            "the texts with --column."
        )


def revision_of(model: str | None) -> str:
    """Return what changes when a model's scores may: a hash of its files, or its Hub name."""
    from condsim.loading import NamedScorer

    name = model or "default"
    return NamedScorer(name, name).revision() or name


def write_report(path: Path | None, report: object) -> None:
    """Write the report of a command as JSON, if a file is given."""
    if path is not None:
        from condsim.evaluation.report import write_json

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

    from condsim.console import Terminal

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
