"""The stages of an annotation: what is shown, what is answered, and hints at bad conditions."""

# The rules of hints are regular expressions that Python and JavaScript read alike, so the form for
# Mechanical Turk gives the same hints while the annotator types.

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args
from xml.sax.saxutils import quoteattr

from condsim.data.reading import stem_of
from condsim.rows.records import (
    DOES_NOT_APPLY,
    HUMAN,
    Condition,
    TableRow,
    check_label,
    pair_id_of,
    read_rows,
    row_id_of,
)

_FOLDER = Path(__file__).parent

NO_HINTS = "None so far. Hints never block: edit what you agree with."
"""What a page shows where there are none."""

_COLORS = (
    "black|blue|brown|gold|golden|gray|green|grey|orange|pink|purple|red|silver|tan|white|yellow|"
    "beige|maroon|teal|blond|blonde"
)
_COLORED = f"{_COLORS}|colou?rful|\\w*colored|snow|snowy|grass|grassy"
_SIZES = (
    "big|giant|gigantic|huge|large|larger|little|long|massive|mini|short|small|smaller|tall|tiny"
)
_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|several|many|few"
_GENDERS = (
    "boys?|boyfriend|bride|brothers?|dad|daughters?|fathers?|females?|gentlem[ae]n|girls?|"
    "girlfriend|groom|guys?|he|her|him|his|husband|lad(?:y|ies)|males?|m[ae]n|mom|mothers?|"
    "she|sisters?|sons?|wife|wom[ae]n|\\w+wom[ae]n|\\w+m[ae]n"
)
_AGES = (
    "adults?|aged|bab(?:y|ies)|boys?|child(?:ren)?|elderly|girls?|grand\\w+|infants?|kids?|"
    "m[ae]n|middle|old|older|puppy|students?|teen\\w*|toddlers?|wom[ae]n|years?|young|younger|youth"
)
_VALUES = f"{_COLORS}|{_SIZES}|{_NUMBERS}|male|female|young|old|elderly|happy|sad"

_VAGUE = (
    "action|activity|aspect|attribute|background|content|context|description|detail|event|idea|"
    "information|meaning|object|people|person|scenario|scene|setting|situation|subject|thing|"
    "theme|topic"
)
_ARTICLE = r"^\W*(?:the |an? |their |its )?"


@dataclass(frozen=True)
class HintRule:
    """When one of the six rules may be broken."""

    rule: int  # number of the rule in the guidelines, 1 to 6
    text: str  # what the annotator is told
    pattern: str  # a doubtful condition matches this; case does not count
    needed: str | None = None  # then it is doubtful only where a sentence does not match this


def _missing(what: str, attribute: str, values: str) -> HintRule:
    return HintRule(
        2,
        f"Do both sentences tell the {what}, or let a reader work it out?",
        rf"\b(?:{attribute})\b",
        rf"\b(?:{values})\b",
    )


HINT_RULES = (
    HintRule(1, "Write a phrase or a sentence of words.", r"^[^a-z]*$|^\W*\w{1,2}\W*$"),
    HintRule(1, "A word stands twice in a row.", r"\b(\w+) \1\b"),
    HintRule(1, "The end seems to be missing.", r"\b(?:an?|and|or|the)\W*$"),
    _missing("color", "colou?rs?", _COLORED),
    _missing("gender", "genders?|sex", _GENDERS),
    _missing("age", "ages?", _AGES),
    _missing("size", "sizes?", _SIZES),
    HintRule(
        3,
        "Name the aspect and not its value: 'the color', not 'the color is red'.",
        rf"^(?!\W*(?:what|how|who|whose|where|when|which|whether|why|if)\b).*"
        rf"\b(?:is|are|was|were) (?:not |both |all )?(?!\w+ing\b|(?:at|in|of|on|to|with)\b)\w+\W*$"
        rf"|{_ARTICLE}(?:{_VALUES})(?: \w+)?\W*$"
        rf"|\b(?:colou?r|size|number|age|gender)(?: being| of)? (?:{_VALUES})\W*$",
    ),
    HintRule(
        4,
        "Leave out 'the sentence' and the like: name the aspect alone.",
        r"\b(?:sentences?|captions?|texts?|statements?|phrases?|s1|s2)\b",
    ),
    HintRule(
        5,
        "Say which aspect: this one could be anything.",
        rf"{_ARTICLE}(?:main )?(?:{_VAGUE})s?(?: (?:in question|involved|described|shown))?\W*$",
    ),
    HintRule(
        6,
        "Is there a more abstract aspect: a feeling, a purpose, an occupation?",
        rf"{_ARTICLE}(?:number|amount|count|quantity|colou?rs?)\b|^\W*how (?:many|much)\b",
    ),
)
"""The rules in the order in which hints are given."""


def hints_of(condition: str, sentence1: str, sentence2: str) -> tuple[HintRule, ...]:
    """Finds the rules that a condition may break.

    Example:
        >>> [hint.rule for hint in hints_of("The activity.", "A man skis.", "A dog runs.")]
        [5]
    """
    text = " ".join(condition.split())
    found: dict[int, HintRule] = {}
    for rule in HINT_RULES:
        if rule.rule in found or not re.search(rule.pattern, text, re.IGNORECASE):
            continue
        needed, sentences = rule.needed, (sentence1, sentence2)
        if needed is None or not all(re.search(needed, one, re.IGNORECASE) for one in sentences):
            found[rule.rule] = rule
    return tuple(found.values())


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


