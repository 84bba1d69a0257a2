"""Data of our own, and finished runs made without training."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from papers.trained import TrainedRun

from condsim.data.csts import load_csts
from condsim.evaluation.evaluate import evaluate
from condsim.training.recipe import save_recipe
from papers import Options

PEOPLE = ("man", "woman", "girl", "boy")
ACTIONS = ("throws a red ball", "sits on a table", "runs in the street")


def write_csts(path: Path, *, first: int, pairs: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["sentence1", "sentence2", "condition", "label"])
        for number in range(first, first + pairs):
            one, two = PEOPLE[number % 4], PEOPLE[number // 2 % 4]
            pair = [f"The {one} {ACTIONS[number % 3]} {number}.", f"A {two} {ACTIONS[1]} {number}."]
            rows.writerow([*pair, "the person", 5 if one == two else 2])
            rows.writerow([*pair, "the sport", 4 if number % 3 == 1 else 1])


def write_stsb(path: Path, *, rows: int) -> None:
    lines = [
        f"main\tours\t2012\t{number:04}\t{number % 6}.0\tA man runs {number}.\tA dog runs {number}."
        for number in range(rows)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def options(tmp_path) -> Options:
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


def finish(run: TrainedRun, *, spearman: float) -> None:
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


@pytest.fixture
def finished():
    """The function that leaves a finished run behind."""
    return finish
