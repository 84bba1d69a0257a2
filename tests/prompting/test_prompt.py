from __future__ import annotations

import pytest

from condsim.prompting.prompt import Example, instruction_text, render

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


def test_render_without_condition_has_no_condition_line():
    assert render(" A dog. ", "A cat.", None) == (
        "Input: Sentence 1: A dog.\nSentence 2: A cat.\nOutput:"
    )


@pytest.mark.parametrize(("label", "text"), [(4, "4.0"), (3.8, "3.8"), (2.75, "2.75"), (0, "0.0")])
def test_render_label_is_written_short(label: float, text: str):
    prompt = render("a", "b", None, examples=[Example("c", "d", None, label)])
    assert f"Output: {text}\n" in prompt


def test_render_without_gap_writes_answers_as_the_release_does_for_t5():
    prompt = render("a", "b", None, examples=[Example("c", "d", None, 4)], gap="")
    assert "Output:4.0\n" in prompt
