"""Training rows of the judge: verdicts, entailment, and similarity under a condition.

``python -m papers.judge.rows --data ../shared/data --out FOLDER`` writes a file for each kind;
with ``--only rule`` just the verdicts that a rule gives.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from condsim.data.held_out import HeldOutTexts, held_out_texts
from condsim.model.judge import VERDICTS
from papers.judge.subjects import subject_pairs
from papers.judge.titles import shop_titles, written_titles
from papers.model.balanced import write_balanced
from papers.model.groups import Group
from papers.model.natural import suite_texts
from papers.model.plain import PlainVectors
from papers.model.ratings import graded, negation
from papers.model.rows import balanced
from papers.model.sources import HELD_OUT, MOST_WORDS, ROOT, Sources, read_tabs
from papers.model.written import details, everyday, grades, rules, written

ENTAILMENT = ("entailment", "neutral", "contradiction")
NLI_FILES = ("snli_dev", "mnli_dev_matched", "cad_original_train", "cad_revised_combined_train")
# Of most kinds only a few rows, so that the everyday ones all come up.
MOST_ROWS = {
    "written": 6000,
    "details": 5000,
    "grades": 1000,
    "graded": 2000,
    "negation": 2500,
    "rules": 1000,
    "balanced-csts": 1500,
    "balanced-attributes": 1000,
    "balanced-criteria": 1000,
}


_LOGGER = logging.getLogger("condsim")


class Row(NamedTuple):
    """A condition, empty for none, the two texts, and the label of its kind.

    The label is a place in `VERDICTS` or `ENTAILMENT`, a similarity in [0, 1], or what another
    judge gives each of `VERDICTS`.
    """

    condition: str
    first: str
    second: str
    label: float | list[float]

    @property
    def place(self) -> int:
        """The label as a place."""
        assert not isinstance(self.label, list)
        return int(self.label)


def read_verdicts(part: str) -> list[dict[str, str]]:
    """Read the written pairs of a part as they are in the file."""
    path = ROOT / "data" / "verdicts" / f"{part}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def verdict_rows(part: str) -> Iterator[Row]:
    """Read the written pairs of a part as rows; the label is a place in `VERDICTS`."""
    for pair in read_verdicts(part):
        yield Row("", pair["sentence1"], pair["sentence2"], VERDICTS.index(pair["verdict"]))


def read_requests(part: str) -> list[dict[str, Any]]:
    """Read the written pairs of requests of a part: ``sentence1``, ``sentence2``, ``same``."""
    path = ROOT / "data" / "verdicts" / f"requests-{part}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def request_rows(part: str) -> Iterator[Row]:
    """Read pairs of requests as rows; the label is 1 if one answer serves both."""
    for pair in read_requests(part):
        yield Row("", pair["sentence1"], pair["sentence2"], float(pair["same"]))


def rule_rows(data: Path) -> Iterator[Row]:
    """Make rows whose verdict follows from a rule: titles of products, and other subjects."""
    for verdict, first, second in (*shop_titles(data), *written_titles()):
        yield Row("", first, second, VERDICTS.index(verdict))
    for first, second in subject_pairs(read_verdicts("train")):
        yield Row("", first, second, VERDICTS.index("related"))


def entailment_rows(data: Path) -> Iterator[Row]:
    """Read premises and hypotheses; the label is a place in `ENTAILMENT`."""
    for name in NLI_FILES:
        for premise, hypothesis, label in read_tabs(data / "nli" / f"{name}.tsv.gz"):
            if len(premise.split()) <= 2 * MOST_WORDS:
                yield Row("", premise, hypothesis, ENTAILMENT.index(label))


def similarity_rows(sources: Sources) -> Iterator[Row]:
    """Read pairs under a condition; the label is a similarity in [0, 1]."""
    kinds: dict[str, Callable[[Sources], Iterator[Group]]] = {
        "everyday": everyday,
        "graded": graded,
        "negation": negation,
        "written": written,
        "rules": rules,
    }
    kinds |= {"details": details, "grades": grades}
    kinds |= {f"balanced-{name}": balanced(name) for name in ("csts", "attributes", "criteria")}
    for name, kind in kinds.items():
        rows = [row for group in kind(sources) for row in _pairs(group)]
        most = MOST_ROWS.get(name, len(rows))
        yield from rows if len(rows) <= most else random.Random(0).sample(rows, most)


def _pairs(group: Group) -> Iterator[Row]:
    for first, second, label, weight in group.rows:
        condition, text = group.inputs[first]
        if weight == 1.0:
            yield Row(condition or "", text, group.inputs[second][1], label)


def write_rows(rows: Iterable[Row], path: Path, *, exclude: tuple[HeldOutTexts, ...] = ()) -> int:
    """Write rows that have no text of ``exclude``; returns their number."""
    number = 0
    with path.open("w", encoding="utf-8") as stream:
        for row in dict.fromkeys(rows):
            if not any(text in texts for text in row[1:3] for texts in exclude):
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
                number += 1
    return number


def main() -> None:
    """Write the rows of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=["entailment", "similarity", "rule"])
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    data, out = options.data, options.out
    out.mkdir(parents=True, exist_ok=True)
    exclude = (held_out_texts([data / HELD_OUT]), suite_texts(data))
    for name in options.only:
        number = write_rows(_rows(name, data, out), out / f"{name}.jsonl", exclude=exclude)
        _LOGGER.info("%s: %d rows", name, number)


def _rows(kind: str, data: Path, out: Path) -> Iterator[Row]:
    if kind != "similarity":
        return {"entailment": entailment_rows, "rule": rule_rows}[kind](data)
    write_balanced(data, out / "balanced")
    # No source of similarities needs plain vectors.
    return similarity_rows(Sources(data, out / "balanced", PlainVectors(data, out / "none")))


if __name__ == "__main__":
    main()
