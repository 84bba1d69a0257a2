"""Training rows as they come: one file of groups for each source.

``python -m papers.model.rows --data ../shared/data --out FOLDER`` writes them all; a file that is
there is not written again.

Natural draws: for a text some of its nearest by plain vectors and some at random, alike if the
values agree, nothing balanced. Balanced rows say what a condition adds; natural ones say what a
collection looks like, where two texts alike as a whole are mostly alike in each respect.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from condsim.tasks import held_out_texts
from papers.model.groups import Group, Input, percentile, write_groups
from papers.model.labelled import LabelledTable, read_lines, read_table
from papers.model.plain import PlainVectors
from papers.model.rules import rule_groups

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 45  # of a text: rows of about 40 tokens
TEXTS_PER_TABLE = 5000
NEIGHBOURS = 15
PLAIN_SHARE = 0.2  # of the plain cosine in the target of a natural row
ONE_SILENT_LABEL, ONE_SILENT_WEIGHT = 0.25, 0.3
IMAGE_PERCENT = 90  # of the images of captions; duplicates among the rest are measured
TRAIN_PERCENT, DEV_PERCENT = 64, 80  # below the first: train; below the second: dev; else test

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
_ASKED = (
    "what is {}?",
    "compare {}",
    "{}, whatever else they say",
    "do they have the same {bare}?",
    "whether both have the same {bare}",
    "are the two alike in {}?",
    "with respect to {}",
    "how alike they are as far as {} is concerned",
    "{bare}",
    "{bare}",
)


@dataclass
class Sources:
    """What rows are made from.

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


def asked(condition: str, draw: random.Random, wordings: dict[str, list[str]]) -> str:
    """The condition itself in half of the draws, else another wording, by people where known."""
    if draw.random() < 0.5:
        return condition
    if condition in wordings and draw.random() < 0.7:
        return draw.choice(wordings[condition])
    bare = condition.removeprefix("the ")
    return draw.choice(_ASKED).format(condition, bare=bare)


def natural_groups(
    table: LabelledTable,
    plain: PlainVectors,
    draw: random.Random,
    wordings: dict[str, list[str]],
    *,
    number: int,
) -> Iterator[Group]:
    """Draws groups of a text, three of its nearest and two at random with a nearest of one."""
    texts = list(table.texts)
    draw.shuffle(texts)
    table = LabelledTable(table.name, tuple(texts[:TEXTS_PER_TABLE]), table.same)
    vectors = plain([text.text for text in table.texts])
    having: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(table.texts):
        for criterion in text.values:
            having[criterion].append(row)
    having = {
        criterion: rows
        for criterion, rows in having.items()
        if len(rows) >= 6 and len({table.texts[row].values[criterion] for row in rows}) > 1
    }
    if not having:
        return
    names = sorted(having)
    chances = [len(having[name]) ** 0.5 for name in names]
    for _ in range(number):
        criterion = draw.choices(names, chances)[0]
        rows = having[criterion]
        anchor = draw.choice(rows)
        pool = list(range(len(texts[:TEXTS_PER_TABLE]))) if draw.random() < 0.2 else rows
        near = _nearest(vectors, anchor, pool, draw, 3)
        far = draw.sample(pool, min(2, len(pool)))
        beside = _nearest(vectors, far[0], pool, draw, 1)
        members = list(dict.fromkeys([anchor, *near, *far, *beside]))
        yield _labelled_group(table, criterion, members, asked(criterion, draw, wordings), vectors)


def _nearest(
    vectors: np.ndarray, anchor: int, pool: Sequence[int], draw: random.Random, number: int
) -> list[int]:
    candidates = np.asarray(pool)
    cosines = vectors[candidates] @ vectors[anchor]
    most = min(NEIGHBOURS + 1, len(candidates))
    nearest = candidates[np.argpartition(-cosines, most - 1)[:most]].tolist()
    nearest = [row for row in nearest if row != anchor]
    return draw.sample(nearest, min(number, len(nearest)))


