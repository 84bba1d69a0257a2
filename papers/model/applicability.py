"""Rows on whether a condition applies, and the figures of a model on rows of other domains.

``python -m papers.model.applicability rows --data ../shared/data --out FOLDER`` writes pairs with
the label 5 where both texts speak of the condition and -1 where one or both are silent:

| kind | silent texts |
|---|---|
| absent | texts of one set or domain that say nothing of an attribute that others of it tell of |
| swapped | texts under an attribute of another set or domain |
| off-topic | texts under a subject of ``data/details/off-topic.txt`` |
| nonsense | texts under random letters, or random words |

``train.csv`` has all kinds, of the sets for training and of four fifths of our domains; the
other files have one kind each, of the sets for evaluation only and of the rest.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import string
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.csts import load_applicability
from condsim.evaluation.metrics import auroc
from condsim.loading import load_encoder
from condsim.model.applicability import MIN_APPLICABILITY
from condsim.rows.records import TableRow, write_rows
from papers.model.groups import percentile
from papers.model.labeled import read_lines, read_table
from papers.model.sources import MOST_WORDS, ROOT

_LOGGER = logging.getLogger("condsim")

KINDS = ("absent", "swapped", "off-topic", "nonsense")
OFF_TOPIC = ROOT / "data" / "details" / "off-topic.txt"
TRAIN_PERCENT = 80
ABSENT_ROWS, ABSENT_TEST_ROWS = 40, 15
"""Rows of each attribute, of one kind and of the other."""
SWAPPED_ROWS, MADE_UP_ROWS = 40, 3000
"""Rows of each set, and of all sets."""
_WORDS = (
    "the of lamp run green seven under quickly table sorrow invoice maybe plank jump orbit tin "
    "velvet against noun loud"
).split()


@dataclass(frozen=True, slots=True)
class Applies(TableRow):
    """Label of whether both texts mention a criterion: 5 if so, else -1."""

    sentence1: str
    sentence2: str
    condition: str
    label: str


@dataclass(frozen=True)
class SpokenText:
    """A text and the attributes that it speaks of."""

    text: str
    attributes: tuple[str, ...]


Collection = Sequence[SpokenText]


def collections(data: Path) -> dict[str, dict[str, Collection]]:
    """Read texts of ``train`` and ``test`` by the name of their set or domain."""
    parts: dict[str, dict[str, Collection]] = {"train": {}, "test": {}}
    folder = data / "criteria"
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    for name in sorted(meta):
        is_train = meta[name]["use"] == "train"
        path = folder / name / ("train.jsonl.gz" if is_train else "test.jsonl.gz")
        if not path.is_file() or "labels" in read_lines(path)[0]:
            continue
        table = read_table(path, name, meta[name], most_words=MOST_WORDS)
        texts = [SpokenText(text.text, tuple(sorted(text.values))) for text in table.texts]
        parts["train" if is_train else "test"][name] = [text for text in texts if text.attributes]
    for path in sorted((ROOT / "data" / "attributes").glob("*.jsonl")):
        lines = read_lines(path)
        texts = [SpokenText(line["text"], tuple(sorted(line["attributes"]))) for line in lines]
        is_train = percentile(path.stem) < TRAIN_PERCENT
        parts["train" if is_train else "test"][path.stem] = [t for t in texts if t.attributes]
    return parts


def _pairs(
    speaking: Sequence[str], silent: Sequence[str], condition: str, draw: random.Random, number: int
) -> Iterator[Applies]:
    """As many pairs that both speak of a condition as pairs of which one or both are silent."""
    for _ in range(min(number, len(speaking) // 2, len(silent))):
        first, second = draw.sample(speaking, 2)
        yield Applies(first, second, condition, "5")
        sides = [draw.choice(silent), draw.choice(draw.choice((speaking, silent)))]
        draw.shuffle(sides)
        yield Applies(sides[0], sides[1], condition, "-1")


def absent_rows(
    collections: Mapping[str, Collection], draw: random.Random, number: int
) -> Iterator[Applies]:
    """Pairs under the attributes that some texts of a collection tell of and others do not."""
    for texts in collections.values():
        attributes = sorted({name for text in texts for name in text.attributes})
        for attribute in attributes:
            by_silence: dict[bool, list[str]] = defaultdict(list)
            for text in texts:
                by_silence[attribute in text.attributes].append(text.text)
            yield from _pairs(by_silence[True], by_silence[False], attribute, draw, number)


def swapped_rows(
    collections: Mapping[str, Collection], draw: random.Random, number: int
) -> Iterator[Applies]:
    """Pairs of texts under an attribute of another collection, and under their own."""
    names = sorted(collections)
    for name in names:
        texts = collections[name]
        own = {attribute for text in texts for attribute in text.attributes}
        for _ in range(min(number, len(texts) // 2)):
            other = draw.choice(collections[draw.choice(names)])
            attribute = draw.choice(other.attributes)
            if attribute not in own:
                yield from _against_own(texts, attribute, draw)


def made_up_rows(
    collections: Mapping[str, Collection], draw: random.Random, kind: str, part: str
) -> Iterator[Applies]:
    """Pairs under conditions that have nothing to do with any text."""
    names = sorted(collections)
    topics = OFF_TOPIC.read_text(encoding="utf-8").splitlines()
    topics = [topic for topic in topics if (percentile(topic) < TRAIN_PERCENT) == (part == "train")]
    for _ in range(MADE_UP_ROWS if part == "train" else MADE_UP_ROWS // 10):
        condition = draw.choice(topics) if kind == "off-topic" else _nonsense(draw)
        yield from _against_own(collections[draw.choice(names)], condition, draw)


def _against_own(texts: Collection, condition: str, draw: random.Random) -> Iterator[Applies]:
    """Two texts under a condition that they are silent on, and two under one that they mention."""
    first, second = draw.sample(texts, 2)
    yield Applies(first.text, second.text, condition, "-1")
    shared = sorted({*first.attributes} & {*second.attributes})
    if shared:
        yield Applies(first.text, second.text, draw.choice(shared), "5")
    else:
        yield Applies(first.text, first.text, draw.choice(first.attributes), "5")


def _nonsense(draw: random.Random) -> str:
    if draw.random() < 0.4:
        return " ".join(draw.sample(_WORDS, draw.randint(2, 4)))
    lengths = [draw.randint(3, 8) for _ in range(draw.randint(1, 3))]
    return " ".join("".join(draw.choices(string.ascii_lowercase, k=length)) for length in lengths)


def rows_of(collections: Mapping[str, Collection], kind: str, part: str) -> Iterator[Applies]:
    """Draw the rows of one kind."""
    draw = random.Random(f"{kind} {part}")
    if kind == "absent":
        number = ABSENT_ROWS if part == "train" else ABSENT_TEST_ROWS
        return absent_rows(collections, draw, number)
    if kind == "swapped":
        return swapped_rows(collections, draw, SWAPPED_ROWS)
    return made_up_rows(collections, draw, kind, part)


def write_applicability(data: Path, folder: Path) -> None:
    """Write ``train.csv`` and a file of each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = collections(data)
    train = [row for kind in KINDS for row in rows_of(parts["train"], kind, "train")]
    write_rows(train, folder / "train.csv", kind=Applies)
    for kind in KINDS:
        write_rows(rows_of(parts["test"], kind, "test"), folder / f"{kind}.csv", kind=Applies)


