"""What annotators are told: the rules of C-STS (Appendix C, Figures 7 and 8) in our own words.

HTML without scripts, shown by Label Studio before the first task and above a form for Mechanical
Turk. Label Studio takes bullets, numbers and space away, so they are written out. All examples are
our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from xml.sax.saxutils import quoteattr

from condsim.construction.annotation.stages import FIELDS, VERDICTS, Answer, Stage

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
    """Gives the labelling page of a stage."""
    return f'<View className="condsim">{_STYLE}{_PAGES[stage]}</View>'


def result_of(stage: Stage, answer: Answer) -> list[dict[str, object]]:
    """Writes an answer as Label Studio holds it, for a prediction or an annotation."""
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


RULES = (
    ("Correct English", "A phrase or a sentence, spelt and put together correctly."),
    (
        "Answered by both sentences",
        "Both sentences must tell the answer, or let a reader work it out. If one of them leaves "
        "it open, take another aspect.",
    ),
    (
        "An aspect, not its value",
        "Write <i>the color of the clothes</i>, never <i>the clothes are red</i>.",
    ),
    (
        "No word about sentences",
        "Leave out <i>in the sentence</i>, <i>in both texts</i> and the like.",
    ),
    (
        "One definite aspect",
        "<i>The activity</i> or <i>the object</i> could mean anything. Say which: <i>the "
        "sport</i>, <i>the means of transport</i>.",
    ),
    (
        "Abstract where you can",
        "What things are for, how people feel, what work they do: this is worth more than counting "
        "and colors, though those are allowed.",
    ),
)
"""The six rules for conditions: name and explanation (HTML)."""

_SPACE = 'style="margin: 0 0 0.6em"'
_HEADING = 'style="margin: 1.1em 0 0.4em"'


def _lines(*texts: str) -> str:
    return "".join(f"<p {_SPACE}>{text}</p>" for text in texts)


_PAIR = (
    "<b>Sentence 1</b>: A baker pulls a tray of rolls out of the oven.<br>"
    "<b>Sentence 2</b>: A mechanic tightens a bolt under a raised car."
)

_RULES = [f"<b>{number}. {name}.</b> {text}" for number, (name, text) in enumerate(RULES, start=1)]

_WRITING = _lines(
    "A condition names one aspect of what the sentences describe. Write one under which the two "
    "are <b>alike</b> (high), and one under which they are <b>different</b> (low).",
    _PAIR,
    "<b>High</b>: <i>What the person is doing for a living</i>. Both are at work in a trade.<br>"
    "<b>Low</b>: <i>The place of work</i>. A bakery is not a garage.",
)
_BROKEN = _lines(
    "<i>The age of the person</i> breaks rule 2: neither sentence tells it.",
    "<i>Both of them are working</i> breaks rule 3; <i>the kind of occupation</i> is right.",
    "<i>The tool in the second sentence</i> breaks rule 4.",
    "<i>The thing</i> breaks rule 5.",
)

_CONDITIONS = f"""
<br><h3 {_HEADING}>Write two conditions for each pair of sentences</h3>
{_WRITING}
<br><h4 {_HEADING}>Six rules</h4>
{_lines(*_RULES)}
<br><h4 {_HEADING}>Conditions that break a rule</h4>
{_BROKEN}
{_lines("You may look things up. The words must be your own.")}
"""

_SCALE = [
    f"<b>{verdict.label}: {verdict.name}.</b> {verdict.meaning}"
    for verdict in VERDICTS
    if verdict.label > 0
]

_EXAMPLES = (
    ("A nurse waters the ferns.", "The captain steers the ferry.", "The purpose of the action", 1),
    ("She peels an orange.", "He slices a lemon.", "The kind of fruit", 2),
    ("A few hikers rest.", "Some guests wait at the bar.", "How many people there are", 3),
    ("A girl rides her pony.", "The old horse is tied to a fence.", "The animal", 4),
    ("Two monks chat.", "A pair of pilots share a joke.", "The number of people", 5),
)

_RATED = [
    f"{escape(first)} / {escape(second)} <i>{escape(condition)}</i>: <b>{label}</b>"
    for first, second, condition, label in _EXAMPLES
]

_FIRST = _lines(
    "<b>First</b> ask whether the condition has an answer for <b>both</b> sentences. If it has "
    "none for even one of them, choose <b>The condition does not apply</b>. An example: under "
    "<i>the mood of the speaker</i> nothing can be said of <i>The bridge is 90 metres long</i>.",
    "<b>Then</b> choose a number. Forget everything that the condition does not ask about.",
)

_VERIFICATION = f"""
<br><h3 {_HEADING}>How similar are the two sentences, looked at under the condition alone?</h3>
{_FIRST}
{_lines(*_SCALE)}
<br><h4 {_HEADING}>One example of each</h4>
{_lines(*_RATED)}
{_lines("Use the ends of the scale where they fit, and do not flee to 3.")}
"""

_TEST = _lines(
    "This test shows whether the task suits you. Each page has two parts: write two conditions "
    "for one pair of sentences, then rate another pair under a condition that is given. Answer "
    "all pages: they are scored together."
)

_QUALIFICATION = f"{_TEST}{_CONDITIONS}<hr>{_VERIFICATION}"

_TEXTS: Mapping[Stage, str] = {
    "qualification": _QUALIFICATION,
    "conditions": _CONDITIONS,
    "verification": _VERIFICATION,
}


def guidelines(stage: Stage) -> str:
    """Gives the guidelines of a stage."""
    return _TEXTS[stage].strip()
