"""The prompt: instruction, examples and query as one text (Deshpande et al., 2023, Appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Example", "render"]


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

    Every field stands on a line of its own. Figure 5 breaks this once, for its second example; the
    script that the authors released joins the fields with spaces. Both say the same to a T5
    tokenizer, which reads a line break as a space.

    Args:
        sentence1: First sentence; white space around it is dropped, here and below.
        sentence2: Second sentence.
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
