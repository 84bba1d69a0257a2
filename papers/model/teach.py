"""Vectors that a model is to have: a larger model's, or the plain ones.

The small model learns the vectors of the large one, projected to its own dimension, and the labels
of the same rows next to them, in the manner of LEAF (arXiv 2509.12539) and jina-embeddings-v5
(2602.15547). Those train the projection; here it is computed once, so that cosines of the small
model become the large one's. A trained one had reached a cosine of 0.5 after 1,200 steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from condsim.types import FloatArray
from papers.model.groups import Input
from papers.model.mixture import drawn_groups, rows_files, write_inputs

TAUGHT = "taught"
"""Source of the small model: inputs with the vectors of the large one."""

INPUTS_PER_SOURCE = 8000
INPUTS_TO_ALIGN = 16_384
PLAIN_TO_ALIGN = 3000

Embed = Callable[[Sequence[Input]], FloatArray]
"""Unit vectors of inputs, ``(inputs, dimension)``."""
EmbedTexts = Callable[[Sequence[str]], FloatArray]
"""Unit vectors of texts, ``(texts, dimension)``."""


def projection(teacher: FloatArray, student: FloatArray) -> FloatArray:
    """Compute an orthonormal map from the teacher's vectors to the dimension of the student.

    It keeps the directions of largest energy, which weigh most in the teacher's cosines, and
    turns them so that they are as near as possible to the vectors that the student begins with
    (orthogonal Procrustes; Schönemann, 1966). Where both have one dimension, it turns alone.

    Args:
        teacher: Vectors of some inputs, ``(inputs, large)``.
        student: Vectors of the same inputs, ``(inputs, small)``.

    Returns:
        The map, ``(large, small)``.
    """
    _, directions = np.linalg.eigh(teacher.T @ teacher)
    basis = directions[:, -student.shape[1] :]
    left, _, right = np.linalg.svd((teacher @ basis).T @ student)
    return np.asarray(basis @ left @ right, np.float32)


def teach(
    rows: Path, output: Path, teacher: Embed, student: Embed, *, inputs: int = INPUTS_PER_SOURCE
) -> None:
    """Write a draw of the inputs of every source with the vectors of the teacher."""
    members: list[Input] = []
    for path in rows_files(rows):
        for group in drawn_groups(path, inputs, seed=0):
            members += group.inputs
    vectors = teacher(members)
    sample = random.Random(0).sample(range(len(members)), min(INPUTS_TO_ALIGN, len(members)))
    starts = student([members[number] for number in sample])
    write_inputs(output, TAUGHT, members, vectors @ projection(vectors[sample], starts))


def keep_plain(
    rows: Path, output: Path, plain: EmbedTexts, start: EmbedTexts, *, inputs: int
) -> None:
    """Write the sources of plain groups, whose inputs are to keep their plain vectors.

    A text has the same vector under every condition, turned to the vectors that the training
    begins with.
    """
    for path in rows_files(rows):
        groups = [group for group in drawn_groups(path, inputs, seed=0) if group.plain]
        if not groups:
            continue
        members = [one for group in groups for one in group.inputs]
        texts = [text for _, text in members]
        vectors, starts = plain(texts), start(texts[:PLAIN_TO_ALIGN])
        turn = projection(vectors[:PLAIN_TO_ALIGN], starts)
        write_inputs(output, path.name.split(".")[0], members, vectors @ turn)
