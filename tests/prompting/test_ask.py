from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from condsim.errors import BackendError, BudgetError, InputError
from condsim.prompting.ask import AnswerStore, Asker, answer_key
from condsim.prompting.backend import Answer

PROMPTS = ["a", "b", "a", "c", "d", "e"]  # row 2 shares the prompt of row 0


def reply(prompt: str) -> Answer:
    return Answer(prompt.upper(), {1.0: 0.5}, prompt_tokens=7, new_tokens=1)


def asked(asker: Asker) -> dict[int, str]:
    return {row: answer.text for row, answer in asker.answers(PROMPTS.__getitem__, len(PROMPTS))}


def test_asker_equal_prompts_are_asked_once(tmp_path: Path, fake_backend: Any):
    backend = fake_backend(reply)
    asker = Asker(backend, tmp_path / "answers.sqlite")
    assert asked(asker) == dict(enumerate("ABACDE"))
    assert sorted(backend.asked) == ["a", "b", "c", "d", "e"]
    usage = asker.usage
    assert (usage.requests, usage.stored, usage.prompt_tokens, usage.new_tokens) == (5, 1, 35, 5)


def test_asker_second_run_asks_nothing_and_checks_no_server(tmp_path: Path, fake_backend: Any):
    path = tmp_path / "answers.sqlite"
    asked(Asker(fake_backend(reply), path))
    backend = fake_backend(reply)
    asker = Asker(backend, path, max_requests=0)
    assert asked(asker) == dict(enumerate("ABACDE"))
    assert (backend.asked, backend.checked, asker.usage.stored) == ([], 0, 6)


def test_asker_failure_keeps_what_was_answered_and_goes_on_there(tmp_path: Path, fake_backend: Any):
    path = tmp_path / "answers.sqlite"
    first = fake_backend(reply, fail_after=3)
    with pytest.raises(BackendError, match=r"The server is gone"):
        asked(Asker(first, path))
    second = fake_backend(reply)
    assert asked(Asker(second, path)) == dict(enumerate("ABACDE"))
    assert sorted(first.asked + second.asked) == ["a", "b", "c", "d", "e"]


def test_asker_budget_of_requests_stops_and_the_next_run_goes_on(tmp_path: Path, fake_backend: Any):
    path = tmp_path / "answers.sqlite"
    backend = fake_backend(reply)
    with pytest.raises(
        BudgetError, match=r"2 of 2 requests are used up\. 3 of 6 rows are answered"
    ):
        asked(Asker(backend, path, max_requests=2))
    assert len(backend.asked) == 2
    with pytest.raises(BudgetError):
        asked(Asker(backend, path, max_requests=2))
    assert asked(Asker(backend, path, max_requests=1)) == dict(enumerate("ABACDE"))
    assert len(backend.asked) == 5


def test_asker_budget_of_tokens_counts_estimate_and_longest_answer(
    tmp_path: Path, fake_backend: Any
):
    # Two prompts are read ahead, reserved with 10 + 20 tokens each, and use 7 + 1.
    backend = fake_backend(reply)
    with pytest.raises(BudgetError, match=r"32 of 60 tokens .* the next .* need 30\. 5 of 6"):
        asked(Asker(backend, tmp_path / "a.sqlite", max_tokens=60))
    # 16 used; 16 + 30 is within 60, 16 + 30 + 30 is not; 24 + 30 is; 32 + 30 is not.
    assert len(backend.asked) == 4
    backend = fake_backend(reply)
    with pytest.raises(BudgetError, match=r"0 of 29 tokens .* the next .* need 30"):
        asked(Asker(backend, tmp_path / "b.sqlite", max_tokens=29))
    assert backend.asked == []


def test_asker_failure_gives_back_what_was_reserved(tmp_path: Path, fake_backend: Any):
    backend = fake_backend(reply, fail_after=3)
    asker = Asker(backend, tmp_path / "answers.sqlite", max_tokens=80)
    with pytest.raises(BackendError, match=r"The server is gone"):
        asked(asker)
    backend.fail_after = None
    assert asked(asker) == dict(enumerate("ABACDE"))  # the last two: 24 + 30, 32 + 30


