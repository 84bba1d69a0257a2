"""``condsim encode``: embeddings of the texts of a file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import numpy as np
from numpy.lib import format as npy
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.files import Output
from condsim.cli.process import print_note
from condsim.data.batch import ROWS_PER_BATCH, BlankRows
from condsim.data.files import check_file, column_names, read_batches
from condsim.data.row import missing_columns
from condsim.data.text import FileFormat
from condsim.errors import InputError
from condsim.io import replacing
from condsim.loading import load_encoder
from condsim.paths import check_suffix
from condsim.types import IntArray


class _TextBatch(NamedTuple):
    """Texts of the rows of a batch that have one, ``(m,)``, and a condition for each or for all."""

    size: int
    rows: IntArray
    texts: list[str]
    conditions: list[str] | str | None


class _TextColumns(NamedTuple):
    """Columns of a file of texts; ``condition`` is for every row, in place of a column."""

    column: str
    condition_column: str
    condition: str | None
    plain: bool
    separator: str | None
    encoding: str | None
    strict: bool

    def batches(self, file: Path, blank: BlankRows) -> Iterator[_TextBatch]:
        """Yield the texts and conditions of a file."""
        file_format = FileFormat.checked(self.separator, self.encoding)
        options.check_column(file, self.column, file_format)
        condition_column = None
        if not self.plain and self.condition is None:
            condition_column = self.condition_column.strip()
            names = column_names(file, file_format)
            if names and condition_column not in names:
                advice = " Give --condition, --condition-column, or --plain for texts as a whole."
                raise missing_columns(str(file), [condition_column], names, advice=advice)
        columns = tuple(filter(None, (self.column.strip(), condition_column)))
        for batch in read_batches(
            file, columns=columns, size=ROWS_PER_BATCH, file_format=file_format
        ):
            rows, (texts, *cells) = blank.texts(batch, columns, condition=condition_column)
            yield _TextBatch(len(batch), rows, texts, cells[0] if cells else self.condition)


def _encode_file(
    file: Path,
    output: Path,
    *,
    columns: _TextColumns,
    model: str | None,
    overall: float,
    float16: bool,
) -> None:
    """Write embeddings as ``.npy`` or, in a ``.npz``, ``embeddings``; NaN for rows without text."""
    suffix = check_suffix(output, (".npy", ".npz"))
    check_file(file)
    # The first reading also finds every fault before the work starts.
    blank = BlankRows(strict=columns.strict)
    rows = sum(batch.size for batch in columns.batches(file, blank))
    scorer = load_encoder(model)
    # The condition tells the length: a learned criterion has its own.
    first = next((batch for batch in columns.batches(file, BlankRows()) if batch.texts), None)
    dimension = scorer.dimension_of(first.conditions if first else "", overall=overall)
    dtype = np.float16 if float16 else np.float32
    with ExitStack() as stack:
        path = stack.enter_context(replacing(output))
        stream: IO[bytes]
        if suffix == ".npz":
            archive = stack.enter_context(zipfile.ZipFile(path, "w"))
            stream = stack.enter_context(archive.open("embeddings.npy", "w", force_zip64=True))
        else:
            stream = stack.enter_context(path.open("wb"))
        header = npy.header_data_from_array_1_0(np.empty((0, dimension), dtype))
        npy.write_array_header_1_0(stream, {**header, "shape": (rows, dimension)})
        written = 0
        for batch in columns.batches(file, BlankRows()):
            vectors = np.full((batch.size, dimension), np.nan, dtype)
            if batch.texts:
                vectors[batch.rows] = scorer.encode(batch.texts, batch.conditions, overall=overall)
            stream.write(vectors.tobytes())
            written += batch.size
        if written != rows:
            raise InputError(f"{file} changed while it was read: {rows} rows, then {written}.")
    print_note(blank.note("a vector of NaN"))
    print_note(f"{output}: {rows - blank.count} embeddings of dimension {dimension}")


def encode(
    file: Annotated[Path, Argument(help="File of texts.")],
    output: Annotated[Path, Option(help="File to write: .npy, or .npz."), Output(".npy")],
    column: options.TextColumn = "text",
    condition: options.Condition = None,
    condition_column: options.ConditionColumn = "condition",
    model: options.Model = None,
    plain: Annotated[bool, Option("--plain", help="Encode without a condition.")] = False,
    overall: options.Overall = 0.0,
    float16: Annotated[bool, Option("--float16", help="Write float16: half the bytes.")] = False,
    strict: options.Strict = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Encode texts, each under its condition.

    Writes one array, float32 or float16, of shape (rows, dimension). Every row has length 1, so the
    dot product of two is their raw similarity. Files can have any size: a few thousand rows are in
    memory at a time. The vector of a row without text is NaN. With --overall, the vector of a text
    under its condition is followed by the embedding of the text alone, so that it is twice as long.

    **Examples**

    `condsim encode tickets.csv --condition "the request" --output request.npz`

    `condsim encode sentences.csv --column sentence --output embeddings.npy`
    """
    if plain and (condition is not None or overall):
        raise InputError("--condition and --overall cannot go with --plain.")
    columns = _TextColumns(column, condition_column, condition, plain, separator, encoding, strict)
    _encode_file(file, output, columns=columns, model=model, overall=overall, float16=float16)
