"""``condsim sweep``: search for the best recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from condsim.cli.files import FOLDER
from condsim.cli.process import long_work

if TYPE_CHECKING:
    from condsim_sweep.spec import SweepSpec


def sweep(
    sweep_file: Annotated[Path, Argument(metavar="SWEEP", help="Sweep file (YAML).")],
    output: Annotated[Path, Option(help="Folder for the study, the runs and the result."), FOLDER],
    dry_run: Annotated[bool, Option("--dry-run", help="Print the trials; run nothing.")] = False,
) -> None:
    """Search for the best recipe by Spearman on the dev file.

    Trains the best recipe again with several seeds and scores the held-out file of the sweep, if it
    names one, once at the end. The same command continues after Ctrl-C or a crash. Run it in
    several terminals to share the work. When everything is done, it prints the result.

    **Examples**

    `condsim sweep recipes/sweeps/minilm-ccl.yaml --output runs/sweep`

    `condsim sweep recipes/sweeps/csts-table7.yaml --output runs/table7 --dry-run`
    """
    from condsim_sweep.spec import load_sweep

    spec = load_sweep(sweep_file)
    if dry_run:
        for line in _plan(spec):
            typer.echo(line)
        return
    from condsim_sweep.sweep import run_sweep, sweep_markdown

    with long_work():
        result = run_sweep(spec, output)
    typer.echo(sweep_markdown(result), nl=False)


def _plan(spec: SweepSpec) -> list[str]:
    """Describe the trials of a sweep, one line a trial where the trials are known."""
    from condsim_sweep.spec import point_text

    points = spec.planned()
    if points is None:
        lines = [f"{spec.name}: {spec.trials} trials, sampler {spec.sampler}, in"]
        lines += [f"  {key}: {parameter.text}" for key, parameter in spec.space.items()]
    else:
        lines = [f"{spec.name}: {len(points)} trials, sampler {spec.sampler}"]
        lines += [f"  {point_text(point)}" for point in points]
    lines.append(f"then the best with the seeds {', '.join(map(str, spec.seeds))}")
    if spec.test is not None:
        lines.append(f"then {spec.test}, once")
    return lines
