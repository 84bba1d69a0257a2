"""Answers of functions and of language models, as training text."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from condsim.console import silent
from condsim.data.csts import CstsRow, load_csts
from condsim.errors import InputError
from condsim_annotation.answers import (
    answer_file,
    function_answers,
    model_answers,
    read_answer,
    with_answers,
)
from condsim_annotation.tables import TrainingRow
from condsim_llm.ask import Asker
from condsim_llm.backend import Answer

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
    monkeypatch.setattr("condsim_annotation.answers.ROWS_PER_BATCH", 3)
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
    assert manifest["rows"] == {"given": 1, "answers:functions": 2, "unlabeled": 1}
    assert manifest["answerer"] == "functions"


def test_answer_file_without_labels_or_over_its_input_raises(file):
    with pytest.raises(InputError):
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

    monkeypatch.setattr("condsim_llm.scorer.open_backend", opened)
    Path("model.yaml").write_text("model: fake\nmax_new_tokens: 5\nanswers: answers.sqlite\n")
    printed = build("answers", file, "--model", "model.yaml", "--output", "out.csv")
    assert "2 added with answers of fake" in printed
    assert tokens == [20]
    assert load_csts("out.csv").labels.tolist() == [2.0, 2.0, 5.0]
