"""Rows that a larger model labels: its vectors on conditions and texts of every source.

The small model learns these vectors through a linear layer that is thrown away afterwards, and the
labels of the same rows next to them (LEAF, arXiv 2509.12539; jina-embeddings-v5, 2602.15547).
"""

from __future__ import annotations

import argparse
import logging
import random
from dataclasses import replace
from pathlib import Path

from papers.model.groups import read_groups
from papers.model.natural import checkpoint_embedder
from papers.model.pack import pack, read_tokenizer, save_packed
from papers.model.plain import PlainVectors
from papers.model.rows import PLAIN_VECTORS

_LOGGER = logging.getLogger("condsim")

TAUGHT = "taught"
"""Source of the small model: inputs with the vectors of the large one."""

INPUTS_PER_SOURCE = 8000


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
    plain = PlainVectors(plain_model, rows / PLAIN_VECTORS)
    packed = pack(groups, read_tokenizer(model), plain, checkpoint_embedder(teacher))
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
