"""The rows of an adaptation: labelled ones, and those that keep the rest of the model."""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.data.reading import column_names, iter_rows
from condsim.data.rewordings import load_rewordings
from condsim.data.row import Row, shown
from condsim.data.writing import write_records
from condsim.data.written import WrittenPair, iter_written
from condsim.errors import InputError
from condsim.io import replacing
from condsim.model.applicability import PROBE, ApplicabilityHead, features
from condsim.model.calibration import Calibration, fit_calibration
from condsim.model.embedding import EmbeddingScorer
from condsim.training.export import SAMPLES
from condsim.types import Task

FEWEST = 20
"""Labelled pairs that an adaptation needs."""

_COLUMNS = ("sentence1", "sentence2", "condition", "label")
_KEPT = ("set", "group", "criterion")  # columns that a recipe with sources heeds
_WORDS = {"alike": 5.0, "different": 1.0}
_NO_LABEL = "-1"
_ONE_SIDED = 10  # rows of a condition, all with one label, that would be learnt as its answer
_DRAWS = 20
_LOGGER = logging.getLogger("condsim")


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A labelled pair.

    Attributes:
        sentence1: The first text, not empty.
        sentence2: The second text, not empty.
        condition: The condition, not empty.
        label: Similarity from 1 to 5.
        kept: Columns ``set``, ``group`` and ``criterion``, where the file has a group.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: float
    kept: tuple[str, ...] = ()

    @property
    def pair(self) -> tuple[str, str]:
        """The two texts in a fixed order."""
        return min(self.sentence1, self.sentence2), max(self.sentence1, self.sentence2)

    @property
    def unit(self) -> tuple[str, ...]:
        """What stays together: the set and the group, or without a group the two texts."""
        return self.kept[:2] if self.kept and self.kept[1] else self.pair


def read_labelled(path: Path | str, *, fewest: int = FEWEST) -> list[LabelledRow]:
    """Reads labelled pairs.

    Args:
        path: A file with the columns ``sentence1``, ``sentence2``, ``condition`` and ``label``, in
            a format that `iter_rows` reads. Labels are numbers from 1 to 5, numbers
            from 0 to 1, or the words ``alike`` and ``different``; rows labelled -1 are left out.
            Rows of a column ``group`` stay together, as `condsim.training.recipe.Recipe` says.

    Returns:
        The rows, with labels from 1 to 5.

    Raises:
        InputError: If the file cannot be read, a cell is empty, labels are of no such kind, there
            are too few rows, or all rows of a condition that has many, or of the file, have one
            label.
    """
    path = Path(path)
    grouped = "group" in column_names(path)
    found = list(iter_rows(path, columns=_COLUMNS, optional=_KEPT if grouped else ()))
    given = [row for row in found if str(row.cells["label"]).strip() not in (_NO_LABEL, "-1.0")]
    labels = _labels(path, given)
    rows = [
        LabelledRow(
            row.text("sentence1"),
            row.text("sentence2"),
            row.text("condition"),
            label,
            tuple(str(row.cells[name] or "") for name in _KEPT) if grouped else (),
        )
        for row, label in zip(given, labels, strict=True)
    ]
    _check(path, rows, fewest=fewest)
    return rows


def _labels(path: Path, rows: Sequence[Row]) -> list[float]:
    """Labels from 1 to 5, whichever way they were written."""
    words = [str(row.cells["label"]).strip().casefold() for row in rows]
    if words and _WORDS.keys() >= {*words}:
        return [_WORDS[word] for word in words]
    values = [_number(row) for row in rows]
    low, high = min(values, default=1.0), max(values, default=1.0)
    if 0 <= low and high <= 1:
        return [1 + 4 * value for value in values]
    if 1 <= low and high <= 5:
        return values
    raise InputError(
        f"{path}: labels must all be from 1 to 5, or all from 0 to 1. Got {low:g} to {high:g}; "
        "bring them to one scale."
    )


def _number(row: Row) -> float:
    cell = row.cells["label"]
    try:
        value = math.nan if cell is None else float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"{row.place('label')}: must be a number from 1 to 5 or from 0 to 1, or, in all rows, "
            f"alike or different, got {shown(cell)}. Label the row, or remove it."
        )
    return value


def _check(path: Path, rows: Sequence[LabelledRow], *, fewest: int) -> None:
    if len(rows) < fewest:
        raise InputError(
            f"{path}: at least {fewest} labelled pairs are needed, and 50 to 2,000 are a good "
            f"number. Got {len(rows)}; label more."
        )
    if len({row.label for row in rows}) == 1:
        raise InputError(
            f"{path}: the labels must differ, and all {len(rows)} rows have the same. Add pairs of "
            "the other kind."
        )
    of_condition: dict[str, Counter[float]] = defaultdict(Counter)
    for row in rows:
        of_condition[row.condition.casefold()][row.label] += 1
    for condition, counts in sorted(of_condition.items()):
        if len(counts) == 1 and counts.total() >= _ONE_SIDED:
            raise InputError(
                f"{path}: the condition {shown(condition)} has {counts.total()} rows, all with the "
                "same label, so it would be learnt as the answer. Add pairs of the other kind, or "
                "remove these rows."
            )


