"""From the store to the rows of the next step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from condsim.construction.annotation.hints import hints_of
from condsim.construction.annotation.outcome import outcome_of
from condsim.construction.annotation.stages import Stage, Work
from condsim.construction.annotation.store import Annotation, Proposal, Store
from condsim.construction.rows import HUMAN, Condition, Intended, Rating
from condsim.construction.tables import write_manifest, write_rows


@dataclass(frozen=True)
class WrittenFile:
    """A file of what counts.

    Attributes:
        path: The file.
        rows: Its rows.
        set_aside: Annotations that do not count: (reason, number), the most frequent first.
    """

    path: Path
    rows: int
    set_aside: tuple[tuple[str, int], ...]


def write_stage(
    store: Store, stage: Stage, folder: Path, output: Path | None = None
) -> WrittenFile | None:
    """Writes ``conditions.parquet`` or ``ratings.parquet`` and its manifest.

    Args:
        store: The store.
        stage: The stage; a qualification has no file.
        folder: Where the file goes if no other is named.
        output: The file, ``.parquet`` or ``.csv``.

    Returns:
        What was written; None for a qualification.

    Raises:
        InputError: If the file cannot be written.
        MissingExtraError: If it is Parquet and pyarrow is not installed.
    """
    if stage == "qualification":
        return None
    if stage == "conditions":
        path = output or folder / "conditions.parquet"
        rows = write_rows(conditions_of(store), path, kind=WrittenCondition)
    else:
        path = output or folder / "ratings.parquet"
        rows = write_rows(ratings_of(store), path, kind=Rating)
    outcome = outcome_of(store, stage)
    reasons = tuple(Counter(one.reason for one in outcome.set_aside).most_common())
    project = store.project(stage)
    models = Counter(one.model for one in store.proposals(stage))
    write_manifest(
        path,
        {
            "stage": stage,
            "rows": rows,
            "items": len(outcome.counted),
            "done": outcome.done,
            "annotators_per_item": outcome.wanted,
            "pool_only": project is not None and not project.anyone,
            "pool": sum(member.accepted for member in store.pool().values()),
            "set_aside": dict(reasons),
            "proposals_by_model": dict(sorted(models.items())),
        },
    )
    return WrittenFile(path, rows, reasons)


@dataclass(frozen=True, slots=True)
class WrittenCondition(Condition):
    """A condition with its hints.

    Attributes:
        hints: What may be wrong with it, separated by " | ".
    """

    hints: str = ""


def conditions_of(store: Store) -> Iterator[WrittenCondition]:
    """Gives the conditions that were written and count."""
    items = store.items("conditions")
    proposals = {(one.item, one.model): one for one in store.proposals("conditions")}
    for item, counted in outcome_of(store, "conditions").counted.items():
        work = items[item].work
        for one in counted:
            proposal = proposals.get((item, one.prefilled_by))
            yield _condition(work, one, "high", proposal)
            yield _condition(work, one, "low", proposal)


def ratings_of(store: Store) -> Iterator[Rating]:
    """Gives the ratings that count, and those of models."""
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
