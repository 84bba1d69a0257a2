from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from condsim.errors import InputError
from condsim.prompting.ask import AnswerStore, answer_key
from condsim.prompting.backend import Answer

IDENTITY = {"backend": "fake", "model": "m"}


def test_answer_key_depends_on_prompt_and_identity_not_on_their_order():
    key = answer_key("p", IDENTITY)
    assert key == answer_key("p", dict(reversed(IDENTITY.items())))
    assert key != answer_key("q", IDENTITY)
    assert key != answer_key("p", {**IDENTITY, "model": "n"})
    assert len(answer_key("\ud800 a lone surrogate", IDENTITY)) == 32


@pytest.mark.parametrize(
    "answer",
    [
        Answer("4.0"),
        Answer("", {}, 12, 0),
        Answer("4\n", {4.0: 0.75, 3.5: 0.125}, prompt_tokens=7, new_tokens=2),
    ],
)
def test_answer_store_written_answer_reads_back_equal(tmp_path: Path, answer: Answer):
    path = tmp_path / "new" / "answers.sqlite"
    with AnswerStore(path) as store:
        store.write(answer_key("p", IDENTITY), answer, prompt="p", identity=IDENTITY)
    with AnswerStore(path) as store:
        assert list(store.read([answer_key("p", IDENTITY)])) == [
            (answer_key("p", IDENTITY), answer)
        ]
        assert len(store) == 1


def test_answer_store_reads_many_keys_lazily_and_only_those_it_has(tmp_path: Path):
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        for number in range(0, 1200, 2):
            store.write(
                bytes([number % 256, number // 256]), Answer(str(number)), prompt="", identity={}
            )
        keys = (bytes([number % 256, number // 256]) for number in range(1200))
        assert sorted(int(answer.text) for _, answer in store.read(keys)) == list(range(0, 1200, 2))


def test_answer_store_write_again_replaces(tmp_path: Path):
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        store.write(b"k", Answer("1"), prompt="p", identity=IDENTITY)
        store.write(b"k", Answer("2", {2.0: 1.0}), prompt="p", identity=IDENTITY)
        assert [answer.text for _, answer in store.read([b"k"])] == ["2"]


def test_answer_store_answer_is_on_disk_before_the_store_is_closed(tmp_path: Path):
    path = tmp_path / "answers.sqlite"
    with AnswerStore(path) as store, AnswerStore(path) as other:
        store.write(b"k", Answer("1"), prompt="p", identity=IDENTITY)
        assert len(other) == 1


def test_answer_store_file_of_another_kind_raises(tmp_path: Path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, but long enough to be looked at\n" * 20)
    with pytest.raises(InputError, match=r"notes\.txt cannot be used to store answers"):
        AnswerStore(text)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("create table things (name)")
    connection.close()
    with pytest.raises(InputError, match=r"other\.sqlite is no store of answers"):
        AnswerStore(other)
    assert text.read_text().startswith("not a database")


def test_answer_store_full_disk_raises_one_line(tmp_path: Path):
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        store._connection.execute("pragma max_page_count = 10")

        def fill() -> None:
            for number in range(1000):
                key = number.to_bytes(4, "big")
                store.write(key, Answer("x" * 500), prompt="p", identity=IDENTITY)

        with pytest.raises(InputError, match=r"cannot be stored: database or disk is full"):
            fill()
        assert len(store) > 0
