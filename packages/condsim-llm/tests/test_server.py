from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
import threading
import time
from itertools import count

import pytest

pytest.importorskip("openai")

from condsim.errors import InputError
from condsim_llm.backend import Address, Answer, PromptSettings, base_address, environment_key
from condsim_llm.errors import BackendError
from condsim_llm.server import ServerBackend, _warn_of_usage, parse_completion

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert not [thread for thread in threading.enumerate() if "portal" in thread.name]


def opened(**options):
    return ServerBackend(PromptSettings(**{"model": "tiny-chat", "backend": "server", **options}))


def backend(server, **options):
    return opened(base_url=server.url, **options)


def texts(answers):
    found = {place: answer.text for place, answer in answers}
    return [found[place] for place in range(len(found))]


def prompts(number):
    return [f"prompt {place}" for place in range(number)]


def failed(answers):
    """What came before the error, its one line and the place of its prompt."""
    found = []
    with pytest.raises(BackendError) as caught:
        found.extend(answers)
    assert "\n" not in str(caught.value)
    return found, str(caught.value), caught.value.index


def refusal(status, message):
    """A rule of the server: this status and message."""
    return {"status": status, "body": {"error": {"message": message}}}


def closed_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_answers_each_prompt_gets_the_answer_of_its_place(server, loopback):
    asked = prompts(100)
    found = list(backend(server, concurrency=7).answers(asked))
    assert sorted(place for place, _ in found) == list(range(100))
    assert texts(found) == [loopback.answer_to(prompt) for prompt in asked]
    assert {(answer.prompt_tokens, answer.new_tokens) for _, answer in found} == {(2, 3)}
    assert {answer.probabilities for _, answer in found} == {None}


def test_answers_request_is_one_message_greedy_and_short(server):
    list(backend(server, max_new_tokens=7).answers(["How alike?"]))
    (request,) = server.seen()["seen"]
    assert request["body"] == {
        "model": "tiny-chat",
        "messages": [{"role": "user", "content": "How alike?"}],
        "temperature": 0,
        "max_tokens": 7,
    }


def test_answers_concurrency_bounds_what_is_under_way(server):
    server.rules({"delay": 0.02})
    list(backend(server, concurrency=5).answers(prompts(40)))
    assert server.seen()["most"] == 5


def test_answers_prompts_are_read_in_the_callers_thread_a_bounded_number_ahead(server):
    read, ahead = [], []

    def endless():
        for number in count():
            read.append(threading.current_thread())
            yield f"prompt {number}"

    answers = backend(server, concurrency=4).answers(endless())
    assert read == []
    for done in range(1, 101):
        next(answers)
        ahead.append(len(read) - done)
    answers.close()
    assert set(read) == {threading.current_thread()}
    assert max(ahead) == 3


def test_answers_inside_a_running_event_loop_works(server):
    async def notebook():
        return texts(backend(server).answers(prompts(3)))

    assert len(asyncio.run(notebook())) == 3


def test_answers_probabilities_are_those_of_the_first_number(server):
    ((_, answer),) = backend(server).answers(["x"], probabilities=True)
    assert answer.probabilities == pytest.approx({4.0: 0.7201, 3.0: 0.2466, 3.5: 0.0743}, abs=1e-4)
    (request,) = server.seen()["seen"]
    assert (request["body"]["logprobs"], request["body"]["top_logprobs"]) == (True, 20)


@pytest.mark.parametrize(
    "rule",
    [
        {"status": 500, "body": "oops"},
        {"cut": True},
        {"close": True},
        {"body": "<html>welcome</html>"},
        {"body": {"choices": []}},
        {"body": {"error": {"message": "upstream", "code": 502}}},
    ],
    ids=["500", "cut", "closed", "html", "no choices", "error in a 200"],
)
def test_answers_one_bad_answer_in_the_middle_is_asked_again(server, loopback, rule):
    server.rules({"prompt": "prompt 7", "times": 1, **rule})
    asked = prompts(12)
    assert texts(backend(server, concurrency=3).answers(asked)) == [
        loopback.answer_to(prompt) for prompt in asked
    ]
    assert server.seen()["count"] == 13


def test_answers_hung_connection_is_given_up_and_asked_again(server):
    server.rules({"hang": True, "times": 1})
    start = time.monotonic()
    assert len(texts(backend(server, timeout=0.3).answers(prompts(3)))) == 3
    assert time.monotonic() - start < 5
    assert server.seen()["count"] == 4


