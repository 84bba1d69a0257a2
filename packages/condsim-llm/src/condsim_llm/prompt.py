"""Prompts for similarity, and the number read out of an answer (C-STS, A.3)."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from condsim.errors import InputError, check_name
from condsim.types import Task

Instruction = Literal["none", "short", "long"]
"""``none``; ``short``: the question in two sentences; ``long``: the meaning of each score."""

Parsing = Literal["strict", "first-number"]
"""``strict``: the paper's rule, one number on its line, with any text around it.
``first-number``: the first number of the text, as in the released script."""

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
# As in the released script; the classes are the scale of STS-B's annotators (Cer et al., 2017,
# Table 1).
_PLAIN_LONG = """\
Definition: Evaluate the similarity between them and classify them into classes from 0-5 as follows:
0 : The two sentences are completely dissimilar.
1 : The two sentences are not equivalent, but are on the same topic.
2 : The two sentences are not equivalent, but share some details.
3 : The two sentences are roughly equivalent, but some important information differs/missing.
4 : The two sentences are mostly equivalent, but some unimportant details differ.
5 : The two sentences are completely equivalent, as they mean the same thing."""

INSTRUCTIONS: dict[bool, dict[Instruction, str]] = {
    True: {"none": "", "short": _CONDITIONAL_SHORT, "long": _CONDITIONAL_LONG},
    False: {"none": "", "short": _PLAIN_SHORT, "long": _PLAIN_LONG},
}
"""Text by whether there is a condition, then by name."""


def instruction_text(name: Instruction, *, conditional: bool) -> str:
    """Return the text of an instruction, without a line break at its end; empty for ``none``.

    Args:
        conditional: Whether the rows have conditions (scale 1 to 5) or not (scale 0 to 5).

    Raises:
        InputError: If the name is unknown.
    """
    check_name("instruction", str(name), get_args(Instruction))
    return INSTRUCTIONS[conditional][name]


@dataclass(frozen=True)
class Example:
    """A row whose answer is part of the prompt; the label is on the task's own scale."""

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
    gap: str = " ",
) -> str:
    r"""Write a prompt as in Figures 5 and 6, without their section titles.

    Every field is on a separate line. Figure 5 breaks this once, and the authors' script joins the
    fields with spaces; a T5 tokenizer reads a line break as a space, so it sees no difference.

    Args:
        sentence1: First sentence; white space around this and the other fields is dropped.
        condition: Condition, or None for a prompt without one.
        instruction: Text of the instruction; left out if empty.
        examples: Rows with their answers, in the order of the prompt.
        gap: Text between ``Output:`` and the answer of an example; empty for T5 and other
            encoder-decoders, as in the released code.

    Returns:
        The prompt, which ends in ``Output:``.

    Examples:
        >>> print(render("A dog runs.", "A cat runs.", "The animal."))
        Input: Sentence 1: A dog runs.
        Sentence 2: A cat runs.
        Condition: The animal.
        Output:
    """
    blocks = [instruction] if instruction else []
    for example in examples:
        query = _query(example.sentence1, example.sentence2, example.condition)
        # Float32 has no 3.8; the shortest text that rounds to the same number is "3.8".
        label = np.format_float_positional(np.float32(example.label), trim="0")
        blocks.append(query + gap + label)
    return "\n".join([*blocks, _query(sentence1, sentence2, condition)])


def _query(sentence1: str, sentence2: str, condition: str | None) -> str:
    lines = [f"Input: Sentence 1: {sentence1.strip()}", f"Sentence 2: {sentence2.strip()}"]
    if condition is not None:
        lines.append(f"Condition: {condition.strip()}")
    return "\n".join([*lines, "Output:"])


# As in the released script, a sign or a leading point does not count: "-1" is 1, ".5" is 5.
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DIGIT_ON_SAME_LINE = re.compile(r"[^\r\n]*\d")
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)|\A.*?</think>", re.DOTALL)
# A longer row of digits is not a score, and would be infinite in float32.
_MAX_SCORE = 1e9


