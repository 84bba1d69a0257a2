"""Stages of an annotation: their items, pages, answers, and hints about doubtful conditions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args
from xml.sax.saxutils import quoteattr

import yaml

from condsim.paths import stem_of
from condsim.rows.records import TableRow
from condsim_annotation.pairs import pair_id_of
from condsim_annotation.records import HUMAN, Condition, check_label, row_id_of
from condsim_annotation.tables import read_rows

Stage: TypeAlias = Literal["qualification", "conditions", "verification"]
"""C-STS §2.2.2."""

STAGES: tuple[Stage, ...] = get_args(Stage)

FIELDS: Mapping[Stage, tuple[str, ...]] = {
    "qualification": ("high", "low", "rating"),
    "conditions": ("high", "low"),
    "verification": ("rating",),
}
"""Fields that an annotator fills in, by stage."""

DEFAULT_ANNOTATORS = {"qualification": 1000, "conditions": 1, "verification": 3}
"""Answers for each item; everybody answers every item of a qualification."""

NO_HINTS = "None so far. Hints never block: edit what you agree with."
"""Text of a page without hints."""

_FOLDER = Path(__file__).parent


def page(name: str) -> str:
    """Read a page of this package."""
    return (_FOLDER / "pages" / name).read_text(encoding="utf-8").strip()


class HintRule(NamedTuple):
    """A pattern of doubtful conditions; see ``pages/hints.yaml``."""

    rule: int
    text: str
    pattern: str
    needed: str | None = None


def _read_hint_rules() -> Iterator[HintRule]:
    content = yaml.safe_load(page("hints.yaml"))
    # Lists of words are folded over lines, which YAML joins by spaces.
    words = {name: text.replace("| ", "|") for name, text in content["words"].items()}
    for entry in content["rules"]:
        for key in entry.keys() & {"pattern", "needed"}:
            while match := re.search(r"<(\w+)>", entry[key]):
                entry[key] = entry[key].replace(match[0], words[match[1]])
        yield HintRule(**entry)


HINT_RULES = tuple(_read_hint_rules())
"""The rules in the order in which hints are given."""


def hints_of(condition: str, sentence1: str, sentence2: str) -> tuple[HintRule, ...]:
    """Find the rules that a condition may break.

    Example:
        >>> [hint.rule for hint in hints_of("The activity.", "A man skis.", "A dog runs.")]
        [5]
    """
    text = " ".join(condition.split())
    hints: dict[int, HintRule] = {}
    for hint in HINT_RULES:
        if hint.rule in hints or not re.search(hint.pattern, text, re.IGNORECASE):
            continue
        if hint.needed is None or not all(
            re.search(hint.needed, sentence, re.IGNORECASE) for sentence in (sentence1, sentence2)
        ):
            hints[hint.rule] = hint
    return tuple(hints.values())


class Verdict(NamedTuple):
    """A choice on the scale; the label is 1 to 5 or `DOES_NOT_APPLY`."""

    label: int
    name: str
    meaning: str


SCALE = tuple(Verdict(**entry) for entry in yaml.safe_load(page("scale.yaml")))
"""Verdicts an annotator can give, with their names and meanings."""


class TaskAnswer(NamedTuple):
    """Conditions or rating of an annotator; None for fields that are empty or not of the stage."""

    high: str | None = None
    low: str | None = None
    rating: int | None = None

    def missing(self, stage: Stage) -> tuple[str, ...]:
        """Name the fields of the stage that are empty."""
        return tuple(name for name in FIELDS[stage] if getattr(self, name) is None)


def text_of(value: object) -> str | None:
    """Read a text field: one text or a list of them, with single spaces."""
    texts = value if isinstance(value, list) else [value]
    words = [word for text in texts if isinstance(text, str) for word in text.split()]
    return " ".join(words) or None


def rating_of(value: object) -> int | None:
    """Read a rating; None if it is not on the scale."""
    try:
        rating = float(str(value).strip())
    except ValueError:
        return None
    return int(rating) if rating in {verdict.label for verdict in SCALE} else None


def labeling_config(stage: Stage) -> str:
    """Return the labeling page of a stage in Label Studio."""
    choices = []
    for label, name, meaning in SCALE:
        text = quoteattr(f"{label}  {name}. {meaning}" if label > 0 else f"{name}. {meaning}")
        choices.append(f'  <Choice alias="{label}" hotkey="{max(label, 0)}" value={text}/>')
    fields = fields_of(stage, "xml", "\n".join(choices))
    if stage == "conditions":
        fields += "\n" + page("label-studio-hints.xml")
    return page("label-studio.xml").replace("{fields}", fields)


def fields_of(stage: Stage, markup: Literal["xml", "html"], choices: str) -> str:
    """Lay out the texts and fields of a stage in the XML of Label Studio or in HTML."""
    write = page(f"write.{markup}")
    rate = page(f"rate.{markup}").replace("{choices}", choices)
    if stage == "conditions":
        return write
    if stage == "verification":
        return rate.replace("{test}", "")
    # A test has both parts; the second part has a separate pair.
    test = page(f"test.{markup}")
    return test.replace("{write}", write).replace("{rate}", rate.replace("{test}", "test_"))


def guidelines(stage: Stage) -> str:
    """Return the guidelines of a stage."""
    text = page(f"guidelines-{stage}.html")
    if stage == "qualification":
        return f"{text}\n{guidelines('conditions')}\n<hr>\n{guidelines('verification')}"
    scale = "".join(
        f'<p style="margin: 0 0 0.6em"><b>{label}: {name}.</b> {meaning}</p>'
        for label, name, meaning in SCALE
        if label > 0
    )
    return text.replace("{scale}", scale)


@dataclass(frozen=True)
class Item:
    """One task for annotators: texts that they see, by variable of the page, and hidden facts.

    ``task`` is its number on the server; None if it is not known to be there.
    """

    item_id: str
    shown: Mapping[str, str]
    facts: Mapping[str, str | int] = field(default_factory=dict)
    task: int | None = None


@dataclass(frozen=True, slots=True)
class SentencePair(TableRow):
    """A pair to write conditions for; the id is computed from the sentences if it is empty."""

    sentence1: str
    sentence2: str
    pair_id: str = ""


@dataclass(frozen=True, slots=True)
class KnownTriplet(TableRow):
    """A pair under a condition whose right answer is known."""

    sentence1: str
    sentence2: str
    condition: str
    label: int

    def __post_init__(self) -> None:
        check_label(self.label, subject="the known answer")


def items_to_annotate(
    stage: Stage, data: Path | None = None, *, pairs: Path | None = None
) -> Iterator[Item]:
    """Read the items of a stage, lazily.

    The data are triplets with known labels, sentence pairs or conditions. A qualification also
    takes pairs to write conditions for, in turn; a short test of condsim stands in for both files.
    """
    if stage == "qualification":
        triplets = list(read_rows(data or _FOLDER / "own_test" / "known.csv", KnownTriplet))
        writing = list(read_rows(pairs or _FOLDER / "own_test" / "pairs.csv", SentencePair))
        for pair, triplet in zip(cycle(writing), triplets, strict=False):
            texts = {
                "sentence1": pair.sentence1,
                "sentence2": pair.sentence2,
                "test_sentence1": triplet.sentence1,
                "test_sentence2": triplet.sentence2,
                "test_condition": triplet.condition,
            }
            key = hashlib.sha256("\0".join(texts.values()).encode()).hexdigest()[:16]
            yield Item(f"test-{key}", texts, {"label": triplet.label})
    elif data is not None and stage == "conditions":
        for pair in read_rows(data, SentencePair):
            pair_id = pair.pair_id or pair_id_of(stem_of(data), pair.sentence1, pair.sentence2)
            # A page of Label Studio needs all its variables from the start, "hints" too.
            texts = {"sentence1": pair.sentence1, "sentence2": pair.sentence2, "hints": NO_HINTS}
            yield Item(pair_id, texts, {"pair_id": pair_id})
    elif data is not None:
        yield from verification_items(read_rows(data, Condition))


def verification_items(conditions: Iterable[Condition]) -> Iterator[Item]:
    """Convert conditions to rows to rate; equal rows have equal ids.

    Annotators do not see what a condition was written for, or by whom.
    """
    for row in conditions:
        texts = {"sentence1": row.sentence1, "sentence2": row.sentence2, "condition": row.condition}
        facts = {"pair_id": row.pair_id, "intended": row.intended, "author": row.annotator}
        model = row.prefilled_by or (row.origin if row.origin != HUMAN else "")
        if model:
            facts["proposed_by"] = model
        yield Item(row_id_of(row.pair_id, row.condition), texts, facts)
