from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from condsim.cli.build import app
from condsim.data.csts import load_csts
from condsim.data.statistics import pair_rows
from condsim.errors import InputError
from condsim.rows.records import (
    Candidate,
    Condition,
    DatasetRow,
    Rating,
    pair_id_of,
    row_id_of,
    write_rows,
)

COLUMNS = [field.name for field in fields(DatasetRow)]
CONDITIONS = {"high": "The place", "low": "The animal"}


def texts(number: int) -> tuple[str, str]:
    return f"A dog number {number} runs in the park.", f"A cat number {number} sits in the park."


def make_ratings(pairs: int, *, annotators: int = 3, seed: int = 0) -> list[Rating]:
    """Ratings of pairs with two conditions by annotators who mostly agree, and by a model."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(pairs):
        sentence1, sentence2 = texts(number)
        pair_id = pair_id_of("demo", sentence1, sentence2)
        for intended, condition in CONDITIONS.items():
            truth = int(
                generator.integers(3, 6) if intended == "high" else generator.integers(1, 4)
            )
            row_id = row_id_of(pair_id, condition)
            votes = [("human", f"annotator {one}") for one in range(annotators)]
            for origin, name in [*votes, ("model-a", "model-a")]:
                label = int(
                    np.clip(truth + generator.integers(-1, 2) * (generator.random() < 0.4), 1, 5)
                )
                label = -1 if generator.random() < 0.03 else label
                made.append(
                    Rating(row_id, pair_id, sentence1, sentence2, condition, intended, name, label,
                           seconds=float(generator.gamma(4, 5)), origin=origin)
                )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ratings")
    write_rows(make_ratings(120), folder / "ratings.parquet", kind=Rating)
    conditions, candidates = [], []
    for number in range(121):  # the last was never rated
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
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def made(inputs, tmp_path_factory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("made") / "demo-set"
    output = build(
        "dataset", inputs / "ratings.parquet", "--output", folder,
        "--conditions", inputs / "conditions.parquet", "--candidates", inputs / "candidates.csv",
        "--source", "demo=made up, CC0", "--license", "cc0-1.0", "--name", "Demo",
    )  # fmt: skip
    return folder, output


def test_dataset_folder_has_every_row_once_or_its_reason(made):
    folder, output = made
    splits = {name: read(folder / f"{name}.csv") for name in ("train", "validation", "test")}
    dropped = read(folder / "dropped.csv")
    keys = [
        (row["sentence1"], row["condition"]) for rows in (*splits.values(), dropped) for row in rows
    ]
    assert len(keys) == len(set(keys)) == 241
    assert {row["reason"] for row in dropped} >= {
        "not rated",
        "the other row of the pair was dropped",
    }
    assert all(list(row) == COLUMNS for row in splits["train"])
    assert {row["split"] for row in splits["test"]} == {"test"}
    assert "left out:" in output
    assert "Fleiss' kappa 0." in output
    assert "warning: The conditions alone give much of the label away" in output


def test_dataset_rows_of_a_pair_stand_together_in_random_order(made):
    rows = read(made[0] / "train.csv")
    first = [rows[place]["condition"] for place in range(0, len(rows), 2)]
    assert all(
        rows[place]["pair_id"] == rows[place + 1]["pair_id"] for place in range(0, len(rows), 2)
    )
    assert 0.2 < first.count(CONDITIONS["high"]) / len(first) < 0.8
    task = load_csts(made[0] / "train.csv")
    assert pair_rows(task).lone_rows == 0


def test_dataset_provenance_names_the_models(made):
    rows = [
        row for name in ("train", "validation", "test") for row in read(made[0] / f"{name}.csv")
    ]
    origins = defaultdict(set)
    for row in rows:
        origins[row["origin"]].add(row["condition"])
    assert origins["model-b"] == {CONDITIONS["high"]}
    assert set(origins) == {"human", "model-b"}


def test_dataset_provenance_without_conditions_names_the_models_that_helped(tmp_path):
    ratings = [
        replace(
            one,
            prefilled_by="model-a" if one.annotator == "annotator 1" else "",
            condition_origin="llm" if one.condition == CONDITIONS["low"] else "human",
        )
        for one in make_ratings(60)
    ]
    write_rows(ratings, tmp_path / "ratings.csv", kind=Rating)
    build("dataset", tmp_path / "ratings.csv", "--output", tmp_path / "set")
    rows = read(tmp_path / "set" / "train.csv")
    origins = {name: {row["origin"] for row in rows if row["condition"] == name}
               for name in CONDITIONS.values()}  # fmt: skip
    assert "model-a" in origins[CONDITIONS["high"]]
    assert origins[CONDITIONS["low"]] <= {"llm, model-a", "llm"}
    card = (tmp_path / "set" / "README.md").read_text(encoding="utf-8")
    assert "| model-a, not shown |" in card


def test_dataset_manifest_tells_settings_counts_and_revisions(made):
    manifest = json.loads((made[0] / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["settings"]["splits"]["ratios"] == [60, 15, 25]
    assert manifest["counts"]["pairs_by_source"] == {"demo": 119}
    assert set(manifest["made_from"]) == {"ratings.parquet", "conditions.parquet", "candidates.csv"}
    assert manifest["files"]["train.csv"][:12] == load_csts(made[0] / "train.csv").revision
    assert manifest["ratings"]["models"][0]["rater"] == "model-a"
    assert "annotators" not in manifest["ratings"]
    assert "annotator 1" not in (made[0] / "README.md").read_text(encoding="utf-8")


def test_dataset_card_has_what_a_reader_needs(made):
    card = (made[0] / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["license"] == "cc0-1.0"
    assert [file["split"] for file in front["configs"][0]["data_files"]] == [
        "train", "validation", "test",
    ]  # fmt: skip
    for text in (
        "| demo | 119 | made up, CC0 |", "Fleiss' kappa of the labels", "| model-a |",
        "condition-only, test", "label-histogram.png",
        "**Warning.**", "words in a condition, mean",
    ):  # fmt: skip
        assert text in card
    assert (made[0] / "label-histogram.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_dataset_is_loaded_by_datasets(inputs, tmp_path, monkeypatch, file_format):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    build(
        "dataset", inputs / "ratings.parquet", "--output", tmp_path / "set", "--format", file_format
    )
    loaded = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))
    assert list(loaded) == ["train", "validation", "test"]
    assert loaded["train"].column_names == COLUMNS
    assert {one.dtype for one in loaded["test"].features.values()} == {"string", "float32"}
    assert loaded["train"].num_rows == len(load_csts(tmp_path / "set" / f"train.{file_format}"))


def test_dataset_is_trained_on_at_once(made, tiny_backbone, tmp_path):
    pytest.importorskip("torch")
    from condsim.training.recipe import Recipe
    from condsim.training.run import fit

    recipe = Recipe(
        name="tiny",
        train=str(made[0] / "train.csv"),
        dev=str(made[0] / "validation.csv"),
        backbone=str(tiny_backbone),
        objective={"mse": 1.0, "quad": 0.5},
        max_seq_length=32,
        epochs=1,
        train_rows=32,
        batch_size=8,
        precision="float32",
    )
    result = fit(recipe, tmp_path / "run")
    assert result.report.task_revision == load_csts(made[0] / "validation.csv").revision


def test_dataset_is_the_same_again_and_replaced_only_if_asked(inputs, tmp_path):
    ratings = make_ratings(120)
    write_rows(ratings[::-1], tmp_path / "backwards.csv", kind=Rating)
    arguments = ("--output", tmp_path / "set", "--ratios", "2:1:1")
    build("dataset", inputs / "ratings.parquet", *arguments)
    before = {path.name: path.read_bytes() for path in (tmp_path / "set").glob("*.csv")}
    with pytest.raises(InputError, match="--overwrite to replace it"):
        build("dataset", tmp_path / "backwards.csv", *arguments)
    build("dataset", tmp_path / "backwards.csv", *arguments, "--overwrite")
    after = {path.name: path.read_bytes() for path in (tmp_path / "set").glob("*.csv")}
    assert before.keys() == after.keys()
    assert all(before[name] == after[name] for name in ("train.csv", "validation.csv", "test.csv"))
    build("dataset", inputs / "ratings.parquet", *arguments, "--overwrite", "--format", "parquet")
    assert not (tmp_path / "set" / "train.csv").exists()
    assert (tmp_path / "set" / "train.parquet").exists()


def test_dataset_folder_with_other_things_is_left_alone(inputs, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no data set"):
        build("dataset", inputs / "ratings.parquet", "--output", tmp_path, "--overwrite")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "manifest.json").write_text('{"kind": "index"}')
    with pytest.raises(InputError, match="is not that of a data set"):
        build("dataset", inputs / "ratings.parquet", "--output", tmp_path)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("", "column 'label': must not be empty"),
        ("3.5", "must be a whole number"),
        ("7", "from 1 to 5"),
    ],
)
def test_dataset_bad_rating_is_one_clear_line(tmp_path, label, message):
    path = tmp_path / "ratings.csv"
    path.write_text(
        "row_id,pair_id,sentence1,sentence2,condition,intended,annotator,label\n"
        f"r,p,One.,Two.,The color,high,a,{label}\n"
    )
    with pytest.raises(InputError, match=f"row 1.*{message}"):
        build("dataset", path, "--output", tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_dataset_ratios_that_are_none_are_refused(inputs, tmp_path):
    with pytest.raises(InputError, match="--ratios must be three numbers such as 60:15:25"):
        build(
            "dataset", inputs / "ratings.parquet", "--output", tmp_path / "a", "--ratios", "60:40"
        )


def test_split_of_a_labelled_file_keeps_ids_and_lists_unlabelled_rows(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [
        f"A dog {number}.,A cat {number}.,{condition},{label},pair {number}"
        for number in range(40)
        for condition, label in (("the color", 4), ("the animal", -1 if number == 7 else 1))
    ]
    path.write_text("\n".join(["sentence1,sentence2,condition,label,pair_id", *rows]) + "\n")
    output = build("split", path, "--output", tmp_path / "set")
    assert "left out: no label 1" in output
    assert [row["pair_id"] for row in read(tmp_path / "set" / "dropped.csv")] == ["pair 7"]
    kept = [row for name in ("train", "validation", "test")
            for row in read(tmp_path / "set" / f"{name}.csv")]  # fmt: skip
    assert len(kept) == 79
    assert {row["pair_id"] for row in kept} == {f"pair {number}" for number in range(40)}
    assert "The labels were given." in (tmp_path / "set" / "README.md").read_text()


def test_agreement_command_prints_tables_and_writes_json(inputs, tmp_path):
    output = build("agreement", inputs / "ratings.parquet", "--json", tmp_path / "a.json")
    for text in ("Agreement between people", "Annotators", "Models and people", "model-a"):
        assert text in output
    report = json.loads((tmp_path / "a.json").read_text())
    assert len(report["annotators"]) == 3


def test_leakage_command_prints_tables_and_warnings(made, tmp_path):
    names = [made[0] / f"{name}.csv" for name in ("train", "validation", "test")]
    output = build("leakage", *names, "--resamples", 20, "--json", tmp_path / "leakage.json")
    assert "Texts in two splits" in output
    assert "warning: The conditions alone" in output
    assert len(json.loads((tmp_path / "leakage.json").read_text())["shared"]) == 3
    with pytest.raises(InputError, match="different names"):
        build("leakage", names[0], names[0])
