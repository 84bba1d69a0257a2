"""Counter-edits: minimally changed copies of a text that differ in one respect alone."""

# After counterfactually augmented data (Kaushik et al., 2020), by rule: a number, a negation or a
# word with an opposite is changed, and the functions say what that changes.

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from condsim.console import Progress, silent
from condsim.data.held_out import HeldOutTexts, held_out_texts
from condsim.errors import InputError
from condsim.io import check_not_input
from condsim.rows.records import TrainingRow, revisions_of, write_provenance, write_rows
from condsim.rows.weak.build import read_pool
from condsim.rows.weak.functions import LabellingFunction, wordings_of
from condsim.rows.weak.language import Sentence
from condsim.rows.weak.quantities import quantities, tokens_of
from condsim.rows.weak.registry import Registry
from condsim.rows.weak.texts import opposites, stands_alone, text_functions

_LENGTHS = range(4, 61)  # words of a text
_NEGATION = "whether it is said to be so"
_TOPIC = wordings_of("topic", ("what it is about",))
_AUXILIARIES = "is are was were can could will would should has have had does do did".split()
_NOT = {"can": "cannot", "will": "won't"}
_PLAIN = {negated: word for word in _AUXILIARIES for negated in (f"{word} not", f"{word}n't")}
_PLAIN |= {"cannot": "can", "can't": "can", "won't": "will"}
_NEGATED = re.compile(rf"\b(?:{'|'.join(_PLAIN)})\b(?! only)", re.IGNORECASE)
_AFFIRMED = re.compile(
    rf"(?<=\w )\b(?:{'|'.join(_AUXILIARIES[:10])})\b"
    r"(?! not\b|n't|[^\w ]| (?:no|never|nothing|nobody|hardly)\b)"
)
_SPELLED = "two three four five six seven eight nine ten eleven twelve".split()
# What makes a number a part of a time, date or name.
_PART_AFTER = re.compile(
    r"[:/.\-]\w|\s*[()]|[a-z]|\s*(?:[ap]\.?m\b|o'?\s?clock|past\b|to\b)", re.IGNORECASE
)
_PART_BEFORE = re.compile(r"[\w(:/.\-]$|\b(?:past|to|at)\s+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CounterEditRow(TrainingRow):
    """A text beside its changed copy; the rows of one ``group`` have both texts in common."""

    group: str


@dataclass(frozen=True)
class CounterEditReport:
    """What was made."""

    texts: int  # texts that were looked at
    excluded: int  # texts left out since they are in a file to be kept apart
    rows: int
    groups: int  # pairs of a text and its copy
    kinds: dict[str, int]  # pairs by what was changed: ``number``, ``negation`` or ``opposite``
    labels: dict[str, int]  # rows by label


@dataclass(frozen=True)
class CounterEdit:
    """A changed copy."""

    text: str
    kind: str  # ``"number"``, ``"negation"`` or ``"opposite"``
    attribute: str  # the condition that is changed; empty where only functions say which


def counter_edits(text: str, *, seed: int = 0) -> list[CounterEdit]:
    """Gives the copies of a text that differ from it in one number, negation or opposite.

    Args:
        seed: Seed of the numbers that are put in.

    Returns:
        The copies, in the order of the places that are changed.

    Raises:
        MissingExtraError: If the extra ``build`` is not installed.

    Example:
        >>> [edit.text for edit in counter_edits("The door is open.")]
        ['The door is not open.', 'The door is closed.']
    """
    return [*_numbers(text, random.Random(f"{seed} {text}")), *_negations(text), *_opposites(text)]


def _numbers(text: str, draw: random.Random) -> Iterator[CounterEdit]:
    """Puts another number in the place of one, in the same notation."""
    for one in quantities(text):
        written = text[one.start : one.stop]
        if _PART_AFTER.match(text[one.stop :]) or _PART_BEFORE.search(text[: one.start]):
            continue
        if re.fullmatch(r"[2-9]|[1-9]\d{1,4}", written):
            value = int(written)
            if 1500 <= value < 2100:
                new = str(value - draw.randint(1, 20))
            else:
                others = {value + 1, value * 2, value * 3, max(2, value // 2)} - {value}
                new = str(draw.choice(sorted(others)))
        elif written.lower() in _SPELLED:
            new = draw.choice([word for word in _SPELLED if word != written.lower()])
        else:
            continue
        counts = not one.kind and one.nouns and one.nouns[0].endswith("s")
        attribute = f"number of {one.nouns[0]}" if counts else ""
        yield CounterEdit(_with(text, one.start, one.stop, new), "number", attribute)


def _negations(text: str) -> Iterator[CounterEdit]:
    """Takes a negation out, or puts one in where there is none."""
    if len(tokens_of(text)) > 30 or text.rstrip().endswith("?"):
        return
    negated, affirmed = list(_NEGATED.finditer(text)), _AFFIRMED.search(text)
    if len(negated) == 1:
        word = _PLAIN[negated[0][0].lower()]
        if word not in ("do", "does", "did"):  # "did not go": "did go" is no English
            yield CounterEdit(_with(text, *negated[0].span(), word), "negation", _NEGATION)
    elif affirmed and not negated:
        word = _NOT.get(affirmed[0], f"{affirmed[0]} not")
        yield CounterEdit(_with(text, *affirmed.span(), word), "negation", _NEGATION)


def _opposites(text: str) -> Iterator[CounterEdit]:
    """Puts the opposite of a word in its place."""
    tokens = tokens_of(text)
    words = [token.word for token in tokens]
    for place, token in enumerate(tokens):
        known = next((one for one in opposites() if token.word in one.swaps), None)
        if known is not None and stands_alone(words, place):
            copy = _with(text, token.start, token.stop, known.swaps[token.word])
            yield CounterEdit(_with_article(copy, token.start), "opposite", known.name)


def _with(text: str, start: int, stop: int, word: str) -> str:
    """Puts a word in the place of another, with a capital where that has one."""
    word = word[0].upper() + word[1:] if text[start].isupper() else word
    return text[:start] + word + text[stop:]


def _with_article(text: str, place: int) -> str:
    """Makes "a" and "an" before a word that was put in fit its first letter."""
    match = re.search(r"\b(a|an|A|An) $", text[:place])
    if match is None:
        return text
    wanted = "an" if text[place].lower() in "aeiou" else "a"
    wanted = wanted.capitalize() if match[1][0] == "A" else wanted
    return f"{text[: match.start()]}{wanted} {text[place:]}"


def build_counter_edits(
    paths: Sequence[Path],
    output: Path,
    registry: Registry,
    *,
    rows: int,
    text_column: str = "caption",
    exclude: Sequence[Path] = (),
    functions: Sequence[Path] = (),
    seed: int = 0,
    progress: Progress = silent,
) -> CounterEditReport:
    """Writes texts beside changed copies; the same input gives the same file.

    Each text is used once, with the kind of edit that was drawn least so far. A row has the label
    of the function that reads the change, or a 1 for the attribute of an opposite or a negation;
    others have a 5, for a condition whose function reads the same from both texts, and the topic.
    Functions on captions take no part: what they take a text to imply, a change may leave open.

    Args:
        output: A ``.csv`` or ``.parquet`` file to write; a manifest lies beside it.
        rows: Most rows, at least 2.
        exclude: Files of texts that must not be used; see `condsim.data.held_out.held_out_texts`.
        functions: Files that functions of the registry are from, for the manifest.
        progress: Called with the stage, the rows written and how many there may be.

    Raises:
        InputError: If a file cannot be read or written, or ``rows`` is below 2.
        MissingExtraError: If the extra ``build`` is not installed.
    """
    if rows < 2:
        raise InputError(
            f"A text and its copy have two rows, so 'rows' must be at least 2. Got {rows}."
        )
    for path in paths:
        check_not_input(output, path)
    held_out = held_out_texts(exclude)
    pool = read_pool(paths, caption_column=text_column, exclude=held_out)
    texts = list(pool.collection.captions)
    random.Random(seed).shuffle(texts)
    kinds, labels = Counter[str](), Counter[str]()

    def counted() -> Iterator[CounterEditRow]:
        drawn = _rows_of(texts, registry, held_out, kinds, seed)
        for group in drawn:
            if labels.total() + len(group) > rows:
                return
            for row in group:
                labels[f"{row.label:g}"] += 1
                yield row
            kinds[group[0].origin.split(":")[1]] += 1
            progress("counter-edits", labels.total(), rows)

    write_rows(counted(), output, kind=CounterEditRow)
    report = CounterEditReport(
        texts=len(texts),
        excluded=pool.excluded,
        rows=labels.total(),
        groups=kinds.total(),
        kinds=dict(kinds.most_common()),
        labels=dict(sorted(labels.items())),
    )
    facts = {
        "excluded": revisions_of(exclude),
        "functions": revisions_of(functions),
        "seed": seed,
        "report": asdict(report),
    }
    write_provenance(output, kind="counter-edits", made_from=paths, facts=facts)
    return report


def _rows_of(
    texts: Iterable[str], registry: Registry, held_out: HeldOutTexts, kinds: Counter[str], seed: int
) -> Iterator[list[CounterEditRow]]:
    """Gives the rows of each text that can be changed."""
    drawn = [one for one in registry if one.name in text_functions() or one.family == "own"]
    for number, text in enumerate(texts):
        if len(text.split()) not in _LENGTHS:
            continue
        draw = random.Random(f"{seed} {text}")
        edits = counter_edits(text, seed=seed)
        draw.shuffle(edits)
        for edit in sorted(edits, key=lambda one: kinds[one.kind]):
            if edit.text not in held_out:
                rows = _rows(text, edit, registry, drawn, draw, group=f"{edit.kind}-{number}")
                if rows:
                    yield rows
                    break


def _rows(
    text: str,
    edit: CounterEdit,
    registry: Registry,
    functions: Sequence[LabellingFunction],
    draw: random.Random,
    *,
    group: str,
) -> list[CounterEditRow]:
    """The rows of a text and its copy; none if no condition tells them apart."""
    one, two = Sentence(text), Sentence(edit.text)
    scored = [(function, function.score(one, two)) for function in functions]
    changed = [(f.wordings, label) for f, label in scored if label is not None and label < 5]
    same = [f.wordings for f, label in scored if label == 5 and f.name != "overall opinion"]
    if edit.kind == "number":
        counted = registry.find(edit.attribute) if edit.attribute else None
        label = None if counted is None else counted.score(one, two)
        if counted is not None and label is not None and label < 5:
            changed = [(counted.wordings, label)]
    elif edit.attribute != "overall opinion":  # of which aspect only the functions say
        others = changed if edit.kind == "negation" else []
        changed = [(wordings_of(edit.attribute), 1.0), *others]
        same = [wordings for wordings in same if edit.attribute not in wordings]
    if not changed:
        return []
    draw.shuffle(same)
    conditions = [draw.choice(changed), *((wordings, 5.0) for wordings in (*same[:1], _TOPIC))]
    pair = (text, edit.text) if draw.random() < 0.5 else (edit.text, text)
    return [
        CounterEditRow(*pair, draw.choice(wordings), label, f"counter-edit:{edit.kind}", group)
        for wordings, label in conditions
    ]
