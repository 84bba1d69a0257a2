"""The rows that the model that ships is trained on, beside those that people labelled."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from condsim.construction import TableRow, TrainingRow, write_rows
from condsim.tasks import iter_csts, iter_rows, load_csts
from condsim.training import caption_groups, load_siblings, with_siblings

PLAIN = (("mnli_dev_matched.tsv.gz", 2000), ("snli_dev.tsv.gz", 1000))
"""Files of NLI whose premises and hypotheses are pairs without conditions, and how many of each."""

_CAPTION_PAIRS = 1000  # pairs of captions beside those of NLI
_PLAIN_LENGTHS = range(9, 160)  # characters of a sentence
_VARIANTS = 2  # times that each row is written with siblings


@dataclass(frozen=True, slots=True)
class PlainPair(TableRow):
    """Two sentences without a condition."""

    sentence1: str
    sentence2: str


@dataclass(frozen=True, slots=True)
class Sibling(TableRow):
    """A text of a group that tells of the same thing."""

    group: str
    text: str


def write_joined(taught: Sequence[Path], gold: Path, output: Path) -> None:
    """Puts taught rows and labelled rows into one file."""

    def rows() -> Iterator[TrainingRow]:
        for path in (*taught, gold):
            for row in iter_csts(path):
                if row.label is not None:
                    origin = "gold" if path is gold else "taught"
                    yield TrainingRow(
                        row.sentence1, row.sentence2, row.condition, row.label, origin
                    )

    write_rows(rows(), output, kind=TrainingRow)


def write_pairs(nli: Path, weak: Path, output: Path) -> None:
    """Draws pairs without conditions: premises with hypotheses, and captions that are near."""
    draw = random.Random(0)
    pairs: list[tuple[str, str]] = []
    for name, number in PLAIN:
        found = _pairs_of(nli / name, "premise", "hypothesis")
        pairs += draw.sample(found, min(number, len(found)))
    found = _pairs_of(weak, "sentence1", "sentence2")
    pairs += draw.sample(found, min(_CAPTION_PAIRS, len(found)))
    write_rows((PlainPair(*pair) for pair in pairs), output, kind=PlainPair)


def _pairs_of(path: Path, first: str, second: str) -> list[tuple[str, str]]:
    """The distinct pairs of a file whose sentences are neither short nor long."""
    rows = (row.cells for row in iter_rows(path, columns=(first, second)))
    texts = ((str(cells[first]).strip(), str(cells[second]).strip()) for cells in rows)
    return sorted(
        {
            pair
            for pair in texts
            if pair[0] != pair[1] and all(len(text) in _PLAIN_LENGTHS for text in pair)
        }
    )


def write_sibling_rows(captions: Sequence[Path], train: Path, dev: Path, output: Path) -> None:
    """Writes labelled rows again with other captions of the same images."""

    def rows() -> Iterator[TrainingRow]:
        seen = {(row.sentence1, row.sentence2, row.condition) for row in iter_csts(train)}
        for variant in range(_VARIANTS):
            task = with_siblings(labelled, siblings, rate=1.0, seed=(0, variant))
            conditions, labels = task.conditions or (), task.labels.tolist()
            for row in zip(task.sentences1, task.sentences2, conditions, labels, strict=True):
                if row[:3] not in seen:
                    seen.add(row[:3])
                    yield TrainingRow(*row, origin="sibling")

    listed = output.with_name("siblings.csv")
    write_rows((Sibling(*group) for group in caption_groups(captions)), listed, kind=Sibling)
    labelled, kept_apart = load_csts(train).labelled(), load_csts(dev)
    siblings = load_siblings(
        listed,
        sentences=(*labelled.sentences1, *labelled.sentences2),
        leave_out=(*kept_apart.sentences1, *kept_apart.sentences2),
    )
    write_rows(rows(), output, kind=TrainingRow)
