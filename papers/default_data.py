"""The rows that the default model is trained on."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from condsim.data.csts import iter_csts
from condsim.data.files import iter_rows
from condsim.data.held_out import HeldOutTexts
from condsim.data.tables import CriteriaText, iter_criteria
from condsim.data.tasks import draw_folds
from condsim.errors import InputError
from condsim.rows.records import TableRow, TrainingRow, write_rows
from papers.relabelled import caption_rows, read_labels, row_key

PLAIN = (("mnli_dev_matched.tsv.gz", 16_000), ("snli_dev.tsv.gz", 8000))
"""Files of NLI whose sentences are read without a condition, and how many of each."""

OWN = 0.6
"""Share of the labels of data/csts-labels in the label of a C-STS row that has one."""

# Number of captions next to the sentences of NLI.
_CAPTIONS = 8000
# Number of texts of the open sets.
_OTHERS = 12_000
# Limits of the characters of a sentence.
_PLAIN_LENGTHS = range(9, 400)
_APPLIES, _ABSENT = "5", "-1"


@dataclass(frozen=True, slots=True)
class Sentence(TableRow):
    """A sentence without a condition, and the kind of file it is from."""

    sentence: str
    origin: str


@dataclass(frozen=True, slots=True)
class Applies(TableRow):
    """Label of whether both texts mention a criterion: 5 if so, else -1."""

    sentence1: str
    sentence2: str
    condition: str
    label: str


def trainable_sets(criteria: Path) -> dict[str, Path]:
    """The training files of the open sets that may be trained on, by name."""
    listed = criteria / "meta.json"
    if not listed.is_file():
        raise InputError(f"{criteria} must hold meta.json, which says what a set may be used for.")
    facts = json.loads(listed.read_text(encoding="utf-8"))
    files = {
        name: criteria / name / "train.jsonl.gz"
        for name in sorted(facts)
        if facts[name]["use"] == "train"
    }
    found = {name: path for name, path in files.items() if path.is_file()}
    if not found:
        raise InputError(
            f"{criteria} does not contain a train.jsonl.gz of a set that may be trained on."
        )
    return found


def write_labelled(train: Path, output: Path, *, exclude: HeldOutTexts) -> None:
    """Write the C-STS training rows without texts held out, with the labels of both origins."""
    own = read_labels()

    def rows() -> Iterator[TrainingRow]:
        for row in iter_csts(train):
            if row.label is None or row.sentence1 in exclude or row.sentence2 in exclude:
                continue
            label = row.label
            also = own.get(row_key(row.sentence1, row.sentence2, row.condition))
            if also is not None:
                label = round((1 - OWN) * label + OWN * also, 2)
            yield TrainingRow(row.sentence1, row.sentence2, row.condition, label, "gold")

    write_rows(rows(), output, kind=TrainingRow)


def write_captions(
    captions: Sequence[Path], labels: Path, output: Path, *, exclude: HeldOutTexts
) -> None:
    """Write labelled pairs of captions, with their text."""
    write_rows(caption_rows(captions, exclude=exclude, path=labels), output, kind=TrainingRow)


def write_folds(dev: Path, work: Path, *, folds: int) -> list[tuple[Path, Path]]:
    """Write, for each fold of the dev pairs, the rows of all others and its own.

    A file with the dev rows of all folds but one is trained on, and the other is measured.
    """
    rows = [row for row in iter_csts(dev) if row.label is not None]
    fold_of = draw_folds([(row.sentence1, row.sentence2) for row in rows], folds=folds, seed=0)
    written = []
    for fold in range(folds):
        pair = work / f"fold-{fold}-train.csv", work / f"fold-{fold}-dev.csv"
        for output, own in zip(pair, (False, True), strict=True):
            chosen = (row for row, at in zip(rows, fold_of, strict=True) if (at == fold) == own)
            write_rows(
                (
                    TrainingRow(row.sentence1, row.sentence2, row.condition, row.label, "gold")
                    for row in chosen
                    if row.label is not None
                ),
                output,
                kind=TrainingRow,
            )
        written.append(pair)
    return written


def write_plain(
    nli: Path,
    captions: Sequence[Path],
    others: Sequence[Path],
    output: Path,
    *,
    exclude: HeldOutTexts,
) -> None:
    """Draw texts to be read without a condition: of NLI, captions, and those of the open sets."""
    draw = random.Random(0)
    origins: dict[str, str] = {}
    for name, number in PLAIN:
        found = _texts(nli / name, ("premise", "hypothesis"), exclude)
        origins |= dict.fromkeys(draw.sample(found, min(number, len(found))), "nli")
    found = sorted({text for path in captions for text in _texts(path, ("caption",), exclude)})
    origins |= dict.fromkeys(draw.sample(found, min(_CAPTIONS, len(found))), "caption")
    for path in others:
        read = (one for one in iter_criteria(path) if isinstance(one, CriteriaText))
        found = sorted({one.text for one in read} - origins.keys())
        found = [text for text in found if len(text) in _PLAIN_LENGTHS and text not in exclude]
        number = min(_OTHERS // len(others), len(found))
        origins |= dict.fromkeys(draw.sample(found, number), "labelled")
    write_rows((Sentence(*one) for one in origins.items()), output, kind=Sentence)


def _texts(path: Path, columns: tuple[str, ...], exclude: HeldOutTexts) -> list[str]:
    """The distinct texts of a file that are neither short, long nor held out."""
    cells = (cell for row in iter_rows(path, columns=columns) for cell in row.cells.values())
    texts = {str(cell).strip() for cell in cells}
    return sorted(text for text in texts if len(text) in _PLAIN_LENGTHS and text not in exclude)


def write_absent(files: Sequence[Path], output: Path, *, rows: int, exclude: HeldOutTexts) -> int:
    """Write pairs with criteria that both texts tell of, and with some that one does not.

    Of each criterion there are as many rows of one kind as of the other. A criterion that most
    texts of a file tell of is left out. Returns the number of rows.
    """
    draw = random.Random(0)
    each = max(2, rows // max(1, 2 * len(files)))

    def made() -> Iterator[Applies]:
        for path in files:
            read = (one for one in iter_criteria(path) if isinstance(one, CriteriaText))
            texts = [one for one in read if one.text not in exclude]
            having: dict[str, list[str]] = defaultdict(list)
            for one in texts:
                for criterion in one.attributes:
                    having[criterion].append(one.text)
            names = [name for name in sorted(having) if 2 <= len(having[name]) < 0.8 * len(texts)]
            for number in range(each if names else 0):
                criterion = names[number % len(names)]
                first, second = draw.sample(having[criterion], 2)
                yield Applies(first, second, criterion, _APPLIES)
                other = draw.choice(texts)
                while criterion in other.attributes:
                    other = draw.choice(texts)
                sides = [first, other.text]
                draw.shuffle(sides)
                yield Applies(sides[0], sides[1], criterion, _ABSENT)

    return write_rows(made(), output, kind=Applies)
