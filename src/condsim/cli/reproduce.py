"""``condsim reproduce``: a table or figure of the papers, the paper's numbers beside ours."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.errors import InputError

if TYPE_CHECKING:
    from condsim.experiments import Options

__all__ = ["reproduce"]

_DATA = Path("../shared/data/csts-reannotated")
_STSB = Path("../shared/data/sts-b")
_RUNS = Path("runs/reproduce")
_OUTPUT = Path("docs/results")


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
        bool, typer.Option("--dry-run", help="Print the runs and which are finished.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Train nothing; write what is finished.")
    ] = False,
) -> None:
    """Repeat a table or figure of the papers.

    Trains the runs that are not finished and writes the paper's numbers and ours side by side.
    Ctrl-C stops after the step in progress and the same command goes on. Started in several
    processes, they share the runs. Experiments share runs too, so nothing is trained twice.

    **Examples**

    `condsim reproduce --list`

    `condsim reproduce ccl-table4 --dry-run`

    `condsim reproduce csts-table3 --set epochs=2`

    `condsim reproduce ccl-table3 --backbone simcse-base --backbone minilm`
    """
    from condsim.experiments.catalogue import load_experiment

    if list_:
        _print_names()
        return
    if name is None:
        raise InputError("Give the name of a table or figure; --list prints all of them.")
    from condsim.experiments import Options
    from condsim.experiments.backbones import resolve

    experiment = load_experiment(name)
    defaults = Options(data=_DATA, stsb=_STSB, runs=_RUNS)
    options = Options(
        data=data,
        stsb=stsb,
        runs=runs,
        backbones=resolve(backbone or ()),
        overrides=tuple(set_ or ()),
        seeds=seeds,
        full=full,
    )
    if dry_run:
        _print_runs(name, options)
        return
    from condsim.experiments.run import reproduce as run

    logging.basicConfig(format="%(message)s")
    logging.getLogger("condsim").setLevel(logging.WARNING if report_only else logging.INFO)
    try:
        written = run(experiment, options, output, defaults=defaults, report_only=report_only)
    except KeyboardInterrupt:
        typer.echo("Stopped. The same command goes on from here.", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"{written.page}: {written.finished} of {written.planned} runs finished")


def _print_names() -> None:
    from condsim.experiments.catalogue import load_experiment, names

    for name in names():
        typer.echo(f"{name:<16}{load_experiment(name).title}")


def _print_runs(name: str, options: Options) -> None:
    """Prints one line for each run: its state and its folder."""
    from condsim.experiments.catalogue import load_experiment
    from condsim.experiments.execute import finished_report
    from condsim.experiments.plan import plan, unique_runs

    found = unique_runs(plan(load_experiment(name), options))
    done = {run.folder for run in found if finished_report(run) is not None}
    for run in found:
        typer.echo(f"{'finished' if run.folder in done else 'to do   '}  {run.folder}")
    typer.echo(f"{len(done)} of {len(found)} runs finished", err=True)
