"""Packs groups of rows: token ids and targets, all that a training step reads.

``python -m papers.model.pack --rows FOLDER --model CHECKPOINT --out FOLDER`` writes a ``.npz`` of a
few megabytes for each source, which needs neither texts nor tokenizer where it is trained on.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from papers.model.groups import Group, Input, read_groups
from papers.model.plain import PlainVectors

_LOGGER = logging.getLogger("condsim")

CONDITION_MARKS = " \t\n.?!:;,…"
LONGEST_CONDITION_TOKENS = 40
LONGEST_TEXT_TOKENS = 96


class Vocabulary:
    """Texts, each numbered once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str | None) -> int:
        """The number of a text; -1 for None."""
        return -1 if text is None else self.numbers.setdefault(text, len(self.numbers))

    def tokens(
        self, tokenizer: Tokenizer, *, longest: int
    ) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
        """Token ids of all texts end to end, and where each begins and the last ends."""
        encodings = tokenizer.encode_batch(list(self.numbers), add_special_tokens=False)
        ids = [encoding.ids[:longest] for encoding in encodings]
        starts = np.cumsum([0, *map(len, ids)])
        flat = np.array([token for row in ids for token in row], np.uint16)
        return flat, starts.astype(np.int64)


def read_tokenizer(model: Path) -> Tokenizer:
    """Read the tokenizer of a checkpoint folder; it pads and cut nothing."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def bare(condition: str | None) -> str | None:
    """A condition as the model reads it: without the marks at its end."""
    return None if condition is None else condition.rstrip(CONDITION_MARKS) or condition


def pack(
    groups: Sequence[Group],
    tokenizer: Tokenizer,
    cosines: PlainVectors,
    targets: Callable[[Sequence[Input]], NDArray[np.float32]] | None,
) -> dict[str, NDArray[np.generic]]:
    """Pack groups of one source.

    Args:
        groups: The groups; all of them or none have vectors as targets.
        tokenizer: The tokenizer of the model to train.
        cosines: Plain vectors, for the share of the plain cosine in the labels.
        targets: Gives the vector that each input is to have, where groups are ``plain``. If None,
            the training embeds the texts without a condition, before its first step.
    """
    texts, conditions = Vocabulary(), Vocabulary()
    inputs = [
        (conditions(bare(condition)), texts(text)) for g in groups for condition, text in g.inputs
    ]
    shared = sorted({text for g in groups if g.share for _, text in g.inputs})
    vectors = dict(zip(shared, cosines(shared), strict=True)) if shared else {}
    rows = []
    for group in groups:
        for first, second, label, weight in group.rows:
            if group.share:
                sides = (vectors[group.inputs[place][1]] for place in (first, second))
                label = (1 - group.share) * label + group.share * max(0.0, float(np.dot(*sides)))
            rows.append((first, second, label, weight))
    table = np.array(rows, np.float32).reshape(-1, 4)
    text_ids, text_starts = texts.tokens(tokenizer, longest=LONGEST_TEXT_TOKENS)
    condition_ids, condition_starts = conditions.tokens(tokenizer, longest=LONGEST_CONDITION_TOKENS)
    packed: dict[str, NDArray[np.generic]] = {
        "text_ids": text_ids,
        "text_starts": text_starts,
        "condition_ids": condition_ids,
        "condition_starts": condition_starts,
        "inputs": np.array(inputs, np.int32),
        "input_starts": np.cumsum([0, *(len(g.inputs) for g in groups)]),
        "pairs": table[:, :2].astype(np.int16),
        "labels": table[:, 2].astype(np.float16),
        "weights": table[:, 3].astype(np.float16),
        "row_starts": np.cumsum([0, *(len(g.rows) for g in groups)]),
        "plain": np.array([any(group.plain for group in groups)]),
    }
    if any(group.plain for group in groups) and targets is not None:
        packed["vectors"] = targets([one for g in groups for one in g.inputs]).astype(np.float16)
    return packed


def save_packed(packed: dict[str, NDArray[np.generic]], output: Path) -> None:
    """Write a packed source whole or not at all."""
    partial = output.with_suffix(".partial.npz")
    np.savez_compressed(partial, **packed)  # type: ignore[arg-type]
    partial.replace(output)


def pack_rows(
    rows: Path,
    model: Path,
    plain_model: Path,
    output: Path,
    *,
    only: Sequence[str] | None = None,
    vectors: bool = True,
) -> None:
    """Pack each source, or some, whose packed file is not there yet."""
    output.mkdir(parents=True, exist_ok=True)
    tokenizer = read_tokenizer(model)
    cosines = PlainVectors(plain_model, rows / "plain-minilm")
    same = plain_model == model
    plain = cosines if same else PlainVectors(model, output / "plain-targets")
    for path in sorted(rows.glob("*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        packed_file = output / f"{name}.npz"
        if packed_file.is_file() or (only and name not in only):
            continue
        groups = list(read_groups(path))
        packed = pack(groups, tokenizer, cosines, plain.of_inputs if vectors else None)
        save_packed(packed, packed_file)
        number, tokens = len(packed["inputs"]), len(packed["text_ids"])
        _LOGGER.info("%s: %d groups, %d inputs, %d tokens", name, len(groups), number, tokens)


def main() -> None:
    """Pack every source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="whose tokens and vectors")
    parser.add_argument("--plain-model", type=Path, required=True, help="whose cosines rows have")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--no-vectors", action="store_true", help="leave them to the training")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    pack_rows(
        options.rows,
        options.model,
        options.plain_model,
        options.out,
        only=options.only,
        vectors=not options.no_vectors,
    )


if __name__ == "__main__":
    main()
