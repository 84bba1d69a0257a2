"""What a context says of sentences in general, and contexts of a sentence (`eq4.Center`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condsim.contexts.scoring.selection import Places, TermScorer
from condsim.types import BoolArray, FloatArray, IntArray


class ContextMeans:
    """The mean term of each context over a few sentences of the corpus, computed once."""

    def __init__(self, corpus: Places, terms: TermScorer, references: int, *, seed: int) -> None:
        drawn = np.random.default_rng(seed).choice(
            len(corpus), size=min(references, len(corpus)), replace=False
        )
        self._sentences = corpus.sentences(np.sort(drawn).astype(np.int64))
        self._terms = terms
        self._rows = len(corpus)
        self._known: dict[str, FloatArray] = {}
        self._done: dict[str, BoolArray] = {}

    def of(self, groups: Sequence[IntArray], names: Sequence[str]) -> list[dict[str, FloatArray]]:
        """Gives the means of contexts.

        Args:
            groups: Groups of contexts, each ``(k,)``.

        Returns:
            For each group the mean terms by name, each ``(k,)``.
        """
        if not names:
            return [{} for _ in groups]
        for name in names:
            self._known.setdefault(name, np.zeros(self._rows, np.float32))
            self._done.setdefault(name, np.zeros(self._rows, np.bool_))
        every = np.unique(np.concatenate(groups)) if groups else np.zeros(0, np.int64)
        missing = every[~self._done[names[0]][every]]
        if len(missing):
            found = self._terms.terms(self._sentences, [missing] * len(self._sentences), names)
            for name in names:
                stacked = np.stack([terms[name] for terms in found])  # (references, missing)
                self._known[name][missing] = stacked.mean(axis=0)
                self._done[name][missing] = True
        return [{name: self._known[name][group] for name in names} for group in groups]


class SentenceMeans:
    """The mean term of each sentence over a few contexts of the corpus, computed once."""

    def __init__(self, corpus: Places, terms: TermScorer, references: int, *, seed: int) -> None:
        centres = np.flatnonzero(corpus.has_context)
        drawn = np.random.default_rng(seed).choice(
            centres, size=min(references, len(centres)), replace=False
        )
        self._centres = np.sort(drawn).astype(np.int64)
        self._terms = terms
        self._known: dict[str, dict[str, float]] = {}

    def of(
        self, pairs: Sequence[tuple[str, str]], names: Sequence[str]
    ) -> list[dict[str, FloatArray]]:
        """Gives the means of the sentences of pairs.

        Returns:
            For each pair the mean terms of both sentences by name, each ``(2,)``.
        """
        if not names:
            return [{} for _ in pairs]
        asked = dict.fromkeys(sentence for pair in pairs for sentence in pair)
        missing = [sentence for sentence in asked if sentence not in self._known]
        found = self._terms.terms(missing, [self._centres] * len(missing), names)
        for sentence, terms in zip(missing, found, strict=True):
            self._known[sentence] = {name: float(terms[name].mean()) for name in names}
        return [
            {name: np.array([self._known[one][name] for one in pair], np.float32) for name in names}
            for pair in pairs
        ]
