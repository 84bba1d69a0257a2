from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from condsim.errors import InputError
from condsim.types import Task
from condsim_llm.prompt import Example, Shots, instruction_text, parse_score, render

# Figures 5 and 6 of the paper, compared with its text by eye. Their section titles are left out,
# "added for clarity" there, and so is the hyphenation of its columns. The one line break that
# Figure 5 lacks, before the second "Condition:", is put in.
FIGURE_5 = """\
On a scale between 1 and 5, how similar are the following two sentences with respect to the \
condition provided? Respond only with a score between 1 and 5.
Input: Sentence 1: A bunch of blue buses parked in a parking lot in front of a housing community.
Sentence 2: Two buses, one blue and one red and white, are going to different destinations.
Condition: The type of transportation.
Output: 4.0
Input: Sentence 1: A bunch of blue buses parked in a parking lot in front of a housing community.
Sentence 2: Two buses, one blue and one red and white, are going to different destinations.
Condition: The number of buses.
Output: 1.0
Input: Sentence 1: The skater is descending the wooden wall beside the slope .
Sentence 2: A boy skateboards off a ramp covered in graffiti .
Condition: The location.
Output:"""


FIGURE_6 = """\
Definition: Evaluate the similarity between the two sentences, with respect to the condition. \
Assign the pair a score between 1 and 5 as follows:
1 : The two sentences are completely dissimilar with respect to the condition.
2 : The two sentences are dissimilar, but are on a similar topic with respect to the condition.
3 : The two sentences are roughly equivalent, but some important information differs or is missing \
with respect to the condition.
4 : The two sentences are mostly equivalent, but some unimportant details differ with respect to \
the condition.
5 : The two sentences are completely equivalent with respect to the condition.
Input: Sentence 1: Elderly man sitting on a blue couch reading a paper.
Sentence 2: Older man riding public transportation while reading a newspaper.
Condition: The location of the man.
Output:"""


BUSES = (
    "A bunch of blue buses parked in a parking lot in front of a housing community.",
    "Two buses, one blue and one red and white, are going to different destinations.",
)


def test_render_two_shots_short_is_figure_5():
    rendered = render(
        "The skater is descending the wooden wall beside the slope .",
        "A boy skateboards off a ramp covered in graffiti .",
        "The location.",
        instruction=instruction_text("short", conditional=True),
        examples=[
            Example(*BUSES, "The type of transportation.", 4.0),
            Example(*BUSES, "The number of buses.", 1.0),
        ],
    )
    assert rendered == FIGURE_5


def test_render_no_shots_long_is_figure_6():
    rendered = render(
        "Elderly man sitting on a blue couch reading a paper.",
        "Older man riding public transportation while reading a newspaper.",
        "The location of the man.",
        instruction=instruction_text("long", conditional=True),
    )
    assert rendered == FIGURE_6


def test_instruction_text_long_without_condition_has_the_scale_of_sts_b():
    lines = instruction_text("long", conditional=False).splitlines()
    # As in the released script.
    assert lines == [
        "Definition: Evaluate the similarity between them and classify them into classes from 0-5 "
        "as follows:",
        "0 : The two sentences are completely dissimilar.",
        "1 : The two sentences are not equivalent, but are on the same topic.",
        "2 : The two sentences are not equivalent, but share some details.",
        "3 : The two sentences are roughly equivalent, but some important information "
        "differs/missing.",
        "4 : The two sentences are mostly equivalent, but some unimportant details differ.",
        "5 : The two sentences are completely equivalent, as they mean the same thing.",
    ]


def test_render_without_condition_has_no_condition_line():
    assert render(" A dog. ", "A cat.", None) == (
        "Input: Sentence 1: A dog.\nSentence 2: A cat.\nOutput:"
    )


@pytest.mark.parametrize(("label", "text"), [(4, "4.0"), (3.8, "3.8"), (2.75, "2.75"), (0, "0.0")])
def test_render_label_is_written_short(label, text):
    examples = [Example("c", "d", None, label)]
    assert f"Output: {text}\n" in render("a", "b", None, examples=examples)
    # The released code has no gap for T5.
    assert f"Output:{text}\n" in render("a", "b", None, examples=examples, gap="")


NOTHING = "the of and to in a is that it was for on are as with his they at be this"


@pytest.mark.parametrize(
    ("text", "strict", "first"),
    [
        ("The Answer is 2.0.", 2.0, 2.0),
        ("**4.0**", 4.0, 4.0),
        ("\uff14", 4.0, 4.0),  # a full-width digit
        ("-1", 1.0, 1.0),
        ("Output:-1", 1.0, 1.0),
        (".5", 5.0, 5.0),
        ("5\nInput: Sentence 1: 2 dogs run.", 5.0, 5.0),
        ("4 5\n3", None, 4.0),
        ("3 out of 5", None, 3.0),
        ("0..0", None, 0.0),
        ("1-5", None, 1.0),
        ("3,5", None, 3.0),
        ("", None, None),
        (NOTHING, None, None),
        ("²", None, None),
        ("nan", None, None),
        ("9" * 400, None, None),
    ],
)
def test_parse_score_odd_answers_are_a_value_or_invalid(text, strict, first):
    assert parse_score(text) == strict
    assert parse_score(text, parsing="first-number") == first


