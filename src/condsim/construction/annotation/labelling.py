"""What annotators see: the labelling pages, and the rules of C-STS in our own words.

The rules (Appendix C, Figures 7 and 8) are HTML without scripts, shown by Label Studio before the
first task and above a form for Mechanical Turk. Label Studio takes bullets, numbers and space away,
so they are written out. All examples are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from xml.sax.saxutils import quoteattr

from condsim.construction.annotation.stages import VERDICTS, Stage, Verdict

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
