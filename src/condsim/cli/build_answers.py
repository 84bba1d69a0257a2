"""``condsim build answers``: short answers to the conditions, as text to train on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.cli.build_weak import load_functions
from condsim.cli.outputs import check_output
from condsim.errors import InputError

if TYPE_CHECKING:
    from condsim.construction.answering import Answerer
    from condsim.construction.vector_cache import Progress

__all__ = ["answers", "app"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.command()
def answers(
    file: Annotated[
        Path, typer.Argument(help="Labelled rows in the C-STS columns.", show_default=False)
    ],
    output: Annotated[Path, typer.Option(help="CSV or Parquet file to write.", show_default=False)],
    model: Annotated[
        Path | None,
        typer.Option(
            help="Language model that answers, the YAML file of `condsim prompt --save`.",
            show_default="the labelling functions",
        ),
    ] = None,
    functions: Annotated[
        list[Path] | None,
        typer.Option(help="Python file with labelling functions of your own.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of which sentence is replaced.")] = 0,
) -> None:
    """Add rows in which a sentence's short answer to the condition takes its place.

    "Two men talk." answers "number of people" with "two". Such rows tell a model what of a sentence
    counts under a condition. The labelled rows come too: a training file.

    **Examples**

    `condsim build answers train.csv --output train-answers.csv`

    `condsim build answers train.csv --model flan.yaml --output train-answers.csv`
    """
    check_output("--output", output)
    if model is not None and functions:
        raise InputError("--functions and --model both answer; give one of them.")
    from condsim.cli.stages import StageProgress
    from condsim.construction.answering import answer_file

    with StageProgress() as progress:
        answerer = _answerer(model, functions or [], progress)
        written = answer_file(
            file, output, answerer, progress=progress, seed=seed, functions=functions or ()
        )
    given, unlabelled = written.pop("given"), written.pop("unlabelled")
    typer.echo(
        f"{output}: {given:,} labelled rows ({unlabelled:,} unlabelled left out), "
        f"{written.total():,} added with answers of {answerer.name}"
    )


def _answerer(model: Path | None, functions: list[Path], progress: Progress) -> Answerer:
    from condsim.construction.answering import ANSWER_TOKENS, FunctionAnswerer, ModelAnswerer

    for path in functions:
        load_functions(path)
    if model is None:
        return FunctionAnswerer()
    from condsim.scorers.open_prompt import open_asker

    asker, name = open_asker(
        model,
        new_tokens=ANSWER_TOKENS,
        progress=lambda done, total: progress("answers", done, total),
    )
    return ModelAnswerer(asker, name=name)
