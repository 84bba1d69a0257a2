"""From the store to the rows of the next step."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from condsim.construction.annotation.hints import hints_of
from condsim.construction.annotation.outcome import outcome_of
from condsim.construction.annotation.stages import Answer, Item, Stage
from condsim.construction.annotation.store import Annotation, AnnotationStore
from condsim.construction.row_files import write_manifest, write_rows
from condsim.construction.rows import HUMAN, Condition, Intended, Rating


class WrittenFile(NamedTuple):
    """A file of what counts."""

    path: Path
    rows: int
    set_aside: tuple[tuple[str, int], ...]  # (reason, annotations that do not count for it)


def write_stage(
    store: AnnotationStore, stage: Stage, output: Path | None = None
) -> WrittenFile | None:
    """Writes ``conditions.parquet`` or ``ratings.parquet`` and its manifest.

    Args:
        store: The store.
        stage: ``"conditions"`` or ``"verification"``; a qualification has no file.
        output: The file, ``.parquet`` or ``.csv``; beside the store if None.

    Returns:
        What was written; None for a qualification.

    Raises:
        InputError: If the file cannot be written.
        MissingExtraError: If it is Parquet and pyarrow is not installed.
    """
    if stage == "qualification":
        return None
    if stage == "conditions":
        path = output or store.path.with_name("conditions.parquet")
        rows = write_rows(conditions_of(store), path, kind=WrittenCondition)
    else:
        path = output or store.path.with_name("ratings.parquet")
        rows = write_rows(ratings_of(store), path, kind=Rating)
    outcome, project = outcome_of(store, stage), store.project(stage)
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
            "set_aside": dict(outcome.reasons()),
            "proposals_by_model": dict(sorted(models.items())),
        },
    )
    return WrittenFile(path, rows, outcome.reasons())


@dataclass(frozen=True, slots=True)
class WrittenCondition(Condition):
    """A condition with its hints."""

    hints: str = ""  # what may be wrong with it, separated by " | "


def conditions_of(store: AnnotationStore) -> Iterator[WrittenCondition]:
    """Gives the conditions that were written and count."""
    items = store.items("conditions")
    proposals = {(one.item, one.model): one.answer for one in store.proposals("conditions")}
    for item, counted in outcome_of(store, "conditions").counted.items():
        for one in counted:
            proposed = proposals.get((item, one.prefilled_by), Answer())
            yield _condition(items[item], one, "high", one.answer.high, proposed.high)
            yield _condition(items[item], one, "low", one.answer.low, proposed.low)


def ratings_of(store: AnnotationStore) -> Iterator[Rating]:
    """Gives the ratings that count, and those of models."""
    items = store.items("verification")
    of_models: dict[str, list[Annotation]] = defaultdict(list)
    for item, model, answer, _ in store.proposals("verification"):
        of_models[item].append(Annotation("", "", item, model, answer, None, "", ""))
    for item, counted in outcome_of(store, "verification").counted.items():
        yield from (_rating(items[item], one, HUMAN) for one in counted)
        for one in of_models[item]:
            if one.answer.rating is not None:
                yield _rating(items[item], one, one.annotator)


def _condition(
    item: Item, one: Annotation, intended: Intended, text: str | None, proposed: str | None
) -> WrittenCondition:
    first, second = item.shown["sentence1"], item.shown["sentence2"]
    condition = text or ""  # what counts has one
    hints = hints_of(condition, first, second)
    return WrittenCondition(
        pair_id=str(item.facts["pair_id"]),
        sentence1=first,
        sentence2=second,
        condition=condition,
        intended=intended,
        annotator=one.annotator,
        seconds=one.seconds,
        origin=one.prefilled_by if proposed == text else HUMAN,
        prefilled_by=one.prefilled_by,
        hints=" | ".join(f"{hint.rule}: {hint.text}" for hint in hints),
    )


def _rating(item: Item, one: Annotation, origin: str) -> Rating:
    return Rating(
        row_id=item.item_id,
        pair_id=str(item.facts["pair_id"]),
        sentence1=item.shown["sentence1"],
        sentence2=item.shown["sentence2"],
        condition=item.shown["condition"],
        intended=cast(Intended, item.facts["intended"]),
        annotator=one.annotator,
        label=cast(int, one.answer.rating),  # what counts has one
        seconds=one.seconds,
        origin=origin,
        updated_at=one.updated,
        prefilled_by=one.prefilled_by,
        condition_origin=str(item.facts.get("proposed_by") or HUMAN),
    )
