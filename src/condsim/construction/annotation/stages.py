"""The stages of an annotation, what is shown at each, and what annotators answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal, NamedTuple, TypeAlias, get_args
from xml.sax.saxutils import quoteattr

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


_STYLE = """<Style>
  .condsim { max-width: 900px; }
  .condsim .pair { border: 1px solid #d0d0d8; border-radius: 6px; padding: 4px 16px 12px; }
  .condsim .given { border-left: 4px solid #617ada; padding: 0 16px 8px; margin: 12px 0; }
  .condsim .hints { background: #fff8e1; border-radius: 6px; padding: 4px 16px 8px; }
</Style>"""


def _pair(first: str, second: str) -> str:
    return (
        '<View className="pair">'
        f'<Header value="Sentence 1" size="5"/><Text name="{first}" value="${first}"/>'
        f'<Header value="Sentence 2" size="5"/><Text name="{second}" value="${second}"/>'
        "</View>"
    )


def _condition(name: str, title: str, placeholder: str) -> str:
    return (
        f'<Header value={quoteattr(title)} size="4"/>'
        f'<TextArea name="{name}" toName="sentence1" rows="1" maxSubmissions="1" editable="true" '
        f'required="true" requiredMessage={quoteattr(f"Please write. {title}")} '
        f"placeholder={quoteattr(placeholder)}/>"
    )


_WRITE = _condition(
    "high", "High: a condition under which they are alike", "The ... of the ..."
) + _condition("low", "Low: a condition under which they differ", "The ... of the ...")


def _rate(shown: str) -> str:
    choices = "".join(
        f"<Choice alias={quoteattr(str(verdict.label))} hotkey={quoteattr(verdict.key)} "
        f"value={quoteattr(_choice(verdict))}/>"
        for verdict in VERDICTS
    )
    return (
        f'<View className="given"><Header value="Condition" size="5"/>'
        f'<Text name="{shown}" value="${shown}"/></View>'
        '<Header value="How similar are they under this condition alone?" size="4"/>'
        f'<Choices name="rating" toName="{shown}" choice="single-radio" required="true" '
        f'requiredMessage="Please choose a number, or that the condition does not apply">'
        f"{choices}</Choices>"
    )


def _choice(verdict: Verdict) -> str:
    number = f"{verdict.label}  " if verdict.label > 0 else ""
    return f"{number}{verdict.name}. {verdict.meaning}"


_HINTS = (
    '<View className="hints"><Header value="Hints" size="5"/>'
    '<Text name="hints" value="$hints"/></View>'
)

_PAGES: Mapping[Stage, str] = {
    "qualification": (
        '<Header value="Part 1. Write two conditions" size="3"/>'
        + _pair("sentence1", "sentence2")
        + _WRITE
        + '<Header value="Part 2. Rate another pair" size="3"/>'
        + _pair("test_sentence1", "test_sentence2")
        + _rate("test_condition")
    ),
    "conditions": _pair("sentence1", "sentence2") + _WRITE + _HINTS,
    "verification": _pair("sentence1", "sentence2") + _rate("condition"),
}


def labelling_config(stage: Stage) -> str:
    """Gives the labelling page of a stage."""
    return f'<View className="condsim">{_STYLE}{_PAGES[stage]}</View>'


def page(name: str) -> str:
    """Reads a page that lies beside this module."""
    folder = resources.files("condsim.construction.annotation") / "pages"
    return (folder / name).read_text(encoding="utf-8").strip()


def guidelines(stage: Stage) -> str:
    """Gives the guidelines of a stage."""
    text = page(f"guidelines-{stage}.html")
    if stage == "qualification":
        return f"{text}\n{guidelines('conditions')}\n<hr>\n{guidelines('verification')}"
    scale = "".join(
        f'<p style="margin: 0 0 0.6em"><b>{label}: {name}.</b> {meaning}</p>'
        for label, name, meaning, _ in VERDICTS
        if label > 0
    )
    return text.replace("{scale}", scale)