@settings(max_examples=30)
@given(st.text())
def test_parse_score_any_text_never_fails(text):
    strict = parse_score(text)
    first = parse_score(text, parsing="first-number")
    assert strict is None or (math.isfinite(strict) and strict == first)


def conditional(pairs: int = 6) -> Task:
    """Each pair twice, labels 5 - n % 2 and 1; the low row first in odd pairs."""
    rows = []
    for pair in range(pairs):
        both = [("high", 5.0 - pair % 2), ("low", 1.0)]
        for condition, label in both if pair % 2 else both[::-1]:
            rows.append((f"left {pair}.", f"right {pair}.", condition, label))
    sentences1, sentences2, conditions, labels = zip(*rows, strict=True)
    return Task("train", "0", sentences1, sentences2, conditions, np.array(labels, np.float32))


def plain(rows: int = 5) -> Task:
    return Task(
        "stsb",
        "0",
        tuple(f"left {row}." for row in range(rows)),
        tuple(f"right {row}." for row in range(rows)),
        None,
        np.arange(rows, dtype=np.float32),
        label_range=(0.0, 5.0),
    )


@pytest.mark.parametrize("count", [2, 4])
def test_shots_conditional_pair_stands_together_the_higher_first(count):
    examples = Shots(conditional(), count, seed=3).for_query("a", "b")
    assert len(examples) == count
    for high, low in zip(examples[::2], examples[1::2], strict=True):
        assert (high.sentence1, high.sentence2) == (low.sentence1, low.sentence2)
        assert (high.condition, low.condition) == ("high", "low")
        assert high.label > low.label
    # An odd number shows the last pair's higher row.
    assert Shots(conditional(), count - 1, seed=3).for_query("a", "b") == examples[:-1]


def test_shots_each_query_has_its_own_the_same_every_time():
    task = conditional(50)
    drawn = [tuple(Shots(task, 2, seed=1).for_query("a", "b", str(row))) for row in range(200)]
    assert len({examples[0].sentence1 for examples in drawn}) > 40  # of 50 pairs
    again = Shots(task, 2, seed=1)
    assert [tuple(again.for_query("a", "b", str(row))) for row in range(200)] == drawn
    other = Shots(task, 2, seed=2)
    assert [tuple(other.for_query("a", "b", str(row))) for row in range(200)] != drawn


def test_shots_do_not_depend_on_the_order_of_the_file():
    task = conditional()
    shuffled = task.take(np.random.default_rng(0).permutation(len(task)))
    for seed in range(5):
        assert Shots(shuffled, 4, seed=seed).for_query("a", "b") == Shots(
            task, 4, seed=seed
        ).for_query("a", "b")


@pytest.mark.parametrize("swap", [False, True])
def test_shots_own_pair_is_never_shown_in_either_order(swap):
    shots = Shots(conditional(3), 4, seed=0)
    for pair in range(3):
        query = (f"LEFT  {pair}", f"right, {pair}! ")
        examples = shots.for_query(*(query[::-1] if swap else query))
        assert len(examples) == 4
        assert f"left {pair}." not in {example.sentence1 for example in examples}


def test_shots_plain_rows_are_single_examples_each_pair_once():
    task = plain()
    doubled = task.take(np.array([0, 0, 1, 2, 3, 4]))
    examples = Shots(doubled, 4, seed=2).for_query("left 0.", "right 0.")
    assert len({example.sentence1 for example in examples}) == 4
    assert all(example.condition is None for example in examples)


@pytest.mark.parametrize("rows", [1, 3])
def test_shots_pairs_without_just_two_labels_are_no_examples(rows):
    task = conditional(3)
    labels = task.labels.copy()
    labels[[0, 2, 4]] = np.nan
    some = replace(task, labels=labels)
    if rows == 3:
        some = task.take(np.array([0, 1, 1, 2, 3, 3, 4, 5, 5]))
    with pytest.raises(InputError, match=r"2 examples need 2 sentence pairs .* got 0"):
        Shots(some, 2)


@pytest.mark.parametrize(
    ("task", "count", "message"),
    [
        (conditional(2), 4, r"train: 4 examples need 3 sentence pairs .* got 2"),
        (plain(2), 2, r"stsb: 2 examples need 3 labeled rows.* got 2"),
        (
            replace(plain(3), labels=np.full(3, np.nan, np.float32)),
            1,
            r"stsb: 1 examples need 2 labeled rows.* got 0",
        ),
    ],
)
def test_shots_too_few_or_bad_rows_raise_one_line(task, count, message):
    with pytest.raises(InputError, match=message):
        Shots(task, count)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("<think>\nBoth show 2 dogs.\n</think>\n\n4", 4.0),
        ("On a scale of 5, they hardly match.\n</think>\n1", 1.0),
        ("<think>\nThey are 3", None),
    ],
)
@pytest.mark.parametrize("parsing", ["strict", "first-number"])
def test_parse_score_thoughts_are_no_answer(answer, score, parsing):
    assert parse_score(answer, parsing=parsing) == score
