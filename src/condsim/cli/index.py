"""``condsim index`` and ``search``: build an index of texts, change it and search it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.process import long_work, print_note
from condsim.data.batch import BlankRows
from condsim.data.formats import READ
from condsim.data.text import FileFormat
from condsim.errors import InputError
from condsim.io import finite_values
from condsim.model.base import COLLECTION_SHARE

if TYPE_CHECKING:
    from condsim.search.index import Index

# Hits from which a search is compared with one without a condition, and the share that is alike.
_COMPARED_HITS = 5
_SAME_HITS = 0.9

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

Folder = Annotated[
    str, Argument(help="Folder of the index, or an address such as s3://…", metavar="DIR")
]
File = Annotated[Path, Argument(help=f"File of texts: {READ}.")]
ModelOption = Annotated[
    str | None, Option(help="Model folder or Hub name.", show_default="the model of the index")
]
ConditionOption = Annotated[
    list[str] | None, Option("--condition", help="Condition to prepare. Repeatable.")
]


def _open(folder: str, model: str | None = None) -> Index:
    from condsim.search.index import Index

    return Index.open(folder, model=model)


@app.command()
def build(
    file: File,
    output: Annotated[str, Option(help="Folder or address to make the index in.")],
    column: options.TextColumn = "text",
    key: Annotated[
        str | None,
        Option(
            help="Column that identifies rows, to update them.",
            show_default="the number of the row",
        ),
    ] = None,
    condition: ConditionOption = None,
    model: options.Model = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    strict: options.Strict = False,
) -> None:
    """Encode the texts of a file and store them with all their columns.

    Files can have any size. To continue a stopped build, run the same command.

    **Examples**

    `condsim index build tickets.csv --output tickets.index`

    `condsim index build tickets.csv --output tickets.index --key id --condition "the complaint"`
    """
    from condsim.search.index import Index

    file_format = FileFormat.checked(separator, encoding)
    options.check_column(file, column, file_format)
    blank = BlankRows(strict=strict)
    with long_work(log=None) as progress:
        index = Index.build(
            file,
            output,
            text=column,
            key=key,
            condition=condition or (),
            model=model,
            blank=blank,
            file_format=file_format,
            progress=progress,
        )
    print_note(blank.note("no place in the index"))
    print_note(f"{output}: {len(index):,} texts")


@app.command()
def add(
    folder: Folder,
    file: File,
    update: Annotated[bool, Option("--update", help="Replace rows.")] = False,
    model: ModelOption = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    strict: options.Strict = False,
) -> None:
    """Add the rows of a file; a row whose key exists is skipped, or replaced.

    **Examples**

    `condsim index add tickets.index june.csv`

    `condsim index add tickets.index corrected.csv --update`
    """
    index = _open(folder, model)
    resume = "The same command continues from here."
    if index.about.key is None:
        resume = (
            f"Rows without keys may have been added: check with 'condsim index info {folder}', as "
            "the same command adds them again."
        )
    blank = BlankRows(strict=strict)
    with long_work(log=None, resume=resume) as progress:
        change = index.update if update else index.add
        file_format = FileFormat.checked(separator, encoding)
        result = change(file, blank=blank, file_format=file_format, progress=progress)
    print_note(blank.note("no place in the index"))
    replaced = f", {result.replaced:,} replaced" if result.replaced else ""
    present = f", {result.present:,} existed" if result.present else ""
    print_note(f"{folder}: {result.added:,} rows added{replaced}{present}; {len(index):,} texts")


@app.command()
def delete(
    folder: Folder,
    key: Annotated[list[str] | None, Option(help="Key of a row. Repeatable.")] = None,
    where: Annotated[str | None, Option(help="Filter in SQL.")] = None,
) -> None:
    """Delete rows by key, or those that match a filter.

    **Example**

    `condsim index delete tickets.index --where "year < 2015"`
    """
    index = _open(folder)
    deleted = index.delete(key or (), where=where)
    print_note(f"{folder}: {deleted:,} rows deleted; {len(index):,} texts")


@app.command("info")
def show_info(folder: Folder) -> None:
    """Describe an index as JSON.

    **Example**

    `condsim index info tickets.index`
    """
    index = _open(folder)
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
    condition: Annotated[list[str], Option(help="Condition to prepare. Repeatable.")],
    model: ModelOption = None,
) -> None:
    """Encode all texts under a condition: searches under it are exact and fast after that.

    To continue a stopped command, run it again.

    **Example**

    `condsim index prepare tickets.index --condition "the complaint"`
    """
    with long_work(log=None) as progress:
        index = _open(folder, model)
        for name in condition:
            encoded = index.prepare(name, progress=progress)
            progress.say(f"{name}: {encoded:,} texts encoded")


@app.command()
def approximate(folder: Folder) -> None:
    """Make an approximate index of the vectors, for more texts than fit in memory.

    Run it again after many rows were added.

    **Example**

    `condsim index approximate tickets.index`
    """
    with long_work(log=None) as progress:
        index = _open(folder)
        progress("indexing the vectors", 0, 0)
        index.approximate()
    print_note(f"{folder}: {len(index):,} vectors indexed")


def search(
    folder: Annotated[
        str, Argument(help="Folder or address of an index; see condsim index.", metavar="DIR")
    ],
    query: Annotated[str, Argument(help="Text to compare with.")],
    condition: Annotated[
        list[str] | None,
        Option(
            help="In which respect texts must be similar. Repeatable.",
            show_default="the prepared one",
        ),
    ] = None,
    plain: options.Plain = False,
    weight: Annotated[
        list[float] | None,
        Option(help="Weight of each condition, in their order.", show_default="equal"),
    ] = None,
    where: Annotated[str | None, Option(help='Filter in SQL, such as "year > 2020".')] = None,
    top: Annotated[int, Option(min=1, help="Maximum number of texts to find.")] = 10,
    at_least: Annotated[float | None, Option(min=0, max=1, help="Lowest score.")] = None,
    rescore: Annotated[
        int, Option(min=1, help="Texts that are scored under the conditions.")
    ] = 200,
    overall: options.Overall = COLLECTION_SHARE,
    json: options.JsonFile = None,
    model: ModelOption = None,
) -> None:
    """Find the texts most similar to a query with respect to a condition.

    Prints the score, the key and the text of each, best first.

    **Examples**

    `condsim search tickets.index "It came two weeks late." --condition "the complaint"`

    `condsim search tickets.index "It came two weeks late." --plain`

    `condsim search tickets.index "It came late." --condition "the complaint" --condition "the
    product" --weight 0.7 --weight 0.3 --where "year > 2020" --at-least 0.7 --json`
    """
    chosen: Sequence[str] | dict[str, float] | None = condition
    if weight:
        if len(weight) != len(condition or ()):
            raise InputError(
                f"expected one --weight for each --condition, got {len(weight)} for "
                f"{len(condition or ())}."
            )
        chosen = dict(zip(condition or (), weight, strict=True))
    index = _open(folder, model)
    find = partial(index.search, query, where=where, top=top, at_least=at_least)
    hits = find(chosen, rescore=rescore, overall=overall, plain=plain)
    options.write_report(json, finite_values([asdict(hit) for hit in hits]))
    for hit in hits:
        typer.echo(f"{hit.score:.2f}\t{hit.key}\t{' '.join(hit.text.split())}")
    if not hits:
        print_note("Nothing was found.")
    elif not plain and len(hits) >= _COMPARED_HITS:
        found = {hit.key for hit in find(plain=True)}
        if len(found.intersection(hit.key for hit in hits)) >= _SAME_HITS * len(hits):
            print_note("The condition hardly changes the result: --plain finds nearly the same.")
