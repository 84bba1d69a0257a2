"""Labels by models, and answers of functions and of language models, as training text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from condsim.console import silent
from condsim.data.csts import CstsRow, load_csts
from condsim.data.load import load_task
from condsim.errors import InputError
from condsim.prompting.ask import Asker
from condsim.prompting.backend import Answer
from condsim.rows.records import TrainingRow
from condsim.rows.teach import (
    answer_file,
    function_answers,
    model_answers,
    read_answer,
    teach,
    teach_file,
    teach_pairs,
    with_answers,
)

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
    taught = list(teach(ROWS, [Fixed("a", 2), Fixed("b", 5)]))
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
    assert [row.label for row in teach(ROWS, [Fixed("a", score)], given=given)] == labels


def test_teach_takes_rows_block_by_block(monkeypatch):
    monkeypatch.setattr("condsim.rows.teach.ROWS_PER_BATCH", 2)
    teacher = Fixed("a", 3)
    assert len(list(teach(iter(ROWS), [teacher]))) == 3
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


MEN, BOY = "Two men talk to a girl.", "A boy feeds three dogs."
PEOPLE = CstsRow(MEN, BOY, "number of people", 2.0)
MOOD = CstsRow(MEN, BOY, "how it smells", 3.0)


def answered(*rows: CstsRow, **options: int) -> list[TrainingRow]:
    return list(with_answers(rows, function_answers, name="functions", **options))


def test_with_answers_adds_a_row_of_the_same_label_and_one_of_5():
    given, replaced, own = answered(PEOPLE)
    assert given == TrainingRow(*PEOPLE, origin="given")
    first = TrainingRow("three", BOY, "number of people", 2.0, "answers:functions")
    second = TrainingRow(MEN, "one", "number of people", 2.0, "answers:functions")
    assert replaced in (first, second)
    # The sentence that is left of the row above stands beside its own answer.
    assert {own.sentence1, own.sentence2} == ({BOY, "one"} if replaced == first else {MEN, "three"})
    assert (own.condition, own.label) == ("number of people", 5.0)


def test_with_answers_replaces_either_sentence():
    rows = answered(*[PEOPLE] * 40)
    replaced, own = ({(row.sentence1, row.sentence2) for row in rows[k::3]} for k in (1, 2))
    assert replaced == {("three", BOY), (MEN, "one")}
    # The place of an answer does not tell the label 5.
    assert own == {("three", MEN), (MEN, "three"), ("one", BOY), (BOY, "one")}


def test_with_answers_no_answer_leaves_the_row_alone_and_no_label_leaves_it_out():
    # A sentence that is its own answer has none.
    own = CstsRow("dog", "A cat sleeps.", "type of animal", 2.0)
    rows = answered(own, MOOD, PEOPLE._replace(label=None))
    assert rows == [TrainingRow(*own, origin="given"), TrainingRow(*MOOD, origin="given")]


def test_with_answers_blocks_of_any_size_give_the_same(monkeypatch):
    rows = [PEOPLE, MOOD, PEOPLE._replace(condition="The number of dogs."), PEOPLE]
    at_once = answered(*rows, seed=3)
    monkeypatch.setattr("condsim.rows.teach.ROWS_PER_BATCH", 3)
    assert answered(*rows, seed=3) == at_once


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" Two people.\nThe end", "Two people"),
        ('"red and white"', "red and white"),
        ("- a bus", "a bus"),
        ("none", "none"),
        ("Not said.", None),
        ("", None),
        ("...", None),
        ("Answer: two", "two"),
        ("-5 degrees", "-5 degrees"),
        ("<think>\ntwo or three\n</think>\nthree", "three"),
        ("<think>two or three", None),
        ("The sentence does not say.", None),
        ("N/A", None),
        ("nautical", "nautical"),
        ("the sentence tells that there are two men and a girl", None),
    ],
)
def test_read_answer(text, answer):
    assert read_answer(text) == answer


def asker_of(backend, tmp_path):
    return partial(model_answers, asker=Asker(backend, tmp_path / "answers.sqlite"), name="fake")


def test_model_answers_asks_each_question_once(tmp_path, fake_backend):
    backend = fake_backend(lambda prompt: Answer("two" if MEN in prompt else "not said"))
    rows = [PEOPLE, PEOPLE, CstsRow(MEN, MEN, "number of people", 5.0)]
    written = list(with_answers(rows, asker_of(backend, tmp_path), name="fake"))
    assert [row.origin for row in written] == ["given"] * 3 + ["answers:fake"] * 2
    assert len(backend.asked) == 2
    assert backend.asked[0].endswith(f"Sentence: {BOY}\nQuestion: number of people\nAnswer:")


def test_model_answers_names_the_sentence_that_is_too_long(tmp_path, fake_backend):
    backend = fake_backend(lambda prompt: Answer("two"))
    backend.longest_prompt = 5
    with pytest.raises(InputError, match=r"fake cannot take .*'Two men talk.*'number of people'"):
        list(with_answers([PEOPLE], asker_of(backend, tmp_path), name="fake"))
    assert not backend.asked


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = f"{MEN},{BOY},number of people,2\n{MEN},{BOY},mood,\n"
    Path("rows.csv").write_text(f"sentence1,sentence2,condition,label\n{rows}")
    return Path("rows.csv")


def test_answers_command_writes_training_rows_and_a_manifest(file, build):
    printed = build("answers", file, "--output", "out.csv")
    assert "1 labeled rows (1 unlabeled left out), 2 added with answers of functions" in printed
    assert load_csts("out.csv").labels.tolist() == [2.0, 2.0, 5.0]
    manifest = json.loads(Path("out.manifest.json").read_text())
    assert manifest["rows"] == {"given": 1, "answers:functions": 2, "unlabelled": 1}
    assert manifest["answerer"] == "functions"


def test_answer_file_without_labels_or_over_its_input_raises(file):
    with pytest.raises(InputError, match=r"rows\.csv is the input itself"):
        answer_file(file, file, function_answers, name="functions", progress=silent)
    file.write_text(file.read_text().replace("people,2", "people,-1"))
    with pytest.raises(InputError, match=r"answers are added to labeled rows, and none"):
        answer_file(file, Path("o.csv"), function_answers, name="functions", progress=silent)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "runs/bi"], "Only a language model answers in words"),
        (["--model", "m.yaml", "--functions", "f.py"], "both answer; give one"),
        (["--functions", "none.py"], "none.py is not a file"),
    ],
)
def test_build_answers_command_bad_options_raise(file, build, options, message):
    with pytest.raises(InputError, match=message):
        build("answers", file, "--output", "o.csv", *options)


def test_build_answers_command_asks_a_language_model(file, build, monkeypatch, fake_backend):
    tokens: list[int] = []

    def opened(settings):
        tokens.append(settings.max_new_tokens)
        return fake_backend(lambda prompt: Answer("two"))

    monkeypatch.setattr("condsim.prompting.scorer.open_backend", opened)
    Path("model.yaml").write_text("model: fake\nmax_new_tokens: 5\nanswers: answers.sqlite\n")
    printed = build("answers", file, "--model", "model.yaml", "--output", "out.csv")
    assert "2 added with answers of fake" in printed
    assert tokens == [20]
    assert load_csts("out.csv").labels.tolist() == [2.0, 2.0, 5.0]
