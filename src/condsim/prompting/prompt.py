"""What a language model is asked, and how a number is read out of its answer (C-STS, A.3)."""

# The two rows of a sentence pair are shown together, the more similar one first as in Figure 5, so
# that the model sees what the condition changes. The pair that is asked about is never among them.

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

import numpy as np

from condsim.errors import InputError, unknown_name
from condsim.types import Task

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
    """A row whose answer is shown."""

    sentence1: str
    sentence2: str
    condition: str | None
    label: float  # gold similarity on the task's own scale


def render(
    sentence1: str,
    sentence2: str,
    condition: str | None,
    *,
    instruction: str = "",
    examples: Sequence[Example] = (),
    gap: str = " ",
) -> str:
    r"""Writes a prompt as in Figures 5 and 6, without their section titles.

    Every field has a line of its own. Figure 5 breaks this once, and the authors' script joins the
    fields with spaces; to a T5 tokenizer, which reads a line break as a space, all are the same.

    Args:
        sentence1: First sentence; white space around it is dropped, here and below.
        condition: Condition, or None for a prompt without one.
        instruction: Text of the instruction; left out if empty.
        examples: Rows with their answers, in the order they are shown.
        gap: What stands between ``Output:`` and a shown answer; nothing for T5 and its kin, as in
            the released code.

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
        _query(one.sentence1, one.sentence2, one.condition) + gap + _label(one.label)
        for one in examples
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
"""``strict``: as the paper says, the text around the number is stripped and the rest of its line
must be one number; ``first-number``: the first number of the text, as in the released script."""

# A sign or a leading point counts where a word could begin: "Output:-1" is -1, "Score-3" is 3.
_NUMBER = r"(?<![\w.)])[-+\u2212]?\.\d+|(?<![\w.)])[-+\u2212]?\d+(?:\.\d+)?|\d+(?:\.\d+)?"
_FIRST = re.compile(_NUMBER)
_MORE = re.compile(r"[^\r\n]*\d")
_LIMIT = 1e9  # a longer row of digits is no score, and one in float32 would be infinite


def parse_score(text: str, *, parsing: Parsing = "strict") -> float | None:
    r"""Reads a score.

    Under ``strict`` everything around the number is stripped; a line with two numbers ("3 out of
    5", "0..0") is no answer. What follows on other lines is not read: it is mostly a next input
    that the model made up. Decimal digits of all scripts count. The number need not lie on the
    scale.

    Args:
        parsing: See `Parsing`.

    Returns:
        The number, or None if there is none below 10^9.

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
    match = _FIRST.search(text)
    if match is None:
        return None
    if parsing == "strict" and _MORE.match(text, match.end()):
        return None
    value = float(match.group().replace("\u2212", "-"))
    return value if abs(value) < _LIMIT else None


Key = frozenset[str]
_WORD = re.compile(r"\w+")


class Shots:
    """Draws the examples of every prompt from a training file.

    Each query has examples of its own, as in the code the paper's authors released. They are drawn
    with the seed and the query's texts, so a prompt depends on neither other rows nor their order.

    Attributes:
        count: Number of examples k.
        conditional: Whether the examples have conditions.
    """

    def __init__(self, train: Task, count: int, *, seed: int = 0) -> None:
        """Finds the rows that may be drawn.

        Args:
            train: Labelled rows. With conditions, a sentence pair with two of them makes a pair of
                examples, the higher label first; without, every row is an example.
            count: Number of examples k. If it is odd and there are conditions, the last pair shows
                its more similar row alone.
            seed: Seed of the draws, not negative.

        Raises:
            InputError: If k is negative, or the file has no labels or too few pairs. One pair more
                than is shown is needed, since a query's own pair may be in the file.
        """
        if count < 0:
            raise InputError(f"The number of examples must not be negative. Got {count} instead.")
        groups = _groups(train) if count else {}
        per_group = 1 if train.conditions is None else 2
        needed = -(-count // per_group) + 1 if count else 0
        if len(groups) < needed:
            what = "labelled rows" if per_group == 1 else "sentence pairs with two labelled rows"
            raise InputError(
                f"{train.name}: {count} examples need {needed} {what}, one of them in reserve for "
                f"a query whose own pair is drawn. Got {len(groups)}. Ask for fewer examples or "
                "give a larger training file."
            )
        self.count = count
        self.seed = seed
        self.conditional = train.conditions is not None
        self._groups = list(groups.items())
        self._needed = needed
        self._task = train

    def for_query(
        self, sentence1: str, sentence2: str, condition: str | None = None
    ) -> list[Example]:
        """Draws the examples of a query; the same for the same texts.

        Returns:
            The examples, none of which has these two sentences in either order, ``count`` of them.
        """
        own = _key(sentence1, sentence2)
        draw = seeded(self.seed, sentence1, sentence2, condition)
        places = draw.choice(len(self._groups), self._needed, replace=False).tolist()
        drawn = (self._groups[place] for place in places)
        rows = (row for key, group in drawn if key != own for row in group)
        task, labels, under = self._task, self._task.labels, self._task.conditions
        pairs = ((row, task.sentences1[row], task.sentences2[row]) for row in rows)
        return [
            Example(text1, text2, None if under is None else under[row], float(labels[row]))
            for row, text1, text2 in islice(pairs, self.count)
        ]


def seeded(seed: int, *texts: str | None) -> np.random.Generator:
    """Makes a generator of a seed and texts: what it draws does not depend on other rows."""
    digest = hashlib.sha256(json.dumps(texts).encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])


def _groups(train: Task) -> dict[Key, list[int]]:
    """Rows that are shown together, by sentence pair, in an order that is not that of the file."""
    if not train.valid.any():
        raise InputError(
            f"{train.name}: examples are shown with their labels, and no row has one. Give a "
            "labelled training file."
        )
    conditions = train.conditions or ("",) * len(train)
    by_pair: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in np.flatnonzero(train.valid).tolist():
        by_pair[train.sentences1[row], train.sentences2[row]].append(row)
    groups: dict[Key, list[int]] = {}
    for pair in sorted(by_pair):
        rows = sorted(by_pair[pair], key=lambda row: (-train.labels[row], conditions[row]))
        if train.conditions is None:
            groups.setdefault(_key(*pair), rows[:1])
        elif len(rows) == 2:
            groups.setdefault(_key(*pair), rows)
    return groups


def _key(sentence1: str, sentence2: str) -> Key:
    """Identifies a pair: the words of its sentences in either order, in any case."""
    return frozenset(" ".join(_WORD.findall(text.casefold())) for text in (sentence1, sentence2))
