"""Counter-edits: minimally changed copies of a text that differ in one respect alone.

They are counterfactually augmented data (Kaushik et al., 2020) made by rule: a number, a negation
or a word with an opposite is changed, and labeling functions tell which conditions that changes.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from condsim.console import Progress, silent
from condsim.data.held_out import HeldOutTexts, held_out_texts
from condsim.io import check_not_input
from condsim.rows.records import revisions_of, write_provenance, write_rows
from condsim_annotation.tables import TrainingRow
from condsim_annotation.weak.build import read_pool
from condsim_annotation.weak.functions import LabelingFunction, wordings_of
from condsim_annotation.weak.language import Sentence
from condsim_annotation.weak.quantities import quantities, text_tokens
from condsim_annotation.weak.registry import Registry
from condsim_annotation.weak.texts import opposites, stands_alone, text_functions

_WORDS_PER_TEXT = range(4, 61)
_MAX_TOKENS_NEGATED = 30
_NEGATION = "whether it is said to be so"
_TOPIC = wordings_of("topic", ("what it is about",))
_AUXILIARIES = "is are was were can could will would should has have had does do did".split()
_NOT = {"can": "cannot", "will": "won't"}
_AFFIRMATIVES = {
    negated: word for word in _AUXILIARIES for negated in (f"{word} not", f"{word}n't")
}
_AFFIRMATIVES |= {"cannot": "can", "can't": "can", "won't": "will"}
_NEGATED = re.compile(rf"\b(?:{'|'.join(_AFFIRMATIVES)})\b(?! only)", re.IGNORECASE)
_AFFIRMED = re.compile(
    rf"(?<=\w )\b(?:{'|'.join(_AUXILIARIES[:10])})\b"
    r"(?! not\b|n't|[^\w ]| (?:no|never|nothing|nobody|hardly)\b)"
)
_SPELLED = "two three four five six seven eight nine ten eleven twelve".split()
# Characters around a number that make it a part of a time, date or name.
_PART_AFTER = re.compile(
    r"[:/.\-]\w|\s*[()]|[a-z]|\s*(?:[ap]\.?m\b|o'?\s?clock|past\b|to\b)", re.IGNORECASE
)
_PART_BEFORE = re.compile(r"[\w(:/.\-]$|\b(?:past|to|at)\s+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CounterEditRow(TrainingRow):
    """A text with its changed copy; the rows of one ``group`` have both texts in common."""

    group: str


@dataclass(frozen=True)
class CounterEditReport:
    """Counts of the texts read, of the rows and pairs written, and of the kinds of edits."""

    texts: int
    excluded: int
    rows: int
    groups: int
    kinds: dict[str, int]
    labels: dict[str, int]


class CounterEdit(NamedTuple):
    """A changed copy: a ``"number"``, a ``"negation"`` or an ``"opposite"``."""

    text: str
    kind: str
    # The condition that is changed; empty where only the functions can tell.
    attribute: str


def counter_edits(text: str, *, seed: int = 0) -> list[CounterEdit]:
    """Return the copies of a text that differ from it in one number, negation or opposite.

    Example:
        >>> [edit.text for edit in counter_edits("The door is open.")]
        ['The door is not open.', 'The door is closed.']
    """
    generator = random.Random(f"{seed} {text}")
    return [*_change_numbers(text, generator), *_negate(text), *_swap_opposites(text)]


def _change_numbers(text: str, generator: random.Random) -> Iterator[CounterEdit]:
    """Replace a number by another, in the same notation."""
    for quantity in quantities(text):
        start, stop = quantity.start, quantity.stop
        written = text[start:stop]
        if _PART_AFTER.match(text[stop:]) or _PART_BEFORE.search(text[:start]):
            continue
        if re.fullmatch(r"[2-9]|[1-9]\d{1,4}", written):
            value = int(written)
            if 1500 <= value < 2100:
                new = str(value - generator.randint(1, 20))
            else:
                values = {value + 1, value * 2, value * 3, max(2, value // 2)} - {value}
                new = str(generator.choice(sorted(values)))
        elif written.lower() in _SPELLED:
            new = generator.choice([word for word in _SPELLED if word != written.lower()])
        else:
            continue
        counts = not quantity.kind and quantity.nouns and quantity.nouns[0].endswith("s")
        attribute = f"number of {quantity.nouns[0]}" if counts else ""
        yield CounterEdit(_replace_word(text, start, stop, new), "number", attribute)


def _negate(text: str) -> Iterator[CounterEdit]:
    """Remove a negation, or add one if there is none."""
    if len(text_tokens(text)) > _MAX_TOKENS_NEGATED or text.rstrip().endswith("?"):
        return
    negated, affirmed = list(_NEGATED.finditer(text)), _AFFIRMED.search(text)
    if len(negated) == 1:
        word = _AFFIRMATIVES[negated[0][0].lower()]
        # "Did not go" does not become "did go".
        if word not in ("do", "does", "did"):
            yield CounterEdit(_replace_word(text, *negated[0].span(), word), "negation", _NEGATION)
    elif affirmed and not negated:
        word = _NOT.get(affirmed[0], f"{affirmed[0]} not")
        yield CounterEdit(_replace_word(text, *affirmed.span(), word), "negation", _NEGATION)


def _swap_opposites(text: str) -> Iterator[CounterEdit]:
    tokens = text_tokens(text)
    words = [token.word for token in tokens]
    for index, token in enumerate(tokens):
        matches = (attribute for attribute in opposites() if token.word in attribute.swaps)
        attribute = next(matches, None)
        if attribute is not None and stands_alone(words, index):
            copy = _replace_word(text, token.start, token.stop, attribute.swaps[token.word])
            yield CounterEdit(_fit_article(copy, token.start), "opposite", attribute.name)


def _replace_word(text: str, start: int, stop: int, word: str) -> str:
    """Replace a word by another, with a capital where it has one."""
    word = word[0].upper() + word[1:] if text[start].isupper() else word
    return text[:start] + word + text[stop:]


def _fit_article(text: str, start: int) -> str:
    """Change "a" and "an" before a new word to fit its first letter."""
    match = re.search(r"\b(a|an|A|An) $", text[:start])
    if match is None:
        return text
    article = "an" if text[start].lower() in "aeiou" else "a"
    article = article.capitalize() if match[1][0] == "A" else article
    return f"{text[: match.start()]}{article} {text[start:]}"


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
    """Write texts with changed copies and a manifest; the same input gives the same file.

    Each text is used once, with the kind of edit that was drawn least so far. A row has the label
    of the function that reads the change, or a 1 for the attribute of an opposite or a negation;
    others have a 5, for a condition whose function reads the same from both texts, and the topic.
    Functions on captions are not used: a change may not affect what they infer from a text.
    """
    for path in paths:
        check_not_input(output, path)
    held_out = held_out_texts(exclude)
    pool = read_pool(paths, caption_column=text_column, exclude=held_out)
    texts = list(pool.sentences)
    random.Random(seed).shuffle(texts)
    kinds, labels = Counter[str](), Counter[str]()

    def limited() -> Iterator[CounterEditRow]:
        for group in _groups_of_rows(texts, registry, held_out, kinds, seed):
            if labels.total() + len(group) > rows:
                return
            labels.update(f"{row.label:g}" for row in group)
            yield from group
            kinds[group[0].origin.split(":")[1]] += 1
            progress("counter-edits", labels.total(), rows)

    write_rows(limited(), output, kind=CounterEditRow)
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
        "report": report,
    }
    write_provenance(output, kind="counter-edits", made_from=paths, facts=facts)
    return report


def _groups_of_rows(
    texts: Iterable[str], registry: Registry, held_out: HeldOutTexts, kinds: Counter[str], seed: int
) -> Iterator[list[CounterEditRow]]:
    functions = [f for f in registry if f.name in text_functions() or f.family == "own"]
    for number, text in enumerate(texts):
        if len(text.split()) not in _WORDS_PER_TEXT:
            continue
        generator = random.Random(f"{seed} {text}")
        edits = counter_edits(text, seed=seed)
        generator.shuffle(edits)
        for edit in sorted(edits, key=lambda edit: kinds[edit.kind]):
            if edit.text in held_out:
                continue
            conditions = _changed_conditions(text, edit, registry, functions, generator)
            if conditions:
                pair = (text, edit.text) if generator.random() < 0.5 else (edit.text, text)
                origin, group = f"counter-edit:{edit.kind}", f"{edit.kind}-{number}"
                yield [
                    CounterEditRow(*pair, generator.choice(wordings), label, origin, group)
                    for wordings, label in conditions
                ]
                break


def _changed_conditions(
    text: str,
    edit: CounterEdit,
    registry: Registry,
    functions: Sequence[LabelingFunction],
    generator: random.Random,
) -> list[tuple[tuple[str, ...], float]]:
    """Return the wordings and labels of a changed condition and of others; none if none is."""
    original, copy = Sentence(text), Sentence(edit.text)
    scores = [(function, function.score(original, copy)) for function in functions]
    changed = [(f.wordings, score) for f, score in scores if score is not None and score < 5]
    same = [f.wordings for f, score in scores if score == 5 and f.name != "overall opinion"]
    if edit.kind == "number":
        function = registry.find(edit.attribute) if edit.attribute else None
        score = None if function is None else function.score(original, copy)
        if function is not None and score is not None and score < 5:
            changed = [(function.wordings, score)]
    # Only the functions can tell which aspect of an opinion is changed.
    elif edit.attribute != "overall opinion":
        by_function = changed if edit.kind == "negation" else []
        changed = [(wordings_of(edit.attribute), 1.0), *by_function]
        same = [wordings for wordings in same if edit.attribute not in wordings]
    if not changed:
        return []
    generator.shuffle(same)
    return [generator.choice(changed), *((wordings, 5.0) for wordings in (*same[:1], _TOPIC))]
