"""Which annotations count, and why the others do not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from condsim.construction.annotation.stages import Answer, Stage
from condsim.construction.annotation.store import Annotation, PoolMember, Store

UNKNOWN = "(unknown)"
"""Annotator whose account is gone and was never seen."""


class SetAside(NamedTuple):
    """An annotation that does not count; it stays in the store."""

    annotation: Annotation
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What has come of a stage so far.

    Attributes:
        wanted: Answers wanted for each item; 0 for no limit.
        counted: The annotations that count by item, in the order in which items were given out;
            items without any are there too.
        set_aside: The others.
    """

    wanted: int
    counted: dict[str, list[Annotation]]
    set_aside: tuple[SetAside, ...]

    @property
    def done(self) -> int:
        """Items with as many answers as wanted."""
        return sum(self.has_enough(item) for item in self.counted)

    def has_enough(self, item: str) -> bool:
        """Whether an item has as many answers as wanted; never so where there is no limit."""
        return bool(self.wanted) and len(self.counted.get(item, ())) >= self.wanted


def outcome_of(store: Store, stage: Stage) -> Outcome:
    """Sorts the annotations of a stage.

    An annotation counts if all that is asked is there, the annotator is in the pool (or the stage
    is open to anyone and the annotator was not rejected), did not write the condition that is
    rated (C-STS §2.2.2: "new annotators"), and the item has not yet had as many answers as are
    wanted, the earliest first. Of several by one annotator of one item the latest counts.
    """
    project = store.project(stage)
    items = store.items(stage)
    pool = store.pool()
    everyone = stage == "qualification" or (project is not None and project.anyone)
    wanted = 0 if stage == "qualification" or project is None else project.annotators
    by_item: dict[str, dict[str, Annotation]] = defaultdict(dict)  # item -> annotator
    aside: list[SetAside] = []
    for one in store.annotations(stage):
        author = items[one.item].work.facts.get("author") if one.item in items else None
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