def _labelled_group(
    table: LabelledTable, criterion: str, members: list[int], condition: str, vectors: np.ndarray
) -> Group:
    rows = []
    for first, second in combinations(range(len(members)), 2):
        label, weight = _label(table, criterion, members[first], members[second])
        if label is not None:
            rows.append((first, second, label, weight))
    return Group([(condition, table.texts[row].text) for row in members], rows, share=PLAIN_SHARE)


def _label(
    table: LabelledTable, criterion: str, first: int, second: int
) -> tuple[float | None, float]:
    silent = sum(criterion not in table.texts[row].values for row in (first, second))
    if silent == 1:
        return ONE_SILENT_LABEL, ONE_SILENT_WEIGHT
    alike = None if silent else table.alike(criterion, first, second)
    return (None, 0.0) if alike is None else (float(alike), 1.0)


def open_sets(sources: Sources, split: str, *, use: str = "train") -> Iterator[LabelledTable]:
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


def criteria(sources: Sources) -> Iterator[Group]:
    """Natural draws of the open sets that may be trained on, and the labelled pairs of products."""
    draw, wordings = random.Random(1), sources.wordings()
    for table in open_sets(sources, "train"):
        yield from natural_groups(table, sources.plain, draw, wordings, number=1500)
    path = sources.data / "criteria" / "walmart_amazon" / "train.jsonl.gz"
    pairs = [line for line in read_lines(path) if len(line["text1"].split()) <= MOST_WORDS]
    for line in draw.sample(pairs, 3000):
        conditions = draw.sample(sorted(line["labels"]), min(2, len(line["labels"])))
        if "the product" in line["labels"] and draw.random() < 0.5:
            conditions[0] = "the product"
        for condition in dict.fromkeys(conditions):
            wording = asked(condition, draw, wordings)
            inputs: list[Input] = [(wording, line["text1"]), (wording, line["text2"])]
            rows = [(0, 1, float(line["labels"][condition]), 1.0)]
            yield Group(inputs, rows, share=PLAIN_SHARE)


def attributes(sources: Sources) -> Iterator[Group]:
    """Natural draws of the texts of 246 domains written for condsim."""
    draw, wordings = random.Random(2), sources.wordings()
    for path in sorted((ROOT / "data" / "attributes").glob("*.jsonl")):
        table = read_table(path, path.stem, {}, most_words=MOST_WORDS)
        yield from natural_groups(table, sources.plain, draw, wordings, number=50)


_TYPO_KEYS = "abcdefghijklmnopqrstuvwxyz"


def noised(text: str, draw: random.Random) -> str:
    """The text as somebody else would type it: case, marks, typos, a word less or more."""
    words = text.split()
    if len(words) > 5 and draw.random() < 0.5:
        del words[draw.randrange(len(words))]
    if len(words) > 3 and draw.random() < 0.4:
        place = draw.randrange(len(words))
        word = words[place]
        if len(word) > 4 and word.isalpha():
            at = draw.randrange(1, len(word) - 1)
            swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            dropped = word[:at] + word[at + 1 :]
            words[place] = draw.choice([swapped, dropped])
    if len(words) > 8 and draw.random() < 0.3:
        half = draw.randrange(3, len(words) - 3)
        words = words[half:] + words[:half]
    result = " ".join(words)
    if draw.random() < 0.4:
        result = re.sub(r"[.,;:!?]", "", result)
    if draw.random() < 0.3:
        prefix = ["hi, ", "new: ", "urgent - ", "please help: ", "fwd: ", "NEW! "]
        suffix = [" thanks", " (used)", " - please check", " asap", "!!", " :)"]
        result = draw.choice(prefix) + result if draw.random() < 0.5 else result + draw.choice(suffix)
    return result


