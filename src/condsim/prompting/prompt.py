"""What a language model is asked, and how a number is read out of its answer (C-STS, A.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from condsim.errors import unknown_name

Instruction = Literal["none", "short", "long"]
"""``none``; ``short``: what is asked, in two sentences; ``long``: what each score means."""

_CONDITIONAL_SHORT = (
    "On a scale between 1 and 5, how similar are the following two sentences with respect to the "
    "condition provided? Respond only with a score between 1 and 5."
)
_CONDITIONAL_LONG = """\
Definition: Evaluate the similarity between the two sentences, with respect to the condition. \
Assign the pair a score between 1 and 5 as follows:
1 : The two sentences are completely dissimilar with respect to the condition.
2 : The two sentences are dissimilar, but are on a similar topic with respect to the condition.
3 : The two sentences are roughly equivalent, but some important information differs or is missing \
with respect to the condition.
4 : The two sentences are mostly equivalent, but some unimportant details differ with respect to \
the condition.
5 : The two sentences are completely equivalent with respect to the condition."""
_PLAIN_SHORT = (
    "On a scale between 0 and 5, how similar are the following two sentences? Respond only with a "
    "score between 0 and 5."
)
_PLAIN_LONG = """\
Definition: Evaluate the similarity between the two sentences. Assign the pair a score between 0 \
and 5 as follows:
0 : The two sentences are about different things.
1 : The two sentences say different things about the same topic.
2 : The two sentences differ, but have some details in common.
3 : The two sentences say roughly the same, but some important information differs or is missing.
4 : The two sentences say nearly the same; only unimportant details differ.
5 : The two sentences mean exactly the same."""

INSTRUCTIONS: dict[bool, dict[Instruction, str]] = {
    True: {"none": "", "short": _CONDITIONAL_SHORT, "long": _CONDITIONAL_LONG},
    False: {"none": "", "short": _PLAIN_SHORT, "long": _PLAIN_LONG},
}
"""Text by whether there is a condition, then by name."""


def instruction_text(name: Instruction, *, conditional: bool) -> str:
    """Gives the text of an instruction.

    Args:
        name: ``none``, ``short`` or ``long``.
        conditional: Whether the rows have conditions (scale 1 to 5) or not (scale 0 to 5).

    Returns:
        The text, without a line break at its end; empty for ``none``.

    Raises:
        InputError: If there is no such instruction.
    """
    if name not in get_args(Instruction):
        raise unknown_name("instruction", str(name), get_args(Instruction))
    return INSTRUCTIONS[conditional][name]


@dataclass(frozen=True)
class Example:
    """A row whose answer is shown.

    Attributes:
        sentence1: First sentence.
        sentence2: Second sentence.
        condition: Condition, or None.
        label: Gold similarity on the task's own scale.
    """

    sentence1: str
    sentence2: str
    condition: str | None
    label: float


def render(
    sentence1: str,
    sentence2: str,
    condition: str | None,
    *,
    instruction: str = "",
    examples: Sequence[Example] = (),
) -> str:
    r"""Writes a prompt as in Figures 5 and 6, without their section titles.

    Every field has a line of its own. Figure 5 breaks this once, and the authors' script joins the
    fields with spaces; to a T5 tokenizer, which reads a line break as a space, all are the same.

    Args:
        sentence1: First sentence; white space around it is dropped, here and below.
        condition: Condition, or None for a prompt without one.
        instruction: Text of the instruction; left out if empty.
        examples: Rows with their answers, in the order they are shown.

    Returns:
        The prompt, which ends in ``Output:``.

    Examples:
        >>> print(render("A dog runs.", "A cat runs.", "The animal."))
        Input: Sentence 1: A dog runs.
        Sentence 2: A cat runs.
        Condition: The animal.
        Output:
    """
    shown = [
        f"{_query(example.sentence1, example.sentence2, example.condition)} {_label(example.label)}"
        for example in examples
    ]
    return "\n".join(
        [*([instruction] if instruction else []), *shown, _query(sentence1, sentence2, condition)]
    )


def _query(sentence1: str, sentence2: str, condition: str | None) -> str:
    fields = [f"Input: Sentence 1: {sentence1.strip()}", f"Sentence 2: {sentence2.strip()}"]
    if condition is not None:
        fields.append(f"Condition: {condition.strip()}")
    return "\n".join([*fields, "Output:"])


def _label(label: float) -> str:
    """Writes 4 as ``4.0``, and 3.8 as ``3.8`` though float32 has no such number."""
    return np.format_float_positional(np.float32(label), trim="0")


Parsing = Literal["strict", "first-number"]
"""``strict``: as the paper says, the text around the number is stripped and the rest must be one
number; ``first-number``: the first number of the text, as in the script its authors released."""

# A sign or a leading point counts where a word could begin: "Output:-1" is -1, "Score-3" is 3.
_NUMBER = r"(?<![\w.)])[-+\u2212]?\.\d+|(?<![\w.)])[-+\u2212]?\d+(?:\.\d+)?|\d+(?:\.\d+)?"
_FIRST = re.compile(_NUMBER)
_MORE = re.compile(r"\d")
_LIMIT = 1e9  # a longer row of digits is no score, and one in float32 would be infinite


def check_parsing(parsing: Parsing) -> None:
    """Refuses an unknown way of parsing."""
    if parsing not in get_args(Parsing):
        raise unknown_name("way of parsing", str(parsing), get_args(Parsing))


def parse_score(text: str, *, parsing: Parsing = "strict") -> float | None:
    """Reads a score.

    Under ``strict`` everything around the number is stripped; a text with two numbers ("3 out of
    5", "0..0") is no answer. Decimal digits of all scripts count. The number need not lie on the
    scale.

    Args:
        parsing: See `Parsing`.

    Returns:
        The number, or None if there is none below 10^9.

    Examples:
        >>> parse_score("The Answer is 2.0.")
        2.0
        >>> parse_score("3 out of 5") is None
        True
        >>> parse_score("3 out of 5", parsing="first-number")
        3.0
    """
    match = _FIRST.search(text)
    if match is None:
        return None
    if parsing == "strict" and _MORE.search(text, match.end()):
        return None
    value = float(match.group().replace("\u2212", "-"))
    return value if abs(value) < _LIMIT else None
