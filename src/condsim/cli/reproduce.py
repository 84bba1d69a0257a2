"""``condsim reproduce``: a table or figure of the papers, the paper's numbers beside ours."""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.errors import InputError

if TYPE_CHECKING:
    from condsim.experiments import Experiment, Options

__all__ = ["reproduce"]

_DATA = Path("../shared/data/csts-reannotated")
_STSB = Path("../shared/data/sts-b")
_RUNS = Path("runs/reproduce")
_OUTPUT = Path("docs/results")
_ENCODERS = ("--backbone", "--set", "--seeds", "--full")
_LANGUAGE_MODELS = (
    "--model",
    "--base-url",
    "--scoring",
    "--max-requests",
    "--max-tokens",
    "--unlisted",
)


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

    **Examples**

    `condsim reproduce --list`

    `condsim reproduce ccl-table4 --dry-run`

    `condsim reproduce csts-table3 --set epochs=2`

    `condsim reproduce ccl-table3 --backbone simcse-base --backbone minilm`

    `condsim reproduce csts-table11 --model google/flan-t5-small --max-requests 2000`
    """
    from condsim.experiments.catalogue import load_experiment

    if list_:
        _print_names()
        return
    if name is None:
        raise InputError("Give the name of a table or figure; --list prints all of them.")
    from condsim.experiments import Options, PromptOptions
    from condsim.experiments.backbones import resolve
    from condsim.experiments.language_models import resolve_models

    experiment = load_experiment(name)
    encoders = (backbone or None, set_ or None, seeds, full or None)
    prompting = (model or None, base_url, scoring, max_requests, max_tokens, unlisted or None)
    values = zip((*_ENCODERS, *_LANGUAGE_MODELS), (*encoders, *prompting), strict=True)
    _check_options(experiment, [option for option, value in values if value is not None])
    defaults = Options(data=_DATA, stsb=_STSB, runs=_RUNS)
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
    )
    if dry_run:
        if experiment.kind == "prompting":
            _print_prompts(experiment, options)
        else:
            _print_runs(experiment, options)
        return
    from condsim.cli.prompt_output import Progress
    from condsim.experiments.run import reproduce as run

    logging.basicConfig(format="%(message)s")
    logging.getLogger("condsim").setLevel(logging.WARNING if report_only else logging.INFO)
    try:
        written = run(
            experiment,
            options,
            output,
            defaults=defaults,
            report_only=report_only,
            progress=Progress,
        )
    except KeyboardInterrupt:
        typer.echo("Stopped. The same command goes on from here.", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"{written.page}: {written.finished} of {written.planned} runs finished")


def _print_names() -> None:
    from condsim.experiments.catalogue import load_experiment, names

    for name in names():
        typer.echo(f"{name:<16}{load_experiment(name).title}")


def _check_options(experiment: Experiment, given: list[str]) -> None:
    """Refuses options that an experiment of this kind does not have."""
    prompting = experiment.kind == "prompting"
    for option in given:
        if option in (_ENCODERS if prompting else _LANGUAGE_MODELS):
            does = (
                "asks language models; name them with --model"
                if prompting
                else "runs encoders; name them with --backbone"
            )
            raise InputError(f"{option} does not apply to {experiment.name}, which {does}.")
    if prompting and given and "--model" not in given:
        raise InputError(f"{given[0]} is of no use without a language model: name it with --model.")


def _print_prompts(experiment: Experiment, options: Options) -> None:
    """Prints one line for each run: its state, the requests to be sent and its folder."""
    from condsim.experiments.prompt_execute import Asking
    from condsim.experiments.prompt_plan import plan_prompts, prompt_runs

    found = prompt_runs(plan_prompts(experiment, options))
    left = Asking(found, options.prompts).requests_left()
    for run in found:
        asked = f"{left[run.folder]:>6} requests" if run.folder in left else " " * 15
        typer.echo(f"{'to do   ' if run.folder in left else 'finished'}  {asked}  {run.folder}")
    typer.echo(
        f"{len(found) - len(left)} of {len(found)} runs finished, {sum(left.values())} requests "
        "to be sent",
        err=True,
    )
    if not found:
        typer.echo("Name a language model with --model.", err=True)


def _print_runs(experiment: Experiment, options: Options) -> None:
    """Prints one line for each run: its state and its folder."""
    from condsim.experiments.execute import finished_report
    from condsim.experiments.plan import plan, unique_runs

    found = unique_runs(plan(experiment, options))
    done = {run.folder for run in found if finished_report(run) is not None}
    for run in found:
        typer.echo(f"{'finished' if run.folder in done else 'to do   '}  {run.folder}")
    typer.echo(f"{len(done)} of {len(found)} runs finished", err=True)
