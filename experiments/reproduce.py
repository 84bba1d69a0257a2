"""``condsim reproduce``: a table or figure of the papers, the paper's numbers beside ours."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from condsim.errors import InputError
from experiments.reproduce_default import NAME, TITLE, reproduce_default
from experiments.reproduce_options import check_default, check_options, given_options

_DATA = Path("../shared/data/csts-reannotated")
_STSB = Path("../shared/data/sts-b")
_STS = Path("../shared/data/sts12-16")
_SICK = Path("../shared/data/sick-r")
_RUNS = Path("runs/reproduce")
_OUTPUT = Path("docs/results")


class Scoring(StrEnum):
    """How an answer becomes a score."""

    TEXT = "text"
    EXPECTED = "expected"


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(help="Table or figure, such as ccl-table4.", show_default=False),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Print all names.")] = False,
    backbone: Annotated[
        list[str] | None,
        typer.Option(
            help="roberta-base, simcse-large ..., paper for the papers' five, a Hub name or a "
            "folder; may be repeated.",
            show_default="minilm",
        ),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            help="Backbone of the teacher of default-model: a Hub name or a folder.",
            show_default="sentence-transformers/all-mpnet-base-v2",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Language model, for the tables of prompting: google/flan-t5-small, another Hub "
            "name, a folder or a server's name for it; may be repeated.",
            show_default=False,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="OpenAI-compatible server of these models, such as http://localhost:8000/v1. The "
            "key is read from OPENAI_API_KEY.",
            show_default=False,
        ),
    ] = None,
    scoring: Annotated[
        Scoring | None,
        typer.Option(
            help="text: the number in the answer. expected: the mean over the numbers the model "
            "might have said.",
            show_default="text",
        ),
    ] = None,
    max_requests: Annotated[
        int | None,
        typer.Option(min=0, help="Send this many prompts at most, over all runs."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="Use this many tokens at most, prompts and answers."),
    ] = None,
    unlisted: Annotated[
        bool, typer.Option("--unlisted", help="Use models that the server does not list.")
    ] = False,
    data: Annotated[Path, typer.Option(help="Folder with train.csv and dev.csv of C-STS.")] = _DATA,
    stsb: Annotated[
        Path, typer.Option(help="Folder with sts-train.csv and sts-dev.csv of STS-B.")
    ] = _STSB,
    sts: Annotated[
        Path, typer.Option(help="Folder with sts12.MSRpar.test.tsv and so on to STS16.")
    ] = _STS,
    sick: Annotated[Path, typer.Option(help="Folder with sick_test.tsv of SICK-R.")] = _SICK,
    recipe: Annotated[
        Path | None,
        typer.Option(
            help="Recipe that ssbc-... start from, and with it the corpus.",
            show_default="recipes/contexts/openstax.yaml",
        ),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            help="Measure ssbc-... on this test set only: sts12 ... sts16, sts-b, sick-r; may be "
            "repeated.",
            show_default="those of the experiment",
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=3, help="Rows of each test set of ssbc-... at most.", show_default="all"),
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs of all experiments.")] = _RUNS,
    output: Annotated[
        Path, typer.Option(help="Folder for NAME.md, NAME.csv and NAME.png.")
    ] = _OUTPUT,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of every recipe."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Seeds of every row.", show_default="those of the experiment"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Also run the rows that are left out by default.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the runs, which are finished, and the requests to be sent."
        ),
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Train and ask nothing; write what is finished.")
    ] = False,
) -> None:
    """Repeat a table or figure of the papers.

    Trains the runs that are not finished and writes the paper's numbers and ours side by side.
    Ctrl-C stops after the step in progress and the same command goes on. Started in several
    processes, they share the runs. Experiments share runs too, so nothing is trained twice.

    csts-table4, csts-table11 and csts-table12 ask the language models that --model names instead.
    Their answers are stored as they arrive, and none is asked for twice.

    ssbc-... learn similarity from the contexts of a corpus, that of --recipe. What rows have in
    common, such as models, is made once, and what is to be done is said first.

    default-model makes the model that ships, from C-STS rows, captions and NLI pairs.

    **Examples**

    `condsim reproduce --list`

    `condsim reproduce ccl-table4 --dry-run`

    `condsim reproduce csts-table3 --set epochs=2`

    `condsim reproduce ccl-table3 --backbone simcse-base --backbone minilm`

    `condsim reproduce csts-table11 --model google/flan-t5-small --max-requests 2000`

    `condsim reproduce ssbc-table9 --rows 300 --set selection.size=20`

    `condsim reproduce default-model`
    """
    from experiments.catalogue import load_experiment

    if list_:
        _print_names()
        return
    if name is None:
        raise InputError("Give the name of a table or figure; --list prints all of them.")
    given = given_options(
        {
            "--backbone": backbone,
            "--set": set_,
            "--seeds": seeds,
            "--full": full,
            "--teacher": teacher,
            "--model": model,
            "--base-url": base_url,
            "--scoring": scoring,
            "--max-requests": max_requests,
            "--max-tokens": max_tokens,
            "--unlisted": unlisted,
            "--recipe": recipe,
            "--on": on,
            "--rows": rows,
        }
    )
    if name == NAME:
        plans = given_options({"--dry-run": dry_run, "--report-only": report_only})
        check_default([*given, *plans])
        reproduce_default(
            data=data,
            runs=runs,
            backbones=backbone or (),
            teacher=teacher,
            seeds=seeds,
        )
        return
    from experiments import ContextsOptions, Options, PromptOptions
    from experiments.backbones import resolve
    from experiments.language_models import resolve_models

    experiment = load_experiment(name)
    check_options(experiment, given)
    placed = ContextsOptions(sts=_STS, sick=_SICK)
    defaults = Options(data=_DATA, stsb=_STSB, runs=_RUNS, contexts=placed)
    options = Options(
        data=data,
        stsb=stsb,
        runs=runs,
        backbones=resolve(backbone or ()),
        overrides=tuple(set_ or ()),
        seeds=seeds,
        full=full,
        prompts=PromptOptions(
            models=resolve_models(model or ()),
            base_url=base_url,
            scoring=(scoring or Scoring.TEXT).value,
            max_requests=max_requests,
            max_tokens=max_tokens,
            unlisted=unlisted,
        ),
        contexts=ContextsOptions(recipe, sts, sick, tuple(on) if on else None, rows),
    )
    if dry_run:
        from experiments.reproduce_plan import print_plan

        print_plan(experiment, options)
        return
    from condsim.cli.running import long_work
    from experiments.run import reproduce as run

    with long_work(log=None if report_only else "condsim") as stages:
        written = run(
            experiment,
            options,
            output,
            defaults=defaults,
            report_only=report_only,
            stages=stages,
        )
    typer.echo(f"{written.page}: {written.finished} of {written.planned} runs finished")


def _print_names() -> None:
    from experiments.catalogue import load_experiment, names

    for name in names():
        typer.echo(f"{name:<18}{load_experiment(name).title}")
    typer.echo(f"{NAME:<18}{TITLE}")
