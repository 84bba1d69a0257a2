"""Labeled pairs adapt a model; what cannot work is one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.training.conftest import write_rows

from condsim.data.written import iter_written
from condsim.errors import InputError
from condsim.model.applicability import head_of
from condsim.model.builders import build_bi_encoder
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import ModelSettings
from condsim.training.adapt_figures import Adaptation
from condsim.training.adapt_rows import (
    LabeledPair,
    Rehearsal,
    load_rehearsal,
    read_labeled,
    split_labeled,
)
from condsim.training.adaptation import AdaptSettings, adapt
from condsim.training.export import export_onnx

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
MODULE = sys.modules[adapt.__module__]
HEAD = "sentence1,sentence2,condition,label\n"


def written(path: Path, labels: list[object]) -> Path:
    rows = [
        f"Text {number}.,Other {number}.,condition {number % 7},{label}\n"
        for number, label in enumerate(labels)
    ]
    path.write_text(HEAD + "".join(rows))
    return path


@pytest.mark.parametrize(
    ("labels", "more", "message"),
    [
        ([1, 5] * 9, "", "at least 20 labeled pairs .*; got 18 with 2"),
        ([4] * 30, "", "two different labels; got 30 with 1"),
        ([1, 5] * 10 + ["same"], "", "row 21 .*got 'same'"),
        ([1, 5] * 10, "long,short,the price,5\n" * 10, "'the price' has 10 rows, all with the"),
    ],
)
def test_read_labeled_of_rows_that_teach_nothing_is_one_line(
    tmp_path, labels, more, message
) -> None:
    path = written(tmp_path / "rows.csv", labels)
    path.write_text(path.read_text() + more)
    with pytest.raises(InputError, match=message) as caught:
        read_labeled(path)
    assert "\n" not in str(caught.value)


def test_read_labeled_leaves_out_rows_without_a_label(tmp_path) -> None:
    rows = read_labeled(written(tmp_path / "rows.csv", [5, -1, 2, 3] * 8))
    assert [row.label for row in rows] == [5, 2, 3] * 8


def test_split_of_linked_texts_keeps_each_text_on_one_side() -> None:
    rows = [
        LabeledPair(f"a{block}", f"b{block}{number}", "x", 1.0 + 4 * (number % 2))
        for block in range(20)
        for number in range(4)
    ]
    train, dev = split_labeled(rows, share=0.2, seed=3)
    texts = [{text for row in part for text in row.pair} for part in (train, dev)]
    assert not texts[0] & texts[1]
    assert len(train) + len(dev) == 80
    assert 12 <= len(dev) <= 20
    assert split_labeled(rows, share=0.2, seed=3) == (train, dev)


def test_split_of_texts_that_are_all_linked_keeps_pairs_whole() -> None:
    rows = [
        LabeledPair("hub", f"b{number // 2}", condition, 1.0 + 4 * (number % 2))
        for number in range(60)
        for condition in ("x", "y")
    ]
    train, dev = split_labeled(rows, share=0.25, seed=0)
    assert not {row.pair for row in train} & {row.pair for row in dev}
    assert len(dev) >= 0.15 * len(rows)


def test_split_of_groups_keeps_each_group_on_one_side() -> None:
    rows = [
        LabeledPair(f"a{n}", f"b{n}", "x", 1.0 + 4 * (n % 2), ("s", f"g{n // 10}", "c"))
        for n in range(100)
    ]
    train, dev = split_labeled(rows, share=0.2, seed=0)
    assert not {row.group_cells[1] for row in train} & {row.group_cells[1] for row in dev}
    ungrouped = [replace(row, group_cells=("s", "", "c")) for row in rows]
    assert [len(part) for part in split_labeled(ungrouped, share=0.2, seed=0)] == [80, 20]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [LabeledPair(f"a{n}", f"b{n}", "x", 1.0 + n % 5, ("s", "g", "c")) for n in range(50)],
            "most are of one pair of texts or one group",
        ),
        (
            [LabeledPair(f"a{n}", f"b{n}", "x", 5.0 - 4 * (n == 0)) for n in range(31)],
            "cannot be split",
        ),
    ],
)
def test_split_that_cannot_be_is_an_error(rows, message) -> None:
    with pytest.raises(InputError, match=message):
        split_labeled(rows, share=0.2, seed=0)


def test_rehearsal_measures_texts_that_nothing_is_trained_or_measured_on() -> None:
    rehearsal = load_rehearsal()
    rehearsed = {text for text, _ in rehearsal.inputs}
    measured = {text for row in rehearsal.measured for text in row[:2]}
    assert not rehearsed & measured
    assert len(rehearsed) > 1_200
    assert len(rehearsal.measured) > 400
    assert sum(condition == "" for _, condition in rehearsal.inputs) == len(rehearsed)
    folder = Path(__file__).parents[2] / "data" / "written"
    for split in ("dev", "test"):
        for pair in iter_written(folder / f"{split}.txt"):
            assert not {pair.sentence1, pair.sentence2} & (rehearsed | measured)


@pytest.fixture(scope="module")
def exported(tmp_path_factory, tiny_backbone) -> Path:
    folder = tmp_path_factory.mktemp("adapt")
    build_bi_encoder(str(tiny_backbone), max_seq_length=60).save_pretrained(str(folder / "st"))
    ModelSettings(
        kind="bi-encoder", name="tiny", order="condition-first", max_seq_length=60
    ).save(folder / "st")  # fmt: skip
    export_onnx(folder / "st", folder / "onnx", facts={"base_model": "ours"})
    return folder / "onnx"


@pytest.fixture(scope="module")
def labeled(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "labeled.csv"
    write_rows(path, first=0, pairs=60)
    return path


@pytest.fixture(scope="module", autouse=True)
def little_rehearsal() -> Iterator[None]:
    """Rehearses a few texts, so that a test takes seconds."""
    whole = load_rehearsal()
    few = Rehearsal(whole.inputs[:300], whole.rehearsed[:60], whole.measured[:30])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "load_rehearsal", lambda: few)
        yield


FAST = AdaptSettings(epochs=2, learning_rate=1e-3, batch_size=16)


@pytest.fixture(scope="module", autouse=True)
def float32() -> Iterator[None]:
    """The number format is chosen by time, so that under load two calls may choose differently."""
    with pytest.MonkeyPatch.context() as patch:
        speeds = {"float32 sdpa": 1e3, "bfloat16 sdpa": 1e2}
        patch.setattr(MODULE, "training_speeds", lambda *_: speeds)
        yield


@pytest.fixture(scope="module")
def adapted(tmp_path_factory, exported, labeled):
    output = tmp_path_factory.mktemp("adapted") / "model"
    return adapt(labeled, output, model=exported, settings=FAST, force=True)


@pytest.mark.slow
def test_adapt_of_a_tiny_model_writes_a_folder_that_loads(adapted, exported) -> None:
    folder = adapted.output
    scorer = OnnxScorer(folder)
    assert scorer.name == "model"
    assert scorer.score("The man runs.", "A man sits.", "the animal") >= 0
    assert not list(folder.parent.glob("model.*"))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["kind"] == "adapted model"
    assert manifest["source"]["name"] == "tiny"
    assert list(manifest["files"]) == ["labeled.csv"]
    assert manifest["train_rows"] + manifest["dev_rows"] == 108  # 12 of 60 pairs have one row
    facts = scorer.settings.facts
    assert facts["base_model"] == "ours"
    assert str(facts["adapted_from"]).startswith("tiny ")
    assert "## Adaptation" in (folder / "README.md").read_text()
    assert not [value for value in facts.values() if str(folder.parent) in str(value)]
    assert adapted.report.against.name == "tiny"
    assert 0 <= adapted.moved <= adapted.moved_most <= 1


def test_adapt_never_writes_over_a_folder(adapted, labeled, exported) -> None:
    with pytest.raises(InputError, match="exists and is never overwritten"):
        adapt(labeled, adapted.output, model=exported, settings=FAST)


@pytest.mark.slow
def test_adapt_that_does_not_help_writes_nothing_until_forced(
    exported, labeled, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(Adaptation, "helped", False)
    result = adapt(labeled, tmp_path / "model", model=exported, settings=FAST)
    assert result.output is None
    assert not (tmp_path / "model").exists()
    with pytest.raises(InputError, match="settings changed"):
        adapt(labeled, tmp_path / "model", model=exported, settings=FAST.replaced(seed=1))
    forced = adapt(labeled, tmp_path / "model", model=exported, settings=FAST, force=True)
    assert forced.output == tmp_path / "model"
    assert forced.report.model.metrics == result.report.model.metrics
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_adapt_with_rows_to_measure_on_that_are_trained_on_is_an_error(
    exported, labeled, tmp_path
) -> None:
    with pytest.raises(InputError, match="are pairs of the labeled file"):
        adapt(labeled, tmp_path / "model", model=exported, dev=labeled)


@pytest.mark.slow
def test_adapt_of_a_folder_that_is_not_exported_works_too(
    exported, labeled, tmp_path, caplog
) -> None:
    caplog.set_level("INFO", logger="condsim")
    result = adapt(
        labeled, tmp_path / "model", model=exported.parent / "st", settings=FAST, force=True
    )
    assert result.output is not None
    assert head_of(result.output) is None
    vectors = OnnxScorer(result.output).encode(["A dog runs."], ["color"])
    assert np.isclose(np.linalg.norm(vectors), 1, atol=1e-3)
    (estimate,) = [text for text in caplog.messages if "minutes in all" in text]
    assert estimate.endswith("if it runs 2 of 2 epochs")


@pytest.mark.parametrize(("seconds", "warns"), [(10.9, True), (1.0, False)])
def test_adapt_says_when_few_steps_fit(tmp_path, monkeypatch, caplog, seconds, warns) -> None:
    monkeypatch.setattr(MODULE, "_seconds_per_step", lambda *_: (seconds, False))
    run = object.__new__(MODULE._AdaptationRun)
    run.settings = AdaptSettings(minutes=4.0)
    pairs = read_labeled(written(tmp_path / "rows.csv", [1, 5] * 20))
    steps, _ = run._plan(tmp_path, pairs, dev_rows=9)
    assert steps == (22 if warns else 100)
    few = [text for text in caplog.messages if text.startswith("only 22 steps fit in 4 minutes")]
    assert bool(few) is warns
