"""What has come of a stage: which answers count, whose are taken, and the rows of the next step."""

# C-STS takes those who do well at both conditions and ratings (§2.2.2, stage 1). It does not say
# how the two are scored; this is condsim's way.

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, cast

from condsim.annotation.stages import Answer, Item, Stage, hints_of
from condsim.annotation.store import Annotation, AnnotationStore, PoolMember
from condsim.errors import InputError
from condsim.rows.records import (
    DOES_NOT_APPLY,
    HUMAN,
    Condition,
    Intended,
    Rating,
    write_manifest,
    write_rows,
)

UNKNOWN = "(unknown)"
"""Annotator whose account is gone and was never seen."""


@dataclass(frozen=True)
class Outcome:
    """What has come of a stage so far."""

    wanted: int  # answers for each item; 0 for no limit
    counted: dict[str, list[Annotation]]  # by item, also where there are none, as handed out
    # Annotations that do not count, by reason, the most frequent first; they stay in the store.
    set_aside: tuple[tuple[str, int], ...]

    @property
    def done(self) -> int:
        """Items with as many answers as wanted."""
        return sum(self.has_enough(item) for item in self.counted)

    def has_enough(self, item: str) -> bool:
        """Whether an item has as many answers as wanted; never so where there is no limit."""
        return bool(self.wanted) and len(self.counted.get(item, ())) >= self.wanted


def outcome_of(store: AnnotationStore, stage: Stage) -> Outcome:
    """Sorts the annotations of a stage."""
    # An annotation counts if it is complete, its annotator is in the pool (or the stage is open to
    # anyone) and did not write the condition that is rated (C-STS §2.2.2: "new annotators"). Of
    # several by one annotator the latest counts, of more than are wanted the earliest.
    project = store.project(stage)
    wanted = 0 if stage == "qualification" or project is None else project.annotators
    items, pool = store.items(stage), store.pool()
    everyone = project is not None and project.anyone
    by_item: dict[str, dict[str, Annotation]] = defaultdict(dict)
    aside: Counter[str] = Counter()
    for one in store.annotations(stage):
        author = str(items[one.item].facts.get("author", "")) if one.item in items else ""
        if reason := _unusable(stage, one, pool, everyone=everyone, author=author):
            aside[reason] += 1
            continue
        given = by_item[one.item]
        if one.annotator in given:
            aside["answered again by the same annotator"] += 1
            one = max(one, given[one.annotator], key=lambda each: each.updated)
        given[one.annotator] = one
    counted: dict[str, list[Annotation]] = {}
    for item in items:
        usable = sorted(by_item[item].values(), key=lambda each: each.created)
        counted[item] = usable[:wanted] if wanted else usable
        if beyond := len(usable) - len(counted[item]):
            aside[f"beyond the {wanted} wanted"] += beyond
    return Outcome(wanted, counted, tuple(aside.most_common()))


def _unusable(
    stage: Stage,
    one: Annotation,
    pool: dict[str, PoolMember],
    *,
    everyone: bool,
    author: str,
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
    if one.annotator == author.casefold():  # as the names of accounts are kept
        return "the annotator wrote the condition"
    return ""


def _listed(answer: Answer, missing: tuple[str, ...]) -> str:
    names = {"high": "high condition", "low": "low condition", "rating": "rating"}
    if answer == Answer():
        return "rating" if missing == ("rating",) else "answer at all"
    return " and no ".join(names[name] for name in missing)


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
            "set_aside": dict(outcome.set_aside),
            "proposals_by_model": dict(sorted(models.items())),
        },
    )
    return WrittenFile(path, rows, outcome.set_aside)


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


_PREFERENCE = 6  # the rule that states a preference: a condition that breaks it will do


