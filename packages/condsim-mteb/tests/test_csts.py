from __future__ import annotations

import ast
import csv
import inspect
import json
import logging
from pathlib import Path

import datasets
import mteb
import pytest
from mteb.data_cleaning import remove_duplicates

from condsim_mteb import CSTS, MtebEncoder, local_task
from condsim_mteb.csts import AbsTaskConditionalSTS


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.ERROR, logger="mteb")


def test_csts_metadata_is_filled_as_mteb_wants_it():
    assert CSTS.metadata.is_filled()
    assert CSTS.metadata.intext_citation() == "\\cite{deshpande2023csts}"
    assert (CSTS.min_score, CSTS.max_score) == (1, 5)


def test_csts_tasks_use_nothing_of_condsim():
    for task in (CSTS, AbsTaskConditionalSTS):
        tree = ast.parse(Path(inspect.getfile(task)).read_text("utf-8"))
        names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert names
        assert not any(name.startswith("condsim") for name in names)


def test_csts_load_data_reads_released_files_and_leaves_unlabeled_rows_out(
    tmp_path, monkeypatch, letters
):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "data"
    folder.mkdir()
    with (folder / "csts_validation.csv").open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["sentence1", "sentence2", "condition", "label"])
        for label, word in ((-1, "dog"), (1, "bird"), (5, "cat"), (3, "horse")):
            rows.writerow([f"A {word} runs.", "A cat, or two, sleep.", "the animal", label])
    task = CSTS()
    task.metadata = task.metadata.model_copy(
        update={"dataset": {"path": str(folder), "revision": "main"}}
    )
    task.load_data()
    assert task.dataset["validation"]["score"][:] == [1, 5, 3]
    columns = task.dataset["validation"].column_names
    assert columns == ["sentence1", "sentence2", "condition", "score"]
    result = mteb.evaluate(MtebEncoder(letters()), task, cache=None, show_progress_bar=False)
    assert list(result.task_results[0].scores) == ["validation"]


def test_csts_duplicates_are_rows_with_the_same_condition(conditional):
    task = local_task("CSTS", conditional)
    rows = len(conditional.labeled())
    assert len(remove_duplicates(task).dataset["validation"]) == rows
    twice = datasets.concatenate_datasets([task.dataset["validation"]] * 2)
    task.dataset["validation"] = twice
    assert len(remove_duplicates(task).dataset["validation"]) == rows


def test_csts_statistics_count_rows_and_labels(conditional):
    task = local_task("CSTS", conditional)
    statistics = task._calculate_descriptive_statistics_from_split("validation")
    assert statistics["num_samples"] == 7
    assert statistics["label_statistics"]["max_score"] == 5


def test_csts_predictions_are_written_for_each_row(conditional, letters, tmp_path):
    mteb.evaluate(
        MtebEncoder(letters()),
        local_task("CSTS", conditional),
        cache=None,
        prediction_folder=tmp_path,
        show_progress_bar=False,
    )
    content = json.loads((tmp_path / "CSTS_predictions.json").read_text("utf-8"))
    assert len(content["default"]["validation"]["cosine_scores"]) == 7


def test_conditional_task_refuses_a_model_without_embeddings(conditional):
    class Other:
        mteb_model_meta = None

    task = local_task("CSTS", conditional)
    assert isinstance(task, AbsTaskConditionalSTS)
    with pytest.raises(TypeError, match="EncoderProtocol"):
        task.evaluate(Other(), "validation", encode_kwargs={})
