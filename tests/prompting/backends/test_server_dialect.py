import math

import pytest
from hypothesis import given, strategies as st

from condsim.prompting.backend import Answer, Dialect, is_completion, read_answer, without


def body(dialect):
    return dialect.body("x", model="m", max_new_tokens=20, probabilities=True)


def completion(content="4", **choice):
    return {"choices": [{"message": {"content": content}, **choice}]}


def token(text, logprob=-1.0, top=()):
    alternatives = [{"token": other, "logprob": value} for other, value in top]
    return {"token": text, "logprob": logprob, "top_logprobs": alternatives}


def probabilities_of(*tokens):
    answer = read_answer(completion(logprobs={"content": list(tokens)}), probabilities=True)
    return answer.probabilities


@pytest.mark.parametrize(
    ("refusal", "changed"),
    [
        (
            "'max_tokens' is not supported, use 'max_completion_tokens'",
            Dialect(length="max_completion_tokens"),
        ),
        ("temperature only the default is supported", Dialect(greedy=False)),
        ("top_logprobs must be at most 5", Dialect(top=5)),
        ("requested 20 log probs, more than allowed", Dialect(top=5)),
        ("the prompt is too long", None),
    ],
)
def test_without_refusal_changes_the_field_it_names(refusal, changed):
    assert without(Dialect(), body(Dialect()), refusal) == changed


def test_without_refused_again_leaves_log_probabilities_out():
    fewer = Dialect(top=5)
    assert without(fewer, body(fewer), "no logprobs") == Dialect(top=0)
    assert "logprobs" not in body(Dialect(top=0))
    assert without(Dialect(top=0), body(Dialect(top=0)), "no logprobs") is None


def test_without_older_request_does_not_ask_for_more_again():
    assert without(Dialect(top=0), body(Dialect()), "no logprobs") == Dialect(top=0)


def test_without_field_that_was_not_sent_changes_nothing():
    changed = Dialect(length="max_completion_tokens", greedy=False)
    assert without(changed, body(changed), "max_completion_tokens temperature") is None


def test_body_probabilities_not_asked_for_has_no_logprobs():
    sent = Dialect().body("x", model="m", max_new_tokens=20, probabilities=False)
    assert set(sent) == {"model", "messages", "max_tokens", "temperature"}


def test_read_answer_parts_of_text_are_joined():
    parts = [{"type": "text", "text": "4"}, {"type": "image"}, {"type": "text", "text": ".0"}]
    assert read_answer(completion(parts), probabilities=False) == Answer("4.0")


def test_read_answer_usage_of_odd_types_is_left_out():
    odd = completion() | {"usage": {"prompt_tokens": True, "completion_tokens": "3"}}
    assert read_answer(odd, probabilities=False) == Answer("4")


def test_read_answer_probabilities_of_equal_numbers_are_added():
    found = probabilities_of(
        token("The"),
        token(" 4", top=[(" 4", math.log(0.5)), ("4.0", math.log(0.2)), ("four", math.log(0.1))]),
        token("2", top=[("2", 0.0)]),
    )
    assert found == pytest.approx({4.0: 0.7})


def test_read_answer_token_missing_from_its_alternatives_counts():
    found = probabilities_of(token("4", math.log(0.3), top=[("3", math.log(0.6))]))
    assert found == pytest.approx({4.0: 0.3, 3.0: 0.6})


@pytest.mark.parametrize("text", ["four", "-1", "4.", "1e3", "\uff14", "", "9" * 400])
def test_read_answer_token_that_is_no_number_gives_no_probabilities(text):
    assert probabilities_of(token(text)) == {}


@pytest.mark.parametrize("logprob", [-9999.0, math.nan, None, "0", -(10**400)])
def test_read_answer_logprob_that_is_none_leaves_its_number_out(logprob):
    assert probabilities_of(token("4", logprob)) == {}


def test_read_answer_logprob_above_zero_is_certain():
    assert probabilities_of(token("4", 1e-7)) == {4.0: 1.0}


def test_read_answer_server_without_logprobs_gives_none():
    assert read_answer(completion(), probabilities=True) == Answer("4", probabilities={})


NAMES = st.sampled_from(
    "choices message content text finish_reason logprobs token logprob top_logprobs usage "
    "prompt_tokens completion_tokens".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["4", " 4.5", "x"]),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(NAMES, part, max_size=6),
    max_leaves=12,
)


@given(anything=JSON, message=JSON, content=JSON, usage=JSON)
def test_read_answer_any_json_is_read_or_refused(anything, message, content, usage):
    assert isinstance(is_completion(anything), bool)
    choice = {"message": message, "logprobs": {"content": content}, "finish_reason": anything}
    body = {"choices": [choice], "usage": usage}
    if is_completion(body):
        answer = read_answer(body, probabilities=True)
        assert isinstance(answer.text, str)
        assert all(0 < value <= 1 for value in answer.probabilities.values())