@pytest.mark.parametrize(
    ("rule", "options", "said"),
    [
        (refusal(500, "out of\nmemory"), {"retries": 1}, "HTTP 500 after 2 tries: out of memory."),
        (refusal(429, "No quota."), {"retries": 0}, "HTTP 429 after 1 try: No quota. Ask less"),
        (refusal(404, "no such model"), {}, "HTTP 404 after 1 try: no such model. Is that"),
        ({"hang": True}, {"retries": 0, "timeout": 0.2}, "no answer within 0.2 s after 1 try"),
        ({"body": "welcome"}, {"retries": 1}, "not a chat completion: 'welcome' after 2 tries"),
    ],
    ids=["500", "429", "404", "hang", "no JSON"],
)
def test_answers_failure_that_stays_is_one_line_with_the_tries(server, rule, options, said):
    server.rules(rule)
    found, line, _ = failed(backend(server, **options).answers(prompts(1)))
    assert found == []
    assert line.startswith(f"tiny-chat at {server.url}: ")
    assert said in line


def test_answers_permanent_failure_sends_no_more_and_yields_what_was_under_way(server):
    server.rules(
        {"prompt": "prompt 1", "delay": 0.1, **refusal(400, "No.")},
        {"delay": 0.3},
    )
    asked = backend(server, concurrency=4).answers(f"prompt {n}" for n in count())
    found, line, place = failed(asked)
    assert place == 1
    assert sorted(place for place, _ in found) == [0, 2, 3]
    assert "HTTP 400 after 1 try: No. If the prompt is too long" in line
    assert server.seen()["count"] == 4


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_answers_interrupt_while_waiting_ends_the_thread_at_once(server):
    server.rules({"hang": True})
    # A process that was started in the background ignores this signal, and so would Python.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(backend(server).answers(prompts(9)))
    assert time.monotonic() - start < 2
    timer.join()
    signal.signal(signal.SIGINT, before)


