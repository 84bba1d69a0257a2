"""``condsim contexts``: similarity learned from raw text, without labels (SSBC)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condsim.cli.files import FOLDER
from condsim.cli.process import long_work
from condsim.errors import require
from condsim.io import saved_work

if TYPE_CHECKING:
    pass

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

Stage = Literal["corpus", "index", "coherence", "generators", "origin", "harvest", "surrogate"]


@app.command()
def run(
    recipe: Annotated[Path, typer.Argument(help="Recipe, YAML.")],
    output: Annotated[Path, typer.Option(help="Folder of the run."), FOLDER],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key, such as selection.size=50."),
    ] = None,
    until: Annotated[
        Stage, typer.Option(help="Stop after this stage; the same command continues from there.")
    ] = "surrogate",
) -> None:
    """Train a similarity model on raw text: corpus, models, harvest, surrogate.

    Each stage is saved in its own folder and made once: after an interruption, the same command
    continues. The folder of the run is the origin model for `condsim evaluate --model`, and its
    folder `surrogate` is an ordinary model.

    **Examples**

    `condsim contexts run recipes/contexts/tiny.yaml --output runs/contexts`

    `condsim contexts run my.yaml --output runs/my --until origin`
    """
    for module in ("pyarrow", "filelock", "torch"):
        require(module, extra="contexts")
    from condsim_contexts.recipe import load_contexts_recipe

    settings = load_contexts_recipe(recipe, overrides=set_ or ())
    require("sentence_transformers", extra="contexts")
    from condsim_contexts.pipeline import Pipeline

    with long_work(log=None) as progress, saved_work(output):
        with Pipeline(output, settings, until=until, progress=progress).locked() as pipeline:
            for line in pipeline.run():
                # The trainer of the surrogate has its own display.
                progress.close()
                progress.say(line)


@app.command()
def weigh(
    run: Annotated[Path, typer.Argument(help="Folder of a run that has its models.")],
    sentences: Annotated[
        int, typer.Option(min=64, help="Held-out sentences; half to fit to, half to measure on.")
    ] = 640,
) -> None:
    """Choose the weights λ of Eq. 3 without labels.

    The weights are those that best identify the true context of a held-out sentence among 16.
    Terms with weight 0 in the recipe stay disabled. Prints the setting to stdout and its accuracy
    to stderr; writes nothing.

    **Examples**

    `condsim contexts weigh runs/my > weights.txt`

    `condsim contexts run my.yaml --output runs/my --until origin --set "$(cat weights.txt)"`
    """
    for module in ("pyarrow", "torch"):
        require(module, extra="contexts")
    from condsim_contexts.origin import open_pipeline

    with long_work(log=None) as progress:
        fitted = open_pipeline(run, progress=progress).fit_weights(sentences=sentences)
    typer.echo(fitted.setting)
    typer.echo(fitted.summary(), err=True)
