"""The stages of an annotation, what is shown at each, and what annotators answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

from condsim.construction.rows import DOES_NOT_APPLY

Stage: TypeAlias = Literal["qualification", "conditions", "verification"]  # C-STS §2.2.2
STAGES: tuple[Stage, ...] = get_args(Stage)

FIELDS: Mapping[Stage, tuple[str, ...]] = {
    "qualification": ("high", "low", "rating"),
    "conditions": ("high", "low"),
    "verification": ("rating",),
}
"""What an annotator fills in at each stage."""


class Verdict(NamedTuple):
    """One answer to how similar two sentences are under a condition."""

    label: int  # 1 to 5, or DOES_NOT_APPLY
    name: str
    meaning: str
    key: str  # chooses it in Label Studio


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

_LABELS = frozenset(verdict.label for verdict in VERDICTS)


@dataclass(frozen=True)
class Item:
    """One thing to annotate."""

    item_id: str  # of the pair (conditions), the row (verification) or the test item
    shown: Mapping[str, str]  # what annotators see, by the name of the variable on the page
    facts: Mapping[str, str | int] = field(default_factory=dict)  # what they must not see
    task: int | None = None  # its number on the server; None where it is not known to be there


class Answer(NamedTuple):
    """What an annotator gave back; a field that was left empty, or is not asked, is None."""

    high: str | None = None  # the condition under which the pair is alike
    low: str | None = None
    rating: int | None = None  # 1 to 5, or DOES_NOT_APPLY

    def missing(self, stage: Stage) -> tuple[str, ...]:
        """Names what the stage asks for and is not there."""
        return tuple(name for name in FIELDS[stage] if getattr(self, name) is None)


def text_of(value: object) -> str | None:
    """Reads a text field: one text or a list of them, white space made single."""
    texts = value if isinstance(value, list) else [value]
    words = " ".join(" ".join(text.split()) for text in texts if isinstance(text, str)).strip()
    return words or None


def rating_of(value: object) -> int | None:
    """Reads a rating; None for what is not on the scale."""
    try:
        rating = float(str(value).strip())
    except ValueError:
        return None
    return int(rating) if rating in _LABELS else None
