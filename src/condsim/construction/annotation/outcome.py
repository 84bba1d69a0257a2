"""Which annotations count, and why the others do not."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from condsim.construction.annotation.stages import Answer, Stage
from condsim.construction.annotation.store import Annotation, AnnotationStore, PoolMember

UNKNOWN = "(unknown)"
"""Annotator whose account is gone and was never seen."""


class SetAside(NamedTuple):
    """An annotation that does not count; it stays in the store."""

    annotation: Annotation
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What has come of a stage so far."""

    wanted: int  # answers for each item; 0 for no limit
    counted: dict[str, list[Annotation]]  # by item, also where there are none, as handed out
    set_aside: tuple[SetAside, ...]

    @property
    def done(self) -> int:
        """Items with as many answers as wanted."""
        return sum(self.has_enough(item) for item in self.counted)

    def has_enough(self, item: str) -> bool:
        """Whether an item has as many answers as wanted; never so where there is no limit."""
        return bool(self.wanted) and len(self.counted.get(item, ())) >= self.wanted

    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Counts the answers that do not count by reason, the most frequent first."""
        return tuple(Counter(one.reason for one in self.set_aside).most_common())


def outcome_of(store: AnnotationStore, stage: Stage) -> Outcome:
    """Sorts the annotations of a stage.

    An annotation counts if it is complete, its annotator is in the pool (or the stage is open to
    anyone) and did not write the condition that is rated (C-STS §2.2.2: "new annotators"). Of
    several by one annotator the latest counts, of more than are wanted the earliest.
    """
    project = store.project(stage)
    wanted = 0 if stage == "qualification" or project is None else project.annotators
    items, pool = store.items(stage), store.pool()
    everyone = project is not None and project.anyone
    by_item: dict[str, dict[str, Annotation]] = defaultdict(dict)
    aside: list[SetAside] = []
    for one in store.annotations(stage):
        author = items[one.item].facts.get("author") if one.item in items else None
        reason = _unusable(stage, one, pool, everyone=everyone, author=author)
        if reason:
            aside.append(SetAside(one, reason))
            continue
        earlier = by_item[one.item].get(one.annotator)
        if earlier is not None:
            one, earlier = sorted((one, earlier), key=lambda each: each.updated, reverse=True)
            aside.append(SetAside(earlier, "answered again by the same annotator"))
        by_item[one.item][one.annotator] = one
    counted: dict[str, list[Annotation]] = {}
    for item in items:
        usable = sorted(by_item.get(item, {}).values(), key=lambda each: each.created)
        kept = usable[:wanted] if wanted else usable
        counted[item] = kept
        aside += [SetAside(one, f"beyond the {wanted} wanted") for one in usable[len(kept) :]]
    return Outcome(wanted, counted, tuple(aside))


def _unusable(
    stage: Stage,
    one: Annotation,
    pool: dict[str, PoolMember],
    *,
    everyone: bool,
    author: str | int | None,
) -> str:
    """Why an annotation cannot count whatever the others are; empty if it can."""
    member = pool.get(one.annotator)
    if one.cancelled:
        return "skipped by the annotator"
    if one.annotator == UNKNOWN:
        return "the account is gone"
    if missing := one.answer.missing(stage):
        return f"no {_listed(one.answer, missing)}"
    if stage != "qualification" and not (member.accepted if member else everyone):
        return "the annotator was rejected" if member else "the annotator is not in the pool"
    if one.annotator == author:
        return "the annotator wrote the condition"
    return ""


def _listed(answer: Answer, missing: tuple[str, ...]) -> str:
    names = {"high": "high condition", "low": "low condition", "rating": "rating"}
    if answer == Answer():
        return "rating" if missing == ("rating",) else "answer at all"
    return " and no ".join(names[name] for name in missing)
