"""The natural suite: what a condition does on texts as they come, each test next to no condition.

Families: pairs graded by people, retrieval by facet, matching and duplicates, negation that decides
the answer; and the balanced sets, to see both sides. A test is inputs, the pairs of them that are
compared, and a metric of their similarities.
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
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from papers.model.groups import Input, percentile
from papers.model.labelled import LabelledTable, read_lines, read_table
from papers.model.pack import LONGEST_CONDITION_TOKENS, LONGEST_TEXT_TOKENS, bare
from papers.model.plain import embed_ids, load_encoder
from papers.model.ratings import ACTIVITY_CONDITIONS, read_revised
from papers.model.rows import read_details
from papers.model.rules import RULES
from papers.model.sources import IMAGE_PERCENT, MOST_WORDS, ROOT, half_of, part_of, read_csv

_LOGGER = logging.getLogger("condsim")

Scores = NDArray[np.float32]
Row = tuple[str | None, str, str]
"""A condition and two texts."""
Share = Callable[[Sequence[str | None]], Scores]
"""Share of the plain vector under each condition, in [0, 1]."""
Embed = Callable[[Sequence[Input]], Scores]
"""Unit vectors of inputs, ``(inputs, hidden)``."""

NEAREST = 10
PATENT_ROWS = 2000
FEWEST_TEXTS, MOST_TEXTS, MOST_OF_ONE_VALUE = 60, 250, 0.7
FACETS_PER_TABLE = 5


@dataclass(frozen=True)
class Test:
    """One test.

    Attributes:
        family: ``graded``, ``retrieval``, ``matching``, ``negation`` or ``balanced``.
        name: Name within the family.
        inputs: Conditions and texts.
        pairs: First and second input of each comparison, ``(pairs, 2)``; None for all by all.
        metric: From the similarity of each pair, ``(pairs,)``, or of all, ``(inputs, inputs)``, to
            a figure times 100.
    """

    family: str
    name: str
    inputs: tuple[Input, ...]
    pairs: NDArray[np.int64] | None
    metric: Callable[[Scores], float]
    smaller: Callable[[], Test] | None = None

    def scores(self, conditioned: Scores, plain: Scores, share: Share) -> Scores:
        """Similarities with a share of the vectors without a condition."""
        if self.pairs is None:
            part = share([self.inputs[0][0]])
            table: Scores = (1 - part) * (conditioned @ conditioned.T) + part * (plain @ plain.T)
            return table
        first, second = self.pairs.T
        parts = share([self.inputs[row][0] for row in first])
        with_condition: Scores = (conditioned[first] * conditioned[second]).sum(1)
        without: Scores = (plain[first] * plain[second]).sum(1)
        return (1 - parts) * with_condition + parts * without


def spearman(scores: Scores, gold: Sequence[float]) -> float:
    """Rank correlation times 100."""
    x, y = rankdata(scores), rankdata(np.asarray(gold))
    return float(100 * np.corrcoef(x, y)[0, 1]) if np.ptp(x) and np.ptp(y) else 0.0


def auc(scores: Scores, positive: Sequence[bool], among: Sequence[bool] | None = None) -> float:
    """Area under the ROC curve times 100, of all rows or some; chance is 50."""
    alike = np.asarray(positive, bool)
    if among is not None:
        chosen = np.asarray(among, bool)
        scores, alike = scores[chosen], alike[chosen]
    ranks = rankdata(scores)
    count, others = int(alike.sum()), int((~alike).sum())
    if not count or not others:
        return float("nan")
    return float(100 * (ranks[alike].sum() - count * (count + 1) / 2) / (count * others))


def average_precision(scores: Scores, positive: Sequence[bool]) -> float:
    """Average precision times 100 of positives among all."""
    order = np.argsort(-scores, kind="stable")
    hits = np.asarray(positive, bool)[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(100 * precision[hits].mean()) if hits.any() else float("nan")


def wins(scores: Scores, better: Sequence[tuple[int, int]]) -> float:
    """Share of row pairs whose first row has the higher score, in percent; ties count half."""
    values = [(scores[a] > scores[b]) + 0.5 * (scores[a] == scores[b]) for a, b in better]
    return float(100 * np.mean(values))


def _correlated(family: str, name: str, rows: Sequence[Row], gold: Sequence[float]) -> Test:
    """A test of the rank correlation with labels."""
    smaller = None
    if len(rows) > QUICK_PAIRS:
        smaller = partial(_correlated, family, name, rows[:QUICK_PAIRS], list(gold)[:QUICK_PAIRS])
    test = _paired(family, name, rows, partial(spearman, gold=gold))
    return replace(test, smaller=smaller)


def _paired(
    family: str,
    name: str,
    rows: Sequence[Row],
    metric: Callable[[Scores], float],
) -> Test:
    """A test of rows of condition and two texts."""
    numbers: dict[Input, int] = {}
    pairs = [
        [numbers.setdefault((condition, text), len(numbers)) for text in texts]
        for condition, *texts in rows
    ]
    return Test(family, name, tuple(numbers), np.array(pairs, np.int64), metric)


def graded_tests(data: Path, part: str) -> Iterator[Test]:
    """Pairs graded by people: patent phrases, activities, feelings, stories, styles."""
    folder = data / "graded"
    phrases = read_csv(folder / "patent_phrases" / "rows.csv.gz")
    chosen = [row for row in phrases if part_of(row["sentence1"]) == part]
    chosen = random.Random(0).sample(chosen, PATENT_ROWS)
    rows = [(row["condition"], row["sentence1"], row["sentence2"]) for row in chosen]
    gold = [float(row["label"]) for row in chosen]
    yield _correlated("graded", "patent phrases", rows, gold)
    pairs = read_csv(folder / "activity_phrases" / "pairs.csv.gz")
    pairs = [row for row in pairs if row["split"] == part]
    for column, condition in ACTIVITY_CONDITIONS.items():
        rows = [(condition, row["text1"], row["text2"]) for row in pairs]
        gold = [float(row[column]) for row in pairs]
        yield _correlated("graded", f"activities: {column}", rows, gold)
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
        yield _correlated("graded", condition, rows, gold)


def _choice_tests(folder: Path, part: str) -> Iterator[Test]:
    """Two rows of which one is to score higher: chance is 50."""
    items: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in read_csv(folder / "story_analogy" / "rows.csv.gz"):
        if half_of(row["item"]) == part:
            items[row["condition"], row["item"]].append(row)
    for condition in ("how the events are connected", "the things it is about"):
        rows: list[Row] = []
        better: list[tuple[int, int]] = []
        for (own, _), members in sorted(items.items()):
            if own == condition:
                members.sort(key=lambda row: -float(row["label"]))
                better.append((len(rows), len(rows) + 1))
                rows += [(condition, row["sentence1"], row["sentence2"]) for row in members]
        yield _paired("graded", f"stories: {condition}", rows, partial(wins, better=better))
    styled: list[Row] = []
    order: list[tuple[int, int]] = []
    content: list[tuple[int, int]] = []
    for row in read_csv(folder / "stel" / "quadruples.csv.gz"):
        if half_of(row["id"]) != part:
            continue
        like, unlike = "alternative1", "alternative2"
        if row["correct"] != "1":
            like, unlike = unlike, like
        start = len(styled)
        styled += [
            ("the style of writing", row["anchor1"], row[key]) for key in (like, unlike, "anchor2")
        ]
        order.append((start, start + 1))
        content.append((start, start + 2))
    yield _paired("graded", "style", styled, partial(wins, better=order))
    yield _paired("graded", "style or content", styled, partial(wins, better=content))


def negation_tests(data: Path, part: str) -> Iterator[Test]:
    """Edits under a question whose answer turns on a negation, and counter-edits of NLI."""
    rows = read_csv(data / "graded" / "condaqa_contrast" / "rows.csv.gz")
    rows = [row for row in rows if half_of(row["passage"]) == part]
    inputs = [(row["condition"], row["sentence1"], row["sentence2"]) for row in rows]
    alike = [row["label"] == "5" for row in rows]
    yield _paired("negation", "CondaQA, all edits", inputs, partial(auc, positive=alike))
    scope = [row["edit"] == "scope" for row in rows]
    yield _paired(
        "negation",
        "CondaQA, scope edits",
        inputs,
        partial(auc, positive=alike, among=scope),
    )
    edits: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for place, row in enumerate(rows):
        edits[row["passage"], row["question"]][row["edit"]] = place
    better = [
        (found["paraphrase"], found["affirmative"])
        for found in edits.values()
        if {"paraphrase", "affirmative"} <= found.keys()
    ]
    yield _paired("negation", "paraphrase over edit", inputs, partial(wins, better=better))
    yield _revised_test(data)


def _revised_test(data: Path) -> Test:
    rows: list[Row] = []
    better = []
    for hypothesis, members in read_revised(data, "dev"):
        clause = hypothesis.rstrip(".")
        condition = f"whether {clause[0].lower() + clause[1:]}"
        better.append((len(rows), len(rows) + 1))
        for label in ("entailment", "contradiction"):
            rows.append((condition, hypothesis, members[label][0]))
    return _paired("negation", "counter-edits of NLI", rows, partial(wins, better=better))


def matching_tests(data: Path) -> Iterator[Test]:
    """Titles of products of two shops, and captions of one image among those of others."""
    for name in ("walmart_amazon", "wdc"):
        lines = read_lines(data / "criteria" / name / "dev.jsonl.gz")
        lines = [line for line in lines if "the product" in line["labels"]]
        alike = [line for line in lines if line["labels"]["the product"] > 0.5][:300]
        others = [line for line in lines if line["labels"]["the product"] <= 0.5]
        others = random.Random(0).sample(others, min(900, len(others)))
        pairs = [*alike, *others]
        rows = [("the product", line["text1"], line["text2"]) for line in pairs]
        gold = [True] * len(alike) + [False] * len(others)
        yield _paired("matching", f"{name}: pairs", rows, partial(average_precision, positive=gold))
        partners: dict[str, set[str]] = defaultdict(set)
        for line in alike:
            partners[line["text1"]].add(line["text2"])
        texts = list(dict.fromkeys([*partners, *(line["text2"] for line in pairs)]))
        yield _first_hit(f"{name}: first hit", "the product", texts, partners)
    images: dict[str, list[str]] = defaultdict(list)
    path = data / "captions" / "flickr8k.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            if percentile(line["image_id"]) >= IMAGE_PERCENT:
                images[line["image_id"]].append(line["caption"])
    both = [captions[:2] for captions in images.values()][:250]
    captions = {a: {b} for a, b in both} | {b: {a} for a, b in both}
    yield _first_hit("captions: first hit", "the event", list(captions), captions)


def _first_hit(
    name: str, condition: str, texts: Sequence[str], partners: Mapping[str, set[str]]
) -> Test:
    """Share of texts whose nearest other text is a partner, in percent."""

    def metric(similarities: Scores) -> float:
        queries = [row for row, text in enumerate(texts) if text in partners]
        table = similarities.copy()
        np.fill_diagonal(table, -np.inf)
        # Queries are of the first shop where sides differ: only the other texts can match.
        sided = not any(text in partners for own in partners.values() for text in own)
        if sided:
            table[:, queries] = -np.inf
        hits = [texts[int(table[row].argmax())] in partners[texts[row]] for row in queries]
        return float(100 * np.mean(hits))

    return Test("matching", name, tuple((condition, text) for text in texts), None, metric)


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


def _facet_tests(table: LabelledTable, *, left_out: bool) -> Iterator[Test]:
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
        texts = [table.texts[row].text for row in rows]
        name = f"{table.name}{' (left out)' * left_out}: {criterion}"
        yield _facet_test(name, criterion, texts, values)


def _facet_test(
    name: str, criterion: str, texts: Sequence[str], values: Sequence[frozenset[str]]
) -> Test:
    same = np.array([[a == b for b in values] for a in values])
    np.fill_diagonal(same, False)
    # A text with fewer partners than are looked at cannot reach 100 %: it is left out.
    queries = np.flatnonzero(same.sum(1) >= NEAREST // 2)

    def metric(similarities: Scores) -> float:
        table = similarities.copy()
        np.fill_diagonal(table, -np.inf)
        nearest = np.argsort(-table[queries], axis=1)[:, :NEAREST]
        hits = np.take_along_axis(same[queries], nearest, axis=1).sum(1)
        most = np.minimum(NEAREST, same[queries].sum(1))
        return float(100 * (hits / most).mean())

    smaller = None
    if len(texts) > QUICK_TEXTS:
        smaller = partial(
            _facet_test, name, criterion, texts[:QUICK_TEXTS], list(values)[:QUICK_TEXTS]
        )
    inputs = tuple((criterion, text) for text in texts)
    return Test("retrieval", name, inputs, None, metric, smaller)


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
    yield _correlated("balanced", "C-STS dev, Spearman", inputs, gold)


def _order(members: list[dict[str, str]]) -> list[tuple[str, str, str, float]]:
    return [
        (row["condition"], row["sentence1"], row["sentence2"], float(row["label"]))
        for row in members
    ]


def _order_test(name: str, units: Sequence[Sequence[tuple[str, str, str, float]]]) -> Test:
    rows: list[Row] = []
    better = []
    for unit in units:
        start = len(rows)
        rows += [(condition, first, second) for condition, first, second, _ in unit]
        for a, b in combinations(range(len(unit)), 2):
            if unit[a][3] != unit[b][3]:
                high, low = (a, b) if unit[a][3] > unit[b][3] else (b, a)
                better.append((start + high, start + low))
    return _paired("balanced", name, rows, partial(wins, better=better))


def detail_tests() -> Iterator[Test]:
    """Labels that turn on one detail, by rule and written; chance is 50."""
    for name, (generate, _) in RULES.items():
        groups = list(generate(random.Random(f"{name} test"), "dev", number=60))
        rows: list[Row] = []
        better = []
        for group in groups:
            start = len(rows)
            for one, two, _, _ in group.rows:
                (condition, text), (_, partner) = group.inputs[one], group.inputs[two]
                rows.append((condition, text, partner))
            labels = [label for _, _, label, _ in group.rows]
            for a, b in combinations(range(len(labels)), 2):
                if {labels[a] == 1, labels[b] == 1} == {True, False}:
                    high, low = (a, b) if labels[a] > labels[b] else (b, a)
                    if labels[low] != 0.25:
                        better.append((start + high, start + low))
        yield _paired("details", f"rule: {name}", rows, partial(wins, better=better))
    rows = []
    for _, asked, (first, alike, other) in read_details("dev"):
        rows += [(asked, first, alike), (asked, first, other)]
    better = [(place, place + 1) for place in range(0, len(rows), 2)]
    yield _paired("details", "written triplets", rows, partial(wins, better=better))


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


QUICK_FACETS_PER_TABLE, QUICK_TEXTS, QUICK_PAIRS = 2, 110, 300


def _quicker(tests: Sequence[Test]) -> list[Test]:
    """Fewer facets of fewer texts each, and no test of the same pairs as another."""
    facets: dict[str, int] = defaultdict(int)
    chosen = []
    for test in tests:
        if test.family == "retrieval":
            table = test.name.split(":")[0]
            facets[table] += 1
            if facets[table] > QUICK_FACETS_PER_TABLE:
                continue
        if test.name.startswith("activities") and "similarity" not in test.name:
            continue
        chosen.append(test if test.smaller is None else test.smaller())
    return chosen


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


def fixed_share(share: float) -> Share:
    """The same share under every condition."""
    return lambda conditions: np.full(len(conditions), share, np.float32)


WITH, WITHOUT = "with the condition", "without"
SHARES: Mapping[str, Share] = {
    WITH: fixed_share(0.0),
    "share 0.15": fixed_share(0.15),
    "share 0.3": fixed_share(0.3),
    "share 0.5": fixed_share(0.5),
    WITHOUT: fixed_share(1.0),
}


@dataclass(frozen=True)
class Measured:
    """Figures of one test, by the name of the share of the plain vector."""

    test: Test
    figures: Mapping[str, float]


def measure(
    embed: Embed, tests: Sequence[Test], *, shares: Mapping[str, Share] = SHARES
) -> list[Measured]:
    """Measure a model; each distinct input is embedded once."""
    conditions, plain = set(shares) - {WITHOUT}, set(shares) - {WITH}
    numbers: dict[Input, int] = {}
    for test in tests:
        for condition, text in test.inputs:
            if conditions:
                numbers.setdefault((condition, text), len(numbers))
            if plain:
                numbers.setdefault((None, text), len(numbers))
    vectors = embed(list(numbers))
    absent = np.zeros((1, 1), np.float32)
    results = []
    for test in tests:
        first = second = np.repeat(absent, len(test.inputs), axis=0)
        if conditions:
            first = vectors[[numbers[one] for one in test.inputs]]
        if plain:
            second = vectors[[numbers[None, text] for _, text in test.inputs]]
        scores = {
            name: test.metric(test.scores(first, second, share)) for name, share in shares.items()
        }
        results.append(Measured(test, scores))
    return results


def families(results: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """Means over the tests of each family, the balanced sets by kind."""
    sums: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        family = result.test.family
        if family in ("balanced", "retrieval"):
            family = f"{family}, {_kind(result.test)}"
        for name, figure in result.figures.items():
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


def _kind(test: Test) -> str:
    if test.family == "retrieval":
        return "left out" if "(left out)" in test.name else "trained"
    return test.name.split(":")[0]


def report(results: Sequence[Measured]) -> str:
    """Tables in Markdown: families, and each test."""
    names = list(results[0].figures)
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    rows = [(family, figures) for family, figures in families(results).items()]
    rows += [(f"{r.test.family}: {r.test.name}", dict(r.figures)) for r in results]
    for title, figures in rows:
        lines.append(f"| {title} | " + " | ".join(f"{figures[n]:.1f}" for n in names) + " |")
    for name in names:
        if WITHOUT in names and name != WITHOUT:
            worse = sum(r.figures[name] < r.figures[WITHOUT] - 1 for r in results)
            lines.append(f"\n{name}: {worse} tests worse than without by more than a point.")
    return "\n".join(lines)


def load_share(path: Path) -> Share:
    """Read the shares that ``papers.model.share`` gave to conditions; its mean for others."""
    table = json.loads(path.read_text(encoding="utf-8"))
    return lambda conditions: np.array(
        [table["shares"].get(one or "", table["mean"]) for one in conditions], np.float32
    )


def main() -> None:
    """Measure checkpoints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, nargs="+", required=True)
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=(WITH, WITHOUT))
    parser.add_argument("--head", type=Path, help="of papers.model.share")
    parser.add_argument("--vectors", type=Path, default=Path("vectors"))
    parser.add_argument("--out", type=Path, help="folder of one JSON file a model")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tests = suite(options.data, part=options.part, quick=options.quick)
    shares = {options.only: SHARES[options.only]} if options.only else dict(SHARES)
    for folder in options.model:
        embed = stored(checkpoint_embedder(folder, device=device), folder, options.vectors)
        if options.head is not None:
            shares["head"] = load_share(options.head)
        results = measure(embed, tests, shares=shares)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            figures = {f"{r.test.family}: {r.test.name}": dict(r.figures) for r in results}
            path = options.out / f"{folder.name}{'-quick' * options.quick}.json"
            path.write_text(json.dumps(figures, indent=1), encoding="utf-8")
        _LOGGER.info("\n## %s\n\n%s", folder.name, report(results))


if __name__ == "__main__":
    main()
