"""Sources of training rows, and the settings that all kinds share."""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from papers.model.groups import percentile
from papers.model.labeled import LabeledTable, read_lines, read_table
from papers.model.plain import PlainVectors

ROOT = Path(__file__).resolve().parents[2]
HELD_OUT = "csts-reannotated/held-out.sha256"
"""File of the data sets with hashes of texts that are in no training row."""

# Longer texts are left out, so that rows have about 40 tokens.
MOST_WORDS = 45
TEXTS_PER_TABLE = 5000
NEIGHBORS = 15
# Share of the plain cosine in the target of a natural row.
PLAIN_SHARE = 0.2
ONE_SILENT_LABEL, ONE_SILENT_WEIGHT = 0.25, 0.3
# Percent of the images of captions to train on; duplicates among the others are measured.
IMAGE_PERCENT = 90
# Hashes below the first number are train, below the second dev, and the others test.
TRAIN_PERCENT, DEV_PERCENT = 64, 80

Item = TypeVar("Item")

BROAD_CONDITIONS = (
    "the meaning",
    "the content",
    "what it says",
    "overall similarity",
    "everything",
    "what the text is about",
    "the topic",
    "the subject",
    "the gist",
    "the message",
    "the information",
    "how similar are they in meaning?",
    "whether they say the same thing",
    "the text as a whole",
)
SAME_THING_CONDITIONS = (
    "the product",
    "the item",
    "the request",
    "the problem",
    "the issue reported",
    "the event",
    "the story",
    "the question asked",
    "what is described",
    "whether it is the same thing",
    "is it a duplicate?",
    "the case",
    *BROAD_CONDITIONS[:4],
)


@dataclass
class Sources:
    """Input data of the rows.

    Attributes:
        data: Folder of the data sets.
        balanced: Folder of rows balanced under each condition.
        plain: Plain vectors.
    """

    data: Path
    balanced: Path
    plain: PlainVectors

    def wordings(self) -> dict[str, list[str]]:
        """Wordings of conditions, by people of many kinds."""
        lines = read_lines(ROOT / "data" / "wordings" / "train.jsonl")
        return {line["condition"]: line["wordings"] for line in lines}


def open_sets(sources: Sources, split: str, *, use: str = "train") -> Iterator[LabeledTable]:
    """Tables of the open sets, but for those that hold pairs."""
    folder = sources.data / "criteria"
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    for name in sorted(meta):
        part = split if use == "train" else meta[name].get("eval_split", split)
        path = folder / name / f"{part}.jsonl.gz"
        if meta[name]["use"] != use or not path.is_file():
            continue
        if "labels" not in read_lines(path)[0]:
            yield read_table(path, name, meta[name], most_words=MOST_WORDS)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file, gzipped or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def drawn(draw: random.Random, items: Sequence[Item], number: int) -> list[Item]:
    """Draw so many of the items, or all in a random order if there are fewer."""
    return draw.sample(items, min(number, len(items)))


def part_of(key: str) -> str:
    """``train``, ``dev`` or ``test``, always the same for a key."""
    number = percentile(key)
    return "train" if number < TRAIN_PERCENT else "dev" if number < DEV_PERCENT else "test"


def half_of(key: str) -> str:
    """The same for sets of which half may be trained on."""
    number = percentile(key)
    return "train" if number < 50 else "dev" if number < 70 else "test"
