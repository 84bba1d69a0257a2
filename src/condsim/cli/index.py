"""``condsim index``: build an index of texts and change it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condsim.cli.options import (
    Model,
    RayAddress,
    RayWorkers,
    Strict,
    check_column,
    check_engine,
)
from condsim.cli.process import long_work, print_note
from condsim.data.files import BlankRows

if TYPE_CHECKING:
    from condsim.search.store import AddResult

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

Folder = Annotated[
    str, typer.Argument(help="Folder of the index, or an address such as s3://…", metavar="DIR")
]
File = Annotated[Path, typer.Argument(help="CSV, TSV, JSONL or Parquet, perhaps gzipped.")]
ModelOption = Annotated[
    str | None, typer.Option(help="Model folder or Hub name.", show_default="that of the index")
]
ConditionOption = Annotated[
    list[str] | None, typer.Option("--condition", help="Condition to prepare. Repeatable.")
]


@app.command()
def build(
    file: File,
    output: Annotated[str, typer.Option(help="Folder or address to make the index in.")],
    column: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    key: Annotated[
        str | None,
        typer.Option(
            help="Column that identifies rows, to update them.",
            show_default="the number of the row",
        ),
    ] = None,
    condition: ConditionOption = None,
    model: Model = None,
    strict: Strict = False,
) -> None:
    """Encode the texts of a file and store them with all their columns.

    Files can have any size. To continue a stopped build, run the same command.

    **Examples**

    `condsim index build tickets.csv --output tickets.index`

    `condsim index build tickets.csv --output tickets.index --key id --condition "the complaint"`
    """
    from condsim.search.index import Index

    check_column(file, column)
    blank = BlankRows(strict=strict)
    with long_work(log=None) as progress:
        index = Index.build(
            file,
            output,
            text=column,
            key=key,
            conditions=condition or (),
            model=model,
            blank=blank,
            progress=progress,
        )
    print_note(blank.note("no place in the index"))
    print_note(f"{output}: {len(index):,} texts")


@app.command()
def add(
    folder: Folder,
    file: File,
    update: Annotated[bool, typer.Option("--update", help="Replace rows.")] = False,
    model: ModelOption = None,
    strict: Strict = False,
) -> None:
    """Add the rows of a file; a row whose key exists is skipped, or replaced.

    **Examples**

    `condsim index add tickets.index june.csv`

    `condsim index add tickets.index corrected.csv --update`
    """
    from condsim.search.index import Index

    index = Index.open(folder, model=model)
    resume = "The same command continues from here."
    if index.about.key is None:
        resume = (
            f"Rows without keys may have been added: check with 'condsim index info {folder}', as "
            "the same command adds them again."
        )
    blank = BlankRows(strict=strict)
    with long_work(log=None, resume=resume) as progress:
        change = index.update if update else index.add
        result = change(file, blank=blank, progress=progress)
    print_note(blank.note("no place in the index"))
    print_note(f"{folder}: {_counted(result)}; {len(index):,} texts")


def _counted(result: AddResult) -> str:
    text = f"{result.added:,} rows added"
    if result.replaced:
        text += f", {result.replaced:,} replaced"
    return f"{text}, {result.present:,} existed" if result.present else text


@app.command()
def delete(
    folder: Folder,
    key: Annotated[list[str] | None, typer.Option(help="Key of a row. Repeatable.")] = None,
    where: Annotated[str | None, typer.Option(help="Filter in SQL.")] = None,
) -> None:
    """Delete rows by key, or those that match a filter.

    **Example**

    `condsim index delete tickets.index --where "year < 2015"`
    """
    from condsim.search.index import Index

    index = Index.open(folder)
    deleted = index.delete(key or (), where=where)
    print_note(f"{folder}: {deleted:,} rows deleted; {len(index):,} texts")


@app.command()
def info(folder: Folder) -> None:
    """Describe an index as JSON.

    **Example**

    `condsim index info tickets.index`
    """
    from condsim.search.index import Index

    index = Index.open(folder)
    about = index.about
    content = {
        "rows": len(index),
        "model": about.model,
        "revision": about.revision,
        "format": about.format,
        "condsim": about.condsim,
        "text": about.text,
        "key": about.key,
        "columns": about.columns,
        "prepared": index.prepared(),
        "approximate": index.is_approximate,
    }
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


@app.command()
def prepare(
    folder: Folder,
    condition: Annotated[list[str], typer.Option(help="Condition to prepare. Repeatable.")],
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Encode in this process or on a Ray cluster.")
    ] = "local",
    address: RayAddress = None,
    workers: RayWorkers = None,
    model: ModelOption = None,
) -> None:
    """Encode all texts under a condition: searches under it are exact and fast after that.

    To continue a stopped command, run it again.

    **Examples**

    `condsim index prepare tickets.index --condition "the complaint"`

    `condsim index prepare tickets.index --condition "the complaint" --engine ray --address auto`
    """
    from condsim.search.index import Index

    check_engine(engine, address, workers)
    with long_work(log=None) as progress:
        index = Index.open(folder, model=model)
        encoding = None
        if engine == "ray":
            from condsim.integrations.ray import RayEncoding

            encoding = RayEncoding(model or index.about.model, address=address, workers=workers)
        for name in condition:
            encoded = index.prepare(name, encoding=encoding, progress=progress)
            progress.say(f"{name}: {encoded:,} texts encoded")


@app.command()
def approximate(folder: Folder) -> None:
    """Make an approximate index of the vectors, for more texts than fit in memory.

    Run it again after many rows were added.

    **Example**

    `condsim index approximate tickets.index`
    """
    from condsim.search.index import Index

    with long_work(log=None) as progress:
        index = Index.open(folder)
        progress("indexing the vectors", 0, 0)
        index.approximate()
    print_note(f"{folder}: {len(index):,} vectors indexed")
