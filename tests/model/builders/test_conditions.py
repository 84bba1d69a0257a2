from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from condsim.errors import InputError
from condsim.model.conditions import card_texts, conditional_sentences, cross_encoder_inputs


def test_conditional_sentences_condition_first_pairs() -> None:
    pairs = conditional_sentences(["A.", "B."], ["x", "y"], order="condition-first")
    assert pairs == [["x", "A."], ["y", "B."]]


def test_conditional_sentences_sentence_first_pairs() -> None:
    pairs = conditional_sentences(["A.", "B."], ["x", "y"], order="sentence-first")
    assert pairs == [["A.", "x"], ["B.", "y"]]


def test_conditional_sentences_bare_conditions_end_in_no_mark() -> None:
    conditions = ["the place?", "the place. ", "place?!…", "??", "C++", "what (if any)"]
    pairs = conditional_sentences(["A?"] * 6, conditions, order="bare-condition-first")
    assert [first for first, _ in pairs] == [
        *("the place", "the place", "place"),
        *("??", "C++", "what (if any)"),
    ]
    assert {second for _, second in pairs} == {"A?"}


@pytest.mark.parametrize(("inputs", "expected"), [("both", "x | A. | B."), ("condition", "x")])
def test_cross_encoder_inputs_with_a_bare_order(inputs: Any, expected: str) -> None:
    given = cross_encoder_inputs(
        ["A."], ["B."], ["x?"], separator=" | ", order="bare-condition-first", inputs=inputs
    )
    assert given == [expected]


def test_card_texts_say_what_a_bare_order_leaves_out() -> None:
    assert card_texts("sentence-first") == ("sentence", "condition")
    assert card_texts("bare-condition-first")[0] == "condition, without the marks at its end"


def test_conditional_sentences_unknown_order_raises() -> None:
    with pytest.raises(InputError, match=r"Unknown order 'condition'\. Did you mean"):
        conditional_sentences(["A."], ["x"], order="condition")  # type: ignore[arg-type]


def test_conditional_sentences_different_lengths_raises() -> None:
    with pytest.raises(InputError, match="same length; got 2 and 1"):
        conditional_sentences(["A.", "B."], ["x"], order="condition-first")


def test_conditional_sentences_single_text_raises() -> None:
    with pytest.raises(InputError, match="conditions must be a list of texts"):
        conditional_sentences(["A.", "B."], "xy", order="condition-first")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "A. | B. | x"),
        ({"order": "condition-first"}, "x | A. | B."),
        ({"inputs": "sentences"}, "A. | B."),
        ({"inputs": "condition"}, "x"),
        ({"layout": "pair"}, ["A. | B.", "x"]),
        ({"layout": "pair", "order": "condition-first"}, ["x", "A. | B."]),
        ({"layout": "pair", "inputs": "sentences"}, ["A.", "B."]),
    ],
)
def test_cross_encoder_inputs_holds_what_is_read_and_nothing_else(
    options: Any, expected: str | list[str]
) -> None:
    given = cross_encoder_inputs(["A."], ["B."], ["x"], separator=" | ", **options)
    assert given == [expected]


def test_cross_encoder_inputs_without_conditions_are_the_sentences() -> None:
    assert cross_encoder_inputs(["A."], ["B."], None, separator=" | ") == ["A. | B."]
    with pytest.raises(InputError, match="reads only conditions"):
        cross_encoder_inputs(["A."], ["B."], None, separator=" | ", inputs="condition")


def test_cross_encoder_inputs_different_lengths_raises() -> None:
    with pytest.raises(InputError, match="same length; got 1 and 2 and 1"):
        cross_encoder_inputs(["A."], ["B.", "C."], ["x"], separator="|")


def test_conditions_import_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['sentence_transformers'] = None\n"
        "import condsim.model, condsim.model.conditions"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