def duplicates(sources: Sources) -> Iterator[Group]:
    """Near duplicates: two texts of one image, verse or set of attributes, and noised copies.

    The nearest other texts are not duplicates, and keep half of their plain cosine.
    """
    draw = random.Random(3)
    clusters: list[tuple[list[list[str]], list[str]]] = []
    for table in open_sets(sources, "train"):
        same: dict[object, list[str]] = defaultdict(list)
        for text in table.texts:
            values = text.values
            key = values["the content"] if "the content" in values else frozenset(values.items())
            if "the content" in values or len(values) >= 3:
                same[key].append(text.text)
        members = [sorted(set(texts)) for texts in same.values() if len(set(texts)) > 1]
        draw.shuffle(members)
        clusters.append((members[:350], [text.text for text in table.texts]))
    images: dict[str, list[str]] = defaultdict(list)
    for path in sorted((sources.data / "captions").glob("*.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for line in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
                images[line["image_id"]].append(line["caption"])
    trained = [image for image in sorted(images) if percentile(image) < IMAGE_PERCENT]
    chosen = draw.sample(trained, 2500)
    captions = [images[image] for image in chosen]
    clusters.append(([c for c in captions if len(c) > 1], [text for c in captions for text in c]))
    for members, texts in clusters:
        pool = sorted(set(texts))
        draw.shuffle(pool)
        pool = pool[:TEXTS_PER_TABLE]
        if len(pool) < 30:
            continue
        vectors = sources.plain(pool)
        owner = {text: number for number, cluster in enumerate(members) for text in cluster}
        paired = [tuple(draw.sample(cluster, 2)) for cluster in members[:1200]]
        singles = draw.sample(pool, min(350, len(pool)))
        copies = ((text, noised(text, draw)) for text in singles)
        paired += [(text, copy) for text, copy in copies if text != copy]
        anchors = sources.plain([first for first, _ in paired])
        for (first, second), anchor in zip(paired, anchors, strict=True):
            cosines = vectors @ anchor
            near = [pool[row] for row in np.argpartition(-cosines, 12)[:12].tolist()]
            near = [text for text in near if text not in (first, second)]
            near = [t for t in near if owner.get(t, -1) != owner.get(first, -2)]
            others = draw.sample(near, min(2, len(near))) + draw.sample(pool, 1)
            condition = draw.choice(SAME_THING_CONDITIONS)
            inputs: list[Input] = [(condition, text) for text in (first, second, *others)]
            rows = [(0, 1, 1.0, 1.0)]
            rows += [(0, place, 0.15, 0.7) for place in range(2, len(inputs))]
            rows += [(1, place, 0.15, 0.5) for place in range(2, len(inputs))]
            yield Group(inputs, rows, share=0.5)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file, gzipped or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def part_of(key: str) -> str:
    """``train``, ``dev`` or ``test``, always the same for a key."""
    number = percentile(key)
    return "train" if number < TRAIN_PERCENT else "dev" if number < DEV_PERCENT else "test"


def half_of(key: str) -> str:
    """The same for sets of which half may be trained on."""
    number = percentile(key)
    return "train" if number < 50 else "dev" if number < 70 else "test"


def graded(sources: Sources) -> Iterator[Group]:
    """Pairs rated by people: patent phrases, activities, feelings, styles, stories, STS, SICK."""
    draw = random.Random(4)
    folder = sources.data / "graded"
    yield from _patents(folder, draw)
    yield from _activities(folder, draw)
    yield from _feelings(folder, draw)
    yield from _styles(folder, draw)
    yield from _stories(folder)
    yield from _plain_ratings(sources.data, draw)


def _patents(folder: Path, draw: random.Random) -> Iterator[Group]:
    pairs: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
    for row in read_csv(folder / "patent_phrases" / "rows.csv.gz"):
        if part_of(row["sentence1"]) == "train":
            key = row["sentence1"], row["condition"]
            pairs[key].append((row["sentence2"], (float(row["label"]) - 1) / 4))
    for (anchor, condition), targets in sorted(pairs.items()):
        draw.shuffle(targets)
        for start in range(0, len(targets), 9):
            piece = targets[start : start + 9]
            texts = [anchor, *(text for text, _ in piece)]
            rows = [(0, place, label, 1.0) for place, (_, label) in enumerate(piece, 1)]
            yield Group([(condition, text) for text in texts], rows)


ACTIVITY_CONDITIONS = {
    "similarity": "what one does",
    "relatedness": "what it has to do with",
    "motivational alignment": "the reason for doing it",
    "perceived actor congruence": "the kind of person who does it",
}


def _activities(folder: Path, draw: random.Random) -> Iterator[Group]:
    for row in read_csv(folder / "activity_phrases" / "pairs.csv.gz"):
        if row["split"] != "train":
            continue
        for column, condition in ACTIVITY_CONDITIONS.items():
            label = (float(row[column]) - 1) / 4
            inputs: list[Input] = [(condition, row["text1"]), (condition, row["text2"])]
            yield Group(inputs, [(0, 1, label, 1.0)])


FEELING_CONDITIONS = {
    "V": ("how pleasant the feeling is", "the sentiment", "is it positive or negative?"),
    "A": ("how excited the speaker is", "the intensity of the feeling"),
    "D": ("how much in control the speaker is", "the control that the speaker has"),
}


def _feelings(folder: Path, draw: random.Random) -> Iterator[Group]:
    texts = [
        row
        for row in read_csv(folder / "emobank" / "sentences.csv.gz")
        if row["split"] == "train" and len(row["text"].split()) <= MOST_WORDS
    ]
    for _ in range(2500):
        feeling = draw.choice(list("VVVAAD"))
        members = draw.sample(texts, 6)
        scores = [float(row[feeling]) for row in members]
        condition = draw.choice(FEELING_CONDITIONS[feeling])
        # Most sentences are neutral: a difference of 1.5 of 4 is already far.
        rows = [
            (a, b, max(0.0, 1 - abs(scores[a] - scores[b]) / 1.5), 0.5)
            for a, b in combinations(range(6), 2)
        ]
        yield Group([(condition, row["text"]) for row in members], rows)


STYLE_CONDITIONS = ("the style of writing", "how it is written", "the style", "the wording style")


def _styles(folder: Path, draw: random.Random) -> Iterator[Group]:
    for row in read_csv(folder / "stel" / "quadruples.csv.gz"):
        if half_of(row["id"]) != "train":
            continue
        texts = [row[key] for key in ("anchor1", "anchor2", "alternative1", "alternative2")]
        if max(len(text.split()) for text in texts) > 70:
            continue
        like, unlike = (2, 3) if row["correct"] == "1" else (3, 2)
        for condition in draw.sample(STYLE_CONDITIONS, 2):
            rows = [(0, like, 1.0, 1.0), (1, unlike, 1.0, 1.0), (0, 1, 0.1, 1.0)]
            rows += [(like, unlike, 0.1, 1.0), (0, unlike, 0.0, 0.7), (1, like, 0.0, 0.7)]
            yield Group([(condition, text) for text in texts], rows)
        content = [(0, 1, 1.0, 1.0), (2, 3, 1.0, 1.0), (0, 2, 0.0, 0.5), (1, 3, 0.0, 0.5)]
        yield Group([("the content", text) for text in texts], content)


def _stories(folder: Path) -> Iterator[Group]:
    groups: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in read_csv(folder / "story_analogy" / "rows.csv.gz"):
        if half_of(row["item"]) == "train":
            groups[row["item"], row["condition"]].append(row)
    for (_, condition), members in sorted(groups.items()):
        texts = [members[0]["sentence1"], *(row["sentence2"] for row in members)]
        rows = [
            (0, place, (float(row["label"]) - 1) / 4, 1.0) for place, row in enumerate(members, 1)
        ]
        for _ in range(2):
            yield Group([(condition, text) for text in texts], rows)


def _plain_ratings(data: Path, draw: random.Random) -> Iterator[Group]:
    """STS-B and SICK under broad conditions; no STS-B row that is in the test sets of 2012-16."""
    known = set()
    for path in sorted((data / "sts12-16").rglob("*")):
        if path.suffix in (".tsv", ".txt", ".csv"):
            known |= {_squeezed(line) for line in path.read_text("utf-8", "ignore").splitlines()}
    joined = "\n".join(known)
    pairs = []
    for line in (data / "sts-b" / "sts-train.csv").read_text("utf-8").splitlines():
        cells = line.split("\t")
        if _squeezed(cells[5]) not in joined and _squeezed(cells[6]) not in joined:
            pairs.append((cells[5], cells[6], float(cells[4]) / 5))
    print(f"STS-B rows outside the test sets of 2012-16: {len(pairs)}", flush=True)
    for line in (data / "sick-r" / "sick_train.tsv").read_text("utf-8").splitlines()[1:]:
        cells = line.split("\t")
        pairs.append((cells[1], cells[2], (float(cells[3]) - 1) / 4))
    for first, second, label in pairs:
        condition = draw.choice((None, *BROAD_CONDITIONS))
        yield Group([(condition, first), (condition, second)], [(0, 1, label, 1.0)])


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def broad(sources: Sources) -> Iterator[Group]:
    """Any text under no condition or a broad one, with its plain vector as target."""
    draw = random.Random(5)
    texts: set[str] = set()
    for table in open_sets(sources, "train"):
        members = sorted({text.text for text in table.texts})
        texts |= set(draw.sample(members, min(500, len(members))))
    for path in sorted((ROOT / "data" / "attributes").glob("*.jsonl")):
        texts |= {line["text"] for line in draw.sample(read_lines(path), 12)}
    for name in ("mnli_dev_matched", "snli_dev"):
        with gzip.open(sources.data / "nli" / f"{name}.tsv.gz", "rt", encoding="utf-8") as stream:
            lines = [line.split("\t") for line in stream][1:]
        texts |= {cells[draw.randrange(2)] for cells in draw.sample(lines, 2500)}
    with gzip.open(sources.data / "corpus" / "openstax.txt.gz", "rt", encoding="utf-8") as stream:
        sentences = re.findall(r"[A-Z][^.?!\n]{30,200}[.?!]", stream.read())
    texts |= set(draw.sample(sentences, 3000))
    for row in read_csv(sources.data / "graded" / "patent_phrases" / "rows.csv.gz")[::12]:
        if part_of(row["sentence1"]) == "train":
            texts |= {row["sentence1"], row["sentence2"]}
    path = sources.data / "criteria" / "walmart_amazon" / "train.jsonl.gz"
    texts |= {line["text1"] for line in read_lines(path)[:1500]}
    for text in sorted(texts):
        if 1 <= len(text.split()) <= MOST_WORDS:
            condition = None if draw.random() < 0.35 else draw.choice(BROAD_CONDITIONS)
            yield Group([(condition, text)], plain=True)


def balanced(name: str) -> Callable[[Sources], Iterator[Group]]:
    """Rows that are balanced under each condition, as the default model learnt from until now."""

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


def negation(sources: Sources) -> Iterator[Group]:
    """Passages and their edits under a question that turns on a negation; counter-edits of NLI."""
    draw = random.Random(6)
    passages: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in read_csv(sources.data / "graded" / "condaqa_contrast" / "rows.csv.gz"):
        if half_of(row["passage"]) == "train":
            passages[row["passage"], row["question"]].append(row)
    for (_, question), members in sorted(passages.items()):
        yield from _answers(members[0]["condition"] or question, members)
    yield from _entailed(sources.data / "nli", draw)


def _answers(condition: str, members: list[dict[str, str]]) -> Iterator[Group]:
    # A passage that differs in another place of each edit has other sentences in each row.
    for same_start in ({row["sentence1"] for row in members},):
        for start in sorted(same_start):
            edits = [row for row in members if row["sentence1"] == start]
            texts = [start, *(row["sentence2"] for row in edits)]
            answers = [edits[0]["answer1"], *(row["answer2"] for row in edits)]
            rows = [
                (a, b, float(answers[a] == answers[b]), 1.0)
                for a, b in combinations(range(len(texts)), 2)
            ]
            for _ in range(2):
                yield Group([(condition, text) for text in texts], rows)


CLAIM_CONDITIONS = (
    "what is claimed to be the case",
    "the facts",
    "whether both can be true",
    "what is true according to it",
    "the claim",
)
_ENTAILMENT_LABELS = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}


def _entailed(folder: Path, draw: random.Random) -> Iterator[Group]:
    """Premises with what follows and what contradicts; edits of one under the other as question."""
    for name, number in (("snli_dev", 1500), ("mnli_dev_matched", 1500)):
        premises: dict[str, list[tuple[str, float]]] = defaultdict(list)
        with gzip.open(folder / f"{name}.tsv.gz", "rt", encoding="utf-8") as stream:
            for line in list(stream)[1:]:
                premise, hypothesis, label = line.rstrip("\n").split("\t")
                if len(premise.split()) <= MOST_WORDS:
                    premises[premise].append((hypothesis, _ENTAILMENT_LABELS[label]))
        for premise in draw.sample(sorted(premises), min(number, len(premises))):
            members = premises[premise]
            condition = draw.choice(CLAIM_CONDITIONS)
            texts = [premise, *(text for text, _ in members)]
            rows = [(0, place, label, 1.0) for place, (_, label) in enumerate(members, 1)]
            # Of two hypotheses it is known only that what follows is not what contradicts.
            for a, b in combinations(range(len(members)), 2):
                if {members[a][1], members[b][1]} == {0.0, 1.0}:
                    rows.append((a + 1, b + 1, 0.0, 0.7))
            yield Group([(condition, text) for text in texts], rows)
    yield from _revised(folder.parent, draw)


def read_revised(data: Path, part: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Hypotheses, each with premises by label: one premise and its counterfactual edits."""
    premises: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for kind in ("original", "revised_combined"):
        path = data / "nli" / f"cad_{kind}_{part}.tsv.gz"
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for line in list(stream)[1:]:
                premise, hypothesis, label = line.rstrip("\n").split("\t")
                if premise not in premises[hypothesis][label]:
                    premises[hypothesis][label].append(premise)
    for hypothesis, members in sorted(premises.items()):
        if {"entailment", "contradiction"} <= members.keys():
            yield hypothesis, members


def _revised(data: Path, draw: random.Random) -> Iterator[Group]:
    """A hypothesis with edits of one premise, under the hypothesis as a question or clause.

    A premise it follows from is alike, one that contradicts it is different.
    """
    for hypothesis, members in read_revised(data, "train"):
        clause = hypothesis.rstrip(".")
        clause = clause[0].lower() + clause[1:]
        condition = draw.choice((f"whether {clause}", f"is it true that {clause}?", "the claim"))
        texts, labels = [hypothesis], [1.0]
        for label, premises in sorted(members.items()):
            texts += premises
            labels += [_ENTAILMENT_LABELS[label]] * len(premises)
        rows = []
        for a, b in combinations(range(len(texts)), 2):
            label = 1 - abs(labels[a] - labels[b])
            # Of two neutral premises nothing is known.
            if {labels[a], labels[b]} != {0.5}:
                rows.append((a, b, 0.35 if label == 0.5 else label, 1.0 if a == 0 else 0.5))
        yield Group([(condition, text) for text in texts], rows)


QUERIES_PER_TABLE, QUERIES_PER_DOMAIN = 500, 16


def queries(sources: Sources) -> Iterator[Group]:
    """A few words that name a value, as typed into a search box, among texts that have it or not."""
    draw, wordings = random.Random(7), sources.wordings()
    tables = [(table, QUERIES_PER_TABLE) for table in open_sets(sources, "train")]
    for path in sorted((ROOT / "data" / "attributes").glob("*.jsonl")):
        table = read_table(path, path.stem, {}, most_words=MOST_WORDS)
        tables.append((table, QUERIES_PER_DOMAIN))
    for table, number in tables:
        having: dict[str, list[int]] = defaultdict(list)
        for row, text in enumerate(table.texts):
            for criterion in text.values:
                having[criterion].append(row)
        names = sorted(name for name, rows in having.items() if len(rows) > 5)
        if table.name == "bible" or not names:
            continue
        for _ in range(number):
            criterion = draw.choice(names)
            group = _query_group(table, criterion, having[criterion], draw)
            if group is not None:
                condition = asked(criterion, draw, wordings)
                yield Group([(condition, text) for text in group[0]], group[1], share=0.1)


_OPINION_QUERIES = {
    "positive": ("good {}", "{} good", "great {}", "people who liked {}", "positive about {}", "happy with {}"),
    "negative": ("bad {}", "{} bad", "poor {}", "complaints about {}", "negative about {}", "unhappy with {}"),
}


def _query_group(
    table: LabelledTable, criterion: str, rows: list[int], draw: random.Random
) -> tuple[list[str], list[tuple[int, int, float, float]]] | None:
    anchor = draw.choice(rows)
    values = table.texts[anchor].values[criterion]
    if len(values) != 1 or next(iter(values)) in ("yes", "no", "true", "false"):
        return None
    value = next(iter(values))
    bare = criterion.removeprefix("the ").removeprefix("opinion about ").removeprefix("the ")
    if criterion.startswith("the opinion about"):
        if value not in _OPINION_QUERIES:
            return None
        query = draw.choice(_OPINION_QUERIES[value]).format(bare)
    else:
        query = draw.choice(("{v}", "{v}", "{v}", "{v} {c}", "{c} {v}", "{c}: {v}", "something with {v}"))
        query = query.format(v=value, c=bare)
    members = [anchor, *draw.sample(rows, min(5, len(rows)))]
    alike = [row for row in rows if table.texts[row].values[criterion] == values]
    members += draw.sample(alike, min(2, len(alike)))
    members = list(dict.fromkeys(members))
    if draw.random() < 0.5:
        silent = [row for row in range(len(table.texts)) if criterion not in table.texts[row].values]
        members += draw.sample(silent, min(2, len(silent)))
    labelled = []
    for place, row in enumerate(members, 1):
        label, weight = _label(table, criterion, anchor, row) if row != anchor else (1.0, 1.0)
        if label is not None:
            labelled.append((0, place, label, weight))
    return [query, *(table.texts[row].text for row in members)], labelled


def rules(sources: Sources) -> Iterator[Group]:
    """Rows whose label turns on one detail, by rule."""
    yield from rule_groups("train")


DETAILS_TRAIN_PERCENT = 70


def read_details(part: str) -> list[tuple[str, str, tuple[str, str, str]]]:
    """Kind, condition, and three texts written for condsim: the second is like the first."""
    triplets = []
    path = ROOT / "data" / "details" / "triplets.txt"
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, condition, first, alike, other = (cell.strip() for cell in line.split("|||"))
        if (percentile(first) < DETAILS_TRAIN_PERCENT) == (part == "train"):
            triplets.append((kind, condition, (first, alike, other)))
    return triplets


def details(sources: Sources) -> Iterator[Group]:
    """Written triplets whose label turns on one detail."""
    for _, condition, texts in read_details("train"):
        rows = [(0, 1, 1.0, 1.0), (0, 2, 0.0, 1.0), (1, 2, 0.0, 1.0)]
        yield Group([(condition, text) for text in texts], rows)


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
    "queries": queries,
    "attributes": attributes,
    "criteria": criteria,
    "duplicates": duplicates,
    "broad": broad,
}


def main() -> None:
    """Writes the rows of every source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--balanced", type=Path, required=True)
    parser.add_argument("--plain-model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    plain = PlainVectors(options.plain_model, options.out / "plain-minilm")
    sources = Sources(options.data, options.balanced, plain)
    exclude = held_out_texts([options.data / "csts-reannotated" / "held-out.sha256"])
    for name in options.only or SOURCES:
        path = options.out / f"{name}.jsonl.gz"
        if not path.is_file():
            number = write_groups(SOURCES[name](sources), path, exclude=exclude)
            print(f"{name}: {number} groups", flush=True)


if __name__ == "__main__":
    main()