def measure(model: str | None, folder: Path) -> dict[str, dict[str, float]]:
    """AUROC of ``model.applicability`` on each kind, with its interval; 0.5 is chance."""
    scorer = load_encoder(model)
    areas: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        rows = load_applicability(folder / f"{kind}.csv")
        chances = scorer.applicability(rows.sentences1, rows.sentences2, rows.conditions or ())
        pairs = dict.fromkeys(map(frozenset, zip(rows.sentences1, rows.sentences2, strict=True)))
        numbers = {pair: number for number, pair in enumerate(pairs)}
        clusters = [
            numbers[frozenset(pair)] for pair in zip(rows.sentences1, rows.sentences2, strict=True)
        ]
        applies = rows.labels > 0
        area = auroc(chances, applies, np.array(clusters))
        figures = {"value": area.value, "low": area.low, "high": area.high}
        areas[kind] = {"rows": len(rows)} | {name: round(at, 4) for name, at in figures.items()}
        marked = chances < MIN_APPLICABILITY
        _LOGGER.info(
            "%-10s %5d rows  %.3f [%.3f, %.3f]  marked: %.1f %% that apply, %.1f %% that do not",
            *(kind, len(rows), area.value, area.low, area.high),
            *(100 * marked[side].mean() for side in (applies, ~applies)),
        )
    return areas


def main() -> None:
    """Write the rows, or measure a model on them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("rows", "measure"))
    parser.add_argument("--data", type=Path, required=True, help="for measure: the rows")
    parser.add_argument("--model")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.action == "rows":
        write_applicability(options.data, options.out)
    else:
        areas = measure(options.model, options.data)
        if options.out is not None:
            options.out.write_text(json.dumps(areas, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