def split_labelled(
    rows: Sequence[LabelledRow], *, share: float, seed: int
) -> tuple[list[LabelledRow], list[LabelledRow]]:
    """Splits rows into those to train on and those to measure on.

    Texts that occur in one pair or one group together go to the same side, and so do texts that are
    linked by several. Where that leaves too few rows on a side, since most texts are linked, whole
    pairs (of rows with a group: whole groups) are drawn instead, and the log says so.

    Args:
        share: Share of the rows to measure on, in (0, 1).

    Returns:
        The rows to train on and the rows to measure on, in the order given.

    Raises:
        InputError: If the rows to measure on, or those to train on, would all have one label, or
            most rows are of one pair of texts or one group.
    """
    pairs = [row.unit for row in rows]
    reason = f"a share of {share:g} to measure on has one label only. Give more rows, another share"
    for keys, linked in ((_linked(rows), True), (pairs, False)):
        for draw in range(_DRAWS):
            chosen = _drawn(keys, wanted=share * len(rows), seed=(seed, draw))
            dev = [row for row, is_dev in zip(rows, chosen, strict=True) if is_dev]
            train = [row for row, is_dev in zip(rows, chosen, strict=True) if not is_dev]
            if len(dev) < 0.6 * share * len(rows):
                if not linked:
                    reason = "most are of one pair of texts or one group. Give rows of more texts"
                break  # one block of linked texts is nearly everything
            if all(len({row.label for row in part}) > 1 for part in (train, dev)):
                if not linked:
                    _LOGGER.info("some texts are in rows to train on and to measure on")
                return train, dev
    raise InputError(f"The {len(rows)} rows cannot be split: {reason}, or a file to measure on.")


def _linked(rows: Sequence[LabelledRow]) -> list[Hashable]:
    """A key of each row, the same for rows whose texts or groups are linked."""
    parent: dict[Hashable, Hashable] = {}

    def root(one: Hashable) -> Hashable:
        while parent.setdefault(one, one) != one:
            parent[one] = one = parent[parent[one]]
        return one

    for row in rows:
        parent[root(row.sentence1)] = parent[root(row.sentence2)] = root(row.unit)
    return [root(row.sentence1) for row in rows]


def _drawn(keys: Sequence[Hashable], *, wanted: float, seed: tuple[int, int]) -> list[bool]:
    """Draws whole keys until about so many rows are drawn, none of them far too large."""
    sizes = Counter(keys)
    names = list(sizes)
    chosen: set[Hashable] = set()
    rows = 0
    for place in np.random.default_rng(seed).permutation(len(names)).tolist():
        if rows < wanted and rows + sizes[names[place]] <= 1.2 * wanted + 1:
            chosen.add(names[place])
            rows += sizes[names[place]]
    return [key in chosen for key in keys]


def write_labelled(rows: Sequence[LabelledRow], path: Path) -> None:
    """Writes rows as a training file in CSV."""
    names = (*_COLUMNS, *_KEPT) if any(row.kept for row in rows) else _COLUMNS
    cells = (
        (row.sentence1, row.sentence2, row.condition, f"{row.label:g}", *row.kept) for row in rows
    )
    write_records(path, (dict(zip(names, row, strict=True)) for row in cells))


WRITTEN = Path(__file__).resolve().parents[2] / "assets" / "rehearsal.txt.gz"
"""750 pairs of the training split of ``data/written``, evenly spaced: a few of each domain."""

_MEASURED = 5  # every fifth pair of texts is kept for measuring
_FEW = 6  # conditions that a caption is rehearsed under

Input = tuple[str, str]
"""A text and its condition, empty where it has none."""


Pairs = tuple[tuple[str, str, str], ...]
"""First texts, second texts and conditions of pairs, row by row."""


