"""``condsim build weak | counter-edits | answers``: rows from labeling functions."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from typer import Argument, Option

from condsim.cli.files import Output
from condsim.cli.options import (
    Device,
    Exclude,
    JsonFile,
    RowFile,
    Seed,
    TextColumn,
    check_column,
    show_table,
    write_report,
)
from condsim.cli.process import long_work, print_result
from condsim.errors import InputError

if TYPE_CHECKING:
    from condsim_annotation.answers import Reader
    from condsim_annotation.weak.registry import Registry

Functions: TypeAlias = Annotated[
    list[Path] | None, Option(help="Python file with your own labeling functions.")
]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.command()
def weak(
    captions: Annotated[list[Path] | None, Argument(help="Files of sentences, one a row.")] = None,
    output: Annotated[
        Path | None, Option(help="CSV or Parquet file to write."), Output(".csv")
    ] = None,
    check: Annotated[
        Path | None, Option(help="Labeled C-STS file: print the agreement with it.")
    ] = None,
    rows: Annotated[int, Option(min=2, help="Rows with a label from 1 to 5.")] = 60_000,
    absent: Annotated[int, Option(min=0, help="Rows with the label -1.")] = 0,
    absent_output: Annotated[
        Path | None,
        Option(help="File for rows labeled -1.", show_default="the same file"),
        Output(".csv"),
    ] = None,
    exclude: Exclude = None,
    like: Annotated[
        Path | None,
        Option(
            help="C-STS file whose conditions weight the functions.",
            show_default="the functions' own weights",
        ),
    ] = None,
    functions: Functions = None,
    answers: Annotated[bool, Option("--answers", help="Keep the answers' columns.")] = False,
    item_column: Annotated[
        str | None,
        Option(
            help="Column that names what sentences describe; these are not paired.",
            show_default="all sentences may be paired",
        ),
    ] = None,
    caption_column: TextColumn = "caption",
    sample: Annotated[
        int | None, Option(min=2, help="Sentences to use.", show_default="all")
    ] = None,
    k: Annotated[int, Option(min=1, help="Neighbors of a sentence.")] = 32,
    text_encoder: Annotated[
        str | None,
        Option(
            help="Model that finds near sentences, or 'words' for none.",
            show_default="all-MiniLM-L6-v2",
        ),
    ] = None,
    seed: Seed = 0,
    cache: Annotated[
        Path | None,
        Option(help="Folder for vectors and pairs.", show_default="next to the output, .cache"),
    ] = None,
    device: Device = None,
    json: JsonFile = None,
) -> None:
    """Label pairs of raw sentences by functions that read attributes, such as how many people.

    **Examples**

    `condsim build weak captions.csv --output weak.csv --exclude dev.csv --answers`

    `condsim build weak --check train.csv`
    """
    registry = load_functions(functions)
    if check is not None:
        if captions or output:
            raise InputError(
                "--check reads one labeled file and writes no rows; leave the others out."
            )
        _check(check, registry, json)
        return
    if not captions:
        raise InputError("Files of sentences are needed, or --check FILE.")
    for path in captions:
        check_column(path, caption_column)
    if output is None:
        _cover(captions, caption_column, registry, sample=sample, seed=seed, json=json)
        return
    from condsim_annotation.weak.build import WeakSettings, build_weak

    settings = WeakSettings(
        rows=rows,
        absent=absent,
        seed=seed,
        k=k,
        sample=sample,
        text_encoder=text_encoder,
        answers=answers,
    )
    with long_work(log=None) as progress:
        report = build_weak(
            captions,
            output,
            registry,
            functions=functions or (),
            settings=settings,
            cache=cache or output.with_suffix(".cache"),
            progress=progress,
            caption_column=caption_column,
            item_column=item_column,
            exclude=exclude or (),
            like=like,
            absent_output=absent_output,
            device=device,
        )
    write_report(json, report)
    typer.echo(
        f"{report.sentences:,} sentences ({report.excluded:,} left out by --exclude, "
        f"{report.repeated:,} repeated), {report.pairs:,} pairs looked at"
    )
    typer.echo("labels: " + ", ".join(f"{name}: {n:,}" for name, n in report.labels.items()))
    show_table(("family", "rows"), [(name, f"{n:,}") for name, n in report.families.items()])
    if report.rows < rows:
        typer.echo(
            f"Only {report.rows:,} of {rows:,} rows: give more sentences, a higher --k, or "
            "functions for what the sentences say.",
            err=True,
        )
    print_result(f"{output}: {report.rows:,} rows")


def load_functions(paths: Sequence[Path] | None) -> Registry:
    """Run Python files of labeling functions, which registers them; return the registry."""
    from condsim_annotation.weak.registry import REGISTRY

    for path in paths or ():
        if not path.is_file():
            raise InputError(f"--functions: {path} is not a file.")
        functions_before = len(REGISTRY)
        try:
            runpy.run_path(str(path))
        except Exception as error:
            line, reason = None, f"{type(error).__name__}: {error}"
            for frame in extract_tb(error.__traceback__):
                line = frame.lineno if frame.filename == str(path) else line
            if isinstance(error, SyntaxError):
                line, reason = error.lineno, error.msg
            location = path if line is None else f"{path}, line {line}"
            raise InputError(f"--functions: {location}: {reason}.") from error
        if len(REGISTRY) == functions_before:
            raise InputError(f"--functions: {path}: registers no labeling function.")
    return REGISTRY


def _check(path: Path, registry: Registry, json: Path | None) -> None:
    """Print the agreement of the functions with the labels of a file."""
    from condsim.data.csts import load_csts
    from condsim_annotation.weak.registry import function_agreement

    report = function_agreement(load_csts(path, require_labels=True), registry)
    write_report(json, report)
    rows = []
    for group in (report.all, *report.families):
        numbers = f"{group.spearman:.1f}", f"{group.mean_absolute_error:.2f}"
        rows.append((group.name, f"{group.rows:,}", f"{group.read:,}", *numbers))
    show_table(("function", "rows", "read", "Spearman", "error"), rows)
    missed = ", ".join(f"{condition} ({rows})" for condition, rows in report.not_understood)
    typer.echo(
        f"{report.understood:.1%} of {report.rows:,} labeled rows have a condition that a "
        f"function understands\nnot understood, most frequent first: {missed or 'none'}"
    )


def _cover(
    captions: list[Path],
    column: str,
    registry: Registry,
    *,
    sample: int | None,
    seed: int,
    json: Path | None,
) -> None:
    """Print the share of sentences that each function reads."""
    from condsim_annotation.weak.build import read_pool
    from condsim_annotation.weak.registry import coverage

    sentences = read_pool(captions, caption_column=column, sample=sample, seed=seed).sentences
    shares = coverage(sentences, registry)
    write_report(json, shares)
    rows = [(s.name, s.family, f"{s.read:.1%}", f"{s.absent:.1%}") for s in shares[:60]]
    show_table(("function", "family", "read", "absent"), rows)
    typer.echo(
        f"{len(sentences):,} sentences, {len(shares):,} functions; give --output to pair them"
    )


@app.command("counter-edits")
def counter_edits(
    texts: Annotated[list[Path], Argument(help="Files of texts, one a row.")],
    output: RowFile,
    rows: Annotated[
        int, Option(min=2, help="Maximum number of rows, two or three for each text.")
    ] = 20_000,
    text_column: TextColumn = "text",
    exclude: Exclude = None,
    functions: Functions = None,
    seed: Seed = 0,
    json: JsonFile = None,
) -> None:
    """Pair each text with a copy in which one number, negation or opposite is changed.

    The rows of a pair share a `group`: a low label for the condition that was changed, a 5 for
    others.

    **Examples**

    `condsim build counter-edits reviews.csv --output edits.csv --exclude test.csv`
    """
    from condsim_annotation.weak.counter_edits import build_counter_edits

    registry = load_functions(functions)
    with long_work(log=None) as progress:
        report = build_counter_edits(
            texts,
            output,
            registry,
            rows=rows,
            text_column=text_column,
            exclude=exclude or (),
            functions=functions or (),
            seed=seed,
            progress=progress,
        )
    write_report(json, report)
    kinds = ", ".join(f"{kind}: {number:,}" for kind, number in report.kinds.items())
    typer.echo(f"{report.texts:,} texts ({report.excluded:,} left out by --exclude); {kinds}")
    print_result(f"{output}: {report.rows:,} rows")


@app.command()
def answers(
    file: Annotated[Path, Argument(help="Labeled rows in the C-STS columns.")],
    output: RowFile,
    model: Annotated[
        Path | None,
        Option(
            help="Language model that answers, the YAML file of `condsim prompt --save`.",
            show_default="the labeling functions",
        ),
    ] = None,
    functions: Functions = None,
    seed: Seed = 0,
) -> None:
    """Add rows in which a short answer to the condition replaces a sentence.

    "Two men talk." answers "number of people" with "two". Such rows teach a model which part of a
    sentence counts under a condition. The output is a training file: it has the labeled rows too.

    **Examples**

    `condsim build answers train.csv --output train-answers.csv`

    `condsim build answers train.csv --model flan.yaml --output train-answers.csv`
    """
    if model is not None and functions:
        raise InputError(f"--functions and --model {model} both answer; give one of them.")
    from condsim_annotation.answers import (
        ANSWER_TOKENS,
        answer_file,
        function_answers,
        model_answers,
    )

    load_functions(functions)
    answer: Reader = function_answers
    name = "functions"
    with long_work(log=None) as progress:
        if model is not None:
            from condsim_llm.scorer import open_asker

            show = partial(progress, "answers")
            asker, name = open_asker(model, new_tokens=ANSWER_TOKENS, progress=show)
            answer = partial(model_answers, asker=asker, name=name)
        written = answer_file(
            file, output, answer, name=name, progress=progress, seed=seed, functions=functions or ()
        )
    labeled, unlabeled = written.pop("given"), written.pop("unlabeled")
    print_result(
        f"{output}: {labeled:,} labeled rows ({unlabeled:,} unlabeled left out), "
        f"{written.total():,} added with answers of {name}"
    )