def test_answers_withheld_content_is_an_empty_answer(server):
    blocked = {"message": "blocked", "code": "content_filter"}
    inner = {"message": "blocked", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
    server.rules(
        {"prompt": "prompt 0", "status": 400, "body": {"error": blocked}},
        {"prompt": "prompt 1", "status": 400, "body": {"error": inner}},
        {"prompt": "prompt 2", "finish": "content_filter"},
        {"prompt": "prompt 3", "message": {"role": "assistant", "content": None}},
        {"prompt": "prompt 4", "message": {"reasoning_content": "It is 5.", "content": "4"}},
    )
    assert texts(backend(server).answers(prompts(5))) == ["", "", "", "", "4"]
    assert server.seen()["count"] == 5


def test_answers_refused_fields_are_left_out_once_and_for_all(server, caplog):
    length = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    server.rules(
        {"has": "max_tokens", **refusal(400, length)},
        {"has": "temperature", "status": 400, "body": {"error": {"param": "temperature"}}},
        {"has": "logprobs", "status": 422, "body": {"detail": "no logprobs here"}},
    )
    asked = backend(server, concurrency=1)
    ((_, answer),) = asked.answers(["x"], probabilities=True)
    assert answer.probabilities == {}
    before = server.seen()["count"]
    assert before == 5  # top_logprobs is tried with 5 before it is left out
    list(asked.answers(prompts(6), probabilities=True))
    requests = server.seen()["seen"]
    assert len(requests) == before + 6
    assert set(requests[-1]["body"]) == {"model", "messages", "max_completion_tokens"}
    assert len(asked.notes) == 4
    assert "answers may differ between runs" in caplog.text


@pytest.mark.parametrize("rule", [{"status": 404}, {"status": 405}, {"body": "<html>"}])
def test_check_server_without_a_list_passes(server, rule):
    server.rules({"path": "/v1/models", **rule})
    backend(server, model="gpt-x").check()


def test_check_unreachable_server_raises_one_line(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    url = f"http://127.0.0.1:{closed_port()}/v1"
    with pytest.raises(BackendError, match=f"tiny-chat at {url}: .* after 2 tries. Is"):
        opened(base_url=url).check()


def test_key_is_sent_and_never_shown(locked, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    locked.reset()
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    asked = backend(locked)
    asked.check()
    found = list(asked.answers(prompts(2), probabilities=True))
    assert len(found) == 2
    (headers, *_) = (request["headers"] for request in locked.seen()["seen"])
    assert headers["authorization"] == f"Bearer {KEY}"
    locked.rules(refusal(403, f"Incorrect key {KEY}, Bearer {KEY}"))
    _, line, _ = failed(asked.answers(["x"]))
    assert "Incorrect key ***, Bearer ***. Set OPENAI_API_KEY" in line
    locked.rules({"body": f"no JSON but {KEY}"})
    _, other, _ = failed(backend(locked, retries=0).answers(["x"]))
    shown = f"{asked!r} {vars(asked)!r} {asked.name} {asked.identity} {found} {line} {other}"
    assert KEY not in shown + caplog.text
    assert any(record.name.startswith("openai") for record in caplog.records)


def test_key_missing_is_needed_for_another_machine_only(server, monkeypatch):
    elsewhere = opened(model="x", base_url="https://llm.example/v1")
    for use in (elsewhere.check, lambda: list(elsewhere.answers(["x"]))):
        with pytest.raises(InputError, match="OPENAI_API_KEY"):
            use()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    opened().check()


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000/v1",
        "http://127.0.0.1/v1",
        "http://[::1]:9/v1",
        "http://0.0.0.0:8000",
        "http://llm.localhost",
    ],
)
def test_base_address_this_machine_is_local_and_needs_no_key(monkeypatch, url):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert base_address(f" {url}/ ") == Address(url, local=True)
    assert environment_key(base_address(url)).key == "none"


def test_base_address_none_is_that_of_the_environment_or_openai(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host/v1/")
    assert base_address(None).url == "http://host/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "host")
    with pytest.raises(InputError, match=r"^The OPENAI_BASE_URL must be an http:// or"):
        base_address(None)
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert base_address(None).url == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    "url",
    [
        *("localhost:8000/v1", "", "ftp://host", "http://", "http://host:99999", "http://[::1"),
        *("http://me:secret@host/v1", "http://host?key=secret", "secret@host"),
    ],
)
def test_base_address_other_text_is_refused_and_no_secret_shown(url):
    with pytest.raises(InputError, match="must be an http:// or https:// URL") as caught:
        base_address(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nb", "sk-ä"])
def test_environment_key_that_no_header_can_hold_is_refused_and_not_shown(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(InputError, match="OPENAI_API_KEY must be ASCII") as caught:
        environment_key(base_address("http://host"))
    assert "sk-" not in str(caught.value)


def completion(content="4", **choice):
    return {"choices": [{"message": {"content": content}, **choice}]}


def token(text, logprob=-1.0, top=()):
    alternatives = [{"token": other, "logprob": value} for other, value in top]
    return {"token": text, "logprob": logprob, "top_logprobs": alternatives}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "4"}, {"type": "image"}, {"type": "text", "text": ".0"}], "4.0"),
        # Half of an emoji cannot be stored.
        ("4 \ud83d", "4 ?"),
        (None, ""),
    ],
)
def test_parse_completion_content_is_text(content, text):
    assert parse_completion(completion(content)) == Answer(text, {})


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (
            [
                token("The"),
                token(" 4", top=[(" 4", math.log(0.5)), ("4.0", math.log(0.2)), ("four", -2.0)]),
                token("2", top=[("2", 0.0)]),
            ],
            {4.0: 0.7},
        ),
        # Some servers leave the chosen token out of its alternatives.
        ([token("4", math.log(0.3), top=[("3", math.log(0.6))])], {4.0: 0.3, 3.0: 0.6}),
        ([token("4", 1e-7)], {4.0: 1.0}),
        *(([token(text)], {}) for text in ("four", "-1", "4.", "1e3", "\uff14", "", "9" * 400)),
        ([], {}),
    ],
)
def test_parse_completion_probabilities_are_added_by_number(tokens, expected):
    answer = parse_completion(completion(logprobs={"content": tokens}))
    assert answer.probabilities == pytest.approx(expected)


def test_answers_packed_body_of_any_size_is_read_up_to_a_limit(server):
    server.rules({"blanks": 64})
    _, message, _ = failed(backend(server, retries=0).answers(["prompt"]))
    assert "the body has more than 16 MB" in message


def test_answers_logprob_that_overflows_is_one_line(server):
    token = {"token": "4", "logprob": -(10**400), "top_logprobs": []}
    choice = {"message": {"content": "4"}, "logprobs": {"content": [token]}}
    server.rules({"body": {"choices": [choice]}})
    answers = backend(server, retries=0).answers(["prompt"], probabilities=True)
    assert "the body is not a chat completion" in failed(answers)[1]


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": "many", "completion_tokens": 1.5}, "none", ["few"]]
)
def test_parse_completion_usage_that_is_no_number_is_ignored_and_said_once(usage, caplog):
    _warn_of_usage.cache_clear()
    body = {"choices": [{"message": {"content": "4"}}], "usage": usage}
    for _ in range(2):
        answer = parse_completion(body)
        assert (answer.text, answer.prompt_tokens, answer.new_tokens) == ("4", None, None)
    assert len(caplog.records) == 1
