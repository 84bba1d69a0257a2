"""Data of our own, and finished runs made without training."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from papers.data.sts import STS_COUNTS
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from condsim.data.csts import load_csts
from condsim.evaluation.evaluate import evaluate
from condsim.training.recipe import save_recipe
from papers import Options

PEOPLE = ("man", "woman", "girl", "boy")
ACTIONS = ("throws a red ball", "sits on a table", "runs in the street")


def write_csts(path, *, first, pairs):
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["sentence1", "sentence2", "condition", "label"])
        for number in range(first, first + pairs):
            one, two = PEOPLE[number % 4], PEOPLE[number // 2 % 4]
            pair = [f"The {one} {ACTIONS[number % 3]} {number}.", f"A {two} {ACTIONS[1]} {number}."]
            rows.writerow([*pair, "the person", 5 if one == two else 2])
            rows.writerow([*pair, "the sport", 4 if number % 3 == 1 else 1])


def write_stsb(path, *, rows):
    lines = [
        f"main\tours\t2012\t{number:04}\t{number % 6}.0\tA man runs {number}.\tA dog runs {number}."
        for number in range(rows)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def options(tmp_path):
    csts, stsb = (tmp_path / "data" / name for name in ("csts-reannotated", "sts-b"))
    csts.mkdir(parents=True)
    stsb.mkdir()
    write_csts(csts / "train.csv", first=0, pairs=16)
    write_csts(csts / "dev.csv", first=100, pairs=10)
    write_stsb(stsb / "sts-train.csv", rows=24)
    write_stsb(stsb / "sts-dev.csv", rows=16)
    return Options(data=tmp_path / "data", runs=tmp_path / "runs")


class Shifted:
    """A scorer of fixed scores, so that reports are real."""

    name = "shifted"

    def __init__(self, seed):
        self._seed = seed

    def score(self, sentences1, sentences2, conditions):
        return np.random.default_rng(self._seed).random(len(sentences1), dtype=np.float32)


def finish(run, *, spearman):
    """Writes what a finished run leaves behind, with the Spearman that is wanted."""
    run.folder.mkdir(parents=True, exist_ok=True)
    report = evaluate(Shifted(run.recipe.seed), load_csts(run.data.dev), resamples=5)
    path = run.folder / "report.json"
    report.to_json(path)
    content = json.loads(path.read_text())
    content["model"]["metrics"]["spearman"] = {
        "value": spearman,
        "low": spearman - 2,
        "high": spearman + 2,
    }
    path.write_text(json.dumps(content))
    if run.trained:
        save_recipe(run.recipe, run.folder / "recipe.yaml")
        record = {
            "recipe": run.recipe.model_dump(),
            "train": {"name": "train", "revision": run.data.train_revision, "rows": 32},
            "dev_spearman_by_epoch": [spearman],
            "seconds": 1.0,
        }
        (run.folder / "training.json").write_text(json.dumps(record))


def whole_word_tokenizer(words):
    """Tokenizer of whole words in lower case, with the special tokens of MPNet."""
    tokens = ("<s>", "<pad>", "</s>", "[UNK]", *words)
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


@pytest.fixture
def finished():
    """The function that leaves a finished run behind."""
    return finish


WORDS = ("dog", "cat", "bird", "child", "man", "girl")


def pairs():
    """Six pairs with scores from 0 to 5."""
    return [
        (f"A {word} plays on the street.", f"A {WORDS[row // 2]} plays {row * 'well '}.", row)
        for row, word in enumerate(WORDS)
    ]


class DataSets:
    """Writes data sets below a folder."""

    def __init__(self, root):
        self.root = root

    def folder(self, name):
        made = self.root / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    def sts(self, year, name="sts", *, semeval=False):
        folder = self.folder(name)
        for subset in STS_COUNTS[year]:
            if semeval:
                texts = "".join(f"{one}\t{two}\n" for one, two, _ in pairs())
                (folder / f"STS.input.{subset}.txt").write_text(texts)
                gold = "".join(f"{score}\n" for *_, score in pairs())
                (folder / f"STS.gs.{subset}.txt").write_text(gold)
            else:
                rows = "".join(f"{score}\t{one}\t{two}\n" for one, two, score in pairs())
                path = folder / f"sts{year % 100}.{subset}.test.tsv"
                path.write_text("score\tsentence1\tsentence2\n" + rows)
        return folder

    def stsb(self, split="test"):
        path = self.folder("sts-b") / f"sts-{split}.csv"
        path.write_text("".join(f"g\tf\t2012\t1\t{s}\t{a}\t{b}\n" for a, b, s in pairs()))
        return path

    def sick(self, name="sick/SICK_test_annotated.txt"):
        path = self.folder(Path(name).parent.name) / Path(name).name
        rows = "".join(f"{a}\t{b}\t{1 + s * 0.8:.1f}\n" for a, b, s in pairs())
        path.write_text("sentence_A\tsentence_B\trelatedness_score\n" + rows)
        return path

    def csts(self, *, train=True):
        folder = self.folder("my-csts")
        rows = "".join(
            f"{a},{b},the street,{5 - s % 2}\n{a},{b},how well,{1 + s % 3}\n" for a, b, s in pairs()
        )
        for name in ("dev.csv", "train.csv") if train else ("dev.csv",):
            (folder / name).write_text("sentence1,sentence2,condition,label\n" + rows)
        return folder

    def afs(self):
        folder = self.folder("afs")
        rows = "".join(f"{s},{a},{b}\n" for a, b, s in pairs())
        for topic in ("DP", "GC", "GM"):
            path = folder / f"ArgPairs_{topic}.csv"
            path.write_text("regression_label,sentence_1,sentence_2\n" + rows)
        return folder

    def triplets(self):
        path = self.folder("wikipedia-sections") / "test.csv"
        rows = "".join(f"The {w} runs.,The {w} runs far.,A tree stands.\n" for w in WORDS)
        path.write_text("Sentence1,Sentence2,Sentence3\n" + rows)
        return path

    def everything(self):
        for year in STS_COUNTS:
            self.sts(year)
        self.stsb()
        self.sick()
        self.csts()
        return self.root


@pytest.fixture
def data_sets(tmp_path):
    return DataSets(tmp_path / "data")
