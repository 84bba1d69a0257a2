"""Labeling sessions: answers on disk, the next text, what is learned on the way."""

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import condsim
from condsim.errors import InputError
from condsim.labeling import SILENT, SKIP, LabelSession
from condsim.model.criterion import Criterion
from condsim.pair_labeling import DIFFERENT, SAME, PairSession

HELPDESK = Path(__file__).parents[1] / "examples" / "helpdesk.csv"


def first_open(session):
    """The first text without an answer."""
    rows = session.open_rows
    return session.texts[rows[0]] if len(rows) else None


@pytest.fixture(scope="module")
def model():
    return condsim.load()


@pytest.fixture(scope="module")
def tickets():
    with HELPDESK.open(encoding="utf-8") as file:
        return {row["text"]: row["problem"] for row in csv.DictReader(file)}


def test_session_learns_from_the_eighth_label_on(model, tickets, tmp_path):
    output = tmp_path / "problem.csv"
    with LabelSession.open(tickets, "the problem", model=model, output=output) as session:
        assert "Eight texts" in session.progress().line
        for _ in range(20):
            text = session.next()
            progress = session.answer(text, tickets[text])
            stored = LabelSession.read(output, "the problem")
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
    assert LabelSession.read(output, "the problem") == {first: ("", SKIP), second: ("", SILENT)}
    assert session.undo() == second
    assert session.next() == second
    assert session.undo() == first
    assert session.undo() is None


def test_session_ends_when_all_texts_have_an_answer(model, tmp_path):
    session = LabelSession(
        ["a", "b", "a"], "the letter", model=model, output=tmp_path / "l.csv", choose=first_open
    )
    for _ in range(2):
        session.answer(session.next(), "x")
    assert session.next() is None
    assert session.progress().remaining == 0


def test_session_second_on_one_file_is_refused(model, tickets, tmp_path):
    output = tmp_path / "problem.csv"
    with LabelSession.open(tickets, "the problem", model=model, output=output):
        code = (
            "import sys, condsim\n"
            "from pathlib import Path\n"
            "from condsim.labeling import LabelSession\n"
            "try:\n"
            "    path = Path(sys.argv[1])\n"
            "    with LabelSession.open(['a'], 'x', model=condsim.load(), output=path):\n"
            "        pass\n"
            "except condsim.InputError as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(output)], capture_output=True, text=True, check=True
        )
    assert "another session labels into this file" in done.stdout


@pytest.mark.parametrize(
    "content", ["a,b\n1,2\n", "text,condition,value,answer\nonly one\n", "\x00"]
)
def test_session_file_of_something_else_raises(model, tmp_path, content):
    output = tmp_path / "labels.csv"
    output.write_text(content)
    with pytest.raises(InputError, match=r"labels.csv: is not a file of labels"):
        LabelSession(["a"], "x", model=model, output=output)
    assert output.read_text() == content


@pytest.mark.parametrize("kind", [LabelSession, PairSession])
def test_session_under_another_condition_is_refused(model, tmp_path, kind):
    output = tmp_path / "labels.csv"
    session = kind(["a", "b"], "the color", model=model, output=output)
    session.answer(session.next(), SAME)
    before = output.read_text()
    message = "labels.csv: its labels are under the condition 'the color', not 'the size'"
    with pytest.raises(InputError, match=message):
        kind(["a", "b"], "the size", model=model, output=output)
    assert output.read_text() == before


def test_session_bad_answer_raises(model, tmp_path):
    session = LabelSession(["a"], "x", model=model, output=tmp_path / "l.csv")
    with pytest.raises(InputError, match="must have text"):
        session.answer("a", " ")
    with pytest.raises(InputError, match="no such text"):
        session.answer("b", "x")


def answered_pairs(session, tickets, number):
    for _ in range(number):
        first, second = session.next()
        session.answer((first, second), SAME if tickets[first] == tickets[second] else DIFFERENT)


