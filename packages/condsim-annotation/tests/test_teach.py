"""Labels by models, as training text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from condsim.console import silent
from condsim.data.csts import CstsRow, load_csts
from condsim.data.load import load_task
from condsim.errors import InputError
from condsim_annotation.tables import TrainingRow
from condsim_annotation.teach import taught_rows, teach_file, teach_pairs

ROWS = [
    CstsRow("A dog runs.", "A cat runs.", "the animal", 1.0),
    CstsRow("A dog runs.", "A cat runs.", "the action", None),
    CstsRow("Two men talk.", "A man talks.", "number of people", 2.0),
]


class Fixed:
    """A teacher that gives all rows the same score."""

    def __init__(self, name: str, score: float) -> None:
        self.name, self._score = name, score
        self.blocks: list[int] = []

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: str,
    ) -> np.ndarray:
        assert scale == ("raw" if conditions is None else "likert")
        self.blocks.append(len(sentences1))
        return np.full(len(sentences1), self._score, dtype=np.float32)


def test_teach_label_is_the_mean_of_the_teachers():
    taught = list(taught_rows(ROWS, [Fixed("a", 2), Fixed("b", 5)]))
    assert [row.label for row in taught] == [3.5, 3.5, 3.5]
    assert taught[0] == TrainingRow("A dog runs.", "A cat runs.", "the animal", 3.5, "model:a+b")


@pytest.mark.parametrize(
    ("score", "given", "labels"),
    [
        (4, 0.25, [0.75 * 4 + 0.25 * 1, 4.0, 0.75 * 4 + 0.25 * 2]),
        # Scores off the scale are put on its ends.
        (7, 0, [5, 5, 5]),
        (-1, 0, [1, 1, 1]),
    ],
)
def test_teach_given_labels_and_scores_worked_by_hand(score, given, labels):
    assert [row.label for row in taught_rows(ROWS, [Fixed("a", score)], given=given)] == labels


def test_teach_takes_rows_block_by_block(monkeypatch):
    monkeypatch.setattr("condsim_annotation.teach.ROWS_PER_BATCH", 2)
    teacher = Fixed("a", 3)
    assert len(list(taught_rows(iter(ROWS), [teacher]))) == 3
    assert teacher.blocks == [2, 1]


def rows_file(tmp_path: Path, text: str = "") -> Path:
    path = tmp_path / "rows.csv"
    lines = [",".join(f'"{cell or ""}"' for cell in row) for row in ROWS]
    path.write_text("sentence1,sentence2,condition,label\n" + "\n".join(lines) + "\n" + text)
    return path


def test_teach_file_is_training_data_with_a_manifest(tmp_path):
    file, output, teacher = rows_file(tmp_path), tmp_path / "taught.csv", Fixed("a", 4)
    teach_file(file, output, [teacher], given=0, progress=silent)
    assert load_csts(output, require_labels=True).labels.tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(InputError, match="is the input itself"):
        teach_file(file, file, [teacher], given=0, progress=silent)
    manifest = json.loads((tmp_path / "taught.manifest.json").read_text())
    assert (manifest["teachers"], manifest["rows"]) == (["a"], 3)


def test_teach_file_fault_in_the_last_row_is_found_before_anything_is_scored(tmp_path):
    file, teacher, output = rows_file(tmp_path, "A.,B.,c,9\n"), Fixed("a", 4), tmp_path / "t.csv"
    with pytest.raises(InputError, match=r"row 4 \(line 5\), column 'label'"):
        teach_file(file, output, [teacher], given=0, progress=silent)
    assert not teacher.blocks
    assert not output.exists()


def test_teach_file_pairs_without_conditions_become_scored_pairs(tmp_path):
    file, output = tmp_path / "pairs.csv", tmp_path / "plain.csv"
    file.write_text("sentence1,sentence2\nA dog runs.,A cat runs.\nTwo men talk.,A man.\n")
    teach_file(file, output, [Fixed("a", 0.5), Fixed("b", -0.2)], given=0, progress=silent)
    task = load_task(output)
    assert task.conditions is None
    assert task.gold.tolist() == pytest.approx([0.15, 0.15])
    with pytest.raises(InputError, match="no column 'condition', so no label can be --given"):
        teach_file(file, output, [Fixed("a", 0.5)], given=0.3, progress=silent)
    with pytest.raises(InputError, match=r"prompt gives scores up to 4, .* need cosines"):
        list(teach_pairs([("a", "b")], [Fixed("prompt", 4)]))
