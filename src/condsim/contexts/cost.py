"""The work of scoring pairs, counted in advance."""

from __future__ import annotations

import math
from dataclasses import dataclass

from condsim.contexts.recipe import ScoringSettings, Selection

_TOKENS_PER_TARGET = 25.0


@dataclass(frozen=True)
class Cost:
    """The work of scoring pairs.

    Attributes:
        pairs: Number of pairs.
        contexts: Contexts of each pair, C_s1 and C_s2 together.
        models: Terms of Eq. 3 that a generator computes.
        sequences: Targets that generators score: for the choice of contexts, for each sentence in
            the other's contexts, and for the means that centring subtracts.
        seconds: Expected time, from a few sequences that were timed; None if not measured.
    """

    pairs: int
    contexts: int
    models: int
    sequences: int
    seconds: float | None = None

    @property
    def tokens(self) -> int:
        """Estimated number of tokens of the sequences."""
        return round(self.sequences * _TOKENS_PER_TARGET)

    def __str__(self) -> str:
        text = (
            f"{self.pairs:,} pairs x {self.contexts:,} contexts x {self.models} generators: about "
            f"{self.sequences:,} sequences of {self.tokens:,} tokens in all"
        )
        return text if self.seconds is None else f"{text}, about {_duration(self.seconds)}"


def cost_of(
    *, sentences: int, pairs: int, corpus: int, selection: Selection, scoring: ScoringSettings
) -> Cost:
    """Count the work of scoring pairs of distinct ``sentences`` by a corpus of a size."""
    generated = set(scoring.weights.used) - {"coherence"}
    models = len(generated)
    candidates = selection.size
    if selection.strategy != "random":
        candidates = round(selection.candidates * selection.size)
    choice = sentences * min(candidates, corpus)
    crosswise = 2 * pairs * min(selection.size, corpus)
    of_contexts = scoring.references * min(sentences * selection.size, corpus)
    sides = len(generated - {"centre"})
    means = {
        "none": 0,
        "context": models * of_contexts,
        "pmi": sides * of_contexts + (models - sides) * scoring.references * sentences,
    }
    return Cost(
        pairs=pairs,
        contexts=2 * min(selection.size, corpus),
        models=models,
        sequences=models * (choice + crosswise) + means[scoring.center],
    )


def expected_distinct(draws: int, *, of: int) -> int:
    """Expect this many different ones among some drawn at random.

    Examples:
        >>> expected_distinct(400, of=300), expected_distinct(400, of=1_000_000)
        (221, 400)
    """
    return round(-of * math.expm1(draws * math.log1p(-1 / of))) if of > 1 else min(draws, of)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
