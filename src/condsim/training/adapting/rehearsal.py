"""What keeps the rest of a model: texts under conditions whose vectors are to stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.files import replacing
from condsim.scorers import EmbeddingScorer
from condsim.tasks import WrittenPair, iter_written, load_rewordings
from condsim.training.adapting.labelled import write_csv
from condsim.training.export import SAMPLES

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
        write_csv(files[0], ("sentence", "condition"), chosen)
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
