"""From the store to the rows of the next step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from condsim.construction.annotation.hints import hints_of
from condsim.construction.annotation.outcome import outcome_of
from condsim.construction.annotation.stages import Work
from condsim.construction.annotation.store import Store
from condsim.construction.annotation.store_rows import Annotation, Proposal
from condsim.construction.rows import HUMAN, Condition, Intended, Rating

__all__ = ["WrittenCondition", "conditions_of", "ratings_of"]


@dataclass(frozen=True, slots=True)
class WrittenCondition(Condition):
    """A condition with its hints.

    Attributes:
        hints: What may be wrong with it, separated by " | ".
    """

    hints: str = ""


def conditions_of(store: Store) -> Iterator[WrittenCondition]:
    """Gives the conditions that were written and count.

    Args:
        store: The store.

    Yields:
        Two rows a pair and annotator, C-High first. The origin of a condition that a model proposed
        and the annotator left as it was is the model.
    """
    items = store.items("conditions")
    proposals = {(one.item, one.model): one for one in store.proposals("conditions")}
    for item, counted in outcome_of(store, "conditions").counted.items():
        work = items[item].work
        for one in counted:
            proposal = proposals.get((item, one.prefilled_by))
            yield _condition(work, one, "high", proposal)
            yield _condition(work, one, "low", proposal)


def ratings_of(store: Store) -> Iterator[Rating]:
    """Gives the ratings that count, and those of models.

    Args:
        store: The store.

    Yields:
        The rows in the order in which they were given out: of each the people's ratings, whose
        origin is `HUMAN` also where they saw a model's first, then the models' own.
    """
    items = store.items("verification")
    of_models: dict[str, list[Proposal]] = {}
    for proposal in store.proposals("verification"):
        of_models.setdefault(proposal.item, []).append(proposal)
    for item, counted in outcome_of(store, "verification").counted.items():
        work = items[item].work
        for one in counted:
            if one.answer.rating is not None:  # what counts has one
                yield _rating(
                    work,
                    one.annotator,
                    one.answer.rating,
                    seconds=one.seconds,
                    updated_at=one.updated,
                    prefilled_by=one.prefilled_by,
                )
        for proposal in of_models.get(item, []):
            if proposal.answer.rating is not None:
                yield _rating(work, proposal.model, proposal.answer.rating, origin=proposal.model)


def _condition(
    work: Work, one: Annotation, intended: Intended, proposal: Proposal | None
) -> WrittenCondition:
    text: str = getattr(one.answer, intended) or ""
    proposed = getattr(proposal.answer, intended) if proposal else None
    first, second = work.shown["sentence1"], work.shown["sentence2"]
    return WrittenCondition(
        pair_id=str(work.facts["pair_id"]),
        sentence1=first,
        sentence2=second,
        condition=text,
        intended=intended,
        annotator=one.annotator,
        seconds=one.seconds,
        origin=one.prefilled_by if proposed == text else HUMAN,
        prefilled_by=one.prefilled_by,
        hints=" | ".join(f"{hint.rule}: {hint.text}" for hint in hints_of(text, first, second)),
    )


def _rating(
    work: Work,
    annotator: str,
    label: int,
    *,
    origin: str = HUMAN,
    seconds: float | None = None,
    updated_at: str = "",
    prefilled_by: str = "",
) -> Rating:
    return Rating(
        row_id=work.item_id,
        pair_id=str(work.facts["pair_id"]),
        sentence1=work.shown["sentence1"],
        sentence2=work.shown["sentence2"],
        condition=work.shown["condition"],
        intended=cast(Intended, work.facts["intended"]),
        annotator=annotator,
        label=label,
        seconds=seconds,
        origin=origin,
        updated_at=updated_at,
        prefilled_by=prefilled_by,
        condition_origin=str(work.facts.get("proposed_by") or HUMAN),
    )