def parse_score(text: str, *, parsing: Parsing = "strict") -> float | None:
    r"""Read a score out of an answer; None if there is none below 10^9.

    Under ``strict`` a line with two numbers ("3 out of 5", "0..0") is invalid. Later lines are
    ignored, since they are mostly a next input that the model made up. As in the released script,
    signs and a leading point are dropped: "-1" is 1 and ".5" is 5. Decimal digits of all scripts
    count. The number may lie outside the scale. Numbers between ``<think>`` and ``</think>`` are
    ignored.

    Examples:
        >>> parse_score("The Answer is 2.0.")
        2.0
        >>> parse_score("5\nInput: Sentence 1: 2 dogs run.")
        5.0
        >>> parse_score("3 out of 5") is None
        True
        >>> parse_score("3 out of 5", parsing="first-number")
        3.0
    """
    # Thoughts come before the answer; a limit of tokens may have cut them.
    text = _THOUGHT.sub("", text)
    match = _NUMBER.search(text)
    if match is None:
        return None
    if parsing == "strict" and _DIGIT_ON_SAME_LINE.match(text, match.end()):
        return None
    value = float(match.group())
    return value if value < _MAX_SCORE else None


PairKey = frozenset[str]
_WORD = re.compile(r"\w+")


class Shots:
    """Examples for prompts, drawn from a labeled training file.

    With conditions, the two rows of a sentence pair come together, the more similar one first as in
    Figure 5, so that the model sees the effect of the condition; pairs with other than two labeled
    rows are left out. Without conditions, every row is an example. Each query has its own examples,
    as in the released code. The draw depends on the seed and the query's texts alone.

    Attributes:
        count: Number of examples k. If it is odd, the last pair shows only its more similar row.
        conditional: Whether the examples have conditions.
    """

    def __init__(self, train: Task, count: int, *, seed: int = 0) -> None:
        self.count = count
        self.conditional = train.conditions is not None
        self._seed = seed
        self._task = train
        self._groups = list(_example_groups(train).items()) if count else []
        rows_per_group = 2 if self.conditional else 1
        # One more than needed, since the query's own pair may be among those drawn.
        self._groups_per_query = -(-count // rows_per_group) + 1 if count else 0
        if len(self._groups) < self._groups_per_query:
            unit = "sentence pairs with two labeled rows" if self.conditional else "labeled rows"
            raise InputError(
                f"{train.name}: {count} examples need {self._groups_per_query} {unit}, one in "
                f"reserve; got {len(self._groups)}. Ask for fewer examples or give a larger file."
            )

    def for_query(
        self, sentence1: str, sentence2: str, condition: str | None = None
    ) -> list[Example]:
        """Draw ``count`` examples, none with the query's two sentences in either order."""
        own_key = _sentences_key(sentence1, sentence2)
        generator = seeded(self._seed, sentence1, sentence2, condition)
        indices = generator.choice(len(self._groups), self._groups_per_query, replace=False)
        rows: list[int] = []
        for index in indices.tolist():
            key, group = self._groups[index]
            if key != own_key:
                rows.extend(group)
        task = self._task
        return [
            Example(
                task.sentences1[row],
                task.sentences2[row],
                None if task.conditions is None else task.conditions[row],
                float(task.labels[row]),
            )
            for row in rows[: self.count]
        ]


def seeded(seed: int, *texts: str | None) -> np.random.Generator:
    """Make a generator from a seed and texts, so that its draws do not depend on other rows."""
    digest = hashlib.sha256(json.dumps(texts).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])


def _example_groups(train: Task) -> dict[PairKey, list[int]]:
    """Group the rows that come together by sentence pair, independent of the file's order."""
    conditions = train.conditions or ("",) * len(train)
    rows_of_pair: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in np.flatnonzero(train.valid).tolist():
        rows_of_pair[train.sentences1[row], train.sentences2[row]].append(row)
    groups: dict[PairKey, list[int]] = {}
    for pair in sorted(rows_of_pair):
        rows = sorted(rows_of_pair[pair], key=lambda row: (-train.labels[row], conditions[row]))
        if train.conditions is None:
            groups.setdefault(_sentences_key(*pair), rows[:1])
        elif len(rows) == 2:
            groups.setdefault(_sentences_key(*pair), rows)
    return groups


def _sentences_key(sentence1: str, sentence2: str) -> PairKey:
    """Identify a pair by the words of its sentences, in either order and any case."""
    return frozenset(" ".join(_WORD.findall(text.casefold())) for text in (sentence1, sentence2))
