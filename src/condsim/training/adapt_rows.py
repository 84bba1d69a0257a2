"""Rows of an adaptation: labeled ones, and those that keep the rest of the model unchanged."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from condsim.data.files import column_names, iter_rows
from condsim.data.formats import write_records
from condsim.data.labels import read_labels
from condsim.data.rewordings import load_rewordings
from condsim.data.row import short_repr
from condsim.data.written import WrittenPair, iter_written
from condsim.errors import InputError
from condsim.model.criterion import is_criterion_file
from condsim.model.embedding import EmbeddingScorer
from condsim.paths import asset
from condsim.training.export import SAMPLES

MIN_LABELED = 20
"""Labeled pairs that an adaptation needs."""

COLUMNS = ("sentence1", "sentence2", "condition", "label")
GROUP_COLUMNS = ("set", "group", "criterion")

# Rows of a condition, all with one label, from which on the label would be learned as its answer.
MAX_ONE_SIDED = 10

SPLIT_DRAWS = 20

WRITTEN = asset("rehearsal.txt.gz").resolve()
"""750 pairs of the training split of ``data/written``, evenly spaced: a few of each domain."""

# Every fifth written pair of texts is measured on.
MEASURED_STEP = 5
CONDITIONS_PER_CAPTION = 6

Pairs = tuple[tuple[str, str, str], ...]
"""First text, second text and condition of pairs."""

logger = logging.getLogger("condsim")


@dataclass(frozen=True, slots=True)
class LabeledPair:
    """A labeled pair; ``group_cells`` are ``set``, ``group`` and ``criterion``, if in the file."""

    sentence1: str
    sentence2: str
    condition: str
    label: float
    group_cells: tuple[str, ...] = ()

    @property
    def pair(self) -> tuple[str, str]:
        """The two texts in a fixed order."""
        return min(self.sentence1, self.sentence2), max(self.sentence1, self.sentence2)

    @property
    def unit(self) -> tuple[str, ...]:
        """Key of rows that stay together: the set and the group, or else the two texts."""
        has_group = bool(self.group_cells and self.group_cells[1])
        return self.group_cells[:2] if has_group else self.pair


def read_labeled(path: Path | str, *, at_least: int = MIN_LABELED) -> list[LabeledPair]:
    """Read the rows of a file that have a label, at least so many.

    The columns are ``sentence1``, ``sentence2``, ``condition`` and ``label``, in a form that
    `condsim.data.labels.read_labels` takes. Rows of one value of a column ``group`` stay together.
    """
    path = Path(path)
    optional = GROUP_COLUMNS if "group" in column_names(path) else ()
    rows = list(iter_rows(path, columns=COLUMNS, optional=optional))
    pairs = []
    for row, label in zip(rows, read_labels(path).likert.tolist(), strict=True):
        if not np.isnan(label):
            sentence1, sentence2, condition = (row.text(name) for name in COLUMNS[:3])
            if is_criterion_file(condition):
                raise InputError(
                    f"{path}: {condition!r} is a learned criterion, and a model is trained on "
                    "conditions in words. Give its condition."
                )
            group_cells = tuple(str(row.cells[name] or "") for name in optional)
            pairs.append(LabeledPair(sentence1, sentence2, condition, label, group_cells))
    _check_labels(path, pairs, at_least)
    return pairs


def _check_labels(path: Path, pairs: Sequence[LabeledPair], at_least: int) -> None:
    number_of_labels = len({pair.label for pair in pairs})
    if len(pairs) < at_least or number_of_labels < 2:
        raise InputError(
            f"{path}: needs at least {at_least} labeled pairs with two different labels; got "
            f"{len(pairs)} with {number_of_labels}."
        )
    counts: dict[str, Counter[float]] = defaultdict(Counter)
    for pair in pairs:
        counts[pair.condition.casefold()][pair.label] += 1
    for condition, labels in sorted(counts.items()):
        if len(labels) == 1 and labels.total() >= MAX_ONE_SIDED:
            raise InputError(
                f"{path}: the condition {short_repr(condition)} has {labels.total()} rows, all "
                "with the same label, which would be learned as its answer. Add pairs of the other "
                "kind, or remove these rows."
            )


def split_labeled(
    pairs: Sequence[LabeledPair], *, share: float, seed: int
) -> tuple[list[LabeledPair], list[LabeledPair]]:
    """Split rows into those to train on and those to measure on, in the order given.

    Texts that occur together in a pair or group go to the same side, and so do texts that are
    linked by several. Where that leaves too few rows on a side, since most texts are linked, whole
    pairs (of rows with a group: whole groups) are drawn instead, and the log says so.
    """
    units = {unit: number for number, unit in enumerate(dict.fromkeys(p.unit for p in pairs))}
    blocks = [units[pair.unit] for pair in pairs]
    linked = _linked_blocks(pairs)
    reason = f"a share of {share:g} to measure on has one label only. Give more rows, another share"
    for keys in (linked, blocks):
        for draw in range(SPLIT_DRAWS):
            drawn = _draw_blocks(keys, rows=share * len(pairs), seed=(seed, draw))
            dev = [pair for pair, key in zip(pairs, keys, strict=True) if key in drawn]
            train = [pair for pair, key in zip(pairs, keys, strict=True) if key not in drawn]
            # One block of linked texts contains nearly all rows.
            if len(dev) < 0.6 * share * len(pairs):
                if keys is blocks:
                    reason = "most are of one pair of texts or one group. Give rows of more texts"
                break
            if all(len({pair.label for pair in part}) > 1 for part in (train, dev)):
                if keys is blocks:
                    logger.info("some texts are in rows to train on and to measure on")
                return train, dev
    raise InputError(f"The {len(pairs)} rows cannot be split: {reason}, or a file to measure on.")


def _linked_blocks(pairs: Sequence[LabeledPair]) -> list[int]:
    """Number the rows so that rows with linked texts or groups have the same number."""
    nodes: dict[str | tuple[str, ...], int] = {}
    edges = []
    for pair in pairs:
        first = nodes.setdefault(pair.sentence1, len(nodes))
        edges.append((first, nodes.setdefault(pair.sentence2, len(nodes))))
        edges.append((first, nodes.setdefault(pair.unit, len(nodes))))
    graph = coo_array((np.ones(len(edges)), np.array(edges).T), shape=(len(nodes), len(nodes)))
    _, components = connected_components(graph, directed=False)
    return [int(components[nodes[pair.sentence1]]) for pair in pairs]


def _draw_blocks(keys: Sequence[int], *, rows: float, seed: tuple[int, int]) -> set[int]:
    """Draw whole blocks until about so many rows are drawn, none of them far too large."""
    sizes = Counter(keys)
    names = list(sizes)
    drawn: set[int] = set()
    total = 0
    for index in np.random.default_rng(seed).permutation(len(names)).tolist():
        size = sizes[names[index]]
        if total < rows and total + size <= 1.2 * rows + 1:
            drawn.add(names[index])
            total += size
    return drawn


def write_labeled(pairs: Sequence[LabeledPair], path: Path) -> None:
    """Write rows as a training file in CSV."""
    names = (*COLUMNS, *GROUP_COLUMNS) if any(pair.group_cells for pair in pairs) else COLUMNS
    records = []
    for pair in pairs:
        cells = (pair.sentence1, pair.sentence2, pair.condition, f"{pair.label:g}")
        records.append(dict(zip(names, (*cells, *pair.group_cells), strict=True)))
    write_records(path, records)


@dataclass(frozen=True)
class Rehearsal:
    """Texts that keep the rest of a model unchanged.

    Attributes:
        inputs: Texts with their conditions, empty for none, to be trained on.
        rehearsed: Pairs of these texts.
        measured: Pairs of other texts, none of which is trained on.
    """

    inputs: tuple[tuple[str, str], ...]
    rehearsed: Pairs
    measured: Pairs

    def write(
        self, scorer: EmbeddingScorer, folder: Path, *, most: int, seed: int
    ) -> tuple[Path, Path]:
        """Write at most so many inputs, and the vectors that a model computes for them."""
        files = folder / "rehearsal.csv", folder / "rehearsal.npy"
        drawn = np.random.default_rng(seed).permutation(len(self.inputs))[:most]
        chosen = [self.inputs[index] for index in sorted(drawn.tolist())]
        write_records(files[0], ({"sentence": text, "condition": cond} for text, cond in chosen))
        vectors = np.empty((len(chosen), scorer.dimension), np.float32)
        for plain in (False, True):
            rows = [row for row, (_, condition) in enumerate(chosen) if (not condition) == plain]
            if rows:
                texts = [chosen[row][0] for row in rows]
                conditions = None if plain else [chosen[row][1] for row in rows]
                vectors[rows] = scorer.encode(texts, conditions)
        np.save(files[1], vectors)
        return files


def load_rehearsal() -> Rehearsal:
    """Gather the rehearsal texts of the package: written pairs of many domains, and captions.

    Each text is rehearsed under its own conditions, a caption under a few, and each once without a
    condition.
    """
    pairs = list(iter_written(WRITTEN))
    measured = pairs[::MEASURED_STEP]
    rehearsed = [pair for number, pair in enumerate(pairs) if number % MEASURED_STEP]
    inputs = [
        (text, condition)
        for pair in rehearsed
        for text in (pair.sentence1, pair.sentence2)
        for condition in (*pair.labels, "")
    ]
    unique_inputs = dict.fromkeys([*inputs, *_captions()])
    return Rehearsal(
        tuple(unique_inputs), _conditional_pairs(rehearsed), _conditional_pairs(measured)
    )


def _conditional_pairs(pairs: Sequence[WrittenPair]) -> Pairs:
    return tuple(
        (pair.sentence1, pair.sentence2, condition) for pair in pairs for condition in pair.labels
    )


def _captions() -> list[tuple[str, str]]:
    """Our own captions under conditions that captions are asked about."""
    rewordings = load_rewordings()
    texts = list(dict.fromkeys((*rewordings.sentences1, *rewordings.sentences2)))
    texts += dict.fromkeys(text for text, _ in SAMPLES)
    conditions = list(dict.fromkeys((*rewordings.conditions, *(cond for _, cond in SAMPLES))))
    captions = []
    for number, text in enumerate(texts):
        for turn in range(CONDITIONS_PER_CAPTION):
            index = (number * CONDITIONS_PER_CAPTION + turn) % len(conditions)
            captions.append((text, conditions[index]))
    return [*captions, *((text, "") for text in texts)]
