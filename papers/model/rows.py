"""Training rows as they come: one file of groups for each source.

``python -m papers.model.rows --data ../shared/data --out FOLDER`` writes them all; a file that is
there is not written again. Balanced rows say what a condition adds; natural ones say what a
collection looks like, where two texts alike as a whole are mostly alike in each respect.
"""

from __future__ import annotations

import argparse
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from condsim.data.held_out import held_out_texts
from papers.model.draws import attributes, broad, criteria, duplicates, queries, titles
from papers.model.groups import Group, Input, percentile, write_groups
from papers.model.plain import PlainVectors
from papers.model.ratings import graded, negation
from papers.model.rules import rule_groups
from papers.model.sources import HELD_OUT, MOST_WORDS, ROOT, Sources, read_csv

_LOGGER = logging.getLogger("condsim")

PLAIN_VECTORS = "plain-minilm"
"""File of the plain vectors beside the rows, without its suffix."""


def balanced(name: str) -> Callable[[Sources], Iterator[Group]]:
    """Rows that are balanced under each condition, as the default model learned from until now."""

    def groups(sources: Sources) -> Iterator[Group]:
        units: dict[object, list[dict[str, str]]] = defaultdict(list)
        for row in read_csv(sources.balanced / f"{name}.csv"):
            if row.get("label", "") in ("", "-1"):
                continue
            key = (row.get("set"), row["group"]) if row.get("group") else None
            pair = (row["sentence1"], row["sentence2"])
            units[key or pair].append(row)
        for members in units.values():
            yield from _balanced_units(members)

    return groups


def _balanced_units(members: list[dict[str, str]]) -> Iterator[Group]:
    inputs: dict[Input, int] = {}
    rows = []
    for row in members:
        sides = [(row["condition"], row[side]) for side in ("sentence1", "sentence2")]
        first, second = (inputs.setdefault(side, len(inputs)) for side in sides)
        rows.append((first, second, (float(row["label"]) - 1) / 4, 1.0))
    if max(len(text.split()) for _, text in inputs) <= 2 * MOST_WORDS:
        yield Group(list(inputs), rows)


def written(sources: Sources) -> Iterator[Group]:
    """Pairs of 579 domains written for condsim."""
    for line in (ROOT / "data" / "written" / "train.txt").read_text("utf-8").splitlines():
        parts = [part.strip() for part in line.split("|||")]
        if len(parts) != 4:
            continue
        inputs: list[Input] = []
        rows = []
        for piece in parts[3].split(";"):
            condition, label = (cell.strip() for cell in piece.rsplit("=", 1))
            inputs += [(condition, parts[1]), (condition, parts[2])]
            rows.append((len(inputs) - 2, len(inputs) - 1, (float(label) - 1) / 4, 1.0))
        if max(len(text.split()) for _, text in inputs) <= 2 * MOST_WORDS:
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
    """Read the written triplets of a part; those of other hands are all for training."""
    for kind, condition, first, alike, other in _cells(DETAILS / "triplets.txt"):
        if (percentile(first) < DETAILS_TRAIN_PERCENT) == (part == "train"):
            yield Triplet(kind, condition, (first, alike, other))
    if part == "train":
        for path in sorted(DETAILS.glob("triplets-*.txt")):
            for kind, condition, first, alike, other, *swapped in _cells(path):
                yield Triplet(kind, condition, (first, alike, other), *swapped)


def details(sources: Sources) -> Iterator[Group]:
    """Written triplets whose label turns on one detail."""
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


SOURCES: dict[str, Callable[[Sources], Iterator[Group]]] = {
    "graded": graded,
    "negation": negation,
    "written": written,
    "balanced-csts": balanced("csts"),
    "balanced-captions": balanced("captions"),
    "balanced-criteria": balanced("criteria"),
    "balanced-opinions": balanced("opinions"),
    "balanced-attributes": balanced("attributes"),
    "rules": rules,
    "details": details,
    "grades": grades,
    "queries": queries,
    "attributes": attributes,
    "criteria": criteria,
    "duplicates": duplicates,
    "titles": titles,
    "broad": broad,
}


def write_rows(sources: Sources, folder: Path, *, only: Sequence[str] | None = None) -> None:
    """Write the groups of each source, or of some, whose file is not there yet."""
    exclude = held_out_texts([sources.data / HELD_OUT])
    for name in only or SOURCES:
        path = folder / f"{name}.jsonl.gz"
        if not path.is_file():
            number = write_groups(SOURCES[name](sources), path, exclude=exclude)
            _LOGGER.info("%s: %d groups", name, number)


def main() -> None:
    """Write the rows of every source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--balanced", type=Path, required=True)
    parser.add_argument("--plain-model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    plain = PlainVectors(options.plain_model, options.out / PLAIN_VECTORS)
    write_rows(Sources(options.data, options.balanced, plain), options.out, only=options.only)


if __name__ == "__main__":
    main()
