"""Labeling sessions: answers on disk, the next text, what is learned on the way."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

import condsim
from condsim.errors import InputError
from condsim.labeling import SILENT, SKIP, LabelSession, open_session, random_text, read_answers

HELPDESK = Path(__file__).parents[1] / "examples" / "helpdesk.csv"


@pytest.fixture(scope="module")
def model():
    return condsim.load()


@pytest.fixture(scope="module")
def tickets():
    with HELPDESK.open(encoding="utf-8") as file:
        return {row["text"]: row["problem"] for row in csv.DictReader(file)}


def test_session_learns_from_the_eighth_label_on(model, tickets, tmp_path):
    output = tmp_path / "problem.csv"
    with open_session(tickets, "the problem", model=model, output=output) as session:
        assert "Eight texts" in session.progress().line
        for _ in range(20):
            text = session.next()
            progress = session.answer(text, tickets[text])
            stored = read_answers(output)
            assert stored[text] == (tickets[text], "")
    assert progress.labeled == 20
    assert progress.remaining == len(tickets) - 20
    assert "Pairs told apart" in progress.line
    assert session.criterion.figures.labels == 20
    again = LabelSession(tickets, "the problem", model=model, output=output)
    assert again.labels == session.labels
    assert again.next() == session.next()


def test_session_marks_and_undo(model, tickets, tmp_path):
    output = tmp_path / "problem.csv"
    session = LabelSession(list(tickets)[:12], "the problem", model=model, output=output)
    first = session.next()
    session.answer(first, SKIP)
    second = session.next()
    assert second != first
    session.answer(second, SILENT)
    assert session.labels == {}
    assert read_answers(output) == {first: ("", SKIP), second: ("", SILENT)}
    assert session.undo() == second
    assert session.next() == second
    assert session.undo() == first
    assert session.undo() is None


def test_session_ends_when_all_texts_have_an_answer(model, tmp_path):
    session = LabelSession(
        ["a", "b", "a"], "the letter", model=model, output=tmp_path / "l.csv", choose=random_text()
    )
    for _ in range(2):
        session.answer(session.next(), "x")
    assert session.next() is None
    assert session.progress().remaining == 0


def test_session_second_on_one_file_is_refused(model, tickets, tmp_path):
    output = tmp_path / "problem.csv"
    with open_session(tickets, "the problem", model=model, output=output):
        code = (
            "import sys, condsim\n"
            "from pathlib import Path\n"
            "from condsim.labeling import open_session\n"
            "try:\n"
            "    with open_session(['a'], 'x', model=condsim.load(), output=Path(sys.argv[1])):\n"
            "        pass\n"
            "except condsim.InputError as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(output)], capture_output=True, text=True, check=True
        )
    assert "another session is labeling into this file" in done.stdout


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "text,value,answer\nonly one\n", "\x00"])
def test_session_file_of_something_else_raises(model, tmp_path, content):
    output = tmp_path / "labels.csv"
    output.write_text(content)
    with pytest.raises(InputError, match=r"labels.csv: is not a file of labels"):
        LabelSession(["a"], "x", model=model, output=output)
    assert output.read_text() == content


def test_session_bad_answer_raises(model, tmp_path):
    session = LabelSession(["a"], "x", model=model, output=tmp_path / "l.csv")
    with pytest.raises(InputError, match="must have text"):
        session.answer("a", " ")
    with pytest.raises(InputError, match="no such text"):
        session.answer("b", "x")
