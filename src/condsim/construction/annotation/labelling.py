"""The labelling page of each stage, in the XML of Label Studio (https://labelstud.io/tags)."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import quoteattr

from condsim.construction.annotation.stages import FIELDS, VERDICTS, Answer, Stage

__all__ = ["labelling_config", "result_of"]

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
        f"value={quoteattr(_choice(verdict.label, verdict.name, verdict.meaning))}/>"
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


def _choice(label: int, name: str, meaning: str) -> str:
    number = f"{label}  " if label > 0 else ""
    return f"{number}{name}. {meaning}"


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
    """Gives the labelling page of a stage.

    Args:
        stage: The stage.

    Returns:
        The configuration of a Label Studio project.
    """
    return f'<View className="condsim">{_STYLE}{_PAGES[stage]}</View>'


def result_of(stage: Stage, answer: Answer) -> list[dict[str, object]]:
    """Writes an answer as Label Studio holds it, for a prediction or an annotation.

    Args:
        stage: The stage.
        answer: The answer; what is None, or not asked at this stage, is left out.

    Returns:
        One region a field.
    """
    rated = "condition" if stage == "verification" else "test_condition"
    regions: list[dict[str, object]] = [
        {
            "from_name": name,
            "to_name": "sentence1",
            "type": "textarea",
            "value": {"text": [text]},
        }
        for name, text in (("high", answer.high), ("low", answer.low))
        if text is not None and name in FIELDS[stage]
    ]
    if answer.rating is not None and "rating" in FIELDS[stage]:
        regions.append(
            {
                "from_name": "rating",
                "to_name": rated,
                "type": "choices",
                "value": {"choices": [str(answer.rating)]},
            }
        )
    return regions
