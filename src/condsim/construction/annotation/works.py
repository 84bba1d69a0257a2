"""From files to the things to annotate, one function a stage."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from condsim.construction.annotation.hints import NO_HINTS
from condsim.construction.annotation.stages import Work
from condsim.construction.rows import (
    DOES_NOT_APPLY,
    HUMAN,
    Condition,
    TableRow,
    pair_id_of,
    row_id_of,
)
from condsim.construction.tables import read_rows
from condsim.errors import InputError


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


def qualification_works(known: Path | None = None, pairs: Path | None = None) -> Iterator[Work]:
    """Makes the items of a qualification test.

    Args:
        known: File of triplets with the columns ``sentence1, sentence2, condition, label`` (1 to 5,
            or -1 where the condition does not apply); a short test of our own if None.
        pairs: File of the pairs to write conditions for, taken in turn; those of our own test if
            None.

    Yields:
        One item a triplet, with a pair to write conditions for.

    Raises:
        InputError: If a file breaks a rule or is empty.
    """
    triplets = [right for _, right in TEST]
    if known is not None:
        triplets = list(read_rows(known, KnownTriplet))
        for number, triplet in enumerate(triplets, start=1):
            if triplet.label != DOES_NOT_APPLY and not 1 <= triplet.label <= 5:
                raise InputError(
                    f"{known}, row {number}: the known answer must be a whole number from 1 to 5, "
                    f"or {DOES_NOT_APPLY} where the condition does not apply. Got {triplet.label}."
                )
    own = [pair for pair, _ in TEST]
    written = own if pairs is None else list(read_rows(pairs, SentencePair))
    for path, rows in ((known, triplets), (pairs, written)):
        if not rows:
            raise InputError(f"{path} has no rows; a test needs one at least.")
    for pair, triplet in zip(cycle(written), triplets, strict=False):
        shown = {
            "sentence1": pair.sentence1,
            "sentence2": pair.sentence2,
            "test_sentence1": triplet.sentence1,
            "test_sentence2": triplet.sentence2,
            "test_condition": triplet.condition,
        }
        key = hashlib.sha256("\0".join(shown.values()).encode()).hexdigest()[:16]
        yield Work(f"test-{key}", shown, {"label": triplet.label})


def condition_works(path: Path) -> Iterator[Work]:
    """Makes the pairs to write conditions for.

    Args:
        path: File with the columns ``sentence1, sentence2`` and perhaps ``pair_id``, such as the
            candidates that passed the filters.

    Yields:
        One item a pair.

    Raises:
        InputError: If the file breaks a rule.
    """
    for pair in read_rows(path, SentencePair):
        pair_id = pair.pair_id or pair_id_of(path.stem, pair.sentence1, pair.sentence2)
        # "hints" is there from the start: a page of Label Studio needs all its variables.
        shown = {"sentence1": pair.sentence1, "sentence2": pair.sentence2, "hints": NO_HINTS}
        yield Work(pair_id, shown, {"pair_id": pair_id})


def verification_works(conditions: Iterable[Condition]) -> Iterator[Work]:
    """Makes the rows to rate. Annotators do not see what a condition was written for, or by whom.

    Args:
        conditions: The conditions.

    Yields:
        One item a pair and condition; the second of two equal ones has the id of the first.
    """
    for one in conditions:
        yield Work(
            row_id_of(one.pair_id, one.condition),
            {
                "sentence1": one.sentence1,
                "sentence2": one.sentence2,
                "condition": one.condition,
            },
            {
                "pair_id": one.pair_id,
                "intended": one.intended,
                "author": one.annotator,
                **({"proposed_by": model} if (model := _model_of(one)) else {}),
            },
        )


def _model_of(one: Condition) -> str:
    """The model that proposed a condition, changed or not; empty for none."""
    return one.prefilled_by or (one.origin if one.origin != HUMAN else "")
