from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from condsim.cli.main import app
from condsim.data.csts import CstsRow, load_csts
from condsim.errors import InputError
from condsim.prompting.ask import Asker
from condsim.prompting.backend import Answer
from condsim.rows.records import TrainingRow
from condsim.rows.teach import (
    answer_file,
    function_answers,
    model_answers,
    read_answer,
    with_answers,
)

MEN, BOY = "Two men talk to a girl.", "A boy feeds three dogs."
PEOPLE = CstsRow(MEN, BOY, "number of people", 2.0)
MOOD = CstsRow(MEN, BOY, "how it smells", 3.0)


def silent(stage: str, done: int, total: int) -> None: ...


def test_with_answers_adds_a_row_of_the_same_label_and_one_of_5():
    given, replaced, own = with_answers([PEOPLE], function_answers, name="functions")
    assert given == TrainingRow(*PEOPLE, origin="given")
    first = TrainingRow("three", BOY, "number of people", 2.0, "answers:functions")
    second = TrainingRow(MEN, "one", "number of people", 2.0, "answers:functions")
    assert replaced in (first, second)
    # the sentence that is left of the row above stands beside its own answer
    left = {BOY, "one"} if replaced == first else {MEN, "three"}
    assert {own.sentence1, own.sentence2} == left
    assert (own.condition, own.label) == ("number of people", 5.0)


def test_with_answers_replaces_either_sentence():
    rows = list(with_answers([PEOPLE] * 40, function_answers, name="functions"))
    replaced, own = ({(row.sentence1, row.sentence2) for row in rows[k::3]} for k in (1, 2))
    assert replaced == {("three", BOY), (MEN, "one")}
    # the place of an answer does not tell the label 5
    assert own == {("three", MEN), (MEN, "three"), ("one", BOY), (BOY, "one")}


def test_with_answers_no_answer_leaves_the_row_alone_and_no_label_leaves_it_out():
    unlabelled = PEOPLE._replace(label=None)
    said = CstsRow("dog", "A cat sleeps.", "type of animal", 2.0)  # is its own answer
    assert list(with_answers([said], function_answers, name="functions")) == [
        TrainingRow(*said, origin="given")
    ]
    assert list(with_answers([MOOD, unlabelled], function_answers, name="functions")) == [
        TrainingRow(*MOOD, origin="given")
    ]


def test_with_answers_blocks_of_any_size_give_the_same(monkeypatch):
    rows = [PEOPLE, MOOD, PEOPLE._replace(condition="The number of dogs."), PEOPLE]
    whole = list(with_answers(rows, function_answers, name="functions", seed=3))
    monkeypatch.setattr("condsim.rows.records.BLOCK", 3)
    assert list(with_answers(rows, function_answers, name="functions", seed=3)) == whole


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
        ("Answer: two", "two"),
        ("-5 degrees", "-5 degrees"),
        ("<think>\ntwo or three\n</think>\nthree", "three"),
        ("<think>two or three", None),
        ("not mentioned", None),
        ("The sentence does not say.", None),
        ("Not Said!", None),
        ("unknown", None),
        ("N/A", None),
        ("nautical", "nautical"),
        ("the sentence tells that there are two men and a girl", None),
    ],
)
def test_read_answer(text, answer):
    assert read_answer(text) == answer


def test_model_answers_asks_each_question_once(tmp_path, fake_backend):
    def reply(prompt: str) -> Answer:
        return Answer("two" if MEN in prompt else "not said")

    backend = fake_backend(reply)
    answerer = partial(
        model_answers, asker=Asker(backend, tmp_path / "answers.sqlite"), name="fake"
    )
    rows = [PEOPLE, PEOPLE, CstsRow(MEN, MEN, "number of people", 5.0)]
    written = list(with_answers(rows, answerer, name="fake"))
    assert [row.origin for row in written] == ["given"] * 3 + ["answers:fake"] * 2
    assert len(backend.asked) == 2
    assert backend.asked[0].endswith(f"Sentence: {BOY}\nQuestion: number of people\nAnswer:")


def test_model_answers_names_the_sentence_that_is_too_long(tmp_path, fake_backend):
    backend = fake_backend(lambda prompt: Answer("two"))
    backend.longest_prompt = 5
    answerer = partial(
        model_answers, asker=Asker(backend, tmp_path / "answers.sqlite"), name="fake"
    )
    with pytest.raises(InputError, match=r"fake cannot take .*'Two men talk.*'number of people'"):
        list(with_answers([PEOPLE], answerer, name="fake"))


def test_answer_file_without_labels_raises(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,-1\n")
    with pytest.raises(
        InputError, match=r"rows\.csv: answers are added to labelled rows, and none"
    ):
        answer_file(file, tmp_path / "out.csv", function_answers, name="functions", progress=silent)


def test_answer_file_writes_training_rows_and_a_manifest(tmp_path):
    file, output = tmp_path / "rows.csv", tmp_path / "out.csv"
    file.write_text(
        f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,2\n{MEN},{BOY},mood,\n"
    )
    told: list[tuple[str, int, int]] = []
    written = answer_file(
        file, output, function_answers, name="functions", progress=lambda *state: told.append(state)
    )
    assert written == {"given": 1, "answers:functions": 2, "unlabelled": 1}
    assert load_csts(output).labels.tolist() == [2.0, 2.0, 5.0]
    assert told == [("rows", 2, 2)]
    manifest = json.loads((tmp_path / "out.manifest.json").read_text())
    assert manifest["rows"] == written
    assert manifest["answerer"] == "functions"


def test_answer_file_output_is_the_input_raises(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,2\n")
    with pytest.raises(InputError, match=r"rows\.csv is the input itself"):
        answer_file(file, file, function_answers, name="functions", progress=silent)


def test_build_answers_command_says_what_was_added(tmp_path):
    file, output = tmp_path / "rows.csv", tmp_path / "out.csv"
    file.write_text(f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,2\n")
    done = CliRunner().invoke(app, ["build", "answers", str(file), "--output", str(output)])
    assert done.exit_code == 0, done.output
    assert (
        "1 labelled rows (0 unlabelled left out), 2 added with answers of functions"
        in done.output.replace("\n", " ")
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "runs/bi"], "Only a language model answers in words"),
        (["--model", "m.yaml", "--functions", "f.py"], "both answer; give one"),
        (["--functions", "none.py"], "none.py is not a file"),
    ],
)
def test_build_answers_command_bad_options_raise(tmp_path: Path, options, message):
    file = tmp_path / "rows.csv"
    file.write_text(f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,2\n")
    words = ["build", "answers", str(file), "--output", str(tmp_path / "o.csv"), *options]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)


def test_build_answers_command_asks_a_language_model(tmp_path, monkeypatch, fake_backend):
    backend = fake_backend(lambda prompt: Answer("two"))
    tokens: list[int] = []

    def opened(settings):
        tokens.append(settings.max_new_tokens)
        return backend

    monkeypatch.setattr("condsim.prompting.scorer.open_backend", opened)
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(
        f"sentence1,sentence2,condition,label\n{MEN},{BOY},number of people,2\n"
    )
    Path("model.yaml").write_text("model: fake\nmax_new_tokens: 5\nanswers: answers.sqlite\n")
    words = ["build", "answers", "rows.csv", "--model", "model.yaml", "--output", "out.csv"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "2 added with answers of fake" in done.output.replace("\n", " ")
    assert tokens == [20]
    assert load_csts("out.csv").labels.tolist() == [2.0, 2.0, 5.0]
