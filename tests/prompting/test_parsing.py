from __future__ import annotations

import math

import pytest
from hypothesis import given, settings, strategies as st

from condsim.prompting.prompt import parse_score

NOTHING = "the of and to in a is that it was for on are as with his they at be this"


@pytest.mark.parametrize(
    ("text", "strict", "first"),
    [
        ("The Answer is 2.0.", 2.0, 2.0),
        ("4", 4.0, 4.0),
        (" 3.5\n", 3.5, 3.5),
        ("(5)", 5.0, 5.0),
        ("**4.0**", 4.0, 4.0),
        ("\uff14", 4.0, 4.0),  # a full-width digit
        ("٣", 3.0, 3.0),
        ("-1", -1.0, -1.0),
        ("\u22121", -1.0, -1.0),
        ("Score-3", 3.0, 3.0),
        (".5", 0.5, 0.5),
        ("it is .5", 0.5, 0.5),
        ("x.5", 5.0, 5.0),
        ("5\nInput: Sentence 1: 2 dogs run.", 5.0, 5.0),
        ("\n 4.0\r\nSentence 2", 4.0, 4.0),
        ("The score:\n3\n4", 3.0, 3.0),
        ("Output:4.0", 4.0, 4.0),
        ("4 5\n3", None, 4.0),
        ("4 5", None, 4.0),
        ("3 out of 5", None, 3.0),
        ("4/5", None, 4.0),
        ("0..0", None, 0.0),
        ("5 5 5", None, 5.0),
        ("1-5", None, 1.0),
        ("3,5", None, 3.0),
        ("", None, None),
        (NOTHING, None, None),
        ("²", None, None),
        ("½", None, None),
        ("nan", None, None),
        ("Infinity", None, None),
        ("9" * 400, None, None),
        ("four", None, None),
    ],
)
def test_parse_score_odd_answers_are_a_value_or_invalid(
    text: str, strict: float | None, first: float | None
):
    assert parse_score(text) == strict
    assert parse_score(text, parsing="first-number") == first


@settings(max_examples=30)
@given(st.text())
def test_parse_score_any_text_never_fails(text: str):
    strict = parse_score(text)
    first = parse_score(text, parsing="first-number")
    assert strict is None or (math.isfinite(strict) and strict == first)


@given(st.lists(st.sampled_from("0123456789.- \uff145²½/,"), max_size=20))
def test_parse_score_digits_and_signs_never_fail(pieces: list[str]):
    value = parse_score("".join(pieces))
    assert value is None or math.isfinite(value)


@given(
    st.floats(0, 100).map(lambda value: round(value, 3)),
    st.text(alphabet="abc :*(", max_size=8),
    st.text(alphabet="abc !*)", max_size=8),
)
def test_parse_score_text_around_one_number_is_stripped(value: float, before: str, after: str):
    assert parse_score(f"{before}{value}{after}.") == value
