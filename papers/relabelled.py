"""Labels that condsim publishes for texts of others: data/csts-labels and data/caption-labels."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from condsim.data.files import iter_rows
from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.rows.records import TrainingRow

_LOGGER = logging.getLogger("condsim")
_DATA = Path(__file__).resolve().parents[1] / "data"

LABELS = _DATA / "csts-labels" / "labels.csv"
EXAMPLES = LABELS.with_name("examples.csv")
"""Keys of the validation rows that whoever wrote the labels had read with their human labels."""

CAPTION_LABELS = _DATA / "caption-labels" / "labels.csv"


_RANGE = (1.0, 5.0)


def row_key(sentence1: str, sentence2: str, condition: str) -> str:
    """Name a row without its text; the order of the sentences makes no difference."""
    sentences = sorted(text_digest(sentence) for sentence in (sentence1, sentence2))
    return hashlib.sha256(b"".join((*sentences, text_digest(condition)))).hexdigest()[:16]


def read_labels(path: Path = LABELS) -> dict[str, float]:
    """Read the labels, 1 to 5, by the key of their row."""
    found: dict[str, float] = {}
    for row in iter_rows(path, columns=("key", "label")):
        found[str(row.cells["key"])] = row.score("label", label_range=_RANGE)
    return found


def caption_key(caption: str) -> str:
    """Name a caption without its text."""
    return text_digest(caption).hex()[:12]


def caption_rows(
    captions: Sequence[Path], *, exclude: HeldOutTexts, path: Path = CAPTION_LABELS
) -> Iterator[TrainingRow]:
    """Join the labels of pairs of captions to the captions.

    Args:
        captions: Files with a column ``caption``; rows whose captions are in none are left out, and
            counted in the log.
        exclude: Captions whose rows are left out.
        path: File with the columns ``first`` and ``second`` (:func:`caption_key`), ``condition``
            and ``label``.
    """
    texts = {
        caption_key(text): text
        for file in captions
        for text in (row.text("caption").strip() for row in iter_rows(file, columns=("caption",)))
        if text not in exclude
    }
    missing = 0
    for row in iter_rows(path, columns=("first", "second", "condition", "label")):
        first, second = (texts.get(row.text(side)) for side in ("first", "second"))
        if first is None or second is None:
            missing += 1
            continue
        label = row.score("label", label_range=_RANGE)
        yield TrainingRow(first, second, row.text("condition"), label, "gold")
    if missing:
        _LOGGER.info("%s: %d rows without their captions left out", path.name, missing)


def read_keys(path: Path = EXAMPLES) -> frozenset[str]:
    """Read keys of rows."""
    return frozenset(str(row.cells["key"]) for row in iter_rows(path, columns=("key",)))
