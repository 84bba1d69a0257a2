"""Instructions: what a language model is told about the task, in three lengths.

Those for conditional similarity are the paper's own, word for word, since they are part of its
experiment (Deshpande et al., 2023, Figures 5 and 6). Those for similarity without a condition are
ours: the short one says the same without the condition, the long one puts the classes of the STS
scale, 0 to 5 (Cer et al., 2017, Table 1), in the form of the paper's long one.
"""

from __future__ import annotations

from typing import Literal, get_args

from condsim.errors import unknown_name

__all__ = ["INSTRUCTIONS", "Instruction", "instruction_text"]

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
