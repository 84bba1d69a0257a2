"""``condsim encode``: embeddings of a file of conditional sentences."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Annotated

import numpy as np
import typer
from numpy.lib import format as npy

from condsim.errors import InputError, ModelError
from condsim.scorers import EmbeddingScorer
from condsim.tasks import iter_rows

ROWS = 4096  # encoded and written at once: what bounds the memory


def texts_of(file: Path, column: str) -> Iterator[tuple[str, str]]:
    """Streams the conditional sentences of a file.

    Args:
        file: The file.
        column: The column of sentences.

    Yields:
        Sentence and condition of each row.

    Raises:
        InputError: If the file breaks a rule, or a sentence or condition is empty or no text.
    """
    for number, cells in iter_rows(file, columns=(column, "condition")):
        sentence, condition = cells[column], cells["condition"]
        for name, cell in ((column, sentence), ("condition", condition)):
            if not isinstance(cell, str) or not cell:
                raise InputError(
                    f"{file}, row {number}, column {name!r}: must be text, not empty. Got {cell!r} "
                    "instead; write the text, or remove the row."
                )
        yield str(sentence), str(condition)


def write_array(
    path: Path,
    scorer: EmbeddingScorer,
    texts: Iterator[tuple[str, str]],
    *,
    rows: int,
    zipped: bool,
) -> None:
    """Writes embeddings as NumPy stores an array.

    Args:
        path: The file to write.
        scorer: What encodes.
        texts: Sentence and condition of each row.
        rows: How many there are; the file says so at its start.
        zipped: Whether to write an archive (``.npz``) with the array ``embeddings``.

    Raises:
        InputError: If there are not that many rows.
    """
    with ExitStack() as stack:
        stream: IO[bytes]
        if zipped:
            archive = stack.enter_context(zipfile.ZipFile(path, "w"))
            stream = stack.enter_context(archive.open("embeddings.npy", "w", force_zip64=True))
        else:
            stream = stack.enter_context(path.open("wb"))
        header = npy.header_data_from_array_1_0(np.empty((0, scorer.dimension), np.float32))
        npy.write_array_header_1_0(stream, {**header, "shape": (rows, scorer.dimension)})
        written = 0
        while block := list(islice(texts, ROWS)):
            sentences, conditions = zip(*block, strict=True)
            stream.write(np.ascontiguousarray(scorer.encode(sentences, conditions)).tobytes())
            written += len(block)
    if written != rows:
        raise InputError(f"The file changed while it was read: {rows} rows, then {written}.")


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
    from condsim.files import replacing
    from condsim.loading import load_scorer
    from condsim.scorers import EmbeddingScorer

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
