"""Who may annotate: those who do well in the qualification test, or are named by hand.

C-STS tests the conditions that people write and their ratings, and takes those who do well at both
(§2.2.2, stage 1). It does not say how the two are scored; this is condsim's way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from condsim.construction.annotation.hints import hints_of
from condsim.construction.annotation.stages import Item, Stage
from condsim.construction.annotation.store import Annotation, AnnotationStore, PoolMember
from condsim.construction.annotation.written import outcome_of
from condsim.construction.rows import DOES_NOT_APPLY
from condsim.errors import InputError

_PREFERENCE = 6  # the rule that states a preference: a condition that breaks it will do
_STAGE: Stage = "qualification"


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
    items = store.items(_STAGE)
    if not items:
        raise InputError(
            "There is no test to score: 'condsim build push qualification' comes first, or name "
            "people with --accept."
        )
    answers: dict[str, list[Annotation]] = defaultdict(list)
    for counted in outcome_of(store, _STAGE).counted.values():
        for one in counted:
            answers[one.annotator].append(one)
    results = []
    for annotator, given in sorted(answers.items()):
        conditions = fmean(_conditions_score(items[one.item], one) for one in given)
        ratings = fmean(_rating_score(items[one.item], one) for one in given)
        passed = conditions >= min_conditions and ratings >= min_ratings
        finished = len(given) == len(items)
        results.append(
            TestResult(
                annotator, len(given), len(items), conditions, ratings, passed if finished else None
            )
        )
    with store.changes():
        store.put_pool(
            [
                PoolMember(
                    one.annotator, one.accepted, "test", one.condition_score, one.rating_score
                )
                for one in results
                if one.accepted is not None
            ]
        )
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
