"""Rows that are balanced under each condition: human labels, captions and labeled tables.

The labels that condsim publishes for texts of others are in data/csts-labels and
data/caption-labels; texts and labels are joined by hashes.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from condsim.data.csts import iter_csts
from condsim.data.files import iter_rows
from condsim.data.held_out import HeldOutTexts, held_out_texts, text_digest
from condsim.errors import InputError
from condsim.rows.build import build_criteria
from condsim.rows.records import write_rows
from condsim.rows.settings import CriteriaSettings
from condsim_annotation.tables import TrainingRow
from papers.model.sources import HELD_OUT, ROOT

_LOGGER = logging.getLogger("condsim")

CSTS_LABELS = ROOT / "data" / "csts-labels" / "labels.csv"
CAPTION_LABELS = ROOT / "data" / "caption-labels" / "labels.csv"
OWN_SHARE = 0.6
"""Share of the labels of data/csts-labels in the label of a C-STS row that has one."""

OPINIONS = "mams"
"""The one open set of opinions about several aspects of a text, the hardest kind."""

ROWS = {"attributes": 600, "criteria": 6000, "opinions": 15_000}
_LABEL_RANGE = (1.0, 5.0)


def trainable_sets(criteria: Path) -> dict[str, Path]:
    """The training files of the open sets that may be trained on, by name."""
    listed = criteria / "meta.json"
    if not listed.is_file():
        raise InputError(f"{criteria} must hold meta.json, which says what a set may be used for.")
    facts = json.loads(listed.read_text(encoding="utf-8"))
    files = {name: criteria / name / "train.jsonl.gz" for name in sorted(facts)}
    return {
        name: path
        for name, path in files.items()
        if facts[name]["use"] == "train" and path.is_file()
    }


def write_balanced(data: Path, folder: Path) -> None:
    """Write the rows of each kind whose file is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    held_out = data / HELD_OUT
    exclude = held_out_texts([held_out])
    sets = trainable_sets(data / "criteria")
    if not (folder / "csts.csv").is_file():
        rows = csts_rows(data / "csts-reannotated" / "train.csv", exclude=exclude)
        write_rows(rows, folder / "csts.csv", kind=TrainingRow)
    if not (folder / "captions.csv").is_file():
        captions = sorted((data / "captions").glob("*.tsv.gz"))
        rows = caption_rows(captions, exclude=exclude)
        write_rows(rows, folder / "captions.csv", kind=TrainingRow)
    tables = {
        "attributes": sorted((ROOT / "data" / "attributes").glob("*.jsonl")),
        "criteria": list(sets.values()),
        "opinions": [sets[OPINIONS]],
    }
    for name, paths in tables.items():
        path = folder / f"{name}.csv"
        if not path.is_file():
            settings = CriteriaSettings(rows=ROWS[name], hard=1.0)
            build_criteria(paths, path, settings, exclude=(held_out,))


def row_key(sentence1: str, sentence2: str, condition: str) -> str:
    """Name a row without its text; the order of the sentences makes no difference."""
    sentences = sorted(text_digest(sentence) for sentence in (sentence1, sentence2))
    return hashlib.sha256(b"".join((*sentences, text_digest(condition)))).hexdigest()[:16]


def read_labels(path: Path = CSTS_LABELS) -> dict[str, float]:
    """Read the labels, 1 to 5, by the key of their row."""
    rows = iter_rows(path, columns=("key", "label"))
    return {str(row.cells["key"]): row.score("label", label_range=_LABEL_RANGE) for row in rows}


def csts_rows(
    train: Path, *, exclude: HeldOutTexts, labels: Path = CSTS_LABELS
) -> Iterator[TrainingRow]:
    """C-STS training rows without texts held out, with the labels of both origins."""
    own = read_labels(labels)
    for row in iter_csts(train):
        if row.label is None or row.sentence1 in exclude or row.sentence2 in exclude:
            continue
        label = row.label
        also = own.get(row_key(row.sentence1, row.sentence2, row.condition))
        if also is not None:
            label = round((1 - OWN_SHARE) * label + OWN_SHARE * also, 2)
        yield TrainingRow(row.sentence1, row.sentence2, row.condition, label, "gold")


def caption_key(caption: str) -> str:
    """Name a caption without its text."""
    return text_digest(caption).hex()[:12]


def caption_rows(
    captions: Sequence[Path], *, exclude: HeldOutTexts, labels: Path = CAPTION_LABELS
) -> Iterator[TrainingRow]:
    """Join the labels of pairs of captions to the captions; rows without them are left out."""
    texts = {
        caption_key(text): text
        for file in captions
        for text in (row.text("caption").strip() for row in iter_rows(file, columns=("caption",)))
        if text not in exclude
    }
    missing = 0
    for row in iter_rows(labels, columns=("first", "second", "condition", "label")):
        first, second = (texts.get(row.text(side)) for side in ("first", "second"))
        if first is None or second is None:
            missing += 1
            continue
        label = row.score("label", label_range=_LABEL_RANGE)
        yield TrainingRow(first, second, row.text("condition"), label, "gold")
    if missing:
        _LOGGER.info("%s: %d rows without their captions left out", labels.name, missing)
