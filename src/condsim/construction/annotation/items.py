"""Turns files into items to annotate, one function a stage."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from condsim.construction.annotation.hints import NO_HINTS
from condsim.construction.annotation.stages import Item, Stage
from condsim.construction.row_files import read_rows
from condsim.construction.rows import (
    DOES_NOT_APPLY,
    HUMAN,
    Condition,
    TableRow,
    pair_id_of,
    row_id_of,
)
from condsim.errors import InputError


@dataclass(frozen=True, slots=True)
class SentencePair(TableRow):
    """A pair for which conditions are written."""

    sentence1: str
    sentence2: str
    pair_id: str = ""  # made of the sentences where the file has none


@dataclass(frozen=True, slots=True)
class KnownTriplet(TableRow):
    """A pair under a condition whose right answer is known."""

    sentence1: str
    sentence2: str
    condition: str
    label: int  # 1 to 5, or DOES_NOT_APPLY


_OWN_TEST = Path(__file__).parent / "own_test"  # fits no domain in particular


def items_to_annotate(
    stage: Stage, data: Path | None = None, *, pairs: Path | None = None
) -> Iterator[Item]:
    """Reads the items of a stage.

    Args:
        stage: ``"qualification"``, ``"conditions"`` or ``"verification"``.
        data: qualification: triplets with the columns ``sentence1, sentence2, condition, label``
            (1 to 5, or -1 where the condition does not apply); a short test of our own if None.
            conditions: pairs with the columns ``sentence1, sentence2`` and perhaps ``pair_id``,
            such as the candidates. verification: conditions, as `write_stage` writes them.
        pairs: qualification: pairs to write conditions for, taken in turn; our own if None.

    Returns:
        The items, read while they are taken.

    Raises:
        InputError: If a file breaks a rule or is empty.
    """
    if stage == "qualification":
        return qualification_items(data, pairs)
    if data is None:
        return iter(())
    if stage == "conditions":
        return condition_items(data)
    return verification_items(read_rows(data, Condition))


def qualification_items(known: Path | None = None, pairs: Path | None = None) -> Iterator[Item]:
    """Makes the items of a qualification test: a triplet, and a pair to write conditions for."""
    triplets = list(read_rows(known or _OWN_TEST / "known.csv", KnownTriplet))
    for number, triplet in enumerate(triplets, start=1):
        if triplet.label != DOES_NOT_APPLY and not 1 <= triplet.label <= 5:
            raise InputError(
                f"{known}, row {number}: the known answer must be a whole number from 1 to 5, "
                f"or {DOES_NOT_APPLY} where the condition does not apply. Got {triplet.label}."
            )
    written = list(read_rows(pairs or _OWN_TEST / "pairs.csv", SentencePair))
    for pair, triplet in zip(cycle(written), triplets, strict=False):
        shown = {
            "sentence1": pair.sentence1,
            "sentence2": pair.sentence2,
            "test_sentence1": triplet.sentence1,
            "test_sentence2": triplet.sentence2,
            "test_condition": triplet.condition,
        }
        key = hashlib.sha256("\0".join(shown.values()).encode()).hexdigest()[:16]
        yield Item(f"test-{key}", shown, {"label": triplet.label})


def condition_items(path: Path) -> Iterator[Item]:
    """Makes the pairs to write conditions for."""
    for pair in read_rows(path, SentencePair):
        pair_id = pair.pair_id or pair_id_of(path.stem, pair.sentence1, pair.sentence2)
        # "hints" is there from the start: a page of Label Studio needs all its variables.
        shown = {"sentence1": pair.sentence1, "sentence2": pair.sentence2, "hints": NO_HINTS}
        yield Item(pair_id, shown, {"pair_id": pair_id})


def verification_items(conditions: Iterable[Condition]) -> Iterator[Item]:
    """Makes the rows to rate. Annotators do not see what a condition was written for, or by whom.

    The second of two equal rows has the id of the first.
    """
    for one in conditions:
        shown = {"sentence1": one.sentence1, "sentence2": one.sentence2, "condition": one.condition}
        facts = {"pair_id": one.pair_id, "intended": one.intended, "author": one.annotator}
        model = one.prefilled_by or (one.origin if one.origin != HUMAN else "")
        if model:
            facts["proposed_by"] = model
        yield Item(row_id_of(one.pair_id, one.condition), shown, facts)
