"""The natural suite: texts as they come, written as files that ``condsim evaluate`` measures on.

``python -m papers.model.natural write --data ../shared/data --out FOLDER`` writes the dev part, or
with ``--part test`` what is looked at once; ``condsim evaluate FOLDER --suite natural`` measures
models on it. Families: pairs graded by people, negation that decides the answer, labels
that turn on one detail, matching, retrieval by facet; and the balanced sets, to see both sides.
``python -m papers.model.natural measure --data FOLDER --model CHECKPOINT --out FIGURES`` measures
checkpoints, with shares of the plain vector.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from condsim.evaluation.suite import SuiteSet
from condsim.evaluation.suite_data import SUITE_FILE, TestSpec, load_natural_sets
from papers.model.groups import Input, percentile
from papers.model.labeled import LabeledTable, read_lines, read_table
from papers.model.pack import LONGEST_CONDITION_TOKENS, LONGEST_TEXT_TOKENS, bare
from papers.model.plain import embed_ids, load_encoder
from papers.model.ratings import ACTIVITY_CONDITIONS, read_revised
from papers.model.rows import read_details
from papers.model.rules import ONE_SILENT_LABEL, RULES
from papers.model.sources import IMAGE_PERCENT, MOST_WORDS, ROOT, drawn, half_of, part_of, read_csv

_LOGGER = logging.getLogger("condsim")

Scores = NDArray[np.float32]
Row = tuple[str, str, str]
"""A condition and two texts."""
Embed = Callable[[Sequence[Input]], Scores]
"""Unit vectors of inputs, ``(inputs, hidden)``."""

PATENT_ROWS = 2000
FEWEST_TEXTS, MOST_TEXTS, MOST_OF_ONE_VALUE = 60, 250, 0.7
FACETS_PER_TABLE = 5
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


def graded_tests(data: Path, part: str) -> Iterator[Test]:
    """Pairs graded by people: patent phrases, activities, feelings, stories, styles."""
    folder = data / "graded"
    phrases = read_csv(folder / "patent_phrases" / "rows.csv.gz")
    chosen = [row for row in phrases if part_of(row["sentence1"]) == part]
    chosen = drawn(random.Random(0), chosen, PATENT_ROWS)
    rows = [(row["condition"], row["sentence1"], row["sentence2"]) for row in chosen]
    gold = [float(row["label"]) for row in chosen]
    yield _pairs("graded", "patent phrases", "spearman", rows, gold)
    pairs = read_csv(folder / "activity_phrases" / "pairs.csv.gz")
    pairs = [row for row in pairs if row["split"] == part]
    for column, condition in ACTIVITY_CONDITIONS.items():
        rows = [(condition, row["text1"], row["text2"]) for row in pairs]
        gold = [float(row[column]) for row in pairs]
        yield _pairs("graded", f"activities: {column}", "spearman", rows, gold)
    yield from _feeling_tests(folder, part)
    yield from _choice_tests(folder, part)


def _feeling_tests(folder: Path, part: str) -> Iterator[Test]:
    texts = [row for row in read_csv(folder / "emobank" / "sentences.csv.gz")]
    texts = [row for row in texts if row["split"] == part and len(row["text"].split()) <= 45]
    draw = random.Random(0)
    for letter, condition in (
        ("V", "how pleasant the feeling is"),
        ("A", "how excited the speaker is"),
    ):
        pairs = [draw.sample(texts[:600], 2) for _ in range(1200)]
        rows = [(condition, a["text"], b["text"]) for a, b in pairs]
        gold = [-abs(float(a[letter]) - float(b[letter])) for a, b in pairs]
        yield _pairs("graded", condition, "spearman", rows, gold)


def _choice_tests(folder: Path, part: str) -> Iterator[Test]:
    """Two rows of which one is to score higher: chance is 50."""
    items: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in read_csv(folder / "story_analogy" / "rows.csv.gz"):
        if half_of(row["item"]) == part:
            items[row["condition"], row["item"]].append(row)
    for condition in ("how the events are connected", "the things it is about"):
        rows: list[Row] = []
        labels: list[float] = []
        for (own, _), members in sorted(items.items()):
            if own == condition:
                rows += [(condition, row["sentence1"], row["sentence2"]) for row in members]
                labels += [float(row["label"]) for row in members]
        units = [place // 2 for place in range(len(rows))]
        yield _pairs("graded", f"stories: {condition}", "order", rows, labels, units)
    style: list[Row] = []
    content: list[Row] = []
    for row in read_csv(folder / "stel" / "quadruples.csv.gz"):
        if half_of(row["id"]) != part:
            continue
        like, unlike = "alternative1", "alternative2"
        if row["correct"] != "1":
            like, unlike = unlike, like
        first, other = row["anchor1"], row["anchor2"]
        style += [("the style of writing", first, row[key]) for key in (like, unlike)]
        content += [("the style of writing", first, text) for text in (row[like], other)]
    for title, rows in (("style", style), ("style or content", content)):
        yield _choices("graded", title, rows)


def negation_tests(data: Path, part: str) -> Iterator[Test]:
    """Edits under a question whose answer turns on a negation, and counter-edits of NLI."""
    rows = read_csv(data / "graded" / "condaqa_contrast" / "rows.csv.gz")
    rows = [row for row in rows if half_of(row["passage"]) == part]
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
    for hypothesis, members in read_revised(data, "dev"):
        clause = hypothesis.rstrip(".")
        condition = f"whether {clause[0].lower() + clause[1:]}"
        for label in ("entailment", "contradiction"):
            revised.append((condition, hypothesis, members[label][0]))
    yield _choices("negation", "counter-edits of NLI", revised)


def _choices(family: str, title: str, rows: Sequence[Row]) -> Test:
    """A test of twos, the more similar pair first; chance is 50."""
    labels = [float(place % 2 == 0) for place in range(len(rows))]
    units = [place // 2 for place in range(len(rows))]
    return _pairs(family, title, "order", rows, labels, units)


def matching_tests(data: Path) -> Iterator[Test]:
    """Titles of products of two shops, and captions of one image among those of others."""
    for name in ("walmart_amazon", "wdc"):
        lines = read_lines(data / "criteria" / name / "dev.jsonl.gz")
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
    images: dict[str, list[str]] = defaultdict(list)
    path = data / "captions" / "flickr8k.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            if percentile(line["image_id"]) >= IMAGE_PERCENT:
                images[line["image_id"]].append(line["caption"])
    chosen = list(images.items())[:250]
    captions = [{"text": caption, "value": image} for image, both in chosen for caption in both[:2]]
    spec = TestSpec("matching", "captions: first hit", "first_hit", "", "the event")
    yield Test(spec, captions)


def retrieval_tests(data: Path) -> Iterator[Test]:
    """Of the ten nearest of a text, the percentage that has its value of a facet."""
    folder = data / "criteria"
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    for name in sorted(meta):
        use = meta[name]["use"]
        part = "dev" if use == "train" else meta[name].get("eval_split", "dev")
        path = folder / name / f"{part}.jsonl.gz"
        if not path.is_file():
            path = folder / name / "test.jsonl.gz"
        if name == "druglib":
            path = folder / name / "test.jsonl.gz"
        if not path.is_file() or "labels" in read_lines(path)[0]:
            continue
        table = read_table(path, name, meta[name], most_words=MOST_WORDS)
        yield from _facet_tests(table, left_out=use != "train")


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


def balanced_tests(data: Path, *, rows_per_set: int = 400) -> Iterator[Test]:
    """Pair accuracy on balanced rows: of two conditions of a pair, the higher label is to win."""
    sets: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in read_csv(data / "criteria" / "dev_rows.csv"):
        left_out = row["use"] != "train" or row["set"] == "wdc"
        sets["left out" if left_out else "trained", row["set"]][row["pair_id"]].append(row)
    for (kind, name), pairs in sorted(sets.items()):
        twos = [members for members in pairs.values() if len(members) == 2]
        twos = random.Random(0).sample(twos, min(rows_per_set // 2, len(twos)))
        yield _order_test(f"{kind}: {name}", [_order(members) for members in twos])
    written: list[list[tuple[str, str, str, float]]] = []
    for line in (ROOT / "data" / "written" / "dev.txt").read_text("utf-8").splitlines():
        parts = [part.strip() for part in line.split("|||")]
        if len(parts) == 4:
            cells = [piece.rsplit("=", 1) for piece in parts[3].split(";")]
            written.append([(c.strip(), parts[1], parts[2], float(label)) for c, label in cells])
    yield _order_test("written", random.Random(0).sample(written, 500))
    rows = [row for row in read_csv(data / "csts-reannotated" / "dev.csv") if row["label"] != "-1"]
    inputs = [(row["condition"], row["sentence1"], row["sentence2"]) for row in rows]
    gold = [float(row["label"]) for row in rows]
    yield _pairs("balanced", "C-STS dev, Spearman", "spearman", inputs, gold)


def _order(members: list[dict[str, str]]) -> list[tuple[str, str, str, float]]:
    return [
        (row["condition"], row["sentence1"], row["sentence2"], float(row["label"]))
        for row in members
    ]


def _order_test(title: str, units: Sequence[Sequence[tuple[str, str, str, float]]]) -> Test:
    rows = [row[:3] for unit in units for row in unit]
    labels = [row[3] for unit in units for row in unit]
    numbers = [number for number, unit in enumerate(units) for _ in unit]
    return _pairs("balanced", title, "order", rows, labels, numbers)


def detail_tests() -> Iterator[Test]:
    """Labels that turn on one detail, by rule and written; chance is 50."""
    for name, (generate, _) in RULES.items():
        groups = list(generate(random.Random(f"{name} test"), "dev", number=60))
        rows: list[Row] = []
        labels: list[float] = []
        units: list[int] = []
        for number, group in enumerate(groups):
            for one, two, label, _ in group.rows:
                # Texts of which one is silent are neither alike nor different.
                if label != ONE_SILENT_LABEL:
                    (condition, text), (_, partner) = group.inputs[one], group.inputs[two]
                    rows.append((str(condition), text, partner))
                    labels.append(float(label == 1))
                    units.append(number)
        yield _pairs("details", f"rule: {name}", "order", rows, labels, units)
    triplets: list[Row] = []
    for triplet in read_details("dev"):
        first, alike, other = triplet.texts
        triplets += [(triplet.condition, first, alike), (triplet.condition, first, other)]
    yield _choices("details", "written triplets", triplets)


def suite(data: Path, *, part: str = "dev", quick: bool = False) -> list[Test]:
    """All tests; ``part`` is ``dev`` to choose on, ``test`` for one last look.

    ``quick`` has a part of the rows of each test, a fifth of the inputs in all: for checkpoints.
    """
    tests = [
        *graded_tests(data, part),
        *negation_tests(data, part),
        *detail_tests(),
        *matching_tests(data),
        *retrieval_tests(data),
        *balanced_tests(data, rows_per_set=100 if quick else 400),
    ]
    return _quicker(tests) if quick else tests


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


def checkpoint_embedder(folder: Path, *, device: str = "cpu") -> Embed:
    """Embed by a checkpoint folder."""
    encoder, tokenizer = load_encoder(folder)
    encoder.to(device)
    first, separator, _ = encoder.config.ids
    between = [separator] * (2 if encoder.config.kind == "mpnet" else 1)

    def tokens(texts: Sequence[str], longest: int) -> dict[str, list[int]]:
        unique = list(dict.fromkeys(texts))
        encodings = tokenizer.encode_batch(unique, add_special_tokens=False)
        return {t: e.ids[:longest] for t, e in zip(unique, encodings, strict=True)}

    def embed(inputs: Sequence[Input]) -> Scores:
        texts = tokens([text for _, text in inputs], LONGEST_TEXT_TOKENS)
        conditions = tokens(
            [bare(condition) or "" for condition, _ in inputs], LONGEST_CONDITION_TOKENS
        )
        rows = []
        for condition, text in inputs:
            own = [*texts[text], separator]
            if condition is None:
                rows.append(([first, *own], [0] * (len(own) + 1)))
                continue
            start = [first, *conditions[bare(condition) or ""], *between]
            rows.append(([*start, *own], [0] * len(start) + [1] * len(own)))
        return embed_ids(encoder, rows, device=device)

    return embed


WITH, WITHOUT = "with the condition", "without"
SHARES: Mapping[str, float] = {WITH: 0.0, "share 0.15": 0.15, "share 0.3": 0.3, WITHOUT: 1.0}
"""Shares of the plain vector; 0 is the condition alone, 1 the model without it."""


def measure(
    embed: Embed, sets: Sequence[SuiteSet], *, shares: Mapping[str, float] = SHARES
) -> dict[str, dict[str, float]]:
    """Measure a model: the figure of each test by the name of the share.

    Each distinct input is embedded once.
    """
    numbers: dict[Input, int] = {}

    def places(conditions: Sequence[str | None], texts: Sequence[str]) -> list[int]:
        inputs = zip(conditions, texts, strict=True)
        return [numbers.setdefault(one, len(numbers)) for one in inputs]

    columns = {}
    for test in sets:
        task = test.task
        columns[test.key] = [
            (places(conditions, task.sentences1), places(conditions, task.sentences2))
            for conditions in (task.conditions or (), [None] * len(task))
        ]
    vectors = embed(list(numbers))
    figures = {}
    for test in sets:
        conditional, plain = (
            np.einsum("nd,nd->n", vectors[first], vectors[second])
            for first, second in columns[test.key]
        )
        figures[test.key] = {
            name: float(test.values((1 - share) * conditional + share * plain)[0])
            for name, share in shares.items()
        }
    return figures


def families(figures: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Means over the tests of each family, the balanced and retrieval ones by kind."""
    sums: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, by_share in figures.items():
        family, title = key.split(": ", 1)
        if family == "retrieval":
            family += ", left out" if "(left out)" in title else ", trained"
        if family == "balanced":
            family += ", " + title.split(":")[0]
        for name, figure in by_share.items():
            sums[family][name].append(figure)
    return {
        family: {name: float(np.mean(values)) for name, values in by.items()}
        for family, by in sums.items()
    }