def test_pair_session_learns_from_spread_then_unsure_pairs(model, tickets, tmp_path):
    output = tmp_path / "pairs.csv"
    with PairSession.open(tickets, "the problem", model=model, output=output) as session:
        answered_pairs(session, tickets, 6)
        assert set(session.counts().values()) != {0, 6}
        cosines = [
            float(session.vectors[session.pool.index(one)] @ session.vectors[session.pool.index(b)])
            for one, b in session.answers
        ]
        assert max(cosines) - min(cosines) > 0.5
        answered_pairs(session, tickets, 24)
        assert session.criterion.figures.labels == 30
        assert session.progress().remaining == 120 * 119 // 2 - 30
        assert len(set(sum(session.answers, ()))) > 40
        following = session.next()
    again = PairSession(tickets, "the problem", model=model, output=output)
    assert again.answers == session.answers
    assert again.next() == following
    assert Criterion.load(output.with_suffix(".criterion")).labels == session.criterion.labels


def test_pair_session_marks_undo_and_end(model, tmp_path):
    output = tmp_path / "pairs.csv"
    session = PairSession(["a b", "c d"], "the letters", model=model, output=output)
    pair = session.next()
    assert session.answer(pair[::-1], SILENT).remaining == 0
    assert PairSession.read(output, "the letters") == {pair: ("", SILENT)}
    assert session.next() is None
    assert session.undo() == pair
    assert session.next() == pair
    with pytest.raises(InputError, match=r"is 'same' or 'different'; got 'x'"):
        session.answer(pair, "x")
    assert PairSession(["a b"], "x", model=model, output=tmp_path / "one.csv").next() is None


def test_session_killed_loses_nothing(tickets, tmp_path):
    output = tmp_path / "pairs.csv"
    code = (
        "import sys, time, condsim\n"
        "from pathlib import Path\n"
        "from condsim.pair_labeling import PairSession\n"
        "texts = [f'text {n}' for n in range(9)]\n"
        "with PairSession.open(\n"
        "    texts, 'x', model=condsim.load(), output=Path(sys.argv[1])\n"
        ") as session:\n"
        "    for _ in range(4):\n"
        "        session.answer(session.next(), 'same')\n"
        "    print('answered', flush=True)\n"
        "    time.sleep(60)\n"
    )
    words = [sys.executable, "-c", code, str(output)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "answered\n"
        os.kill(process.pid, signal.SIGKILL)
    assert len(PairSession.read(output, "x")) == 4
    texts = [f"text {n}" for n in range(9)]
    with PairSession.open(texts, "x", model=condsim.load(), output=output) as session:
        assert len(session.answers) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,condition,value,answer\na,x,b,\na,x,c,\n", "row 2 has a second answer for 'a'"),
        ("text,condition,value,answer\na,x,,\n", "A value must have text"),
        (
            "sentence1,sentence2,label,answer\na,b,same,\n",
            "columns must be text, condition, value, answer",
        ),
    ],
)
def test_session_file_that_was_edited_wrongly_is_left_alone(model, tmp_path, content, message):
    output = tmp_path / "labels.csv"
    output.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        LabelSession(["a"], "x", model=model, output=output)
    assert "\n" not in str(caught.value)
    assert output.read_text() == content


def test_session_that_cannot_learn_keeps_the_answers(model, tmp_path, monkeypatch):
    # A criterion of 200 values is too large for a file.
    monkeypatch.setattr("condsim.model.criterion._MAX_BYTES", 1_000)
    output = tmp_path / "labels.csv"
    session = LabelSession(
        [f"text {n}" for n in range(12)], "x", model=model, output=output, choose=first_open
    )
    for number in range(10):
        progress = session.answer(session.next(), "ab"[number % 2])
    assert "too many for a file" in progress.line
    assert progress.labeled == len(LabelSession.read(output, "x")) == 10


def test_session_promises_a_threshold_once_labels_allow_it(model, tickets, tmp_path):
    output = tmp_path / "labels.csv"
    few = LabelSession(tickets, "the problem", model=model, output=output)
    for text in list(tickets)[:12]:
        progress = few.answer(text, tickets[text])
    assert progress.threshold.startswith("12 labels are too few to promise a threshold")
    with output.open("a") as file:
        rows = ((text, "the problem", tickets[text], "") for text in list(tickets)[12:])
        csv.writer(file).writerows(rows)
    progress = LabelSession(tickets, "the problem", model=model, output=output).progress()
    assert progress.threshold.startswith("Threshold 0.")
