"""Rows that a larger model labels: its vectors on conditions and texts of every source.

The small model learns these vectors, projected to its own dimension, and the labels of the same
rows next to them, in the manner of LEAF (arXiv 2509.12539) and jina-embeddings-v5 (2602.15547).
Those train the projection; here it is computed once, so that cosines of the small model become
the large one's. A trained one had reached a cosine of 0.5 after 1,200 steps.
"""

from __future__ import annotations

import argparse
import logging
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from condsim.types import FloatArray
from papers.model.groups import Input, read_groups
from papers.model.measured import checkpoint_embedder
from papers.model.pack import pack, read_tokenizer, save_packed
from papers.model.plain import PlainVectors
from papers.model.rows import PLAIN_VECTORS

_LOGGER = logging.getLogger("condsim")

TAUGHT = "taught"
"""Source of the small model: inputs with the vectors of the large one."""

INPUTS_PER_SOURCE = 8000
INPUTS_TO_ALIGN = 16_384


def projection(teacher: FloatArray, student: FloatArray) -> FloatArray:
    """Compute an orthonormal map from the teacher's vectors to the dimension of the student.

    It keeps the directions of largest energy, which weigh most in the teacher's cosines, and
    turns them so that they are as near as possible to the vectors that the student begins with
    (orthogonal Procrustes; Schönemann, 1966).

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
    rows: Path,
    teacher: Path,
    model: Path,
    plain_model: Path,
    output: Path,
    *,
    inputs: int = INPUTS_PER_SOURCE,
) -> None:
    """Pack a draw of the groups of every source with the vectors of the teacher."""
    draw = random.Random(0)
    groups = []
    for path in sorted(rows.glob("*.jsonl.gz")):
        candidates = list(read_groups(path))
        draw.shuffle(candidates)
        number = 0
        for group in candidates:
            number += len(group.inputs)
            if number > inputs:
                break
            groups.append(replace(group, plain=True))
    large, small = checkpoint_embedder(teacher), checkpoint_embedder(model)

    def targets(inputs: Sequence[Input]) -> FloatArray:
        vectors = large(inputs)
        sample = draw.sample(range(len(inputs)), min(INPUTS_TO_ALIGN, len(inputs)))
        starts = small([inputs[number] for number in sample])
        return vectors @ projection(vectors[sample], starts)

    plain = PlainVectors(plain_model, rows / PLAIN_VECTORS)
    packed = pack(groups, read_tokenizer(model), plain, targets)
    save_packed(packed, output)
    _LOGGER.info("%d groups, %d inputs", len(groups), len(packed["inputs"]))


def main() -> None:
    """Pack a draw of the groups of every source with the vectors of the teacher."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="whose tokens the rows have")
    parser.add_argument("--plain-model", type=Path, required=True)
    parser.add_argument("--inputs", type=int, default=INPUTS_PER_SOURCE, help="of each source")
    parser.add_argument("--out", type=Path, required=True, help="a .npz file")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    teach(
        options.rows,
        options.teacher,
        options.model,
        options.plain_model,
        options.out,
        inputs=options.inputs,
    )


if __name__ == "__main__":
    main()
