from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from condsim.annotation.splits import find_leakage
from condsim.data.csts import load_csts
from condsim.errors import InputError
from condsim.rows.records import plain_values
from condsim.types import Task

CSTS = Path(__file__).parents[3] / "shared/data/csts-reannotated"


def task(name: str, rows: list[tuple[str, str, str, float]]) -> Task:
    sentences1, sentences2, conditions, labels = zip(*rows, strict=True)
    return Task(name, "0", sentences1, sentences2, conditions, np.array(labels, np.float32))


def rows_of(first: int, count: int, *, told: bool) -> list[tuple[str, str, str, float]]:
    """Pairs of two rows in random order; where ``told``, conditions give the label away."""
    generator = np.random.default_rng(first)
    made = []
    for number in range(first, first + count):
        sentences = (f"A dog number {number} runs.", f"A cat number {number} sleeps.")
        conditions = ["the color", "the animal"]
        if not told and generator.random() < 0.5:
            conditions.reverse()
        both = [(*sentences, conditions[0], 5.0), (*sentences, conditions[1], 1.0)]
        made += both if generator.random() < 0.5 else both[::-1]
    return made


def test_find_leakage_conditions_that_tell_the_label_are_warned_of():
    report = find_leakage(
        {"train": task("train", rows_of(0, 60, told=True)),
         "test": task("test", rows_of(60, 40, told=True))},
        resamples=50,
    )  # fmt: skip
    condition_only, sentences_only = report.baselines
    assert (condition_only.baseline, condition_only.split) == ("condition-only", "test")
    assert condition_only.spearman.value > 99
    assert sentences_only.baseline == "sentences-only"
    assert any("conditions alone give much of the label away" in text for text in report.warnings)
    (shared,) = report.shared
    assert (shared.sentences, shared.pairs, shared.conditions) == (0, 0, 2)
    assert (shared.sentence_rows, shared.condition_rows) == (0, 1)
    json.dumps(plain_values(report), allow_nan=False)


def test_find_leakage_clean_splits_have_no_warnings():
    report = find_leakage(
        {"train": task("train", rows_of(0, 60, told=False)),
         "test": task("test", rows_of(60, 40, told=False))},
        resamples=50,
    )  # fmt: skip
    assert report.warnings == ()


def test_find_leakage_shared_texts_and_order_are_warned_of():
    train = rows_of(0, 40, told=False)
    crossing = [("a dog number 3 RUNS", f"Another {n}.", "the place", n % 5 + 1) for n in range(4)]
    ordered = sorted(rows_of(60, 40, told=False), key=lambda row: (row[0], -row[3]))
    report = find_leakage(
        {"train": task("train", train), "test": task("test", [*ordered, *crossing, train[0]])},
        resamples=50,
    )
    (shared,) = report.shared
    assert (shared.pairs, shared.triplets) == (1, 1)
    assert shared.sentences == 3
    assert shared.sentence_rows == pytest.approx(5 / 85)
    text = " ".join(report.warnings)
    assert "train and test share 1 sentence pairs." in text
    assert "share 3 sentences" in text
    assert "in test the higher row comes first in 100.0%" in text


def test_find_leakage_tiny_split_has_no_baselines():
    splits = {"train": rows_of(0, 20, told=True), "test": rows_of(30, 1, told=True)}
    report = find_leakage({name: task(name, rows) for name, rows in splits.items()}, resamples=5)
    assert report.baselines == ()


def test_find_leakage_of_one_split_is_refused():
    with pytest.raises(InputError, match=r"two splits or more\. Got 1"):
        find_leakage({"train": task("train", rows_of(0, 5, told=True))})


@pytest.mark.skipif(not CSTS.is_dir(), reason="needs the re-annotated C-STS of ../shared")
def test_find_leakage_of_csts_finds_what_is_known():
    report = find_leakage(
        {"train": load_csts(CSTS / "train.csv"), "dev": load_csts(CSTS / "dev.csv")}, resamples=20
    )
    assert report.baselines[0].spearman.value == pytest.approx(42.4, abs=0.1)
    assert report.first_is_higher["train"] == pytest.approx(0.82, abs=0.01)
    assert report.shared[0].sentences > 500
