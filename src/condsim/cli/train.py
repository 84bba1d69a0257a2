"""``condsim train``: a recipe goes in, a model folder comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condsim.cli.process import long_work
from condsim.errors import require


def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe file (YAML).")],
    output: Annotated[Path, typer.Option(help="Folder for the model, its card and its report.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a recipe key. Repeatable."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --output.")] = False,
) -> None:
    """Train an encoder from a recipe.

    Keeps the epoch with the best Spearman on the recipe's dev file. Ctrl-C stops after the step in
    progress. After that or a crash, the same command with --resume continues, and ends with the
    same model.

    **Examples**

    `condsim train recipes/minilm/bi.yaml --set train=data/written/train.txt --set
    dev=data/written/dev.txt --set epochs=1 --output runs/written`

    `condsim train recipes/minilm/bi.yaml --output runs/bi --resume`

    `accelerate launch -m condsim train recipes/csts/simcse-large-bi.yaml --output runs/large`
    """
    from condsim.training.recipe import load_recipe

    chosen = load_recipe(recipe, overrides=set_ or ())
    require("sentence_transformers", extra="train")
    from condsim.training.run import close_process_group, fit

    with long_work(resume="The same command with --resume continues from here."):
        try:
            result = fit(chosen, output, resume=resume)
        except KeyboardInterrupt:
            close_process_group()
            raise
    close_process_group()
    if result is not None:
        typer.echo(result.summary())
