"""The cost of scoring by contexts, counted beforehand: it is easily hours."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

from condsim.contexts.scoring.equations import Center, Weights
from condsim.contexts.scoring.selection import Selection

_LOGGER = logging.getLogger("condsim.contexts")


@dataclass(frozen=True)
class Cost:
    """The work of scoring pairs.

    Attributes:
        pairs: Pairs.
        contexts: Contexts of each pair, C_s1 and C_s2 together.
        models: Terms of Eq. 3 that a generator computes.
        sequences: Target sequences that generators score: for the choice of contexts, for each
            sentence in the other's contexts, and for the means that centring takes off.
        tokens: Tokens of these sequences, about.
        seconds: Time that takes, from a few that were timed; None if it was not measured.
    """

    pairs: int
    contexts: int
    models: int
    sequences: int
    tokens: int
    seconds: float | None = None

    def __str__(self) -> str:
        text = (
            f"{self.pairs:,} pairs x {self.contexts:,} contexts x {self.models} generators: about "
            f"{self.sequences:,} sequences of {self.tokens:,} tokens in all"
        )
        return text if self.seconds is None else f"{text}, about {_duration(self.seconds)}"


def cost_of(
    *,
    sentences: int,
    pairs: int,
    corpus: int,
    selection: Selection,
    weights: Weights,
    center: Center,
    references: int,
    tokens_per_sequence: float,
) -> Cost:
    """Counts the work of scoring pairs.

    Args:
        sentences: Distinct sentences among the pairs.
        corpus: Sentences of the corpus, which bounds the contexts there are.
        weights: λ of Eq. 3: terms of weight 0 cost nothing.
        center: What is taken off the scores (`condsim.contexts.Center`).
        references: Sentences or contexts that a mean is taken over.
        tokens_per_sequence: Mean length of a target.

    Returns:
        The cost, without a time.
    """
    generated = set(weights.used) - {"coherence"}
    models = len(generated)
    chosen_from = selection.size
    if selection.strategy != "random":
        chosen_from = round(selection.candidates * selection.size)
    choice = sentences * min(chosen_from, corpus)
    crosswise = 2 * pairs * min(selection.size, corpus)
    of_contexts = references * min(sentences * selection.size, corpus)
    means = {"none": 0, "context": models * of_contexts}
    sides = len(generated - {"centre"})
    means["pmi"] = sides * of_contexts + (models - sides) * references * sentences
    sequences = models * (choice + crosswise) + means[center]
    return Cost(
        pairs=pairs,
        contexts=2 * min(selection.size, corpus),
        models=models,
        sequences=sequences,
        tokens=round(sequences * tokens_per_sequence),
    )


def expected_distinct(draws: int, *, of: int) -> int:
    """How many different ones there are among some drawn at random, on average.

    Returns:
        ``of * (1 - (1 - 1 / of) ** draws)``, rounded.

    Examples:
        >>> expected_distinct(400, of=300), expected_distinct(400, of=1_000_000)
        (221, 400)
    """
    return round(-of * math.expm1(draws * math.log1p(-1 / of))) if of > 1 else min(draws, of)


def _duration(seconds: float) -> str:
    """Says a time in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
