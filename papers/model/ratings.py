"""Pairs that people rated or labeled, as they come; negation that decides the answer."""

from __future__ import annotations

import logging
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from papers.model.groups import Group, Input
from papers.model.sources import BROAD_CONDITIONS, MOST_WORDS, Sources, read_graded, read_tabs

_LOGGER = logging.getLogger("condsim")


def graded(sources: Sources) -> Iterator[Group]:
    """Pairs rated by people: patent phrases, activities, feelings, styles, stories, STS, SICK."""
    draw = random.Random(4)
    data = sources.data
    yield from _patents(data, draw)
    yield from _activities(data)
    yield from _feelings(data, draw)
    yield from _styles(data, draw)
    yield from _stories(data)
    yield from _plain_ratings(data, draw)


def _patents(data: Path, draw: random.Random) -> Iterator[Group]:
    pairs: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
    for row in read_graded(data, "patents", "train"):
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


def _activities(data: Path) -> Iterator[Group]:
    for row in read_graded(data, "activities", "train"):
        for column, condition in ACTIVITY_CONDITIONS.items():
            label = (float(row[column]) - 1) / 4
            inputs: list[Input] = [(condition, row["text1"]), (condition, row["text2"])]
            yield Group(inputs, [(0, 1, label, 1.0)])


FEELING_CONDITIONS = {
    "V": ("how pleasant the feeling is", "the sentiment", "is it positive or negative?"),
    "A": ("how excited the speaker is", "the intensity of the feeling"),
    "D": ("how much in control the speaker is", "the control that the speaker has"),
}


def _feelings(data: Path, draw: random.Random) -> Iterator[Group]:
    texts = [
        row
        for row in read_graded(data, "feelings", "train")
        if len(row["text"].split()) <= MOST_WORDS
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


def _styles(data: Path, draw: random.Random) -> Iterator[Group]:
    for row in read_graded(data, "styles", "train"):
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


def _stories(data: Path) -> Iterator[Group]:
    groups: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in read_graded(data, "stories", "train"):
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
    _LOGGER.info("STS-B rows outside the test sets of 2012-16: %d", len(pairs))
    for line in (data / "sick-r" / "sick_train.tsv").read_text("utf-8").splitlines()[1:]:
        cells = line.split("\t")
        pairs.append((cells[1], cells[2], (float(cells[3]) - 1) / 4))
    for first, second, label in pairs:
        condition = draw.choice((None, *BROAD_CONDITIONS))
        yield Group([(condition, first), (condition, second)], [(0, 1, label, 1.0)])


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def negation(sources: Sources) -> Iterator[Group]:
    """Passages and their edits under a question that turns on a negation; counter-edits of NLI."""
    draw = random.Random(6)
    passages: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in read_graded(sources.data, "passages", "train"):
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
        for premise, hypothesis, label in read_tabs(folder / f"{name}.tsv.gz"):
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
        for premise, hypothesis, label in read_tabs(path):
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
            # Of two neutral premises nothing is known, and a neutral one is nearer to different.
            if {labels[a], labels[b]} != {0.5}:
                alike = 1 - abs(labels[a] - labels[b])
                rows.append((a, b, 0.35 if alike == 0.5 else alike, 1.0 if a == 0 else 0.5))
        yield Group([(condition, text) for text in texts], rows)
