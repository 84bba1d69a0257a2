from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.construction import blocks
from condsim.construction.answering import (
    AnswerRow,
    FunctionAnswerer,
    ModelAnswerer,
    answer_file,
    read_answer,
    with_answers,
)
from condsim.errors import InputError
from condsim.prompting.asking import Asker
from condsim.prompting.backends.base import Answer
from condsim.tasks import CstsRow, load_csts

MEN, BOY = "Two men talk to a girl.", "A boy feeds three dogs."
PEOPLE = CstsRow(MEN, BOY, "number of people", 2.0)
MOOD = CstsRow(MEN, BOY, "how it smells", 3.0)


def silent(stage: str, done: int, total: int) -> None: ...


def test_with_answers_adds_a_row_of_the_same_label_and_one_of_5():
    given, replaced, own = with_answers([PEOPLE], FunctionAnswerer(), seed=0)
    assert given == AnswerRow(*PEOPLE, origin="given")
    first = AnswerRow("three", BOY, "number of people", 2.0, "answers:functions")
    second = AnswerRow(MEN, "one", "number of people", 2.0, "answers:functions")
    assert replaced in (first, second)
    # the sentence that is left of the row above stands beside its own answer
    left = (BOY, "one") if replaced == first else (MEN, "three")
    assert own == AnswerRow(*left, "number of people", 5.0, "answers:functions")


def test_with_answers_replaces_either_sentence():
    rows = list(with_answers([PEOPLE] * 40, FunctionAnswerer()))
    replaced = rows[1::3]
    assert {(row.sentence1, row.sentence2) for row in replaced} == {("three", BOY), (MEN, "one")}


def test_with_answers_no_answer_leaves_the_row_alone_and_no_label_leaves_it_out():
    unlabelled = PEOPLE._replace(label=None)
    assert list(with_answers([MOOD, unlabelled], FunctionAnswerer())) == [
        AnswerRow(*MOOD, origin="given")
    ]


def test_with_answers_blocks_of_any_size_give_the_same(monkeypatch):
    rows = [PEOPLE, MOOD, PEOPLE._replace(condition="The number of dogs."), PEOPLE]
    whole = list(with_answers(rows, FunctionAnswerer(), seed=3))
    monkeypatch.setattr(blocks, "BLOCK", 3)
    assert list(with_answers(rows, FunctionAnswerer(), seed=3)) == whole


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" Two people.\nThe end", "Two people"),
        ('"red and white"', "red and white"),
        ("- a bus", "a bus"),
        ("none", "none"),
        ("Not said.", None),
        ("", None),
        ("\n", None),
        ("...", None),
        ("the sentence tells that there are two men and a girl", None),
    ],
)
def test_read_answer(text, answer):
    assert read_answer(text) == answer


def test_model_answerer_asks_each_question_once(tmp_path, fake_backend):
    def reply(prompt: str) -> Answer:
        return Answer("two" if MEN in prompt else "not said")

    backend = fake_backend(reply)
    answerer = ModelAnswerer(Asker(backend, tmp_path / "answers.sqlite"), name="fake")
    rows = [PEOPLE, PEOPLE, CstsRow(MEN, MEN, "number of people", 5.0)]
    written = list(with_answers(rows, answerer))
    assert [row.origin for row in written] == ["given"] * 3 + ["answers:fake"] * 2
    assert len(backend.asked) == 2
    assert backend.asked[0].endswith(f"Sentence: {BOY}\nQuestion: number of people\nAnswer:")


def test_answer_file_writes_training_rows_and_a_manifest(tmp_path):
    file, output = tmp_path / "rows.csv", tmp_path / "out.csv"
    file.write_text(f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,2\n")
    told: list[tuple[str, int, int]] = []
    written = answer_file(
        file, output, FunctionAnswerer(), progress=lambda *state: told.append(state)
    )
    assert written == {"given": 1, "answers:functions": 2}
    assert load_csts(output).labels.tolist() == [2.0, 2.0, 5.0]
    assert told == [("rows", 1, 1)]
    manifest = json.loads((tmp_path / "out.manifest.json").read_text())
    assert manifest["rows"] == written
    assert manifest["answerer"] == "functions"


def test_answer_file_output_is_the_input_raises(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,2\n")
    with pytest.raises(InputError, match=r"rows\.csv is the input itself"):
        answer_file(file, file, FunctionAnswerer(), progress=silent)


def test_build_answers_command_says_what_was_added(tmp_path):
    file, output = tmp_path / "rows.csv", tmp_path / "out.csv"
    file.write_text(f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,2\n")
    done = CliRunner().invoke(app, ["build", "answers", str(file), "--output", str(output)])
    assert done.exit_code == 0, done.output
    assert "1 labelled rows, 2 added with answers of functions" in done.output.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "runs/bi"], "Only a language model answers in words"),
        (["--model", "m.yaml", "--functions", "f.py"], "--functions and --model both answer"),
        (["--functions", "none.py"], "none.py is no file"),
    ],
)
def test_build_answers_command_bad_options_raise(tmp_path: Path, options, message):
    file = tmp_path / "rows.csv"
    file.write_text(f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,2\n")
    words = ["build", "answers", str(file), "--output", str(tmp_path / "o.csv"), *options]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)
