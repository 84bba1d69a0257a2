"""What ``condsim reproduce NAME --dry-run`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from condsim.errors import require

if TYPE_CHECKING:
    from experiments import Experiment, Options


def print_plan(experiment: Experiment, options: Options) -> None:
    """Prints what an experiment runs and which of it is finished.

    Args:
        experiment: The experiment.
        options: What was chosen.

    Raises:
        InputError: If data are missing or an option is of no use.
        MissingExtraError: If an extra is missing that the experiment needs.
    """
    if experiment.kind == "prompting":
        _print_prompts(experiment, options)
    elif experiment.kind in ("contexts", "cases"):
        _print_contexts(experiment, options)
    else:
        _print_runs(experiment, options)


def _print_prompts(experiment: Experiment, options: Options) -> None:
    """Prints one line for each run: its state, the requests to be sent and its folder."""
    from experiments.prompt_execute import Asking
    from experiments.prompt_plan import plan_prompts, prompt_runs

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
    from experiments.execute import finished_report
    from experiments.plan import plan, unique_runs

    found = unique_runs(plan(experiment, options))
    done = {run.folder for run in found if finished_report(run) is not None}
    for run in found:
        typer.echo(f"{'finished' if run.folder in done else 'to do   '}  {run.folder}")
    typer.echo(f"{len(done)} of {len(found)} runs finished", err=True)


def _print_contexts(experiment: Experiment, options: Options) -> None:
    """Prints one line for each part and each measurement, and what is still to be scored."""
    require("torch", extra="contexts")
    from experiments.contexts_execute import Measuring
    from experiments.contexts_plan import measurements, plan_contexts, planned_parts

    found = measurements(plan_contexts(experiment, options))
    work = Measuring(found, options.runs)
    done = planned_parts(found, options.runs) | {one.folder: one.finished for one in found}
    for folder, finished in done.items():
        typer.echo(f"{'finished' if finished else 'to do   '}  {folder}")
    for line in work.costs():
        typer.echo(line, err=True)
    typer.echo(f"{len(found) - len(work.missing)} of {len(found)} runs finished", err=True)
