"""``condsim encode``: embeddings of the texts of a file."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer
from numpy.lib import format as npy

from condsim.cli.options import (
    ConditionColumn,
    Engine,
    Model,
    RayAddress,
    RayWorkers,
    check_column,
    check_engine,
    revision_of,
)
from condsim.data.files import ROWS_PER_BATCH, check_file, column_names, read_batches
from condsim.errors import InputError
from condsim.io import replacing
from condsim.loading import load_encoder
from condsim.model.embedding import EmbeddingScorer

TextBatch = tuple[list[str], list[str] | str | None]
"""Texts and their conditions: one for each, one for all, or None."""


def _batches(file: Path, column: str, condition_column: str | None) -> Iterator[TextBatch]:
    columns = (column,) if condition_column is None else (column, condition_column)
    for batch in read_batches(file, columns=columns, size=ROWS_PER_BATCH):
        conditions = (
            None if condition_column is None else batch.texts(condition_column, is_condition=True)
        )
        yield batch.texts(column), conditions


def _write_array(
    path: Path,
    scorer: EmbeddingScorer,
    batches: Iterator[TextBatch],
    *,
    condition: str | None,
    rows: int,
    zipped: bool,
    dtype: type[np.floating[Any]],
) -> None:
    """Write embeddings as ``.npy``, or as the array ``embeddings`` of an archive (``.npz``)."""
    with ExitStack() as stack:
        stream: IO[bytes]
        if zipped:
            archive = stack.enter_context(zipfile.ZipFile(path, "w"))
            stream = stack.enter_context(archive.open("embeddings.npy", "w", force_zip64=True))
        else:
            stream = stack.enter_context(path.open("wb"))
        header = npy.header_data_from_array_1_0(np.empty((0, scorer.dimension), dtype))
        npy.write_array_header_1_0(stream, {**header, "shape": (rows, scorer.dimension)})
        written = 0
        for texts, conditions in batches:
            vectors = scorer.encode(texts, conditions if condition is None else condition)
            stream.write(np.ascontiguousarray(vectors, dtype=dtype).tobytes())
            written += len(texts)
    if written != rows:
        raise InputError(f"The file changed while it was read: {rows} rows, then {written}.")


def _encode_file(
    file: Path,
    output: Path,
    *,
    column: str,
    condition_column: str,
    condition: str | None,
    model: str | None,
    plain: bool,
    float16: bool,
) -> None:
    """Encode a file into another, whose suffix decides the format."""
    suffix = output.suffix.lower()
    if suffix not in (".npy", ".npz"):
        raise InputError(f"{output}: the suffix must be .npy or .npz; got {output.suffix!r}.")
    check_file(file)
    check_column(file, column)
    column = column.strip()
    read = None if plain or condition is not None else condition_column.strip()
    names = column_names(file)
    if read is not None and names and read not in names:
        raise InputError(
            f"{file}: there is no column {read!r}. Give --condition, --condition-column, or "
            "--plain to encode texts as a whole."
        )
    # The first reading also finds every fault before the work starts.
    rows = sum(len(texts) for texts, _ in _batches(file, column, read))
    scorer = load_encoder(model)
    with replacing(output) as unfinished:
        _write_array(
            unfinished,
            scorer,
            _batches(file, column, read),
            condition=condition,
            rows=rows,
            zipped=suffix == ".npz",
            dtype=np.float16 if float16 else np.float32,
        )
    typer.echo(f"{output}: {rows} embeddings of dimension {scorer.dimension}", err=True)


def encode(
    file: Annotated[
        Path,
        typer.Option(
            help="File to encode: CSV, TSV, JSONL or Parquet. With --engine ray, a glob pattern.",
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
        str, typer.Option(help="Column of the texts, such as sentence1 in a file of pairs.")
    ] = "sentence",
    condition: Annotated[
        str | None, typer.Option(help="Condition for every row, instead of a column.")
    ] = None,
    condition_column: ConditionColumn = "condition",
    model: Model = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Encode the texts without a condition.")
    ] = False,
    float16: Annotated[
        bool, typer.Option("--float16", help="Write float16: half the bytes, about 3 digits.")
    ] = False,
    engine: Engine = "local",
    address: RayAddress = None,
    workers: RayWorkers = None,
) -> None:
    """Encode texts, each under its condition.

    Writes one array, float32 or float16, of shape (rows, dimension). Every row has length 1, so the
    dot product of two is their raw similarity. Files can have any size: a few thousand rows are in
    memory at a time.

    **Examples**

    `condsim encode --file sentences.csv --output embeddings.npy`

    `condsim encode --file tickets.csv --column text --condition "the request" --output request.npz`

    `condsim encode --engine ray --file 'texts/part-*.csv' --output embeddings`
    """
    check_engine(engine, address, workers)
    if plain and condition is not None:
        raise InputError("Give either --condition or --plain, not both.")
    options = {
        "column": column,
        "condition_column": condition_column,
        "condition": condition,
        "plain": plain,
        "float16": float16,
    }
    work: Callable[[Path, Path], None] = partial(_encode_file, model=model, **options)  # type: ignore[arg-type]
    if engine == "local":
        work(file, output)
        return
    from condsim.cli.parts import work_on_parts

    work_on_parts(
        file,
        output,
        work,
        settings={"command": "encode", "model": revision_of(model), **options},
        suffix=".npy",
        address=address,
        workers=workers,
    )
