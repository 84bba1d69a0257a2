"""How far each stage is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from condsim.construction.rows import DOES_NOT_APPLY
from condsim.errors import unknown_name

Stage: TypeAlias = Literal["qualification", "conditions", "verification"]
"""A stage of the annotation (C-STS §2.2.2)."""

STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages in their order."""

FIELDS: Mapping[Stage, tuple[str, ...]] = {
    "qualification": ("high", "low", "rating"),
    "conditions": ("high", "low"),
    "verification": ("rating",),
}
"""What an annotator fills in at each stage."""


@dataclass(frozen=True)
class Verdict:
    """One answer to how similar two sentences are under a condition.

    Attributes:
        label: 1 to 5, or `DOES_NOT_APPLY`.
        name: A few words.
        meaning: One sentence.
        key: The key that chooses it in Label Studio.
    """

    label: int
    name: str
    meaning: str
    key: str


VERDICTS = (
    Verdict(1, "Nothing in common", "As for the condition, the two have nothing in common.", "1"),
    Verdict(2, "Different, but related", "They differ, yet in things of the same kind.", "2"),
    Verdict(
        3, "Partly the same", "About the same, but something that matters differs or is open.", "3"
    ),
    Verdict(4, "Nearly the same", "The same but for details that do not matter here.", "4"),
    Verdict(5, "The same", "As for the condition, both say exactly the same.", "5"),
    Verdict(
        DOES_NOT_APPLY,
        "The condition does not apply",
        "For at least one of the sentences the question makes no sense or has no answer.",
        "0",
    ),
)
"""The Likert scale of C-STS (Figures 6 and 8) in our own words, and the way out."""


@dataclass(frozen=True)
class Work:
    """One thing to annotate.

    Attributes:
        item_id: The pair (conditions), the row (verification) or the test item (qualification).
        shown: What annotators see, by the name of the variable on the page.
        facts: What they must not see: the pair, who wrote the condition, the right answer.
    """

    item_id: str
    shown: Mapping[str, str]
    facts: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What an annotator gave back; a field that was left empty, or is not asked, is None.

    Attributes:
        high: The condition under which the pair is alike.
        low: The one under which it is not.
        rating: 1 to 5, or `DOES_NOT_APPLY`.
    """

    high: str | None = None
    low: str | None = None
    rating: int | None = None

    def missing(self, stage: Stage) -> tuple[str, ...]:
        """Names what the stage asks for and is not there."""
        return tuple(name for name in FIELDS[stage] if getattr(self, name) is None)


def stage_of(name: str) -> Stage:
    """Gives the stage of a name.

    Args:
        name: The name.

    Returns:
        The stage.

    Raises:
        InputError: If there is no such stage.
    """
    for stage in STAGES:
        if stage == name:
            return stage
    raise unknown_name("stage", name, STAGES)
