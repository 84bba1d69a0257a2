"""Sources of training rows, and the settings that all kinds share."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

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
ONE_SILENT_LABEL, ONE_SILENT_WEIGHT = 0.0, 0.3
"""Label and weight of two texts of which one does not speak of the condition.

They are not alike in it: so say the labels of captions and of C-STS as well. The weight tells
these rows from those of texts that both speak of it.
"""
# Hashes below the first number are train, below the second dev, and the others test.
PERCENTS, HALF_PERCENTS, IMAGE_PERCENTS = (64, 80), (50, 70), (90, 95)

DEV_SETS = ("acos_laptop",)
"""Open sets that settings are chosen on and no model is trained on."""
TEST_SETS = ("druglib", "oats", "sentihood", "wdc")
"""Open sets that are held out: no model is trained on them and no setting is chosen on them."""

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


def criteria_meta(data: Path) -> dict[str, dict[str, Any]]:
    """Facts on the open sets by name, such as what a set may be used for."""
    text = (data / "criteria" / "meta.json").read_text(encoding="utf-8")
    facts: dict[str, dict[str, Any]] = json.loads(text)
    return facts


def open_sets(sources: Sources, split: str, *, use: str = "train") -> Iterator[LabeledTable]:
    """Tables of the open sets, but for those that hold pairs."""
    folder = sources.data / "criteria"
    meta = criteria_meta(sources.data)
    for name in sorted(meta):
        part = split if use == "train" else meta[name].get("eval_split", split)
        path = folder / name / f"{part}.jsonl.gz"
        if meta[name]["use"] != use or not path.is_file():
            continue
        if "labels" not in read_lines(path)[0]:
            yield read_table(path, name, meta[name], most_words=MOST_WORDS)


def own_tables() -> Iterator[LabeledTable]:
    """Tables of the domains written for condsim."""
    for path in sorted((ROOT / "data" / "attributes").glob("*.jsonl")):
        yield read_table(path, path.stem, {}, most_words=MOST_WORDS)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file, gzipped or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def drawn(draw: random.Random, items: Sequence[Item], number: int) -> list[Item]:
    """Draw so many of the items, or all in a random order if there are fewer."""
    return draw.sample(items, min(number, len(items)))


def part_of(key: str, percents: tuple[int, int] = PERCENTS) -> str:
    """``train``, ``dev`` or ``test``, always the same for a key."""
    number = percentile(key)
    return "train" if number < percents[0] else "dev" if number < percents[1] else "test"


@dataclass(frozen=True)
class GradedFile:
    """A file of rows graded by people.

    Attributes:
        path: Path below the folder ``graded``.
        texts: Columns of texts.
        key: Column whose hash decides the part, or which names it if ``percents`` is None.
        percents: See :func:`part_of`.
    """

    path: str
    texts: tuple[str, ...]
    key: str
    percents: tuple[int, int] | None = HALF_PERCENTS


GRADED = {
    "patents": GradedFile(
        "patent_phrases/rows.csv.gz", ("sentence1", "sentence2"), "sentence1", PERCENTS
    ),
    "activities": GradedFile("activity_phrases/pairs.csv.gz", ("text1", "text2"), "split", None),
    "feelings": GradedFile("emobank/sentences.csv.gz", ("text",), "split", None),
    "styles": GradedFile(
        "stel/quadruples.csv.gz", ("anchor1", "anchor2", "alternative1", "alternative2"), "id"
    ),
    "stories": GradedFile("story_analogy/rows.csv.gz", ("sentence1", "sentence2"), "item"),
    "passages": GradedFile("condaqa_contrast/rows.csv.gz", ("sentence1", "sentence2"), "passage"),
}


def read_graded(data: Path, name: str, part: str) -> list[dict[str, str]]:
    """Rows of a part of a file of `GRADED`."""
    file = GRADED[name]
    return [
        row
        for row in read_csv(data / "graded" / file.path)
        if (part_of(row[file.key], file.percents) if file.percents else row[file.key]) == part
    ]


def read_captions(path: Path) -> dict[str, list[str]]:
    """Captions by image."""
    images: dict[str, list[str]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            images[line["image_id"]].append(line["caption"])
    return images


def read_tabs(path: Path) -> list[list[str]]:
    """Cells of a gzipped file with tabs and without quotes, the header left out."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [line.rstrip("\n").split("\t") for line in list(stream)[1:]]


def book_sentences(data: Path) -> list[str]:
    """Sentences of the textbooks."""
    with gzip.open(data / "corpus" / "openstax.txt.gz", "rt", encoding="utf-8") as stream:
        return re.findall(r"[A-Z][^.?!\n]{30,200}[.?!]", stream.read())
