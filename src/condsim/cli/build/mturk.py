"""``condsim build mturk form | results``: the same tasks for Amazon Mechanical Turk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condsim.cli.build.stage import (
    FOLDER,
    Annotators,
    Anyone,
    Data,
    Folder,
    Output,
    Pairs,
    StageArgument,
    print_pulled,
    works_of,
    write_file,
)
from condsim.cli.running import check_output

app = typer.Typer(no_args_is_help=True)


@app.command("form")
def form(
    stage: StageArgument,
    output: Annotated[
        Path, typer.Option(help="Folder for the CSV and the HTML file.", show_default=False)
    ],
    data: Data = None,
    pairs: Pairs = None,
    folder: Folder = FOLDER,
    annotators: Annotators = None,
    anyone: Anyone = False,
) -> None:
    """Write the items that are not done as a CSV file, with the form that shows them."""
    from condsim.construction import Store, export_mturk, stage_of

    name = stage_of(stage.value)
    with Store(folder, make=True) as store:
        works = works_of(store, name, data, pairs)
        table, page, items = export_mturk(
            store, name, works, output, annotators=annotators, anyone=anyone
        )
    typer.echo(f"{name}: {items} items in {table}, their page in {page}")


@app.command("results")
def results(
    stage: StageArgument,
    batch: Annotated[Path, typer.Argument(help="CSV file of a batch.", show_default=False)],
    folder: Folder = FOLDER,
    output: Output = None,
) -> None:
    """Read the results of a batch; twice the same file changes nothing."""
    from condsim.construction import Store, import_mturk, stage_of

    check_output("--output", output)
    name = stage_of(stage.value)
    with Store(folder) as store:
        print_pulled(name, import_mturk(store, name, batch))
        write_file(store, name, folder, output)
