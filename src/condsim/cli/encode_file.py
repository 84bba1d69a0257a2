"""Encoding of files for ``condsim encode``: a block of rows at a time, so any size fits."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from condsim.errors import InputError
from condsim.scorers.embedding import EmbeddingScorer
from condsim.tasks import iter_rows

__all__ = ["texts_of", "write_array"]

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
