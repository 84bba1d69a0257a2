"""The items of a qualification test: pairs to write conditions for, triplets with known answers."""

from __future__ import annotations

from dataclasses import dataclass

from condsim.construction.rows import TableRow

__all__ = ["TEST", "KnownTriplet", "SentencePair"]


@dataclass(frozen=True, slots=True)
class SentencePair(TableRow):
    """A pair for which conditions are written.

    Attributes:
        sentence1: The first sentence.
        sentence2: The second sentence.
        pair_id: Its id; made of the sentences where the file has none.
    """

    sentence1: str
    sentence2: str
    pair_id: str = ""


@dataclass(frozen=True, slots=True)
class KnownTriplet(TableRow):
    """A pair under a condition whose right answer is known.

    Attributes:
        sentence1: The first sentence.
        sentence2: The second sentence.
        condition: The condition.
        label: 1 to 5, or -1 where the condition does not apply.
    """

    sentence1: str
    sentence2: str
    condition: str
    label: int


TEST: tuple[tuple[SentencePair, KnownTriplet], ...] = (
    (
        SentencePair("A fisherman mends his net on the pier.", "A tailor sews a wedding dress."),
        KnownTriplet(
            "A white goat climbs a rock.", "A white sail on the horizon.", "The color of it", 5
        ),
    ),
    (
        SentencePair("Children race each other down the hill.", "Two old men play dominoes."),
        KnownTriplet(
            "The choir sings in a chapel.", "A diver explores a wreck.", "The kind of place", 1
        ),
    ),
    (
        SentencePair("A violinist tunes up before the concert.", "A cyclist pumps up his tires."),
        KnownTriplet(
            "A boy throws a snowball.", "The keeper feeds a seal.", "The price of the ticket", -1
        ),
    ),
    (
        SentencePair("Rain drums on the roof of a hut.", "The sun burns down on a market."),
        KnownTriplet(
            "A woman plays the cello.", "A man plays the double bass.", "The instrument", 2
        ),
    ),
    (
        SentencePair("A chef tastes the soup.", "A chemist looks into a test tube."),
        KnownTriplet(
            "Three nuns wait for a train.", "Three dogs wait for food.", "How many there are", 5
        ),
    ),
    (
        SentencePair("A tourist reads a map at a crossing.", "A sailor watches the compass."),
        KnownTriplet(
            "A toddler giggles on a swing.",
            "A widow weeps at a grave.",
            "The mood of the person",
            1,
        ),
    ),
)
"""A short test of our own that fits no domain in particular."""