@dataclass(frozen=True)
class Rehearsal:
    """What is rehearsed and what is measured.

    Attributes:
        inputs: Texts with their conditions, empty for none, to be trained on.
        rehearsed: Pairs of these texts.
        measured: Pairs of other texts, none of which is trained on.
    """

    inputs: tuple[Input, ...]
    rehearsed: Pairs
    measured: Pairs

    def write(
        self, scorer: EmbeddingScorer, folder: Path, *, most: int, seed: int
    ) -> tuple[Path, Path]:
        """Writes as many inputs as are needed and, last, the vectors that a model gives them."""
        files = folder / "rehearsal.csv", folder / "rehearsal.npy"
        if files[1].is_file():
            return files
        drawn = np.random.default_rng(seed).permutation(len(self.inputs))[:most]
        chosen = [self.inputs[place] for place in sorted(drawn.tolist())]
        write_records(files[0], ({"sentence": one, "condition": under} for one, under in chosen))
        found = np.empty((len(chosen), scorer.dimension), np.float32)
        for plain in (False, True):
            places = [place for place, one in enumerate(chosen) if (not one[1]) == plain]
            if places:
                texts = [chosen[place][0] for place in places]
                conditions = None if plain else [chosen[place][1] for place in places]
                found[places] = scorer.encode(texts, conditions)
        with replacing(files[1]) as partial, partial.open("wb") as stream:
            np.save(stream, found)
        return files


def load_rehearsal() -> Rehearsal:
    """Gathers what ships with condsim: written pairs of many domains, and captions.

    Returns:
        The rehearsal. Each text is rehearsed under its own conditions, a caption under a few, and
        each once without a condition.
    """
    pairs = list(iter_written(WRITTEN))
    measured = pairs[::_MEASURED]
    rehearsed = [pair for number, pair in enumerate(pairs) if number % _MEASURED]
    inputs = [
        (text, condition)
        for pair in rehearsed
        for text in (pair.sentence1, pair.sentence2)
        for condition in (*pair.labels, "")
    ]
    both = dict.fromkeys([*inputs, *_captions()])
    return Rehearsal(tuple(both), _rows_of(rehearsed), _rows_of(measured))


def _rows_of(pairs: Sequence[WrittenPair]) -> Pairs:
    return tuple(
        (pair.sentence1, pair.sentence2, condition) for pair in pairs for condition in pair.labels
    )


def _captions() -> list[Input]:
    """Captions of our own under conditions that captions are asked about."""
    rewordings = load_rewordings()
    texts = list(dict.fromkeys((*rewordings.sentences1, *rewordings.sentences2)))
    texts += dict.fromkeys(text for text, _ in SAMPLES)
    conditions = list(dict.fromkeys((*rewordings.conditions, *(one for _, one in SAMPLES))))
    spread: Sequence[Input] = [
        (text, conditions[(number * _FEW + turn) % len(conditions)])
        for number, text in enumerate(texts)
        for turn in range(_FEW)
    ]
    return [*spread, *((text, "") for text in texts)]


_PENALTY = 0.1  # on the change of a weight, per row; the features have a spread of about 1


def mixed_conditions(pairs: Pairs, *, most: int, seed: int) -> Pairs:
    """Some pairs, half of them under the condition of another, which mostly does not apply."""
    random = np.random.default_rng(seed)
    drawn = [pairs[place] for place in random.permutation(len(pairs))[:most].tolist()]
    half = len(drawn) // 2
    moved = [drawn[place][2] for place in (np.arange(half) + 1) % max(half, 1)]
    other = [(one[0], one[1], condition) for one, condition in zip(drawn, moved, strict=False)]
    return (*other, *drawn[half:])


def carried_calibration(
    before: EmbeddingScorer, after: EmbeddingScorer, pairs: Pairs, dev: Task
) -> Calibration:
    """Fits the map to [0, 1] so that pairs keep their scores and dev rows get their labels."""
    columns = tuple(zip(*pairs, strict=True))
    kept = before.score(*columns, scale="unit")
    raw = after.score(*columns, scale="raw")
    own = after.score(dev.sentences1, dev.sentences2, dev.conditions, scale="raw")
    return fit_calibration(np.concatenate([raw, own]), np.concatenate([kept, dev.gold]))


def carried_head(
    before: EmbeddingScorer, after: EmbeddingScorer, pairs: Pairs
) -> ApplicabilityHead | None:
    """Changes the weights of a head so that it says the same of pairs as the model before."""
    # The change is a ridge regression of the logits; where the embeddings did not move, it is 0.
    from sklearn.linear_model import Ridge

    head = before.head
    if head is None:
        return None
    columns = tuple(map(list, zip(*pairs, strict=True)))
    wanted = features(before.embedded(*columns)) @ head.weights + head.bias  # (n,)
    values = features(after.embedded(*columns))  # (n, f)
    change = Ridge(alpha=_PENALTY * len(values))
    change.fit(values, wanted - (values @ head.weights + head.bias))
    facts = {**head.facts, "carried_over_from": before.name}
    return ApplicabilityHead(
        model=after.name,
        weights=head.weights + change.coef_,
        bias=head.bias + float(change.intercept_),
        probe=after.encode(*PROBE),
        facts=facts,
    )
