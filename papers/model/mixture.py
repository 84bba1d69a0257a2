"""Files of a training mixture from groups of rows: what the recipe of a default model names.

A source of labeled rows becomes a CSV file with a column ``group``; one whose target is the plain
vector becomes a CSV file of inputs and a ``.npy`` of vectors.
"""

from __future__ import annotations

import csv
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from condsim.io import replacing
from condsim.types import FloatArray
from papers.model.groups import Group, Input, read_groups
from papers.model.plain import PlainVectors

_LOGGER = logging.getLogger("condsim")

CONDITION_MARKS = " \t\n.?!:;,…"
PLAIN_COLUMNS = ("sentence1", "sentence2", "score", "group")
ROW_COLUMNS = ("sentence1", "sentence2", "condition", "label", "group")

Targets = Callable[[Sequence[Input]], FloatArray]
"""Vectors that inputs are to have, ``(inputs, dimension)``."""


def write_mixture(
    rows: Path, output: Path, plain: PlainVectors, targets: Targets, *, inputs: int, seed: int = 0
) -> None:
    """Write the files of every source below ``rows`` that are not there yet.

    Args:
        rows: Folder of the groups of each source.
        output: Folder of the files.
        plain: Plain vectors, for the share of the plain cosine in the labels.
        targets: Vectors of the inputs of sources without labels.
        inputs: Number of inputs of a source at most, drawn in whole groups.
        seed: Seed of the draw.
    """
    output.mkdir(parents=True, exist_ok=True)
    for path in sorted(rows.glob("*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        if (output / f"{name}.csv").is_file():
            continue
        groups = list(_draw(list(read_groups(path)), inputs, seed))
        if groups[0].plain:
            members = [one for group in groups for one in group.inputs]
            _write_vectors(output / f"{name}.npy", targets(members))
            rows_of = ((text, condition or "") for condition, text in members)
            _write(output / f"{name}.csv", ("sentence", "condition"), rows_of)
        else:
            # A file has conditions in all of its rows or in none.
            bare = [group for group in groups if group.inputs[0][0] is None]
            if bare:
                _write(output / f"{name}-plain.csv", PLAIN_COLUMNS, _rows(bare, plain))
            others = [group for group in groups if group.inputs[0][0] is not None]
            _write(output / f"{name}.csv", ROW_COLUMNS, _rows(others, plain))
        _LOGGER.info("%s: %d groups", name, len(groups))


def _write_vectors(path: Path, vectors: FloatArray) -> None:
    with replacing(path) as partial, partial.open("wb") as stream:
        np.save(stream, vectors.astype(np.float16))


def _draw(groups: list[Group], inputs: int, seed: int) -> Iterator[Group]:
    random.Random(seed).shuffle(groups)
    for group in groups:
        inputs -= len(group.inputs)
        if inputs < 0:
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


def _write(path: Path, columns: Sequence[str], rows: Iterator[tuple[object, ...]]) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(rows)
