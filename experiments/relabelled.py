"""The labels of data/csts-labels beside those of the C-STS training file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from condsim.errors import InputError
from condsim.tasks import iter_rows, text_digest

LABELS = Path(__file__).resolve().parents[1] / "data" / "csts-labels" / "labels.csv"
EXAMPLES = LABELS.with_name("examples.csv")
"""Keys of the validation rows that whoever wrote the labels had read with their human labels."""


def row_key(sentence1: str, sentence2: str, condition: str) -> str:
    """Names a row without its text; the order of the sentences makes no difference."""
    sentences = sorted(text_digest(sentence) for sentence in (sentence1, sentence2))
    return hashlib.sha256(b"".join((*sentences, text_digest(condition)))).hexdigest()[:16]


def read_labels(path: Path = LABELS) -> dict[str, float]:
    """Reads the labels, 1 to 5, by the key of their row.

    Raises:
        InputError: If a label is no number from 1 to 5.
    """
    found: dict[str, float] = {}
    for row in iter_rows(path, columns=("key", "label")):
        label = float(str(row.cells["label"]))
        if not 1 <= label <= 5:
            raise InputError(f"{path}: labels must be in 1 to 5. Got {label:g}.")
        found[str(row.cells["key"])] = label
    return found


def read_keys(path: Path = EXAMPLES) -> frozenset[str]:
    """Reads keys of rows."""
    return frozenset(str(row.cells["key"]) for row in iter_rows(path, columns=("key",)))
