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
from pathlib import Path

from condsim.data.held_out import held_out_texts
from papers.model.combined import combined
from papers.model.draws import attributes, broad, criteria, duplicates, queries, titles
from papers.model.groups import Group, Input, write_groups
from papers.model.natural import suite_texts
from papers.model.plain import PlainVectors
from papers.model.ratings import graded, negation
from papers.model.sources import HELD_OUT, MOST_WORDS, Sources, read_csv
from papers.model.written import details, everyday, grades, rules, written

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
    "everyday": everyday,
    "combined": combined,
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
    """Write the groups of each source, or of some, whose file is not there yet.

    A group with a text that is held out, or that the suite measures on, is left out.
    """
    paths = {name: folder / f"{name}.jsonl.gz" for name in only or SOURCES}
    missing = {name: path for name, path in paths.items() if not path.is_file()}
    if missing:
        exclude = (held_out_texts([sources.data / HELD_OUT]), suite_texts(sources.data))
    for name, path in missing.items():
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
