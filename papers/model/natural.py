"""The natural suite: texts as they come, written as files that ``condsim evaluate`` measures on.

``python -m papers.model.natural --data ../shared/data --out FOLDER`` writes the part ``dev``, or
with ``--part test`` what is measured once. No text is in two parts (`papers.model.split`).
Families: pairs graded by people, negation that decides the answer, labels that turn on one detail,
matching, retrieval by facet; and the balanced sets, to see both sides.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.data.tables import iter_criteria
from condsim.evaluation.suite_data import SUITE_FILE, TestSpec
from condsim.rows.build import criteria_rows
from condsim.rows.settings import CriteriaSettings, CriterionSettings
from papers.model.labeled import LabeledTable, read_lines, read_table
from papers.model.ratings import ACTIVITY_CONDITIONS, read_revised
from papers.model.rules import RULES
from papers.model.sources import (
    DEV_SETS,
    IMAGE_PERCENTS,
    MOST_WORDS,
    ROOT,
    TEST_SETS,
    TEXTS_PER_TABLE,
    criteria_meta,
    drawn,
    part_of,
    read_captions,
    read_csv,
)
from papers.model.split import Split, open_split
from papers.model.written import read_details

Row = tuple[str, str, str]
"""A condition and two texts."""
LabeledRow = tuple[str, str, str, float]

LEFT_OUT = (*DEV_SETS, *TEST_SETS)
"""Open sets that no model is trained on."""
PATENT_ROWS = 2000
FEWEST_TEXTS, MOST_TEXTS, MOST_OF_ONE_VALUE = 60, 250, 0.7
FACETS_PER_TABLE = 5
FEWEST_PAIRS = 10
BALANCED_ROWS = 2000
"""Rows drawn of an open set, of which pairs under two conditions are measured."""
QUICK_FACETS_PER_TABLE, QUICK_TEXTS, QUICK_PAIRS = 2, 110, 300


@dataclass(frozen=True)
class Test:
    """A test and the rows of its file."""

    spec: TestSpec
    rows: Sequence[Mapping[str, object]]


def _pairs(
    family: str,
    title: str,
    measure: str,
    rows: Sequence[Row],
    labels: Sequence[float],
    units: Sequence[object] | None = None,
) -> Test:
    """A test of pairs."""
    names = ("condition", "text1", "text2")
    cells = [
        {**dict(zip(names, row, strict=True)), "label": label}
        for row, label in zip(rows, labels, strict=True)
    ]
    for cell, unit in zip(cells, units or (), strict=units is not None):
        cell["unit"] = str(unit)
    return Test(TestSpec(family, title, measure, ""), cells)  # type: ignore[arg-type]


def graded_tests(split: Split) -> Iterator[Test]:
    """Pairs graded by people: patent phrases, activities, feelings, stories, styles."""
    chosen = drawn(random.Random(0), split.graded("patents"), PATENT_ROWS)
    rows = [(row["condition"], row["sentence1"], row["sentence2"]) for row in chosen]
    gold = [float(row["label"]) for row in chosen]
    yield _pairs("graded", "patent phrases", "spearman", rows, gold)
    pairs = split.graded("activities")
    for column, condition in ACTIVITY_CONDITIONS.items():
        rows = [(condition, row["text1"], row["text2"]) for row in pairs]
        gold = [float(row[column]) for row in pairs]
        yield _pairs("graded", f"activities: {column}", "spearman", rows, gold)
    yield from _feeling_tests(split)
    yield from _choice_tests(split)


def _feeling_tests(split: Split) -> Iterator[Test]:
    texts = [row for row in split.graded("feelings") if len(row["text"].split()) <= MOST_WORDS]
    draw = random.Random(0)
    for letter, condition in (
        ("V", "how pleasant the feeling is"),
        ("A", "how excited the speaker is"),
    ):
        pairs = [draw.sample(texts[:600], 2) for _ in range(1200)]
        rows = [(condition, a["text"], b["text"]) for a, b in pairs]
        gold = [-abs(float(a[letter]) - float(b[letter])) for a, b in pairs]
        yield _pairs("graded", condition, "spearman", rows, gold)


def _choice_tests(split: Split) -> Iterator[Test]:
    """Two rows of which one is to score higher: chance is 50."""
    items: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in split.graded("stories"):
        items[row["condition"], row["item"]].append(row)
    for condition in ("how the events are connected", "the things it is about"):
        rows: list[Row] = []
        labels: list[float] = []
        # Of an item with a text of another part one row may be left, which nothing compares with.
        for (own, _), members in sorted(items.items()):
            if own == condition and len(members) == 2:
                rows += [(condition, row["sentence1"], row["sentence2"]) for row in members]
                labels += [float(row["label"]) for row in members]
        units = [place // 2 for place in range(len(rows))]
        yield _pairs("graded", f"stories: {condition}", "order", rows, labels, units)
    style: list[Row] = []
    content: list[Row] = []
    for row in split.graded("styles"):
        like, unlike = "alternative1", "alternative2"
        if row["correct"] != "1":
            like, unlike = unlike, like
        first, other = row["anchor1"], row["anchor2"]
        style += [("the style of writing", first, row[key]) for key in (like, unlike)]
        content += [("the style of writing", first, text) for text in (row[like], other)]
    for title, rows in (("style", style), ("style or content", content)):
        yield _choices("graded", title, rows)


def negation_tests(split: Split) -> Iterator[Test]:
    """Edits under a question whose answer turns on a negation, and counter-edits of NLI."""
    rows = split.graded("passages")
    inputs = [(row["condition"], row["sentence1"], row["sentence2"]) for row in rows]
    alike = [float(row["label"] == "5") for row in rows]
    yield _pairs("negation", "CondaQA, all edits", "auroc", inputs, alike)
    scope = [place for place, row in enumerate(rows) if row["edit"] == "scope"]
    yield _pairs(
        "negation",
        "CondaQA, scope edits",
        "auroc",
        [inputs[place] for place in scope],
        [alike[place] for place in scope],
    )
    edits: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for place, row in enumerate(rows):
        edits[row["passage"], row["question"]][row["edit"]] = place
    both = [by for by in edits.values() if {"paraphrase", "affirmative"} <= by.keys()]
    chosen = [inputs[by[edit]] for by in both for edit in ("paraphrase", "affirmative")]
    yield _choices("negation", "paraphrase over edit", chosen)
    revised: list[Row] = []
    for hypothesis, members in read_revised(split.data, split.part):
        premises = [members[label][0] for label in ("entailment", "contradiction")]
        if split.free((hypothesis, *premises)):
            clause = hypothesis.rstrip(".")
            condition = f"whether {clause[0].lower() + clause[1:]}"
            revised += [(condition, hypothesis, premise) for premise in premises]
    yield _choices("negation", "counter-edits of NLI", revised)


def _choices(family: str, title: str, rows: Sequence[Row]) -> Test:
    """A test of twos, the more similar pair first; chance is 50."""
    labels = [float(place % 2 == 0) for place in range(len(rows))]
    units = [place // 2 for place in range(len(rows))]
    return _pairs(family, title, "order", rows, labels, units)


def matching_tests(split: Split) -> Iterator[Test]:
    """Titles of products of two shops, and captions of one image among captions of others."""
    files = split.set_files()
    for name in ("walmart_amazon", "wdc"):
        if name not in files:
            continue
        lines = split.lines(files[name])
        lines = [line for line in lines if "the product" in line["labels"]]
        alike = [line for line in lines if line["labels"]["the product"] > 0.5][:300]
        others = [line for line in lines if line["labels"]["the product"] <= 0.5]
        others = drawn(random.Random(0), others, 900)
        pairs = [*alike, *others]
        rows = [("the product", line["text1"], line["text2"]) for line in pairs]
        labels = [1.0] * len(alike) + [0.0] * len(others)
        yield _pairs("matching", f"{name}: pairs", "average_precision", rows, labels)
        # Texts of one product have one value; a text of the second shop may match several.
        values: dict[str, str] = {}
        for line in alike:
            values[line["text2"]] = values.setdefault(line["text1"], line["text1"])
        sides = {line["text2"]: "2" for line in pairs} | {line["text1"]: "1" for line in alike}
        texts = [text for text, side in sides.items() if side == "2" or text in values]
        cells = [
            {"text": text, "value": values.get(text, text), "side": sides[text]} for text in texts
        ]
        spec = TestSpec("matching", f"{name}: first hit", "first_hit", "", "the product")
        yield Test(spec, cells)
    images = read_captions(split.data / "captions" / "flickr8k.tsv.gz")
    free = {
        image: [caption for caption in captions if split.free([caption])][:2]
        for image, captions in images.items()
        if part_of(image, IMAGE_PERCENTS) == split.part
    }
    chosen = [(image, both) for image, both in free.items() if len(both) == 2][:250]
    captions = [{"text": caption, "value": image} for image, both in chosen for caption in both]
    spec = TestSpec("matching", "captions: first hit", "first_hit", "", "the event")
    yield Test(spec, captions)


def retrieval_tests(split: Split) -> Iterator[Test]:
    """Of the ten nearest of a text, the percentage that has its value of a facet."""
    meta = criteria_meta(split.data)
    for name, path in split.set_files().items():
        if "labels" in read_lines(path)[0]:
            continue
        table = read_table(path, name, meta[name], most_words=MOST_WORDS)
        texts = tuple(text for text in table.texts if split.free([text.text]))
        yield from _facet_tests(replace(table, texts=texts), left_out=name in LEFT_OUT)


def _facet_tests(table: LabeledTable, *, left_out: bool) -> Iterator[Test]:
    draw = random.Random(table.name)
    having: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(table.texts):
        for criterion in text.values:
            having[criterion].append(row)
    tests = 0
    for criterion, rows in sorted(having.items(), key=lambda item: -len(item[1])):
        rows = draw.sample(rows, min(MOST_TEXTS, len(rows)))
        values = [table.texts[row].values[criterion] for row in rows]
        counts = [values.count(value) for value in set(values)]
        repeated = sum(count for count in counts if count > 5)
        if len(rows) < FEWEST_TEXTS or max(counts) > MOST_OF_ONE_VALUE * len(rows):
            continue
        if repeated < 0.5 * len(rows) or tests == FACETS_PER_TABLE:
            continue
        tests += 1
        title = f"{table.name}{' (left out)' * left_out}: {criterion}"
        cells = [
            {"text": table.texts[row].text, "value": " + ".join(sorted(value))}
            for row, value in zip(rows, values, strict=True)
        ]
        yield Test(TestSpec("retrieval", title, "nearest", "", criterion), cells)


def balanced_tests(split: Split, *, rows_per_set: int = 400) -> Iterator[Test]:
    """Pair accuracy on balanced rows: of two conditions of a pair, the higher label is to win."""
    meta = criteria_meta(split.data)
    for name, path in split.set_files().items():
        twos = balanced_twos(split, name, path, meta[name], rows_per_set)
        kind = "left out" if name in LEFT_OUT else "trained"
        if len(twos) >= FEWEST_PAIRS:
            yield _order_test(f"{kind}: {name}", twos)
    written: list[list[LabeledRow]] = []
    path = ROOT / "data" / "written" / f"{split.part}.txt"
    for line in path.read_text("utf-8").splitlines():
        parts = [part.strip() for part in line.split("|||")]
        if len(parts) == 4 and split.free(parts[1:3]):
            cells = [piece.rsplit("=", 1) for piece in parts[3].split(";")]
            written.append([(c.strip(), parts[1], parts[2], float(label)) for c, label in cells])
    yield _order_test("written", drawn(random.Random(0), written, 500))
    if split.part == "dev":
        # The labels of the published test file are not to be used.
        rows = read_csv(split.data / "csts-reannotated" / "dev.csv")
        rows = [row for row in rows if row["label"] != "-1"]
        rows = [row for row in rows if split.free((row["sentence1"], row["sentence2"]))]
        inputs = [(row["condition"], row["sentence1"], row["sentence2"]) for row in rows]
        gold = [float(row["label"]) for row in rows]
        yield _pairs("balanced", "C-STS dev, Spearman", "spearman", inputs, gold)


def balanced_twos(
    split: Split, name: str, path: Path, facts: Mapping[str, Any], number: int
) -> list[list[LabeledRow]]:
    """Draw pairs of texts of an open set, each alike in one criterion and different in another."""
    criteria = {
        criterion: CriterionSettings(
            near=facts.get("same", {}).get(criterion, []),
            skip=facts.get("skip", {}).get(criterion),
            leave_out=criterion in facts.get("leave_out", ()),
        )
        for criterion in {
            *facts.get("same", ()),
            *facts.get("skip", ()),
            *facts.get("leave_out", ()),
        }
    }
    settings = CriteriaSettings(
        rows=BALANCED_ROWS, form="pairs", hard=0.0, own_name=1.0, criteria=criteria
    )
    # A dialogue set has twelve thousand texts, and so many are not needed.
    items = drawn(random.Random(name), list(iter_criteria(path)), TEXTS_PER_TABLE)
    pairs: dict[str, list[LabeledRow]] = defaultdict(list)
    for row in criteria_rows(items, settings, name=name, held_out=split.earlier):
        cells = (row.condition, row.sentence1, row.sentence2, row.label)
        pairs[row.pair_id].append(cells)  # type: ignore[attr-defined]
    return _evenly([members for members in pairs.values() if len(members) == 2], number // 2)


def _evenly(twos: Sequence[list[LabeledRow]], number: int) -> list[list[LabeledRow]]:
    """Draw as many pairs that are alike in one and different in another criterion as vice versa.

    Otherwise the condition alone would tell which row is alike.
    """
    ways: dict[tuple[str, str], list[list[LabeledRow]]] = defaultdict(list)
    for members in twos:
        higher, lower = sorted(members, key=itemgetter(3), reverse=True)
        ways[higher[0], lower[0]].append(members)
    draw = random.Random(0)
    even: list[list[list[LabeledRow]]] = []
    for (alike, different), own in ways.items():
        others = ways.get((different, alike), ())
        if alike < different and others:
            number_of_both = min(len(own), len(others))
            sides = (draw.sample(side, number_of_both) for side in (own, others))
            even += map(list, zip(*sides, strict=True))
    return [members for both in drawn(draw, even, number // 2) for members in both]


def _order_test(title: str, units: Sequence[Sequence[LabeledRow]]) -> Test:
    rows = [row[:3] for unit in units for row in unit]
    labels = [row[3] for unit in units for row in unit]
    numbers = [number for number, unit in enumerate(units) for _ in unit]
    return _pairs("balanced", title, "order", rows, labels, numbers)


def detail_tests(split: Split) -> Iterator[Test]:
    """Labels that turn on one detail, by rule and written; chance is 50."""
    for name, (generate, _) in RULES.items():
        groups = generate(random.Random(f"{name} {split.part}"), split.part, number=60)
        rows: list[Row] = []
        labels: list[float] = []
        units: list[int] = []
        for number, group in enumerate(groups):
            # Texts of which one is silent are neither alike nor different.
            for (condition, text), (_, partner), label in group.spoken_rows():
                if split.free((text, partner)):
                    rows.append((str(condition), text, partner))
                    labels.append(float(label == 1))
                    units.append(number)
        yield _pairs("details", f"rule: {name}", "order", rows, labels, units)
    triplets: list[Row] = []
    for triplet in read_details(split.part):
        first, alike, other = triplet.texts
        if split.free(triplet.texts):
            triplets += [(triplet.condition, first, alike), (triplet.condition, first, other)]
    yield _choices("details", "written triplets", triplets)


def suite(data: Path, *, part: str = "dev", quick: bool = False) -> list[Test]:
    """All tests; ``part`` is ``dev`` to choose on, ``test`` to measure once.

    ``quick`` has a part of the rows of each test, a fifth of the inputs in all: for checkpoints.
    """
    split = open_split(data, part)
    tests = [
        *graded_tests(split),
        *negation_tests(split),
        *detail_tests(split),
        *matching_tests(split),
        *retrieval_tests(split),
        *balanced_tests(split, rows_per_set=200 if quick else 400),
    ]
    return _quicker(tests) if quick else tests


def test_texts(test: Test) -> set[str]:
    """Texts of the rows of a test."""
    return {
        str(row[name]) for row in test.rows for name in ("text", "text1", "text2") if name in row
    }


def suite_texts(data: Path) -> HeldOutTexts:
    """Texts of the parts dev and test, which no training row may have."""
    tests = [test for part in ("dev", "test") for test in suite(data, part=part)]
    texts = {text for test in tests for text in test_texts(test)}
    return HeldOutTexts(frozenset(map(text_digest, texts)))


def _quicker(tests: Sequence[Test]) -> list[Test]:
    """Fewer facets of fewer texts each, and no test of the same pairs as another."""
    facets: dict[str, int] = defaultdict(int)
    chosen = []
    for test in tests:
        spec = test.spec
        if spec.family == "retrieval":
            table = spec.title.split(":")[0]
            facets[table] += 1
            if facets[table] > QUICK_FACETS_PER_TABLE:
                continue
        if spec.title.startswith("activities") and "similarity" not in spec.title:
            continue
        most = {"nearest": QUICK_TEXTS, "spearman": QUICK_PAIRS}.get(spec.measure, len(test.rows))
        chosen.append(Test(spec, test.rows[:most]))
    return chosen


def write_suite(tests: Sequence[Test], folder: Path) -> Path:
    """Write the files of the tests and ``suite.json``; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    specs = []
    for number, test in enumerate(tests):
        name = f"{number:03d}.csv.gz"
        with gzip.open(folder / name, "wt", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(test.rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(test.rows)
        specs.append({**asdict(test.spec), "file": name})
    (folder / SUITE_FILE).write_text(json.dumps(specs, indent=1), encoding="utf-8")
    return folder


def main() -> None:
    """Write the suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--quick", action="store_true", help="a part of the rows of each test")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    write_suite(suite(options.data, part=options.part, quick=options.quick), options.out)


if __name__ == "__main__":
    main()
