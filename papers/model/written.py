"""Training rows of what was written for condsim: pairs, triplets, graded texts and rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from condsim.data.written import iter_written
from papers.model.groups import Group, Input, percentile
from papers.model.noise import with_noise
from papers.model.rules import rule_groups
from papers.model.sources import ROOT, Sources


def written(sources: Sources) -> Iterator[Group]:
    """Pairs of 579 domains written for condsim."""
    yield from _pairs(ROOT / "data" / "written" / "train.txt")


def everyday(sources: Sources) -> Iterator[Group]:
    """Everyday judgments written for condsim, some of them with the noise of users."""
    yield from with_noise(_pairs(ROOT / "data" / "everyday" / "train.txt"), seed=12)


def _pairs(path: Path) -> Iterator[Group]:
    for pair in iter_written(path):
        inputs: list[Input] = []
        rows = []
        for condition, label in pair.labels.items():
            rows.append((len(inputs), len(inputs) + 1, (label - 1) / 4, 1.0))
            inputs += [(condition, pair.sentence1), (condition, pair.sentence2)]
        yield Group(inputs, rows)


def rules(sources: Sources) -> Iterator[Group]:
    """Rows whose label turns on one detail, by rule."""
    yield from rule_groups("train")


DETAILS_TRAIN_PERCENT = 70
DETAILS = ROOT / "data" / "details"


@dataclass(frozen=True)
class Triplet:
    """Three texts written for condsim, of which the second is like the first.

    Attributes:
        kind: Kind of the detail that decides.
        condition: Condition under which the third text is not like the first.
        texts: The texts.
        swapped: Condition under which the third is like the first and the second is not, or empty.
    """

    kind: str
    condition: str
    texts: tuple[str, str, str]
    swapped: str = ""


def _cells(path: Path) -> Iterator[list[str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield [cell.strip() for cell in line.split("|||")]


def read_details(part: str) -> Iterator[Triplet]:
    """Read the written triplets of a part; triplets of other hands are all for training."""
    if part == "test":
        for kind, condition, *texts in _cells(DETAILS / "test.txt"):
            first, alike, other = texts
            yield Triplet(kind, condition, (first, alike, other))
        return
    for kind, condition, first, alike, other in _cells(DETAILS / "triplets.txt"):
        if (percentile(first) < DETAILS_TRAIN_PERCENT) == (part == "train"):
            yield Triplet(kind, condition, (first, alike, other))
    if part == "train":
        for path in sorted(DETAILS.glob("triplets-*.txt")):
            for kind, condition, first, alike, other, *swapped in _cells(path):
                yield Triplet(kind, condition, (first, alike, other), *swapped)


def details(sources: Sources) -> Iterator[Group]:
    """Written triplets whose label turns on one detail, some of them with the noise of users."""
    yield from with_noise(_triplets(), seed=13)


def _triplets() -> Iterator[Group]:
    for triplet in read_details("train"):
        inputs: list[Input] = [(triplet.condition, text) for text in triplet.texts]
        rows = [(0, 1, 1.0, 1.0), (0, 2, 0.0, 1.0), (1, 2, 0.0, 1.0)]
        if triplet.swapped:
            inputs += [(triplet.swapped, text) for text in triplet.texts]
            rows += [(3, 4, 0.0, 1.0), (3, 5, 1.0, 1.0), (4, 5, 0.0, 1.0)]
        yield Group(inputs, rows)


def grades(sources: Sources) -> Iterator[Group]:
    """Written texts graded against an anchor, the same texts under several conditions."""
    lines = _cells(DETAILS / "grades.txt")
    for _, members in groupby(lines, key=itemgetter(2)):
        inputs: list[Input] = []
        rows = []
        for _, condition, anchor, *graded_texts in members:
            start = len(inputs)
            inputs.append((condition, anchor))
            for cell in graded_texts:
                grade, text = cell.split(" ", 1)
                rows.append((start, len(inputs), float(grade) / 5, 1.0))
                inputs.append((condition, text))
        yield Group(inputs, rows)
