from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentencex")

from papers.catalogue import parse
from papers.contexts import plan_contexts

from condsim.data.load import load_task
from condsim.loading import load_scorer
from papers import ContextsOptions, Options, load_experiment, reproduce

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

PROJECT = Path(__file__).resolve().parents[2]
SECTIONS = {
    "vocabulary": {"size": 400},
    "coherence": {"embedding": 8, "hidden": 8, "head_size": 8, "max_steps": 3, "evaluations": 1},
    "generators": {
        "models": "one",
        "max_tokens": 16,
        "batch_tokens": 512,
        "max_steps": 2,
        "evaluations": 1,
        "held_out_examples": 4,
    },
    "selection": {"size": 3, "chunks": 5, "candidates": 1},
    "scoring": {"references": 2},
    "harvest": {"pairs": 400, "shard_pairs": 100},
    "surrogate": {
        "width": 16,
        "layers": 1,
        "train.epochs": 1,
        "train.max_seq_length": 16,
        "train.precision": "float32",  # or two runs may measure and choose differently
    },
}
QUICK = tuple(
    f"{section}.{key}={value}" for section, keys in SECTIONS.items() for key, value in keys.items()
)
WORDS = dict.fromkeys(("title", "source", "claim", "measured_on"), "x")


def experiment_of(kind="contexts", **rows):
    entries = {
        key: {"cells": {"row": key}, "contexts": {"scorer": how.pop("scorer", "origin")}, **how}
        for key, how in rows.items()
    }
    for entry in entries.values():
        if "weights" in entry:
            entry["contexts"]["weights"] = entry.pop("weights")
    return parse({**WORDS, "kind": kind, "rows": entries}, name="small")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of data with a test file of 12 pairs, some in words of the corpus."""
    folder = tmp_path_factory.mktemp("data") / "sts-b"
    folder.mkdir()
    words = ("bread", "oven", "boat", "winter", "garden", "bell")
    lines = [
        f"main\tours\t2012\t{row:04}\t{row % 6}.0\tThe {words[row % 6]} is old.\tA "
        f"{words[row * row % 5]} was there, {row} of them."
        for row in range(12)
    ]
    (folder / "sts-test.csv").write_text("\n".join(lines) + "\n")
    return folder.parent


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Parts that the tests share, as experiments do."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def options(data, runs, monkeypatch):
    monkeypatch.chdir(PROJECT)  # where the inputs of the recipe are named from
    recipe = ContextsOptions(recipe=PROJECT / "recipes" / "contexts" / "tiny.yaml")
    return Options(data=data, runs=runs, overrides=QUICK, contexts=recipe)


@pytest.fixture
def run(options, tmp_path):
    def go(experiment, *, report_only=False, **changes):
        chosen = dataclasses.replace(options, **changes)
        return reproduce(experiment, chosen, tmp_path / "out", report_only=report_only)

    return go


def measured(experiment, options):
    lines = plan_contexts(experiment, options)
    return {line.row.key: line.measurement for line in lines if line.measurement}


def table(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_reproduce_contexts_scores_are_those_of_the_origin_opened_by_itself(run, options, data):
    experiment = experiment_of(
        raw={"set": {"scoring.center": "none"}},
        centered={"set": {"scoring.center": "context"}},
        unused={"weights": {"left": 0, "right": 0}, "set": {"scoring.center": "context"}},
    )
    written = run(experiment)
    assert (written.finished, written.planned) == (3, 3)
    found = measured(experiment, options)
    task = load_task(data / "sts-b" / "sts-test.csv")
    folder = found["raw"].part_folder
    assert {one.part_folder for one in found.values()} == {folder}
    assert [path.name for path in folder.glob("terms-*") if path.is_dir()] == [
        found["centered"].terms("context").name
    ]  # computed once, for all three
    alone = load_scorer(folder).score(task.sentences1, task.sentences2, scale="raw")
    kept = found["raw" if "center: none" in (folder / "contexts.yaml").read_text() else "centered"]
    np.testing.assert_allclose(kept.scores(), alone, atol=2e-4)
    assert 2 <= float(table(written.table)[0]["contexts"]) <= 6
    assert not np.allclose(found["raw"].scores(), found["centered"].scores())
    assert not np.allclose(found["raw"].scores(), found["unused"].scores())


@pytest.mark.slow
def test_reproduce_contexts_surrogates_share_a_harvest(run, options, tmp_path, runs):
    rows = {
        "origin": {},
        "few": {"scorer": "surrogate", "set": {"surrogate.train.train_rows": 50}},
        "all": {"scorer": "surrogate"},
    }
    experiment = experiment_of(kind="cases", **rows)
    written = run(experiment)
    assert (written.finished, written.planned) == (3, 3)
    assert len([path for path in runs.glob("tiny-harvest-*") if path.is_dir()]) == 1
    records = {row["row"]: row for row in table(written.table)}
    assert records["few"]["training_pairs"] == "50"
    assert int(records["all"]["training_pairs"]) > 350
    assert 2 <= float(records["origin"]["contexts"]) <= 6
    assert records["origin"]["pairs"] == "12"
    assert int(records["origin"]["corpus_tokens"]) > 9000
    assert records["origin"]["test set"] == "STS-B"
    page = written.page.read_text()
    assert "## Cases of STS-B" in page
    assert "| The bread is old. |" in page
    assert str(tmp_path) not in page
    assert page.count("| origin |") == 1
    # Once more: nothing is computed, nor without a part that is gone.
    times = {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.is_file()}
    assert run(experiment).finished == 3
    assert times == {path: path.stat().st_mtime_ns for path in times}


def test_reproduce_contexts_page_has_the_paper_beside_ours(run, tmp_path):
    experiment = load_experiment("ssbc-table6")
    kept = ("paper-10m", "origin-all", "overlap", "tfidf-all")
    rows = {key: experiment.rows[key] for key in kept}
    experiment = experiment.replaced(rows=rows, comparisons=())
    before = run(experiment, report_only=True, runs=tmp_path).page.read_text()
    assert "| Origin | all | - | not run |" in before
    written = run(experiment)
    page = written.page.read_text()
    assert "| Origin | 10M | 49.41 | - |" in page
    assert "| word overlap |  | - |" in page
    tokens = {row["model"]: row["tokens"] for row in table(written.table)}
    assert tokens["TF-IDF cosine"].endswith("K")
    assert tokens["word overlap"] == ""
    assert written.plot.read_bytes().startswith(b"\x89PNG")
    assert "Changed in every recipe" in page
    assert "bootstrap interval" in page
