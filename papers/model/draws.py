"""Natural draws of texts with labeled attributes, near duplicates, queries, and any text.

For a text some of its nearest by plain vectors and some at random, alike if the values agree, and
nothing balanced.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from papers.model.groups import Group, Input
from papers.model.labeled import LabeledTable, read_lines
from papers.model.noise import misspelled
from papers.model.plain import PlainVectors
from papers.model.sources import (
    BROAD_CONDITIONS,
    IMAGE_PERCENTS,
    MOST_WORDS,
    NEIGHBORS,
    ONE_SILENT_LABEL,
    ONE_SILENT_WEIGHT,
    PLAIN_SHARE,
    ROOT,
    SAME_THING_CONDITIONS,
    TEXTS_PER_TABLE,
    Sources,
    book_sentences,
    drawn,
    open_sets,
    own_tables,
    part_of,
    read_captions,
    read_csv,
    read_tabs,
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


def asked(condition: str, draw: random.Random, wordings: dict[str, list[str]]) -> str:
    """The condition itself in half of the draws, else another wording, by people where known."""
    if draw.random() < 0.5:
        return condition
    if condition in wordings and draw.random() < 0.7:
        return draw.choice(wordings[condition])
    bare = condition.removeprefix("the ")
    return draw.choice(_ASKED).format(condition, bare=bare)


def natural_groups(
    table: LabeledTable,
    plain: PlainVectors,
    draw: random.Random,
    wordings: dict[str, list[str]],
    *,
    number: int,
) -> Iterator[Group]:
    """Draw groups of a text, three of its nearest and two at random with a nearest of one."""
    texts = list(table.texts)
    draw.shuffle(texts)
    table = LabeledTable(table.name, tuple(texts[:TEXTS_PER_TABLE]), table.same)
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
        far = drawn(draw, pool, 2)
        beside = _nearest(vectors, far[0], pool, draw, 1)
        members = list(dict.fromkeys([anchor, *near, *far, *beside]))
        yield _labeled_group(table, criterion, members, asked(criterion, draw, wordings), vectors)


def _nearest(
    vectors: NDArray[np.float32], anchor: int, pool: Sequence[int], draw: random.Random, number: int
) -> list[int]:
    candidates = np.asarray(pool)
    cosines = vectors[candidates] @ vectors[anchor]
    most = min(NEIGHBORS + 1, len(candidates))
    nearest = candidates[np.argpartition(-cosines, most - 1)[:most]].tolist()
    nearest = [row for row in nearest if row != anchor]
    return drawn(draw, nearest, number)


def _labeled_group(
    table: LabeledTable,
    criterion: str,
    members: list[int],
    condition: str,
    vectors: NDArray[np.float32],
) -> Group:
    rows = []
    for first, second in combinations(range(len(members)), 2):
        label, weight = _label(table, criterion, members[first], members[second])
        if label is not None:
            rows.append((first, second, label, weight))
    return Group([(condition, table.texts[row].text) for row in members], rows, share=PLAIN_SHARE)


def _label(
    table: LabeledTable, criterion: str, first: int, second: int
) -> tuple[float | None, float]:
    silent = sum(criterion not in table.texts[row].values for row in (first, second))
    if silent == 1:
        return ONE_SILENT_LABEL, ONE_SILENT_WEIGHT
    alike = None if silent else table.alike(criterion, first, second)
    return (None, 0.0) if alike is None else (float(alike), 1.0)


def criteria(sources: Sources) -> Iterator[Group]:
    """Natural draws of the open sets that may be trained on, and the labeled pairs of products."""
    draw, wordings = random.Random(1), sources.wordings()
    for table in open_sets(sources, "train"):
        yield from natural_groups(table, sources.plain, draw, wordings, number=1500)
    path = sources.data / "criteria" / "walmart_amazon" / "train.jsonl.gz"
    pairs = [line for line in read_lines(path) if len(line["text1"].split()) <= MOST_WORDS]
    for line in drawn(draw, pairs, 3000):
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
    for table in own_tables():
        yield from natural_groups(table, sources.plain, draw, wordings, number=50)


def noised(text: str, draw: random.Random) -> str:
    """The text as somebody else would type it: case, marks, typos, a word less or more."""
    words = text.split()
    if len(words) > 5 and draw.random() < 0.5:
        del words[draw.randrange(len(words))]
    if len(words) > 3 and draw.random() < 0.4:
        place = draw.randrange(len(words))
        if len(words[place]) > 4 and words[place].isalpha():
            words[place] = misspelled(words[place], draw, doubling=False)
    if len(words) > 8 and draw.random() < 0.3:
        half = draw.randrange(3, len(words) - 3)
        words = words[half:] + words[:half]
    result = " ".join(words)
    if draw.random() < 0.4:
        result = re.sub(r"[.,;:!?]", "", result)
    if draw.random() < 0.3:
        prefix = ["hi, ", "new: ", "urgent - ", "please help: ", "fwd: ", "NEW! "]
        suffix = [" thanks", " (used)", " - please check", " asap", "!!", " :)"]
        result = (
            draw.choice(prefix) + result if draw.random() < 0.5 else result + draw.choice(suffix)
        )
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
    images: dict[str, list[str]] = {}
    for path in sorted((sources.data / "captions").glob("*.tsv.gz")):
        images |= read_captions(path)
    trained = [image for image in sorted(images) if part_of(image, IMAGE_PERCENTS) == "train"]
    chosen = drawn(draw, trained, 2500)
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
        singles = drawn(draw, pool, 350)
        copies = ((text, noised(text, draw)) for text in singles)
        paired += [(text, copy) for text, copy in copies if text != copy]
        anchors = sources.plain([first for first, _ in paired])
        for (first, second), anchor in zip(paired, anchors, strict=True):
            cosines = vectors @ anchor
            near = [pool[row] for row in np.argpartition(-cosines, 12)[:12].tolist()]
            near = [text for text in near if text not in (first, second)]
            near = [t for t in near if owner.get(t, -1) != owner.get(first, -2)]
            others = drawn(draw, near, 2) + draw.sample(pool, 1)
            condition = draw.choice(SAME_THING_CONDITIONS)
            inputs: list[Input] = [(condition, text) for text in (first, second, *others)]
            rows = [(0, 1, 1.0, 1.0)]
            rows += [(0, place, 0.15, 0.7) for place in range(2, len(inputs))]
            rows += [(1, place, 0.15, 0.5) for place in range(2, len(inputs))]
            yield Group(inputs, rows, share=0.5)


TITLE_CONDITIONS = (
    "the product",
    "the product",
    "the item",
    "which product it is",
    "the article sold",
)
GROUPS_PER_TITLE = 4
OTHER_TITLE_LABEL = 0.15


def titles(sources: Sources) -> Iterator[Group]:
    """Titles of one product in two shops among the titles nearest to them."""
    draw = random.Random(9)
    lines = read_lines(sources.data / "criteria" / "walmart_amazon" / "train.jsonl.gz")
    partners: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        if line["labels"].get("the product", 0) > 0.5:
            partners[line["text1"]].add(line["text2"])
            partners[line["text2"]].add(line["text1"])
    pool = sorted({line[side] for line in lines for side in ("text1", "text2")})
    vectors = sources.plain(pool)
    rows_of = {text: row for row, text in enumerate(pool)}
    for title in sorted(partners):
        cosines = vectors @ vectors[rows_of[title]]
        nearest = [pool[row] for row in np.argpartition(-cosines, 12)[:12].tolist()]
        others = [text for text in nearest if text != title and text not in partners[title]]
        for _ in range(GROUPS_PER_TITLE):
            match = draw.choice(sorted(partners[title]))
            members = [title, match, *drawn(draw, others, 4), draw.choice(pool)]
            condition = draw.choice(TITLE_CONDITIONS)
            rows = [(0, 1, 1.0, 1.0)]
            for place in range(2, len(members)):
                rows += [(0, place, OTHER_TITLE_LABEL, 0.7), (1, place, OTHER_TITLE_LABEL, 0.5)]
            yield Group([(condition, text) for text in members], rows, share=0.5)


def broad(sources: Sources) -> Iterator[Group]:
    """Any text under no condition or a broad one, with its plain vector as target."""
    draw = random.Random(5)
    texts: set[str] = set()
    for table in open_sets(sources, "train"):
        members = sorted({text.text for text in table.texts})
        texts |= set(drawn(draw, members, 500))
    for path in sorted((ROOT / "data" / "attributes").glob("*.jsonl")):
        texts |= {line["text"] for line in drawn(draw, read_lines(path), 12)}
    for name in ("mnli_dev_matched", "snli_dev"):
        lines = read_tabs(sources.data / "nli" / f"{name}.tsv.gz")
        texts |= {cells[draw.randrange(2)] for cells in drawn(draw, lines, 2500)}
    texts |= set(drawn(draw, book_sentences(sources.data), 3000))
    for row in read_csv(sources.data / "graded" / "patent_phrases" / "rows.csv.gz")[::12]:
        if part_of(row["sentence1"]) == "train":
            texts |= {row["sentence1"], row["sentence2"]}
    path = sources.data / "criteria" / "walmart_amazon" / "train.jsonl.gz"
    texts |= {line["text1"] for line in read_lines(path)[:1500]}
    for text in sorted(texts):
        if 1 <= len(text.split()) <= MOST_WORDS:
            condition = None if draw.random() < 0.35 else draw.choice(BROAD_CONDITIONS)
            yield Group([(condition, text)], plain=True)


QUERIES_PER_TABLE, QUERIES_PER_DOMAIN = 500, 16


def queries(sources: Sources) -> Iterator[Group]:
    """A few words that name a value, as in a search box, among texts that have it or not."""
    draw, wordings = random.Random(7), sources.wordings()
    tables = [(table, QUERIES_PER_TABLE) for table in open_sets(sources, "train")]
    tables += [(table, QUERIES_PER_DOMAIN) for table in own_tables()]
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
    "positive": (
        "good {}",
        "{} good",
        "great {}",
        "people who liked {}",
        "positive about {}",
        "happy with {}",
    ),
    "negative": (
        "bad {}",
        "{} bad",
        "poor {}",
        "complaints about {}",
        "negative about {}",
        "unhappy with {}",
    ),
}


def _query_group(
    table: LabeledTable, criterion: str, rows: list[int], draw: random.Random
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
        query = draw.choice(
            ("{v}", "{v}", "{v}", "{v} {c}", "{c} {v}", "{c}: {v}", "something with {v}")
        )
        query = query.format(v=value, c=bare)
    members = [anchor, *drawn(draw, rows, 5)]
    alike = [row for row in rows if table.texts[row].values[criterion] == values]
    members += drawn(draw, alike, 2)
    members = list(dict.fromkeys(members))
    if draw.random() < 0.5:
        silent = [
            row for row in range(len(table.texts)) if criterion not in table.texts[row].values
        ]
        members += drawn(draw, silent, 2)
    labeled = []
    for place, row in enumerate(members, 1):
        label, weight = _label(table, criterion, anchor, row) if row != anchor else (1.0, 1.0)
        if label is not None:
            labeled.append((0, place, label, weight))
    return [query, *(table.texts[row].text for row in members)], labeled
