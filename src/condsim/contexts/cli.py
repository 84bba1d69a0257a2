"""``condsim contexts``: similarity learned from raw text, with no labels (SSBC)."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condsim.cli.options import RayAddress, RayWorkers
from condsim.cli.running import long_work
from condsim.errors import InputError, require

if TYPE_CHECKING:
    from condsim.console import ProgressDisplay
    from condsim.contexts.coherence.training import CoherenceReport
    from condsim.contexts.generator.training import GeneratorReport
    from condsim.contexts.harvest.harvesting import Engine
    from condsim.contexts.run import Pipeline

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


Stage = Literal["corpus", "index", "coherence", "generators", "origin", "harvest", "surrogate"]
EngineName = Literal["local", "ray"]


@app.command()
def run(
    recipe: Annotated[Path, typer.Argument(help="Recipe, YAML.")],
    output: Annotated[Path, typer.Option(help="Folder of the run.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key, such as selection.size=50."),
    ] = None,
    until: Annotated[
        Stage, typer.Option(help="Stop after this stage; the same command goes on from there.")
    ] = "surrogate",
    engine: Annotated[
        EngineName, typer.Option(help="Harvest in this process or on a Ray cluster.")
    ] = "local",
    address: RayAddress = None,
    workers: RayWorkers = None,
    worker_gpus: Annotated[
        float, typer.Option(min=0, help="Accelerators of a Ray worker; may be a fraction.")
    ] = 0,
) -> None:
    """Go from raw text to a similarity model: corpus, models, harvest, surrogate.

    Each stage is kept in a folder of its own and made once: a run that was stopped goes on with the
    same command. The folder of the run is the origin model for `condsim evaluate --model`, and its
    folder `surrogate` an ordinary model.

    **Examples**

    `condsim contexts run recipes/contexts/tiny.yaml --output runs/contexts`

    `condsim contexts run my.yaml --output runs/my --until origin`

    `condsim contexts run my.yaml --output runs/my --engine ray --address auto`
    """
    for module in ("pyarrow", "filelock", "torch"):
        require(module, extra="contexts")
    from condsim.contexts.recipe import load_contexts_recipe

    chosen = load_contexts_recipe(recipe, overrides=set_ or ())
    require("sentence_transformers", extra="contexts")
    from condsim.contexts.run import Pipeline

    ray = _engine(engine, address=address, workers=workers, gpus=worker_gpus)
    with long_work(log=None) as progress, _one_line_if_full(output):
        made = Pipeline(output, chosen, until=until, progress=progress)
        with made.begun():
            for line in _stages(made, until, ray, progress):
                progress.say(line)


@app.command()
def weigh(
    run: Annotated[Path, typer.Argument(help="Folder of a run that has its models.")],
    sentences: Annotated[
        int, typer.Option(min=64, help="Held-out sentences; half to fit to, half to measure on.")
    ] = 640,
) -> None:
    """Find the weights λ of Eq. 3 without labels.

    They are those that best tell the context of a held-out sentence from the contexts of 15 others.
    Terms of weight 0 in the recipe keep it. The setting is printed alone, how well it does on
    stderr. Nothing is written.

    **Examples**

    `condsim contexts weigh runs/my > weights.txt`

    `condsim contexts run my.yaml --output runs/my --until origin --set "$(cat weights.txt)"`
    """
    for module in ("pyarrow", "torch"):
        require(module, extra="contexts")
    from condsim.contexts.opened import open_pipeline

    with long_work(log=None) as progress:
        found = open_pipeline(run, progress=progress).fit_weights(sentences=sentences)
    typer.echo(found.setting)
    typer.echo(found.summary(), err=True)


def _stages(
    made: Pipeline, until: Stage, engine: Engine | None, progress: ProgressDisplay
) -> Iterator[str]:
    """Makes the stages one by one; gives a line about each."""
    steps: dict[Stage, Callable[[], str]] = {
        "corpus": lambda: made.corpus.counts.summary(),
        "index": lambda: f"index: {len(made.index):,} chunks",
        "coherence": lambda: _summary("coherence", made.coherence),
        "generators": lambda: _summary("generators", made.generators),
        "origin": lambda: _origin(made),
        "harvest": lambda: made.harvest(engine).summary(),
        "surrogate": lambda: _surrogate(made, progress),
    }
    for stage, step in steps.items():
        if stage == "harvest" and (cost := made.harvest_cost()) is not None:
            yield f"harvest, to be done: {cost}"
        line = step()
        progress.close()
        yield line
        if stage == until:
            return


def _summary(stage: str, report: CoherenceReport | GeneratorReport | None) -> str:
    """One line about a trained model."""
    return f"{stage}: not used, its weight is 0" if report is None else report.summary()


def _origin(made: Pipeline) -> str:
    """Opens the origin model, which computes the sentence vectors."""
    _ = made.origin.scorer
    return f"origin: {made.folder}, for condsim evaluate --model"


def _surrogate(made: Pipeline, progress: ProgressDisplay) -> str:
    """Trains the surrogate; the trainer has a display of its own."""
    harvested = made.harvest()
    progress.close()
    finished = made.surrogate(harvested)
    if finished is None:
        return "surrogate: another process trains it"
    spearman = finished.report.model.metrics["spearman"].value
    rows = finished.report.valid_rows
    return (
        f"surrogate: {finished.folder}; Spearman {spearman:.1f} with the origin on {rows} dev pairs"
    )


def _engine(
    name: EngineName, *, address: str | None, workers: int | None, gpus: float
) -> Engine | None:
    """The engine of that name, checked; None for this process."""
    if name == "local":
        if address is not None or workers is not None or gpus:
            raise InputError(
                "--address, --workers and --worker-gpus are for --engine ray. Add that, or leave "
                "them out."
            )
        return None
    from condsim.contexts.harvest.harvesting import RayEngine

    made = RayEngine(address=address, workers=workers, gpus=gpus)
    if address is not None:
        made.check()
    return made


@contextmanager
def _one_line_if_full(folder: Path) -> Iterator[None]:
    """Turns the errors of a full disk, of whichever stage, into one line."""
    try:
        yield
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in _FULL
        if not full and "no space left" not in str(error).lower():
            raise
        raise InputError(
            f"No space is left on the disk of {folder}. What is finished is whole; make room and "
            "run the same command again."
        ) from error
