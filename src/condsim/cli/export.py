"""``condsim export``: a trained bi-encoder becomes a folder that scores without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condsim.errors import require


def export(
    model: Annotated[Path, typer.Argument(help="Folder of a trained bi-encoder.")],
    output: Annotated[Path, typer.Option(help="Folder to write.")],
    float32: Annotated[
        bool, typer.Option("--float32", help="Keep float32: larger, slower.")
    ] = False,
    samples: Annotated[Path | None, typer.Option(help="Rows to measure int8 ranges on.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the exported model.")] = None,
) -> None:
    """Export a bi-encoder to int8 ONNX, for scoring with the core install.

    **Examples**

    `condsim export runs/bi --output runs/bi-onnx`

    `condsim export runs/bi --output runs/bi-onnx --samples train.csv`

    `condsim score --model runs/bi-onnx "A man runs." "A dog runs." "the animal"`
    """
    require("sentence_transformers", extra="train")
    from condsim.training.export import SAMPLES, export_onnx, samples_of

    texts = SAMPLES if samples is None else samples_of(samples)
    result = export_onnx(
        model, output, quantize=None if float32 else "int8", samples=texts, name=name
    )
    typer.echo(
        f"{result.output}: {result.size / 1e6:.1f} MB, cosine to the model "
        f"{result.cosine_mean:.4f} on average, {result.cosine_worst:.4f} at worst"
    )
