"""One condition in several wordings: "number of dogs", "How many dogs are there?", "dog count".

People word a condition as they like, and labelled rows hold one wording each. The wordings here are
made by rules from the first word of a condition. Those of the set that ``condsim robustness``
measures are never made.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from condsim.construction import TrainingRow, write_rows
from condsim.tasks import HeldOutTexts, load_rewordings, load_task, text_digest

_FORMS: Mapping[str, str] = {
    "number": "how many {n} there are|How many {n} are there?|amount of {n}|{n} count|count of {n}|"
    "how many {n} can be seen|the number of the {n}",
    "quantity": "how much {n} there is|How much {n} is there?|amount of {n}",
    "color": "what color the {n} {is}|What color {is} the {n}?|{n} color|colour of the {n}|"
    "which color the {n} {has}|the {n}'s colour",
    "gender": "sex of the {n}|whether the {n} {is} male or female|{Is} the {n} male or female?|"
    "{n}'s gender|{Is} the {n} {sex}?|man or woman|the sex",
    "age": "how old the {n} {is}|How old {is} the {n}?|{n}'s age|age group of the {n}|"
    "whether the {n} {is} young or old|{Is} the {n} a child or an adult?",
    "type": "kind of {n}|what kind of {n} it is|What kind of {n} is it?|{n} type|sort of {n}|"
    "which {n} {is} shown|which {n} it is|what {n} there {is}|What {n} {is} there?|"
    "Which {n} is it?",
    "species": "kind of {n}|which {n} it is|What kind of {n} is it?|type of {n}",
    "name": "what the {n} is called|{n}|which {n} it is|What {n} is it?|the {n}'s name",
    "location": "where the {n} {is}|Where {is} the {n}?|place where the {n} {is}|{n}'s location|"
    "setting of the {n}|the place of the {n}",
    "activity": "what the {n} {is} doing|What {is} the {n} doing?|{n}'s activity|"
    "what the {n} {does}|the thing that the {n} {is} busy with",
    "posture": "how the {n} {is} positioned|{n}'s posture|pose of the {n}|"
    "{Is} the {n} standing, sitting or lying?|whether the {n} {is} standing or sitting",
    "movement": "how the {n} {is} moving|How {is} the {n} moving?|motion of the {n}|"
    "whether the {n} {is} moving|{n}'s movement",
    "presence": "whether there is any {n}|Is there any {n}?|{n} there or not|{n} present|"
    "whether {n} can be seen",
    "occupation": "what the {n} {does} for a living|job of the {n}|profession of the {n}|"
    "{n}'s job|What {is} the {n} by profession?",
    "size": "how big the {n} {is}|How big {is} the {n}?|{n} size|how large the {n} {is}",
    "opinion": "what is thought of the {n}|What is said of the {n}?|attitude to the {n}|"
    "whether the {n} {is} liked|the judgement on the {n}|Does the writer like the {n}?",
    "cause": "what caused the {n}|why there was the {n}|reason for the {n}|What led to the {n}?|"
    "{n}'s cause|the reason of the {n}",
    "tone": "how the {n} sounds|{n}'s tone|the mood of the {n}|How does the {n} sound?",
}
_ALIKE: Mapping[str, str] = {
    "quantity": "quantity",
    "amount": "quantity",
    "colour": "color",
    "sex": "gender",
    "kind": "type",
    "sort": "type",
    "place": "location",
    "setting": "location",
    "action": "activity",
    "actions": "activity",
    "activities": "activity",
    "pose": "posture",
    "position": "posture",
    "motion": "movement",
    "job": "occupation",
    "profession": "occupation",
    "reason": "cause",
    "attitude": "opinion",
    "sentiment": "tone",
}
_WHOLE: Mapping[str, str] = {
    "location": "where it is|Where is it?|the place of the scene|Where does it happen?|scene|"
    "in which place it happens|setting",
    "activity": "what is going on|What is going on?|what is happening|the thing being done|"
    "what someone is doing|action",
    "gender": "sex|male or female|whether it is a man or a woman|Man or woman?",
    "age": "how old|young or old|age group|How old?",
    "weather": "weather conditions|How is the weather?|whether it rains, snows or is sunny|"
    "the state of the weather",
    "season": "time of year|Which season is it?|What time of the year is it?|the part of the year",
    "color": "colour|which color|What color is it?|what color it is",
    "sport": "which sport|Which sport is it?|what sport it is|the game being played|kind of game",
    "furniture": "piece of furniture|which furniture there is|What furniture is there?",
    "mood": "feeling|how one feels|emotion|How do they feel?",
    "opinion": "what is thought of it|positive or negative|Is it liked?|the judgement",
    "topic": "what it is about|subject|What is it about?|the matter",
    "time of day": "whether it is day or night|Day or night?|Which time of the day is it?",
    "mode of transportation": "how they travel|means of travel|vehicle|How do they get about?",
}
_ANY = (
    "the {c}|The {c}.|What is the {c}?|{c}|with respect to the {c}|in terms of the {c}|the {c}?|"
    "as regards {c}|Compare the {c}.|{c}, nothing else"
)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_PARTS = re.compile(r"^(\w+) of (?:the |a |an )?(.+)$")
_QUESTION = re.compile(
    r"^(?:what|which|who|whose|where|when|why|how|whether|is|are|does|do|if|with|in|as)\b"
)
_ONE = {"is": "is", "Is": "Is", "has": "has", "does": "does", "sex": "a man or a woman"}
_MANY = {"is": "are", "Is": "Are", "has": "have", "does": "do", "sex": "men or women"}
_PLURALS = frozenset({"people", "men", "women", "children", "persons"})
_ANY_RATE = 0.4  # of the wordings drawn, those that only dress the condition


def reworded(condition: str, draw: random.Random) -> str:
    """Draws another wording of a condition; the condition itself if no rule fits."""
    plain = _ARTICLE.sub("", condition.strip().rstrip(".?")).lower()
    if _QUESTION.match(plain):
        return draw.choice((plain, f"{plain[:1].upper()}{plain[1:]}.", f"{plain}?"))
    forms = _WHOLE.get(plain)
    noun = plain
    if forms is None and (parts := _PARTS.match(plain)):
        head, noun = parts.groups()
        forms = _FORMS.get(_ALIKE.get(head, head))
    if forms is None or draw.random() < _ANY_RATE:
        forms, noun = _ANY, plain
    many = noun in _PLURALS or (noun.endswith("s") and not noun.endswith("ss"))
    return draw.choice(forms.split("|")).format(n=noun, c=noun, **(_MANY if many else _ONE))


def write_wordings(
    files: Sequence[Path],
    output: Path,
    *,
    rows: int,
    exclude: HeldOutTexts,
    wordings: int = 3,
) -> None:
    """Draws pairs of each file, as many of each, with their conditions in several wordings.

    Args:
        files: Labelled rows; see :func:`condsim.tasks.load_task`.
        output: The file of rows.
        rows: Rows to write, about.
        exclude: Texts that no row has.
        wordings: Of each condition, at most; all of a condition have its label.
    """
    draw = random.Random(0)
    measured = frozenset(text_digest(wording) for wording in load_rewordings().conditions)

    def made() -> Iterator[TrainingRow]:
        for file in files:
            yield from _of(file, rows // len(files), wordings, measured, exclude, draw)

    write_rows(made(), output, kind=TrainingRow)


def _of(
    file: Path,
    rows: int,
    wordings: int,
    measured: frozenset[bytes],
    exclude: HeldOutTexts,
    draw: random.Random,
) -> Iterator[TrainingRow]:
    task = load_task(file).labelled()
    made = 0
    for row in draw.sample(range(len(task)), len(task)):
        first, second = task.sentences1[row], task.sentences2[row]
        condition = (task.conditions or ())[row]
        if first in exclude or second in exclude:
            continue
        drawn = dict.fromkeys([condition])
        for _ in range(4 * wordings):
            wording = reworded(condition, draw)
            if text_digest(wording) not in measured and len(drawn) < wordings:
                drawn.setdefault(wording)
        if len(drawn) < 2:
            continue
        label = 1 + 4 * float(task.gold[row])
        for wording in drawn:
            yield TrainingRow(first, second, wording, round(label, 2), "gold")
        made += len(drawn)
        if made >= rows:
            return
