"""The rows of training files made without annotators, and the manifest beside such a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from condsim import __version__
from condsim.construction.row_files import revisions_of, write_manifest
from condsim.construction.rows import TableRow
from condsim.files import sha256_of


@dataclass(frozen=True, slots=True)
class TrainingRow(TableRow):
    """A row of training data.

    Attributes:
        sentence1: The first sentence, or a short answer in its place.
        sentence2: The second, likewise.
        condition: The condition.
        label: Similarity from 1 to 5.
        origin: Where the label is from, such as ``given``, or ``model:`` and the names of models.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float
    origin: str


@dataclass(frozen=True, slots=True)
class WeakRow(TrainingRow):
    """A weakly labelled row; -1 where the attribute is absent. Its origin names the function."""

    label: int


@dataclass(frozen=True, slots=True)
class AnsweredRow(WeakRow):
    """A weakly labelled row with what was read from each sentence; empty if absent."""

    answer1: str
    answer2: str


def write_provenance(
    output: Path, *, kind: str, made_from: Sequence[Path], facts: Mapping[str, object]
) -> None:
    """Writes the manifest of a file that is finished."""
    content = {
        "kind": kind,
        "sha256": sha256_of(output),
        "made_from": revisions_of(made_from),
        **facts,
        "condsim": __version__,
    }
    write_manifest(output, content)
