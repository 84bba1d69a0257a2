from __future__ import annotations

import pytest

from condsim.errors import InputError
from condsim_llm.ask import AnswerStore, Asker
from condsim_llm.backend import Answer
from condsim_llm.errors import BackendError, BudgetError

PROMPTS = ["a", "b", "a", "c", "d", "e"]  # row 2 shares the prompt of row 0


def reply(prompt: str) -> Answer:
    return Answer(prompt.upper(), {1.0: 0.5}, prompt_tokens=7, new_tokens=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.sqlite"


@pytest.fixture
def backend(fake_backend):
    return fake_backend(reply)


def asked(asker: Asker) -> dict[int, str]:
    return {row: answer.text for row, answer in asker.answers(PROMPTS.__getitem__, len(PROMPTS))}


def test_asker_equal_prompts_are_asked_once(backend, path):
    asker = Asker(backend, path)
    assert asked(asker) == dict(enumerate("ABACDE"))
    assert sorted(backend.asked) == ["a", "b", "c", "d", "e"]
    usage = asker.usage
    assert (usage.requests, usage.stored, usage.prompt_tokens, usage.new_tokens) == (5, 1, 35, 5)


def test_asker_failure_keeps_what_was_answered_and_goes_on_there(fake_backend, path):
    first = fake_backend(reply, fail_after=3)
    with pytest.raises(BackendError):
        asked(Asker(first, path))
    second = fake_backend(reply)
    assert asked(Asker(second, path)) == dict(enumerate("ABACDE"))
    assert sorted(first.asked + second.asked) == ["a", "b", "c", "d", "e"]


def test_asker_budget_of_requests_stops_and_the_next_run_goes_on(backend, path):
    with pytest.raises(BudgetError, match=r"2 of 2 requests are used up\. 3 of 6 rows are"):
        asked(Asker(backend, path, max_requests=2))
    assert len(backend.asked) == 2
    with pytest.raises(BudgetError):
        asked(Asker(backend, path, max_requests=2))
    assert asked(Asker(backend, path, max_requests=1)) == dict(enumerate("ABACDE"))
    assert len(backend.asked) == 5


def test_asker_budget_of_tokens_counts_estimate_and_longest_answer(backend, fake_backend, tmp_path):
    with pytest.raises(BudgetError, match=r"32 of 60 tokens .* the next .* need 30\. 5 of 6"):
        asked(Asker(backend, tmp_path / "a.sqlite", max_tokens=60))
    # 16 used; 16 + 30 is within 60, 16 + 30 + 30 is not; 24 + 30 is; 32 + 30 is not.
    assert len(backend.asked) == 4
    second = fake_backend(reply)
    with pytest.raises(BudgetError, match=r"0 of 29 tokens .* the next .* need 30"):
        asked(Asker(second, tmp_path / "b.sqlite", max_tokens=29))
    assert second.asked == []


def test_asker_failure_gives_back_what_was_reserved(fake_backend, path):
    backend = fake_backend(reply, fail_after=3)
    asker = Asker(backend, path, max_tokens=80)
    with pytest.raises(BackendError):
        asked(asker)
    backend.fail_after = None
    assert asked(asker) == dict(enumerate("ABACDE"))  # the last two: 24 + 30, 32 + 30


def test_asker_usage_is_estimated_where_the_back_end_does_not_tell(fake_backend, path):
    asker = Asker(fake_backend(lambda prompt: Answer("4")), path)
    asked(asker)
    assert (asker.usage.prompt_tokens, asker.usage.new_tokens) == (5 * 10, 5 * 20)


def test_asker_probabilities_are_asked_for_where_they_were_not(backend, path):
    asked(Asker(backend, path))
    expected = Asker(backend, path, probabilities=True)
    assert expected.missing(PROMPTS.__getitem__, 6) == [0, 1, 3, 4, 5]
    for _, answer in expected.answers(PROMPTS.__getitem__, 6):
        assert answer.probabilities == {1.0: 0.5}
    assert len(backend.asked) == 10
    asked(Asker(backend, path))  # and an answer with them does for one without
    assert len(backend.asked) == 10


def test_asker_second_process_with_the_same_file_is_refused(fake_backend, path, tmp_path):
    answers = Asker(fake_backend(reply), path).answers(PROMPTS.__getitem__, 6)
    next(answers)
    with pytest.raises(InputError, match=r"Another process is asking this model with"):
        asked(Asker(fake_backend(reply), path))
    (tmp_path / "link.sqlite").symlink_to(path)
    with pytest.raises(InputError):
        asked(Asker(fake_backend(reply), tmp_path / "link.sqlite"))
    other = fake_backend(reply)
    other.identity = {"model": "another"}
    assert asked(Asker(other, path))[0] == "A"
    answers.close()
    assert asked(Asker(fake_backend(reply), path))[0] == "A"


def test_asker_prompt_that_is_too_long_raises_before_asking(backend, path):
    backend.longest_prompt = 9
    with pytest.raises(InputError, match=r"Row 1: the prompt has 10 tokens; 'fake' takes 9"):
        asked(Asker(backend, path))
    assert (backend.asked, backend.checked) == ([], 0)


def test_asker_failure_at_a_prompt_names_its_row(fake_backend, path):
    def refuse(prompt: str) -> Answer:
        if prompt == "c":
            raise BackendError("HTTP 400: no.", index=2)
        return reply(prompt)

    with pytest.raises(BackendError, match=r"Row 4: HTTP 400: no\."):
        asked(Asker(fake_backend(refuse), path))


IDENTITY = {"backend": "fake", "model": "m"}


def test_answer_store_full_disk_raises_one_line(path):
    with AnswerStore(path) as store:
        store._connection.execute("pragma max_page_count = 10")

        def fill() -> None:
            for number in range(1000):
                key = number.to_bytes(4, "big")
                store.write(key, Answer("x" * 500), prompt="p", identity=IDENTITY)

        with pytest.raises(InputError, match=r"cannot be stored: database or disk is full"):
            fill()
        assert list(store.read([(0).to_bytes(4, "big")]))
