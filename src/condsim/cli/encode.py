"""``condsim encode``: embeddings of a file of conditional sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condsim.errors import InputError, ModelError

__all__ = ["encode"]


def encode(
    file: Annotated[
        Path,
        typer.Option(
            help="File to encode: CSV, TSV or JSONL with the columns sentence and condition.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            help="File to write: .npy, or .npz with the array 'embeddings'.", show_default=False
        ),
    ],
    column: Annotated[
        str, typer.Option(help="The column of sentences, such as sentence1 of a file of pairs.")
    ] = "sentence",
    model: Annotated[
        str | None,
        typer.Option(help="Model folder or Hub name.", show_default="the model that ships"),
    ] = None,
) -> None:
    """Encode sentences, each under its condition.

    Writes one float32 array of shape (rows, dimension). Every row has length 1, so the dot product
    of two is their raw similarity. Files of any size: a few thousand rows are held at a time.

    **Examples**

    `condsim encode --file sentences.csv --output embeddings.npy`

    `condsim encode --file pairs.csv --column sentence2 --output second.npz`
    """
    if output.suffix.lower() not in (".npy", ".npz"):
        raise InputError(
            f"{output}: the suffix must be .npy or .npz. Got {output.suffix!r} instead."
        )
    from condsim.cli.encode_file import texts_of, write_array
    from condsim.files import replacing
    from condsim.scorers.embedding import EmbeddingScorer
    from condsim.scorers.load import load_scorer

    rows = sum(1 for _ in texts_of(file, column))  # also finds every fault before the work starts
    scorer = load_scorer(model)
    if not isinstance(scorer, EmbeddingScorer):
        raise ModelError(f"{scorer.name} gives scores only; embeddings need a bi- or tri-encoder.")
    with replacing(output) as partial:
        write_array(
            partial,
            scorer,
            texts_of(file, column),
            rows=rows,
            zipped=output.suffix.lower() == ".npz",
        )
    typer.echo(f"{output}: {rows} embeddings of dimension {scorer.dimension}", err=True)
