"""``condsim learn`` and ``condsim assign``: a criterion from labels, and the values it assigns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.files import Output
from condsim.cli.options import TextFile
from condsim.cli.process import print_note
from condsim.data.batch import Batch
from condsim.data.formats import is_table, open_writer
from condsim.data.text import FileFormat
from condsim.errors import InputError
from condsim.evaluation.threshold import learned_threshold
from condsim.loading import load_criterion, load_encoder
from condsim.model.learned_figures import value_name

if TYPE_CHECKING:
    from condsim.model.criterion import Criterion


def learn_command(
    labels: Annotated[Path, Argument(help="File of texts and their values.")],
    condition: Annotated[str, Option(help="What the values are values of.")],
    output: Annotated[
        Path, Option(help="File to write, such as problem.criterion."), Output(".criterion")
    ],
    column: options.TextColumn = "text",
    value: Annotated[str, Option(help="Column of the values; blank cells are ignored.")] = "value",
    model: options.Model = None,
    strict: options.Strict = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Learn a criterion from labeled texts, in a second.

    25 texts with values such as `cannot log in` teach what you mean by "the problem". Give the file
    that is written wherever a command takes --condition. What it prints is measured on texts that
    nothing was learned from; where learning does not help, the criterion is the condition alone.

    **Examples**

    `condsim learn labels.csv --value problem --condition "the problem" --output problem.criterion`

    `condsim cluster tickets.csv --condition problem.criterion --k 6 --output clustered.csv`
    """
    check_criterion_name(output)
    rows = TextFile(
        labels, column, FileFormat.checked(separator, encoding), tables=False, strict=strict
    )
    options.check_column(labels, value, rows.file_format)
    texts: list[str] = []
    values: list[str | None] = []
    for batch, index in rows.batches(value):
        present = batch.take(np.flatnonzero(rows.present[index]))
        texts += present.texts(rows.column)
        for row in present.rows:
            is_missing = value_name(row.cells[value.strip()]) is None
            values.append(None if is_missing else row.text(value.strip()))
    criterion = load_encoder(model).learn(texts, values, condition=condition)
    criterion.save(output)
    show_criterion(criterion)
    print_note(rows.blank.note("no label"))
    print_note(str(output))


def assign(
    file: Annotated[Path, Argument(help="File of texts.")],
    criterion: Annotated[Path, Option(help="File of `condsim learn` or `condsim label`.")],
    output: Annotated[Path, Option(help="File to write: .csv, .tsv or .jsonl."), Output(".tsv")],
    column: options.TextColumn = "text",
    model: options.Model = None,
    strict: options.Strict = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Assign each text of a file one of the values of a criterion, or none.

    Keeps all columns and adds `value`, empty for a text unlike all labeled ones, and the
    `probability` of the likeliest value.

    **Examples**

    `condsim assign tickets.csv --criterion problem.criterion --output assigned.csv`
    """
    learned = load_criterion(criterion, model=model)
    rows = TextFile(
        file,
        column,
        FileFormat.checked(separator, encoding),
        tables=is_table(output),
        strict=strict,
    )
    counts: dict[str | None, int] = {}
    with open_writer(output) as writer:
        for batch in _assigned_batches(rows, learned, counts):
            writer.write(batch)
    table = sorted(counts.items(), key=lambda item: -item[1])
    options.show_table(
        ("value", "texts"), [(name or "none of these", f"{count:,}") for name, count in table]
    )
    figures = learned.figures
    print_note(
        f"Of labeled texts, {100 * (figures.turned_away or 0):.0f} % were turned away"
        + (
            f"; of texts of an unknown value, {100 * figures.let_in:.0f} % were let in."
            if figures.let_in is not None
            else "."
        )
    )
    print_note(rows.blank.note("no value"))
    print_note(f"{output}: {writer.rows} rows")


def _assigned_batches(
    file: TextFile, criterion: Criterion, counts: dict[str | None, int]
) -> Iterator[Batch]:
    """Yield the rows with their values, and count these."""
    for batch, index in file.batches():
        present = np.flatnonzero(file.present[index])
        values: list[str | None] = [None] * len(batch)
        probabilities: list[float | None] = [None] * len(batch)
        if len(present):
            assigned = criterion.assign(batch.take(present).texts(file.column))
            for row, value, probability in zip(
                present.tolist(), assigned.values, assigned.probability.tolist(), strict=True
            ):
                values[row], probabilities[row] = value, round(probability, 4)
                counts[value] = counts.get(value, 0) + 1
        batch["value"] = ["" if value is None else value for value in values]
        batch["probability"] = probabilities
        yield batch


def check_criterion_name(output: Path) -> None:
    """Refuse a name that commands would not recognize as a criterion."""
    if output.suffix != ".criterion":
        raise InputError(f"The name of a criterion ends in .criterion; got {output}.")


def show_criterion(criterion: Criterion) -> None:
    """Print what is known of a criterion that was just learned, and its threshold to stdout."""
    options.show_table(("", "value"), [(name, str(value)) for name, value in criterion.summary()])
    threshold, line = learned_threshold(criterion)
    print_note(line)
    if threshold is not None:
        typer.echo(f"{threshold.value:.4f}")
