from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from condsim.errors import InputError
from condsim.model.inputs import card_texts, conditional_sentences, cross_encoder_inputs


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("condition-first", [["x", "A."], ["y", "B."]]),
        ("sentence-first", [["A.", "x"], ["B.", "y"]]),
    ],
)
def test_conditional_sentences_pairs_in_order(order: Any, expected: list[list[str]]) -> None:
    assert conditional_sentences(["A.", "B."], ["x", "y"], order=order) == expected


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


def test_conditions_import_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['sentence_transformers'] = None\n"
        "import condsim.model, condsim.model.inputs"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
