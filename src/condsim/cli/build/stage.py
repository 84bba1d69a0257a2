"""What the commands of a stage of annotation share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from condsim.construction import Pulled, Stage, Store, Work


class StageName(StrEnum):
    """The three stages."""

    QUALIFICATION = "qualification"
    CONDITIONS = "conditions"
    VERIFICATION = "verification"


StageArgument = Annotated[StageName, typer.Argument(help="Which stage.", show_default=False)]
Folder = Annotated[
    Path, typer.Option(help="Folder of the data set; annotation.sqlite is kept in it.")
]
Server = Annotated[
    str,
    typer.Option(
        envvar="LABEL_STUDIO_URL",
        help="Address of Label Studio. The token is read from LABEL_STUDIO_API_KEY.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="qualification: triplets with known answers (a short test of condsim's own if left "
        "out). conditions: sentence pairs. verification: conditions, as 'pull' wrote them. Left "
        "out, what was handed out before stays.",
        show_default=False,
    ),
]
Pairs = Annotated[
    Path | None,
    typer.Option(
        help="qualification: pairs to write conditions for.", show_default="condsim's own"
    ),
]
Annotators = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Answers wanted for each item.",
        show_default="1 for conditions, 3 for verification",
    ),
]
Anyone = Annotated[
    bool, typer.Option("--anyone", help="Answers count whoever gives them; there is no pool.")
]
FOLDER = Path("annotation")
URL = "http://localhost:8080"
Output = Annotated[
    Path | None,
    typer.Option(
        help="Where to write what counts (.parquet or .csv).",
        show_default="conditions.parquet or ratings.parquet in the folder",
    ),
]


def works_of(store: Store, stage: Stage, data: Path | None, pairs: Path | None) -> Iterable[Work]:
    """The items of the input; none where it is left out and there are some already."""
    from condsim.construction import (
        Condition,
        condition_works,
        qualification_works,
        read_rows,
        verification_works,
    )

    if data is None and stage in store.stages():
        return ()
    if stage == "qualification":
        return qualification_works(data, pairs)
    if data is None:
        return ()
    if stage == "conditions":
        return condition_works(data)
    return verification_works(read_rows(data, Condition))


def print_pulled(stage: Stage, pulled: Pulled) -> None:
    """Prints what a pull brought."""
    foreign = f", {pulled.foreign} of tasks that are not condsim's" if pulled.foreign else ""
    typer.echo(
        f"{stage}: {pulled.annotations} annotations, {pulled.new} new, {pulled.changed} edited, "
        f"{pulled.removed} deleted{foreign}"
    )


def write_file(store: Store, stage: Stage, folder: Path, output: Path | None) -> None:
    """Writes the file of a stage, and says what is not in it."""
    from condsim.construction import write_stage

    written = write_stage(store, stage, folder, output)
    if written is not None:
        typer.echo(f"{stage}: {written.rows} rows in {written.path}")
        for reason, number in written.set_aside:
            typer.echo(f"  {number} do not count: {reason}")
