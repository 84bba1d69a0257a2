"""``condsim train``, ``average`` and ``export``: from recipes to models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from condsim.cli.files import FOLDER
from condsim.cli.process import long_work, print_note

# Scores differ by this much between processors anyway.
_NOTABLE_CHANGE = 0.02


def train(
    recipe: Annotated[Path, Argument(help="Recipe file (YAML).")],
    output: Annotated[Path, Option(help="Folder for the model, its card and its report."), FOLDER],
    set_: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="Change a recipe key. Repeatable."),
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Continue the run in --output.")] = False,
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


def average(
    runs: Annotated[list[Path], Argument(help="Output folders of `condsim train`.")],
    output: Annotated[Path, Option(help="Folder for the model, its card and its report."), FOLDER],
    name: Annotated[str | None, Option(help="Name of the model.")] = None,
    pretrained: Annotated[
        str | None, Option(help="Backbone of the runs, to have a share too.")
    ] = None,
    pretrained_share: Annotated[float, Option(help="That share, between 0 and 1.")] = 0.1,
    float16: Annotated[bool, Option("--float16", help="Store float16.")] = False,
) -> None:
    """Average the weights of runs that started from the same backbone.

    The result is one model, as fast as each of them and often better.

    **Example**

    `condsim average runs/seed-1 runs/seed-2 runs/seed-3 --output runs/average`
    """
    from condsim.training.averaging import average_models

    report = average_models(
        runs,
        output,
        name=name,
        pretrained=pretrained,
        pretrained_share=pretrained_share,
        float16=float16,
    )
    dev = report.model.metrics["spearman"]
    typer.echo(f"{output}: dev Spearman {dev.value:.1f} [{dev.low:.1f}, {dev.high:.1f}]")


def export(
    model: Annotated[Path, Argument(help="Folder of a trained bi-encoder.")],
    output: Annotated[Path, Option(help="Folder to write."), FOLDER],
    float32: Annotated[bool, Option("--float32", help="Keep float32: larger, slower.")] = False,
    samples: Annotated[Path | None, Option(help="Rows to measure int8 ranges on.")] = None,
    name: Annotated[str | None, Option(help="Name of the exported model.")] = None,
) -> None:
    """Export a bi-encoder to int8 ONNX, for scoring with the core install.

    **Examples**

    `condsim export runs/bi --output runs/bi-onnx`

    `condsim export runs/bi --output runs/bi-onnx --samples train.csv`

    `condsim score --model runs/bi-onnx "A man runs." "A dog runs." "the animal"`
    """
    from condsim.training.export import SAMPLES, export_onnx, samples_of

    texts = SAMPLES if samples is None else samples_of(samples)
    result = export_onnx(
        model,
        output,
        quantize=None if float32 else "int8",
        samples=texts,
        largest_change=_NOTABLE_CHANGE,
        name=name,
    )
    typer.echo(
        f"{result.output}: {result.size / 1e6:.1f} MB, cosine to the model "
        f"{result.cosine_mean:.4f} on average, {result.cosine_worst:.4f} at worst; scores move by "
        f"{result.change_mean:.3f} on average, {result.change_worst:.3f} at most"
    )
    if not float32 and result.change_worst > _NOTABLE_CHANGE:
        print_note("Export with --float32 if scores must not move, or with --samples of your rows.")