def test_asker_usage_is_estimated_where_the_back_end_does_not_tell(
    tmp_path: Path, fake_backend: Any
):
    asker = Asker(fake_backend(lambda prompt: Answer("4")), tmp_path / "answers.sqlite")
    asked(asker)
    assert (asker.usage.prompt_tokens, asker.usage.new_tokens) == (5 * 10, 5 * 20)


def test_asker_probabilities_are_asked_for_where_they_were_not(tmp_path: Path, fake_backend: Any):
    path = tmp_path / "answers.sqlite"
    backend = fake_backend(reply)
    asked(Asker(backend, path))
    expected = Asker(backend, path, probabilities=True)
    assert expected.missing(PROMPTS.__getitem__, 6) == [0, 1, 3, 4, 5]
    for _, answer in expected.answers(PROMPTS.__getitem__, 6):
        assert answer.probabilities == {1.0: 0.5}
    assert len(backend.asked) == 10
    asked(Asker(backend, path))  # and an answer with them does for one without
    assert len(backend.asked) == 10


def test_asker_missing_asks_and_makes_nothing(tmp_path: Path, fake_backend: Any):
    backend = fake_backend(reply)
    asker = Asker(backend, tmp_path / "answers.sqlite")
    assert asker.missing(PROMPTS.__getitem__, 6) == [0, 1, 3, 4, 5]
    assert (backend.asked, backend.checked, list(tmp_path.iterdir())) == ([], 0, [])


def test_asker_second_process_with_the_same_file_is_refused(tmp_path: Path, fake_backend: Any):
    path = tmp_path / "answers.sqlite"
    answers = Asker(fake_backend(reply), path).answers(PROMPTS.__getitem__, 6)
    next(answers)
    with pytest.raises(InputError, match=r"Another process is asking this model with"):
        asked(Asker(fake_backend(reply), path))
    (tmp_path / "link.sqlite").symlink_to(path)
    with pytest.raises(InputError, match="Another process is asking"):
        asked(Asker(fake_backend(reply), tmp_path / "link.sqlite"))
    other = fake_backend(reply)
    other.identity = {"model": "another"}
    assert asked(Asker(other, path))[0] == "A"
    answers.close()
    assert asked(Asker(fake_backend(reply), path))[0] == "A"


def test_asker_prompt_that_is_too_long_raises_before_asking(tmp_path: Path, fake_backend: Any):
    backend = fake_backend(reply)
    backend.longest_prompt = 9
    with pytest.raises(InputError, match=r"Row 1: the prompt has 10 tokens; 'fake' takes 9"):
        asked(Asker(backend, tmp_path / "answers.sqlite"))
    assert (backend.asked, backend.checked) == ([], 0)


def test_asker_failure_at_a_prompt_names_its_row(tmp_path: Path, fake_backend: Any):
    def refuse(prompt: str) -> Answer:
        if prompt == "c":
            raise BackendError("HTTP 400: no.", index=2)
        return reply(prompt)

    with pytest.raises(BackendError, match=r"Row 4: HTTP 400: no\."):
        asked(Asker(fake_backend(refuse), tmp_path / "answers.sqlite"))


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


def test_answer_store_reads_many_keys_lazily_and_only_those_it_has(tmp_path: Path):
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        for number in range(0, 1200, 2):
            store.write(
                bytes([number % 256, number // 256]), Answer(str(number)), prompt="", identity={}
            )
        keys = (bytes([number % 256, number // 256]) for number in range(1200))
        assert sorted(int(answer.text) for _, answer in store.read(keys)) == list(range(0, 1200, 2))


def test_answer_store_answer_is_on_disk_before_the_store_is_closed(tmp_path: Path):
    path = tmp_path / "answers.sqlite"
    with AnswerStore(path) as store, AnswerStore(path) as other:
        store.write(b"k", Answer("1"), prompt="p", identity=IDENTITY)
        assert [answer.text for _, answer in other.read([b"k"])] == ["1"]


def test_answer_store_file_of_another_kind_raises(tmp_path: Path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database at all, but long enough to be looked at\n" * 20)
    with pytest.raises(InputError, match=r"notes\.txt cannot be used"):
        AnswerStore(text)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("create table things (name)")
    connection.close()
    with pytest.raises(InputError, match=r"other\.sqlite cannot be used as a store of answers"):
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
        assert list(store.read([(0).to_bytes(4, "big")]))
