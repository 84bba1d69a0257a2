"""``condsim score``: one pair, or a file of them."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from condsim.errors import InputError

__all__ = ["Scale", "score"]


class Scale(StrEnum):
    """The scale that scores are given on."""

    UNIT = "unit"
    LIKERT = "likert"
    RAW = "raw"


def score(
    sentence1: Annotated[str | None, typer.Argument(show_default=False)] = None,
    sentence2: Annotated[str | None, typer.Argument(show_default=False)] = None,
    condition: Annotated[str | None, typer.Argument(show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="File to score: CSV, TSV or JSONL with sentence1, sentence2, condition; "
            "- reads TSV or JSONL from standard input.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write: .csv, .tsv or .jsonl.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Model folder or Hub name.", show_default="the model that ships"),
    ] = None,
    scale: Annotated[
        Scale,
        typer.Option(
            help="unit: from 0 to 1, 0.5 is the middle. likert: from 1 to 5. raw: the cosine."
        ),
    ] = Scale.UNIT,
    table: Annotated[
        bool | None,
        typer.Option(
            "--table/--no-table",
            help="Table for the eye, or tab separated rows.",
            show_default="a table on a terminal",
        ),
    ] = None,
) -> None:
    """Say how similar two sentences are with respect to a condition.

    A file of any size is read, scored and written a few thousand rows at a time; its own columns
    are kept and `score` is added. The output file appears only when it is whole.

    **Examples**

    `condsim score "A man throws a ball." "A girl kicks a ball." "the sport"`

    `condsim score --file pairs.csv`

    `condsim score --file pairs.csv --output scored.csv --scale likert`

    `cat pairs.tsv | condsim score --file - > scored.tsv`
    """
    if file is None:
        if sentence1 is None or sentence2 is None or condition is None:
            raise InputError(
                "Give two sentences and a condition, or --file. The condition says in which "
                "respect to compare, such as 'the sport'."
            )
        if output is not None or table is not None:
            raise InputError("--output and --table go with --file.")
        _score_one(sentence1, sentence2, condition, model=model, scale=scale)
        return
    if sentence1 is not None:
        raise InputError("Give either two sentences and a condition, or --file, not both.")
    if output is not None and table is not None:
        raise InputError("Give either --output or --table/--no-table, not both.")

    from condsim.cli.score_file import score_to_file, score_to_stdout, show_table

    if output is not None:
        score_to_file(file, output, model=model, scale=scale.value)
    elif sys.stdout.isatty() if table is None else table:
        show_table(file, model=model, scale=scale.value)
    else:
        score_to_stdout(file, model=model, scale=scale.value)


def _score_one(
    sentence1: str, sentence2: str, condition: str, *, model: str | None, scale: Scale
) -> None:
    """Prints the score of one pair."""
    from condsim.scorers.load import load_scorer

    value = load_scorer(model).score(sentence1, sentence2, condition, scale=scale.value)
    typer.echo(f"{value:.3f}")