VERDICTS = (
    Verdict(1, "Nothing in common", "As for the condition, the two have nothing in common."),
    Verdict(2, "Different, but related", "They differ, yet in things of the same kind."),
    Verdict(3, "Partly the same", "About the same, but something that matters differs or is open."),
    Verdict(4, "Nearly the same", "The same but for details that do not matter here."),
    Verdict(5, "The same", "As for the condition, both say exactly the same."),
    Verdict(
        DOES_NOT_APPLY,
        "The condition does not apply",
        "For at least one of the sentences the question makes no sense or has no answer.",
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


def labelling_config(stage: Stage) -> str:
    """Gives the labelling page of a stage in Label Studio."""
    choices = "\n".join(
        f'  <Choice alias="{one.label}" hotkey="{max(one.label, 0)}" value='
        + quoteattr(f"{f'{one.label}  ' if one.label > 0 else ''}{one.name}. {one.meaning}")
        + "/>"
        for one in VERDICTS
    )
    fields = fields_of(stage, "xml", choices)
    if stage == "conditions":
        fields += "\n" + page("label-studio-hints.xml")
    return page("label-studio.xml").replace("{fields}", fields)


def fields_of(stage: Stage, markup: Literal["xml", "html"], choices: str) -> str:
    """Lays out what a stage shows and asks, in the XML of Label Studio or in HTML."""
    write = page(f"write.{markup}")
    rate = page(f"rate.{markup}").replace("{choices}", choices)
    if stage == "conditions":
        return write
    if stage == "verification":
        return rate.replace("{test}", "")
    test = page(f"test.{markup}")  # both, the second about a pair of its own
    return test.replace("{write}", write).replace("{rate}", rate.replace("{test}", "test_"))


def page(name: str) -> str:
    """Reads a page that lies beside this module."""
    return (_FOLDER / "pages" / name).read_text(encoding="utf-8").strip()


def guidelines(stage: Stage) -> str:
    """Gives the guidelines of a stage."""
    text = page(f"guidelines-{stage}.html")
    if stage == "qualification":
        return f"{text}\n{guidelines('conditions')}\n<hr>\n{guidelines('verification')}"
    scale = "".join(
        f'<p style="margin: 0 0 0.6em"><b>{label}: {name}.</b> {meaning}</p>'
        for label, name, meaning in VERDICTS
        if label > 0
    )
    return text.replace("{scale}", scale)


@dataclass(frozen=True, slots=True)
class SentencePair(TableRow):
    """A pair for which conditions are written."""

    sentence1: str
    sentence2: str
    pair_id: str = ""  # made of the sentences where the file has none


@dataclass(frozen=True, slots=True)
class KnownTriplet(TableRow):
    """A pair under a condition whose right answer is known."""

    sentence1: str
    sentence2: str
    condition: str
    label: int  # 1 to 5, or DOES_NOT_APPLY

    def __post_init__(self) -> None:
        check_label(self.label, what="the known answer")


def items_to_annotate(
    stage: Stage, data: Path | None = None, *, pairs: Path | None = None
) -> Iterator[Item]:
    """Reads the items of a stage.

    Args:
        stage: ``"qualification"``, ``"conditions"`` or ``"verification"``.
        data: qualification: triplets with the columns ``sentence1, sentence2, condition, label``
            (1 to 5, or -1 where the condition does not apply); a short test of our own if None.
            conditions: pairs with the columns ``sentence1, sentence2`` and perhaps ``pair_id``,
            such as the candidates. verification: conditions, as `write_stage` writes them.
        pairs: qualification: pairs to write conditions for, taken in turn; our own if None.

    Returns:
        The items, read while they are taken.

    Raises:
        InputError: If a file breaks a rule or is empty.
    """
    if stage == "qualification":
        return qualification_items(data, pairs)
    if data is None:
        return iter(())
    if stage == "conditions":
        return condition_items(data)
    return verification_items(read_rows(data, Condition))


def qualification_items(known: Path | None = None, pairs: Path | None = None) -> Iterator[Item]:
    """Makes the items of a qualification test: a triplet, and a pair to write conditions for."""
    triplets = list(read_rows(known or _FOLDER / "own_test" / "known.csv", KnownTriplet))
    written = list(read_rows(pairs or _FOLDER / "own_test" / "pairs.csv", SentencePair))
    for pair, triplet in zip(cycle(written), triplets, strict=False):
        shown = {
            "sentence1": pair.sentence1,
            "sentence2": pair.sentence2,
            "test_sentence1": triplet.sentence1,
            "test_sentence2": triplet.sentence2,
            "test_condition": triplet.condition,
        }
        key = hashlib.sha256("\0".join(shown.values()).encode()).hexdigest()[:16]
        yield Item(f"test-{key}", shown, {"label": triplet.label})


def condition_items(path: Path) -> Iterator[Item]:
    """Makes the pairs to write conditions for."""
    for pair in read_rows(path, SentencePair):
        pair_id = pair.pair_id or pair_id_of(stem_of(path), pair.sentence1, pair.sentence2)
        # "hints" is there from the start: a page of Label Studio needs all its variables.
        shown = {"sentence1": pair.sentence1, "sentence2": pair.sentence2, "hints": NO_HINTS}
        yield Item(pair_id, shown, {"pair_id": pair_id})


def verification_items(conditions: Iterable[Condition]) -> Iterator[Item]:
    """Makes the rows to rate; the second of two equal rows has the id of the first."""
    # Annotators do not see what a condition was written for, or by whom.
    for one in conditions:
        shown = {"sentence1": one.sentence1, "sentence2": one.sentence2, "condition": one.condition}
        facts = {"pair_id": one.pair_id, "intended": one.intended, "author": one.annotator}
        model = one.prefilled_by or (one.origin if one.origin != HUMAN else "")
        if model:
            facts["proposed_by"] = model
        yield Item(row_id_of(one.pair_id, one.condition), shown, facts)