@dataclass(frozen=True)
class TestResult:
    """How one annotator did in the test."""

    __test__ = False  # no test case of pytest

    annotator: str
    answered: int  # test items answered
    items: int  # test items in all
    condition_score: float  # share of written conditions without a hint of rules 1 to 5
    rating_score: float  # share of ratings at most 1 from the known answer
    accepted: bool | None  # None while items are not answered


def score_test(
    store: AnnotationStore, *, min_conditions: float = 0.8, min_ratings: float = 0.8
) -> tuple[TestResult, ...]:
    """Scores all who took the test and writes the pool; decisions by hand stand.

    Args:
        store: The store, with the qualification pulled.
        min_conditions: Condition score that is asked, in [0, 1].
        min_ratings: Rating score that is asked, in [0, 1].

    Returns:
        The results by name; nobody is decided who has not answered every item.

    Raises:
        InputError: If a bound is out of its range or no test was pushed.
    """
    for name, bound in (("min_conditions", min_conditions), ("min_ratings", min_ratings)):
        if not 0 <= bound <= 1:
            raise InputError(f"The '{name}' parameter must be in [0, 1]. Got {bound} instead.")
    items = store.items("qualification")
    if not items:
        raise InputError(
            "There is no test to score: 'condsim build push qualification' comes first, or name "
            "people with --accept."
        )
    answers: dict[str, list[Annotation]] = defaultdict(list)
    for counted in outcome_of(store, "qualification").counted.values():
        for one in counted:
            answers[one.annotator].append(one)
    results = []
    for annotator, given in sorted(answers.items()):
        conditions = fmean(_conditions_score(items[one.item], one) for one in given)
        ratings = fmean(_rating_score(items[one.item], one) for one in given)
        finished = len(given) == len(items)
        passed = conditions >= min_conditions and ratings >= min_ratings if finished else None
        results.append(
            TestResult(annotator, len(given), len(items), conditions, ratings, accepted=passed)
        )
    decided = [
        PoolMember(one.annotator, one.accepted, "test", one.condition_score, one.rating_score)
        for one in results
        if one.accepted is not None
    ]
    with store.changes():
        store.put_pool(decided)
    return tuple(results)


def decide_by_hand(
    store: AnnotationStore, *, accept: Iterable[str] = (), reject: Iterable[str] = ()
) -> tuple[PoolMember, ...]:
    """Takes people into the pool or out of it, whatever the test says.

    Args:
        accept: Names (e-mail addresses, or worker ids of Mechanical Turk) to take in.
        reject: Names to take out; their answers no longer count.

    Raises:
        InputError: If a name is empty or on both lists.
    """
    accepted, rejected = (_names(names) for names in (accept, reject))
    if both := sorted(accepted & rejected):
        raise InputError(f"{both[0]!r} is to be accepted and rejected; name it once.")
    known = store.pool()
    members = []
    for name in sorted(accepted | rejected):
        old = known.get(name)
        scores = (old.condition_score, old.rating_score) if old else (None, None)
        members.append(PoolMember(name, name in accepted, "hand", *scores))
    with store.changes():
        store.put_pool(members)
    return tuple(members)


def _names(names: Iterable[str]) -> set[str]:
    folded = {name.strip().casefold() for name in names}
    if "" in folded:
        raise InputError("The name of an annotator must not be empty.")
    return folded


def _conditions_score(item: Item, one: Annotation) -> float:
    """Share of the two conditions that will do."""
    high, low = one.answer.high or "", one.answer.low or ""
    if high.casefold() == low.casefold():
        return 0.0
    sentences = item.shown["sentence1"], item.shown["sentence2"]
    good = [
        all(hint.rule == _PREFERENCE for hint in hints_of(text, *sentences)) for text in (high, low)
    ]
    return sum(good) / 2


def _rating_score(item: Item, one: Annotation) -> float:
    known, given = item.facts["label"], one.answer.rating
    if DOES_NOT_APPLY in (known, given):
        return float(known == given)
    return float(given is not None and abs(given - int(known)) <= 1)
