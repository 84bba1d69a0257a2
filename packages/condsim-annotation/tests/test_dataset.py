from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from condsim.data.csts import load_csts
from condsim.data.tasks import pair_rows
from condsim.errors import InputError
from condsim.rows.records import write_rows
from condsim_annotation.cli import app
from condsim_annotation.pairs import Candidate, pair_id_of
from condsim_annotation.records import Condition, DatasetRow, Rating, row_id_of

COLUMNS = [field.name for field in fields(DatasetRow)]
CONDITIONS = {"high": "The place", "low": "The animal"}
SPLITS = ("train", "validation", "test")


def texts(number: int) -> tuple[str, str]:
    return f"A dog number {number} runs in the park.", f"A cat number {number} sits in the park."


def make_ratings(pairs: int) -> list[Rating]:
    """Ratings of pairs with two conditions by 3 annotators who mostly agree, and by a model."""
    generator = np.random.default_rng(0)
    raters = [("human", f"annotator {number}") for number in range(3)]
    ratings = []
    for number in range(pairs):
        pair_id = pair_id_of("demo", *texts(number))
        for intended, condition in CONDITIONS.items():
            lowest = 3 if intended == "high" else 1
            truth = int(generator.integers(lowest, lowest + 3))
            row = (row_id_of(pair_id, condition), pair_id, *texts(number), condition, intended)
            for origin, name in [*raters, ("model-a", "model-a")]:
                noise = generator.integers(-1, 2) * (generator.random() < 0.4)
                label = int(np.clip(truth + noise, 1, 5))
                label = -1 if generator.random() < 0.03 else label
                seconds = float(generator.gamma(4, 5))
                ratings.append(Rating(*row, name, label, seconds=seconds, origin=origin))
    return ratings


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ratings")
    write_rows(make_ratings(120), folder / "ratings.parquet", kind=Rating)
    conditions, candidates = [], []
    # The last pair was never rated.
    for number in range(121):
        pair_id = pair_id_of("demo", *texts(number))
        origin = "model-b" if number < 10 else "human"
        conditions.append(
            Condition(pair_id, *texts(number), CONDITIONS["high"], "high", "x", origin=origin)
        )
        candidates.append(
            Candidate(pair_id, "demo", f"i{number}", f"j{number}", *texts(number), 0.5)
        )
    write_rows(conditions, folder / "conditions.parquet", kind=Condition)
    write_rows(candidates, folder / "candidates.csv", kind=Candidate)
    return folder