def stored(embed: Embed, model: Path, folder: Path) -> Embed:
    """Keep the vectors of a model for the same inputs on disk."""

    def embed_once(inputs: Sequence[Input]) -> Scores:
        weights = hashlib.sha256((model / "model.safetensors").read_bytes())
        weights.update(repr(list(inputs)).encode())
        path = folder / f"{model.name}-{weights.hexdigest()[:12]}.npy"
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            np.save(path, embed(inputs).astype(np.float16))
        vectors: Scores = np.load(path).astype(np.float32)
        return vectors

    return embed_once


def report(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Tables in Markdown: families, and each test."""
    names = list(next(iter(figures.values())))
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for title, by_share in [*families(figures).items(), *figures.items()]:
        lines.append(f"| {title} | " + " | ".join(f"{by_share[n]:.1f}" for n in names) + " |")
    for name in names:
        if name != WITHOUT:
            worse = sum(by_share[name] < by_share[WITHOUT] - 1 for by_share in figures.values())
            lines.append(f"\n{name}: {worse} tests worse than without by more than a point.")
    return "\n".join(lines)


def main() -> None:
    """Write the suite, or measure checkpoints on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("write", "measure"))
    parser.add_argument("--data", type=Path, required=True, help="for measure: a written suite")
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", type=Path, nargs="*", default=())
    parser.add_argument("--vectors", type=Path, default=Path("vectors"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.action == "write":
        write_suite(suite(options.data, part=options.part, quick=options.quick), options.out)
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sets = load_natural_sets(options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    for folder in options.model:
        embed = stored(checkpoint_embedder(folder, device=device), folder, options.vectors)
        figures = measure(embed, sets)
        path = options.out / f"{folder.name}-{options.data.name}.json"
        path.write_text(json.dumps(figures, indent=1), encoding="utf-8")
        _LOGGER.info("\n## %s\n\n%s", folder.name, report(figures))


if __name__ == "__main__":
    main()
