"""Small made-up data sets in the forms that the default model learns from and is measured on."""

from __future__ import annotations

import csv
import gzip
import json
from itertools import product

from papers.model import (
    applicability,
    balanced,
    combined,
    draws,
    natural,
    rules,
    shipping,
    sources,
    split,
    written,
)
from papers.model.sources import HELD_OUT as HELD_OUT_FILE

from condsim.data.held_out import text_digest

WHO = ("Two men", "A woman", "Three children", "An old man", "A girl")
VERBS = ("ride brown horses", "walk a black dog", "play soccer", "eat a red apple")
WHERE = ("on a beach", "in a park", "near a lake", "in a street")
PARTS = list(product(WHO, VERBS, WHERE))
TEXTS = [" ".join(parts) for parts in PARTS]
HELD_OUT = TEXTS[2]
CRITERIA = ("the person", "the activity", "the place")
SPLITS = ("train", "dev", "test")


def write_table(path, table, *, tabs=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8", newline="") as stream:
        kind = {"delimiter": "\t"} if tabs else {}
        writer = csv.DictWriter(stream, list(table[0]), lineterminator="\n", **kind)
        writer.writeheader()
        writer.writerows(table)


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as stream:
        for line in lines:
            stream.write((line if isinstance(line, str) else json.dumps(line)) + "\n")


def labeled(suffix):
    """Texts with two or three attributes."""
    lines = []
    for number, (text, parts) in enumerate(zip(TEXTS, PARTS, strict=True)):
        attributes = dict(zip(CRITERIA[: 2 + number % 2], map(str.lower, parts), strict=False))
        lines.append({"text": f"{text}, {suffix}.", "attributes": attributes})
    return lines


def pairs(first, step, number, suffix=""):
    return [
        (TEXTS[row % 80] + suffix, TEXTS[(step * row + 3) % 80] + suffix)
        for row in range(first, first + number)
    ]


def rated(first, number, suffix="", **cells):
    """Rows of pairs under two conditions with labels from 1 to 5."""
    table = []
    for row, (one, two) in enumerate(pairs(first, 7, number, suffix)):
        for place, condition in enumerate(CRITERIA[:2]):
            label = 1 + (row + 2 * place) % 5
            texts = {"sentence1": one, "sentence2": two, "condition": condition, "label": label}
            table.append(texts | {"pair_id": row} | cells)
    return table


def write_data(data):
    """Write each data set that the sources read, as small as they take it."""
    csts = data / "csts-reannotated"
    write_table(csts / "train.csv", rated(0, 40))
    dev = rated(20, 30, " then")
    for row in dev[::7]:
        row["label"] = -1
    write_table(csts / "dev.csv", dev)
    write_lines(data / HELD_OUT_FILE, [text_digest(HELD_OUT).hex()])
    captions = [
        {"image_id": f"{row // 2}.jpg", "caption": f"{TEXTS[row % 80]}, shot {row}"}
        for row in range(240)
    ]
    write_table(data / "captions" / "flickr8k.tsv.gz", captions, tabs=True)
    write_inferences(data / "nli")
    write_lines(data / "corpus" / "openstax.txt.gz", [f"{text} and go home." for text in TEXTS])
    write_criteria(data / "criteria")
    write_graded(data / "graded")
    line = "main\tx\t2012\t1\t{}\t{}\t{}"
    sts = [line.format(row % 6, one, two) for row, (one, two) in enumerate(pairs(0, 3, 9))]
    write_lines(data / "sts-b" / "sts-train.csv", sts)
    sick = [f"{row}\t{a}\t{b}\t{1 + row % 5}" for row, (a, b) in enumerate(pairs(9, 3, 9))]
    write_lines(data / "sick-r" / "sick_train.tsv", ["id\ta\tb\tscore", *sick])


def write_inferences(folder):
    """Write NLI; of the counter-edits of dev, as in the release, half begin with rows of SNLI."""
    labels = ("entailment", "neutral", "contradiction")
    names = {"mnli_dev_matched": "m", "snli_dev": "s"}
    names |= {f"cad_original_{part}": part for part in SPLITS}
    names |= {f"cad_revised_combined_{part}": f"{part} again" for part in SPLITS}
    names["cad_original_dev"] = "s"
    for name, tag in names.items():
        hypothesis = f"{name.split('_')[-1]}." if name.startswith("cad") else f"{tag}."
        table = [
            {
                "premise": f"{one}, {tag}",
                "hypothesis": f"{two} {hypothesis}",
                "label": labels[(row + len(tag)) % 3],
            }
            for row, (one, two) in enumerate(product(TEXTS[:9], TEXTS[40:44]))
        ]
        write_table(folder / f"{name}.tsv.gz", table, tabs=True)


def write_criteria(folder):
    meta = {name: {"use": "train"} for name in ("a", "mams", "walmart_amazon", "wdc")}
    meta |= {name: {"use": "evaluation only"} for name in ("acos_laptop", "druglib")}
    meta["acos_laptop"]["eval_split"] = "train"
    write_lines(folder / "meta.json", [meta])
    for name, part in product(meta, SPLITS):
        lines = labeled(f"{name} {part}")
        if name in ("walmart_amazon", "wdc"):
            lines = [
                {
                    "text1": f"{one} {name} {part}",
                    "text2": f"{two} {name} {part}",
                    "labels": {"the product": row % 2, "the brand": 1 - row % 2},
                }
                for row, (one, two) in enumerate(pairs(0, 5, 40))
            ]
        if (name, part) != ("wdc", "train"):
            write_lines(folder / name / f"{part}.jsonl.gz", lines)
    write_table(folder / "dev_rows.csv", rated(30, 20, " now", set="a", use="train"))


def write_graded(folder):
    patents = [
        row | {"sentence2": f"{row['sentence2']} {number}", "label": 1 + number % 5}
        for number, row in enumerate(rated(0, 80, ", plan"))
    ]
    write_table(folder / "patent_phrases" / "rows.csv.gz", patents)
    columns = (
        "similarity",
        "relatedness",
        "motivational alignment",
        "perceived actor congruence",
    )
    activities = [
        {"text1": f"{one} a{row % 3}", "text2": f"{two} a{row % 3}", "split": SPLITS[row % 3]}
        | {column: 1 + (row + place) % 5 for place, column in enumerate(columns)}
        for row, (one, two) in enumerate(pairs(0, 3, 60))
    ]
    write_table(folder / "activity_phrases" / "pairs.csv.gz", activities)
    feelings = [
        {"text": f"{text} today", "split": SPLITS[row % 3]}
        | {letter: 1 + (row + place) % 5 for place, letter in enumerate("VAD")}
        for row, text in enumerate(TEXTS)
    ]
    write_table(folder / "emobank" / "sentences.csv.gz", feelings)
    names = ("anchor1", "anchor2", "alternative1", "alternative2")
    styles = [
        {"id": str(row), "correct": str(1 + row % 2)}
        | {name: f"{TEXTS[(row + 9 * place) % 80]} {row}" for place, name in enumerate(names)}
        for row in range(40)
    ]
    write_table(folder / "stel" / "quadruples.csv.gz", styles)
    stories = [
        {
            "item": item,
            "sentence1": f"{TEXTS[item]} once",
            "sentence2": f"{TEXTS[item + place + 1]} {item} {place}",
            "condition": condition,
            "label": label,
        }
        for item in range(40)
        for condition in ("how the events are connected", "the things it is about")
        for place, label in enumerate((5, 1))
    ]
    write_table(folder / "story_analogy" / "rows.csv.gz", stories)
    edits = [("paraphrase", "5", "yes"), ("scope", "1", "no"), ("affirmative", "1", "no")]
    answers = [
        {
            "sentence1": f"{TEXTS[number]}, not {number}",
            "sentence2": f"{TEXTS[number + place + 1]}, {edit} {number}",
            "condition": "whether it is so",
            "label": label,
            "passage": f"p{number}",
            "question": "Is it so?",
            "edit": edit,
            "answer1": "yes",
            "answer2": answer,
        }
        for number in range(40)
        for place, (edit, label, answer) in enumerate(edits)
    ]
    answers += [
        row | {"edit": "scope", "label": "5", "question": "And so?"} for row in answers[::3]
    ]
    write_table(folder / "condaqa_contrast" / "rows.csv.gz", answers)


def write_own(root):
    """Write what condsim publishes in its folder ``data``."""
    data = root / "data"
    for name in ("notes", "mails", "posts", "orders"):
        write_lines(data / "attributes" / f"{name}.jsonl", labeled(name))
    line = "notes ||| {}, he said. ||| {}, she said. ||| who = 1 ; what = 5"
    for part, first in zip(SPLITS, (0, 30, 60), strict=True):
        lines = [line.format(one, two) for one, two in pairs(first, 3, 20, f" {part}")]
        write_lines(data / "written" / f"{part}.txt", lines)
        write_lines(data / "everyday" / f"{part}.txt", lines)
    wordings = [{"condition": "the place", "wordings": ["where it is", "the spot"]}]
    write_lines(data / "wordings" / "train.jsonl", wordings)
    triplets = [f"place ||| the place ||| {a} ||| {b} ||| {a} now" for a, b in pairs(0, 3, 20)]
    write_lines(data / "details" / "triplets.txt", triplets)
    write_lines(
        data / "details" / "test.txt", [line.replace("|||", "||| Last:") for line in triplets]
    )
    grades = [f"0 ||| the place ||| {TEXTS[0]} ||| 5 {TEXTS[1]} ||| 0 {TEXTS[5]}"]
    write_lines(data / "details" / "grades.txt", grades)
    write_lines(data / "details" / "off-topic.txt", ["the weather", "the tax", "the goal", "jazz"])


def use_made_up(folder, monkeypatch):
    """Write all data and let the sources read them; returns the folder of the data sets."""
    write_data(folder / "data")
    write_own(folder / "own")
    readers = (applicability, balanced, draws, natural, shipping, sources, split, written)
    for module in readers:
        monkeypatch.setattr(module, "ROOT", folder / "own")
    monkeypatch.setattr(written, "DETAILS", folder / "own" / "data" / "details")
    topics = folder / "own" / "data" / "details" / "off-topic.txt"
    monkeypatch.setattr(applicability, "OFF_TOPIC", topics)
    monkeypatch.setattr(applicability, "MADE_UP_ROWS", 20)
    monkeypatch.setattr(natural, "FEWEST_TEXTS", 20)
    for name in ("GROUPS_PER_TABLE", "GROUPS_PER_DOMAIN"):
        monkeypatch.setattr(combined, name, 10)
    few = {name: (generate, 2) for name, (generate, _) in rules.RULES.items()}
    monkeypatch.setattr(rules, "RULES", few)
    return folder / "data"