def build(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def read(folder: Path, *names: str) -> list[dict[str, str]]:
    rows = []
    for name in names:
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows += csv.DictReader(stream)
    return rows


@pytest.fixture(scope="module")
def built(inputs, tmp_path_factory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("built") / "demo-set"
    output = build(
        "dataset", inputs / "ratings.parquet", "--output", folder,
        "--conditions", inputs / "conditions.parquet", "--candidates", inputs / "candidates.csv",
        "--source", "demo=made up, CC0", "--license", "cc0-1.0", "--name", "Demo",
    )  # fmt: skip
    return folder, output


def test_dataset_folder_has_every_row_once_or_its_reason(built):
    folder, output = built
    dropped = read(folder, "dropped")
    rows = read(folder, *SPLITS)
    keys = [(row["sentence1"], row["condition"]) for row in rows + dropped]
    assert len(keys) == len(set(keys)) == 241
    reasons = {row["reason"] for row in dropped}
    assert reasons >= {"not rated", "the other row of the pair was dropped"}
    assert list(rows[0]) == COLUMNS
    assert {row["split"] for row in read(folder, "test")} == {"test"}
    origins = defaultdict(set)
    for row in rows:
        origins[row["origin"]].add(row["condition"])
    assert origins.keys() == {"human", "model-b"}
    assert origins["model-b"] == {CONDITIONS["high"]}
    for text in ("left out:", "Fleiss' kappa 0.", "warning: The conditions alone give much"):
        assert text in output


def test_dataset_rows_of_a_pair_are_together_in_random_order(built):
    rows = read(built[0], "train")
    first, second = rows[::2], rows[1::2]
    assert [row["pair_id"] for row in first] == [row["pair_id"] for row in second]
    share = sum(row["condition"] == CONDITIONS["high"] for row in first) / len(first)
    assert 0.2 < share < 0.8
    assert pair_rows(load_csts(built[0] / "train.csv")).lone_rows == 0


def test_dataset_card_and_manifest_name_no_annotator(built):
    card = (built[0] / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["license"] == "cc0-1.0"
    splits = [file["split"] for file in front["configs"][0]["data_files"]]
    assert splits == list(SPLITS)
    for text in (
        "| demo | 119 | made up, CC0 |", "Fleiss' kappa of the labels", "| model-a |",
        "condition-only, test", "label-histogram.png",
        "**Warning.**", "words in a condition, mean",
    ):  # fmt: skip
        assert text in card
    manifest = json.loads((built[0] / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["files"]["train.csv"][:12] == load_csts(built[0] / "train.csv").revision
    assert "annotators" not in manifest["ratings"]
    assert "annotator 1" not in card
    assert (built[0] / "label-histogram.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_dataset_is_loaded_by_datasets(inputs, tmp_path, monkeypatch, file_format):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    build(
        "dataset", inputs / "ratings.parquet", "--output", tmp_path / "set", "--format", file_format
    )
    loaded = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))
    assert list(loaded) == list(SPLITS)
    assert loaded["train"].column_names == COLUMNS
    assert {column.dtype for column in loaded["test"].features.values()} == {"string", "float32"}
    assert loaded["train"].num_rows == len(load_csts(tmp_path / "set" / f"train.{file_format}"))


def test_dataset_is_reproducible_and_replaced_only_with_overwrite(inputs, tmp_path):
    write_rows(make_ratings(120)[::-1], tmp_path / "backwards.csv", kind=Rating)
    folder = tmp_path / "set"
    options = ("--output", folder, "--ratios", "2:1:1")

    def split_files():
        return [(folder / f"{name}.csv").read_bytes() for name in SPLITS]

    build("dataset", inputs / "ratings.parquet", *options)
    before = split_files()
    with pytest.raises(InputError, match="--overwrite to replace it"):
        build("dataset", tmp_path / "backwards.csv", *options)
    build("dataset", tmp_path / "backwards.csv", *options, "--overwrite")
    assert split_files() == before
    build("dataset", inputs / "ratings.parquet", *options, "--overwrite", "--format", "parquet")
    assert not (folder / "train.csv").exists()
    assert (folder / "train.parquet").exists()


def test_dataset_folder_with_other_files_is_not_touched(inputs, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError):
        build("dataset", inputs / "ratings.parquet", "--output", tmp_path, "--overwrite")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    for content in ('{"kind": "index"}', "3", '{"files": [1, 2]}', '{"files": 5}'):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(InputError, match="is not the manifest of a data set"):
            build("dataset", inputs / "ratings.parquet", "--output", tmp_path, "--overwrite")


def test_split_of_a_labeled_file_keeps_ids_and_lists_unlabeled_rows(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [
        f"A dog {number}.,A cat {number}.,{condition},{label},pair {number}"
        for number in range(40)
        for condition, label in (("the color", 4), ("the animal", -1 if number == 7 else 1))
    ]
    path.write_text("\n".join(["sentence1,sentence2,condition,label,pair_id", *rows]) + "\n")
    output = build("split", path, "--output", tmp_path / "set")
    assert "left out: no label 1" in output
    assert [row["pair_id"] for row in read(tmp_path / "set", "dropped")] == ["pair 7"]
    remaining = read(tmp_path / "set", *SPLITS)
    assert len(remaining) == 79
    assert {row["pair_id"] for row in remaining} == {f"pair {number}" for number in range(40)}
    assert "The labels were given." in (tmp_path / "set" / "README.md").read_text()
