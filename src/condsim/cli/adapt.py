"""``condsim adapt``: adapt the default model to labeled pairs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.files import FOLDER
from condsim.cli.pairs import LabeledPairs, iter_labeled_pairs
from condsim.cli.process import long_work, print_note
from condsim.data.batch import BlankRows
from condsim.data.files import column_names, iter_rows
from condsim.data.formats import write_records
from condsim.data.text import DETECTED, FileFormat
from condsim.errors import InputError, named_as
from condsim.paths import stem_of

if TYPE_CHECKING:
    from condsim.console import Progress
    from condsim.data.tables import CriteriaText
    from condsim.training.adapt_figures import Adaptation
    from condsim.training.adaptation import AdaptSettings


def adapt_command(
    labeled: Annotated[
        Path, Argument(help="Labeled pairs, or a table with a text and its labels in each row.")
    ],
    pairs: LabeledPairs,
    output: Annotated[Path, Option(help="Folder to write."), FOLDER],
    model: Annotated[
        str | None,
        Option(help="Folder of the bi-encoder to adapt.", show_default="the default model"),
    ] = None,
    dev: Annotated[Path | None, Option(help="Labeled pairs to measure on.")] = None,
    column: options.TextColumn = "text",
    criteria: Annotated[
        list[str] | None,
        Option(
            help="In a table, the column of a criterion. Repeatable.",
            show_default="all other columns",
        ),
    ] = None,
    rows: Annotated[
        int, Option(min=50, help="Maximum number of rows to draw from a table.")
    ] = 2_000,
    epochs: Annotated[
        int | None, Option(min=1, help="Maximum number of passes over the rows.", show_default="10")
    ] = None,
    minutes: Annotated[
        float | None, Option(help="Minutes of training, planned at the speed of the first steps.")
    ] = None,
    rehearsal: Annotated[
        float | None, Option(help="Share of rehearsed texts.", show_default="1/3")
    ] = None,
    dev_share: Annotated[
        float | None, Option(help="Share to measure on.", show_default="0.2")
    ] = None,
    learning_rate: Annotated[
        float | None, Option(help="Highest learning rate.", show_default="6e-5")
    ] = None,
    seed: Annotated[int | None, Option(help="Seed of the draws.", show_default="0")] = None,
    force: Annotated[bool, Option("--force", help="Write the model in any case.")] = False,
) -> None:
    """Adapt the model to your own criteria, from 50 to 2,000 labeled pairs.

    Pairs have two texts, a condition and a label: a number from 1 to 5 or from 0 to 1, or a word
    such as alike or different. A part of them is kept to measure on. The result is an int8 model,
    as light as the default model. If it does no better on your rows, nothing is written and the
    exit status is 1. After Ctrl-C or a crash, run the same command again to continue.

    **Examples**

    `condsim adapt labeled.csv --output model`

    `condsim adapt tickets.csv --criteria topic --criteria sentiment --output model --minutes 5`

    `condsim score --model model "The room was cold." "It was freezing." "the temperature"`
    """
    from condsim.training.adaptation import AdaptSettings, adapt

    settings = AdaptSettings(
        **options.given(
            epochs=epochs,
            minutes=minutes,
            rehearsal=rehearsal,
            dev_share=dev_share,
            learning_rate=learning_rate,
            seed=seed,
        )
    )
    names = {*column_names(labeled, pairs.file_format)}
    is_table = not names & {pairs.text1, pairs.text2} and (column in names or bool(criteria))
    if criteria and not is_table:
        raise InputError(f"--criteria is for a table of texts; {labeled} has columns of pairs.")
    with TemporaryDirectory(prefix="condsim-") as folder, long_work() as progress:
        measured = None if dev is None else _write_usual_columns(dev, Path(folder, "dev"), pairs)
        if is_table:
            train, *drawn = draw_rows(
                labeled,
                Path(folder),
                settings,
                column=column,
                criteria=criteria,
                rows=rows,
                parts=("train", "dev") if dev is None else ("train",),
                file_format=pairs.file_format,
                strict=pairs.strict,
                progress=progress,
            )
            measured = measured or drawn[0]
        else:
            train = _write_usual_columns(labeled, Path(folder, "train"), pairs)
        with ExitStack() as stack:
            stack.enter_context(named_as(train, labeled))
            if measured is not None:
                stack.enter_context(named_as(measured, dev or labeled))
            result = adapt(
                train,
                output,
                model=model or "default",
                dev=measured,
                settings=settings,
                force=force,
            )
    _print_adaptation(result, output)


def _write_usual_columns(file: Path, folder: Path, pairs: LabeledPairs) -> Path:
    """Write labeled pairs under the usual names of columns, if the file has not this form."""
    from condsim.training.adapt_rows import COLUMNS, GROUP_COLUMNS

    blank = BlankRows(strict=pairs.strict)
    rows = list(iter_labeled_pairs(file, pairs, blank, conditional=True))
    print_note(blank.note("no part in the training"))
    if pairs.are_usual and pairs.scale is None and not blank.count:
        return file
    names = {*column_names(file, pairs.file_format)}
    groups = GROUP_COLUMNS if "group" in names else ()
    cells = [
        row.cells
        for row in iter_rows(file, columns=(), optional=groups, file_format=pairs.file_format)
    ]
    records = [
        dict(zip((*COLUMNS, *groups), (*fields, *map(cells[row].get, groups)), strict=True))
        for row, fields in rows
        if not np.isnan(fields[-1])
    ]
    folder.mkdir()
    path = folder / f"{stem_of(file)}.csv"
    write_records(path, records)
    return path


def draw_rows(
    table: Path,
    folder: Path,
    settings: AdaptSettings,
    *,
    column: str,
    criteria: list[str] | None,
    rows: int,
    parts: Sequence[str] = ("train", "dev"),
    file_format: FileFormat = DETECTED,
    strict: bool = False,
    progress: Progress,
) -> list[Path]:
    """Draw pairs from a table, with separate texts for training and for measuring."""
    from condsim.data.held_out import text_digest
    from condsim.data.tables import CriteriaText, has_criteria_columns, iter_criteria
    from condsim.rows.build import NoRowsError, criteria_rows
    from condsim.rows.records import write_rows
    from condsim.rows.settings import CriteriaSettings

    blank = BlankRows(strict=strict)
    rows_read = iter_criteria(
        table, text=column, criteria=criteria, file_format=file_format, blank=blank
    )
    texts = [row for row in rows_read if isinstance(row, CriteriaText)]
    print_note(blank.note("no part in the training"))
    dev_share = settings.dev_share if "dev" in parts else 0.0
    measured = _digests_to_measure(texts, share=dev_share, seed=settings.seed)
    refuse_numbers = criteria is None and has_criteria_columns(column_names(table, file_format))
    outputs = []
    for part in parts:
        is_dev = part == "dev"
        share = dev_share if is_dev else 1 - dev_share
        draw = partial(
            criteria_rows,
            [text for text in texts if (text_digest(text.text) in measured) == is_dev],
            name=stem_of(table),
            refuse_numbers=refuse_numbers,
            progress=progress,
        )
        criteria_settings = CriteriaSettings(rows=max(2, round(rows * share)), seed=settings.seed)
        try:
            # Pairs to measure on take two criteria that cut across one another, if there are.
            form: Literal["pairs", "groups"] = "pairs" if is_dev else "groups"
            drawn_rows = draw(criteria_settings.replaced(form=form))
        except NoRowsError:
            if not is_dev:
                raise
            drawn_rows = draw(criteria_settings)
        outputs.append(folder / f"{stem_of(table)}-{part}.csv")
        write_rows(drawn_rows, outputs[-1], kind=type(drawn_rows[0]))
    return outputs


def _digests_to_measure(texts: Sequence[CriteriaText], *, share: float, seed: int) -> set[bytes]:
    """Draw a share of the texts that has about this share of the texts of each value."""
    from condsim.data.held_out import stratified_share, text_digest

    values: dict[bytes, set[tuple[str, str]]] = {}
    for text in texts:
        own = {(name, value) for name, given in text.attributes.items() for value in given}
        values.setdefault(text_digest(text.text), set()).update(own)
    digests = list(values)
    return {digests[k] for k in stratified_share(list(values.values()), share=share, seed=seed)}


def _print_adaptation(result: Adaptation, output: Path) -> None:
    typer.echo(result.to_text())
    duration = f"{result.seconds / 60:.1f} minutes"
    if result.output is None:
        typer.echo(
            f"Not written: on your rows it does no better than before. Label more pairs, look for "
            f"wrong labels, or write it all the same with --force (kept in {output}.work). It took "
            f"{duration}."
        )
        raise typer.Exit(1)
    if not result.helped:
        typer.echo(f"{output}: written in {duration}, although it does no better than before.")
        return
    typer.echo(
        f"{output}: written in {duration}. Measure it on rows that it has not seen: "
        f"condsim evaluate rows.csv --model {output}"
    )
