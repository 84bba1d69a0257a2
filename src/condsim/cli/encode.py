"""``condsim encode``: embeddings of a file of conditional sentences."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer
from numpy.lib import format as npy

from condsim.cli.options import (
    Engine,
    Model,
    RayAddress,
    RayWorkers,
    check_column,
    check_engine,
    revision_of,
)
from condsim.data.reading import check_file, iter_rows
from condsim.errors import InputError
from condsim.io import replacing
from condsim.loading import load_encoder
from condsim.model.embedding import EmbeddingScorer

ROWS = 4096  # encoded and written at once: what bounds the memory


def _texts(file: Path, column: str, *, plain: bool) -> Iterator[tuple[str, str | None]]:
    """Sentence and condition of each row; no condition if ``plain``."""
    for row in iter_rows(file, columns=(column,) if plain else (column, "condition")):
        yield row.text(column), None if plain else row.text("condition")


def _write_array(
    path: Path,
    scorer: EmbeddingScorer,
    texts: Iterator[tuple[str, str | None]],
    *,
    rows: int,
    zipped: bool,
    kind: type[np.floating[Any]],
) -> None:
    """Writes embeddings as ``.npy``, or as the array ``embeddings`` of an archive (``.npz``)."""
    with ExitStack() as stack:
        stream: IO[bytes]
        if zipped:
            archive = stack.enter_context(zipfile.ZipFile(path, "w"))
            stream = stack.enter_context(archive.open("embeddings.npy", "w", force_zip64=True))
        else:
            stream = stack.enter_context(path.open("wb"))
        header = npy.header_data_from_array_1_0(np.empty((0, scorer.dimension), kind))
        npy.write_array_header_1_0(stream, {**header, "shape": (rows, scorer.dimension)})
        written = 0
        while block := list(islice(texts, ROWS)):
            sentences = [sentence for sentence, _ in block]
            conditions = [condition for _, condition in block if condition is not None]
            vectors = scorer.encode(sentences, conditions or None)
            stream.write(np.ascontiguousarray(vectors, dtype=kind).tobytes())
            written += len(block)
    if written != rows:
        raise InputError(f"The file changed while it was read: {rows} rows, then {written}.")


def _encode_file(
    file: Path, output: Path, *, column: str, model: str | None, plain: bool, float16: bool
) -> None:
    """Encodes a file into another, whose suffix says the format."""
    suffix = output.suffix.lower()
    if suffix not in (".npy", ".npz"):
        raise InputError(
            f"{output}: the suffix must be .npy or .npz. Got {output.suffix!r} instead."
        )
    check_file(file)
    check_column(file, column)
    # Also finds every fault before the work starts.
    rows = sum(1 for _ in _texts(file, column, plain=plain))
    scorer = load_encoder(model)
    with replacing(output) as unfinished:
        _write_array(
            unfinished,
            scorer,
            _texts(file, column, plain=plain),
            rows=rows,
            zipped=suffix == ".npz",
            kind=np.float16 if float16 else np.float32,
        )
    typer.echo(f"{output}: {rows} embeddings of dimension {scorer.dimension}", err=True)


def encode(
    file: Annotated[
        Path,
        typer.Option(
            help="File to encode: CSV, TSV, JSONL or Parquet with the columns sentence and "
            "condition. With --engine ray, a pattern of many.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            help="File to write: .npy, or .npz with the array 'embeddings'. With --engine ray, a "
            "folder of .npy files.",
        ),
    ],
    column: Annotated[
        str, typer.Option(help="Column of the sentences, such as sentence1 in a file of pairs.")
    ] = "sentence",
    model: Model = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Encode the sentences without a condition.")
    ] = False,
    float16: Annotated[
        bool, typer.Option("--float16", help="Write float16: half the bytes, about 3 digits.")
    ] = False,
    engine: Engine = "local",
    address: RayAddress = None,
    workers: RayWorkers = None,
) -> None:
    """Encode sentences, each under its condition.

    Writes one array, float32 or float16, of shape (rows, dimension). Every row has length 1, so the
    dot product of two is their raw similarity. Files can have any size: a few thousand rows are in
    memory at a time.

    **Examples**

    `condsim encode --file sentences.csv --output embeddings.npy`

    `condsim encode --file pairs.csv --column sentence2 --output second.npz`

    `condsim encode --engine ray --file 'texts/part-*.csv' --output embeddings`
    """
    check_engine(engine, address, workers)
    work = partial(_encode_file, column=column, model=model, plain=plain, float16=float16)
    if engine == "local":
        work(file, output)
        return
    from condsim.cli.parts import work_on_parts

    asked = {"column": column, "plain": plain, "float16": float16}
    work_on_parts(
        file,
        output,
        work,
        settings={"command": "encode", "model": revision_of(model), **asked},
        suffix=".npy",
        address=address,
        workers=workers,
    )
