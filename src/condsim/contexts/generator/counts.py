"""A generator that only counts: the floor that trained ones have to beat. SSBC has none."""

# p(token | given) = (1 - share) p(token) + share n(token, given) / n(given), p(token) being the
# share in the corpus: a language model, as over the vocabulary it sums to one, so all that reads a
# trained generator reads this one. Nothing is trained and, with the fixed ``share``, nothing tuned.

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from condsim.contexts.corpus.vocabulary import CorpusTokens, Vocabulary
from condsim.contexts.generator.items import Items, Units
from condsim.contexts.settings import SHAPES, GeneratorKind, GeneratorSettings
from condsim.types import BoolArray

FOLDER_KINDS: Mapping[GeneratorKind, str] = {
    "trained": "generators",
    "counts": "counts",
    "translation": "translation",
}
"""What the record of a folder calls the generators in it."""

_BLOCK = 100_000  # sentences counted at a time


class CountsGenerator(nn.Module):
    """Counts of a corpus; the counterpart of `ContextGenerator`."""

    def __init__(self, settings: GeneratorSettings, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.counts: Tensor  # (vocabulary,) float64, add-one smoothed
        self.register_buffer("counts", torch.ones(len(vocabulary), dtype=torch.float64))
        self.places = torch.zeros(settings.places, SHAPES["tiny"].width)  # only its width is read
        self._share = settings.share
        self._ends = [vocabulary.end_id, vocabulary.separator_id]

    def count(self, tokens: CorpusTokens, counted: BoolArray) -> None:
        """Counts the tokens of some sentences, ``(n,)``; each has an end and a separator."""
        counts = np.ones(len(self.counts))
        for first in range(0, len(tokens), _BLOCK):
            found, rows = tokens.stretch(first, min(first + _BLOCK, len(tokens)))
            counts += np.bincount(found[counted[rows]], minlength=len(counts))
        counts[self._ends] += counted.sum()
        self.counts.copy_(torch.from_numpy(counts))

    def encode(self, units: Units) -> Units:
        """Gives the given sentences back: they need no encoding."""
        return units

    def log_probabilities(self, units: Units, items: Items) -> Tensor:
        """Sums of log-probabilities over the tokens of each target, ``(n,)`` float64."""
        counts = self.counts.numpy()
        numbers: dict[tuple[int, ...], int] = {}
        given = np.array([numbers.setdefault(of_one, len(numbers)) for of_one in items.units])
        bags = [np.concatenate([units.tokens[unit] for unit in of_one]) for of_one in numbers]
        sizes = np.array([len(bag) for bag in bags])
        owners = np.repeat(np.arange(len(bags)), sizes)
        keys, times = np.unique(owners * len(counts) + np.concatenate(bags), return_counts=True)
        lengths = np.array([len(target) for target in items.targets])
        targets, owners = np.concatenate(items.targets), np.repeat(given, lengths)
        wanted = owners * len(counts) + targets
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        inside = np.where(keys[places] == wanted, times[places], 0) / sizes[owners]
        mixed = (1 - self._share) * counts[targets] / counts.sum() + self._share * inside
        starts = np.cumsum(lengths) - lengths
        return torch.from_numpy(np.add.reduceat(np.log(mixed), starts))
