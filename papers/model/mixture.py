"""Files of a training mixture from groups of rows: what the recipe of a default model names.

A source of labeled rows becomes a CSV file with a column ``group``; one whose target is a vector
becomes a CSV file of inputs and a ``.npy`` of vectors.
"""

from __future__ import annotations

import csv
import logging
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from condsim.io import replacing
from condsim.types import FloatArray
from papers.model.groups import Group, Input, read_groups
from papers.model.plain import PlainVectors

_LOGGER = logging.getLogger("condsim")

ROW_COLUMNS = ("sentence1", "sentence2", "condition", "label", "group")
BARE_COLUMNS = ("sentence1", "sentence2", "score", "group")


def rows_files(rows: Path) -> list[Path]:
    """Files of the groups of each source, in the order of their names."""
    return sorted(rows.glob("*.jsonl.gz"))


def write_mixture(
    rows: Path, output: Path, plain: PlainVectors, *, inputs: int, seed: int = 0
) -> None:
    """Write the files of every source of labeled rows that are not there yet.

    Args:
        rows: Folder of the groups of each source.
        output: Folder of the files.
        plain: Plain vectors, for the share of the plain cosine in the labels.
        inputs: Number of inputs of a source at most, drawn in whole groups.
        seed: Seed of the draw.
    """
    output.mkdir(parents=True, exist_ok=True)
    for path in rows_files(rows):
        name = path.name.removesuffix(".jsonl.gz")
        if (output / f"{name}.csv").is_file():
            continue
        groups = [group for group in drawn_groups(path, inputs, seed=seed) if not group.plain]
        # A file has conditions in all of its rows or in none.
        bare = [group for group in groups if group.inputs[0][0] is None]
        others = [group for group in groups if group.inputs[0][0] is not None]
        if bare:
            _write(output / f"{name}-plain.csv", BARE_COLUMNS, _rows(bare, plain))
        if others:
            _write(output / f"{name}.csv", ROW_COLUMNS, _rows(others, plain))
        _LOGGER.info("%s: %d groups", name, len(groups))


def write_inputs(output: Path, name: str, inputs: Sequence[Input], vectors: FloatArray) -> None:
    """Write inputs and the vectors that they are to have, ``(inputs, dimension)``."""
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{name}.npy"
    with replacing(path) as partial, partial.open("wb") as stream:
        np.save(stream, vectors.astype(np.float16))
    rows = ((text, condition or "") for condition, text in inputs)
    _write(output / f"{name}.csv", ("sentence", "condition"), rows)


def drawn_groups(path: Path, inputs: int, *, seed: int) -> Iterator[Group]:
    """Draw whole groups of a source, with so many inputs at most."""
    groups = list(read_groups(path))
    random.Random(seed).shuffle(groups)
    for number, group in enumerate(groups):
        inputs -= len(group.inputs)
        if inputs < 0:
            _LOGGER.info(
                "%s: %d of %d groups left out", path.name, len(groups) - number, len(groups)
            )
            return
        yield group


def _rows(groups: Sequence[Group], plain: PlainVectors) -> Iterator[tuple[object, ...]]:
    shared = sorted({text for group in groups if group.share for _, text in group.inputs})
    vectors = dict(zip(shared, plain(shared), strict=True)) if shared else {}
    for number, group in enumerate(groups):
        for first, second, label, _ in group.rows:
            (condition, text1), (_, text2) = group.inputs[first], group.inputs[second]
            if group.share:
                cosine = max(0.0, float(vectors[text1] @ vectors[text2]))
                label = (1 - group.share) * label + group.share * cosine
            cells = (text1, text2) if condition is None else (text1, text2, condition)
            yield *cells, f"{label:.3f}", number


def _write(path: Path, columns: Sequence[str], rows: Iterable[tuple[object, ...]]) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(rows)
