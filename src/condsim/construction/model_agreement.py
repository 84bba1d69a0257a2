"""How far a model agrees with people, beside how far one person agrees with the others."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from condsim.construction.agreement import krippendorff_alpha
from condsim.construction.rows import DOES_NOT_APPLY, Rating
from condsim.construction.votes import LABELS, RatedRow
from condsim.evaluation.correlation import spearman

__all__ = ["AgainstPeople", "model_agreement", "one_person_agreement"]


@dataclass(frozen=True)
class AgainstPeople:
    """Ratings against the median of what people say of the same rows.

    Where at least half of the people say that the condition does not apply, so does their verdict.

    Attributes:
        rater: Name of the model, or ``one person``; ``MODEL, not shown`` for the model against
            only those people who were not shown its rating.
        rows: Rows both have rated.
        compared: Rows with a label from both.
        spearman: Rank correlation x100; NaN if one side is constant.
        alpha: Krippendorff's alpha of the two, ordinal; NaN where it does not exist. As for
            ``exact``, rows count where people's median is a label, not one between two labels.
        exact: Share in [0, 1] of those rows where both are equal.
        within_one: Share where both differ by 1 at most.
        offset: Mean of the rater's label minus that of people.
        applies: Share of all rows on which both say that the condition applies, or both that it
            does not.
        shown: Ratings by people of these rows who were shown the model's first.
    """

    rater: str
    rows: int
    compared: int
    spearman: float
    alpha: float
    exact: float
    within_one: float
    offset: float
    applies: float
    shown: int = 0


def model_agreement(rows: Sequence[RatedRow]) -> tuple[AgainstPeople, ...]:
    """Measures each model that rated against the people.

    Whoever is shown a model's rating tends to leave it, so a model whose ratings were shown is
    also measured against the others, where there are any.

    Args:
        rows: The rows with their ratings.

    Returns:
        The models, by name (the origin of their ratings); none if no row was rated by a model and
        by a person.

    Raises:
        MissingExtraError: If krippendorff is not installed.
    """
    of_model: dict[str, list[tuple[int, tuple[Rating, ...]]]] = defaultdict(list)
    for row in rows:
        if row.people:
            for rating in row.models:
                of_model[rating.origin].append((rating.label, row.people))
    measured = []
    for name in sorted(of_model):
        rated = of_model[name]
        others = [
            (label, [one for one in people if one.prefilled_by != name]) for label, people in rated
        ]
        shown = sum(len(people) for _, people in rated) - sum(len(free) for _, free in others)
        both = [(label, _verdict(people)) for label, people in rated]
        measured.append(_against(name, both, shown=shown))
        free = [(label, _verdict(people)) for label, people in others if people]
        if shown and free:
            measured.append(_against(f"{name}, not shown", free))
    return tuple(measured)


def one_person_agreement(rows: Sequence[RatedRow], *, beside_models: bool) -> AgainstPeople | None:
    """Measures every person against the others in the same way: what a model is held to.

    Args:
        rows: The rows with their ratings.
        beside_models: Whether only rows that a model has rated count.

    Returns:
        All ratings by people of rows that other people rated, together; None if there are none.

    Raises:
        MissingExtraError: If krippendorff is not installed.
    """
    compared = [
        (rating.label, _verdict([other for other in row.people if other is not rating]))
        for row in rows
        if len(row.people) >= 2 and (row.models or not beside_models)
        for rating in row.people
    ]
    return _against("one person", compared) if compared else None


def _verdict(votes: Sequence[Rating]) -> float:
    """The median label; `DOES_NOT_APPLY` where at least half say so."""
    labels = [vote.label for vote in votes if vote.label != DOES_NOT_APPLY]
    return median(labels) if 2 * len(labels) > len(votes) else DOES_NOT_APPLY


def _against(name: str, both: list[tuple[int, float]], *, shown: int = 0) -> AgainstPeople:
    given, people = np.array(both, dtype=np.float64).T  # (rows,), (rows,)
    applies = (given != DOES_NOT_APPLY) & (people != DOES_NOT_APPLY)
    neither = (given == DOES_NOT_APPLY) & (people == DOES_NOT_APPLY)
    given, people = given[applies], people[applies]
    compared = int(applies.sum())
    apart = given - people
    whole = people == np.round(people)
    counts = np.zeros((int(whole.sum()), len(LABELS)), np.int64)
    for labels in (given, people):
        counts[np.arange(len(counts)), labels[whole].astype(np.int64) - 1] += 1
    return AgainstPeople(
        rater=name,
        rows=len(both),
        compared=compared,
        spearman=100 * spearman(given, people) if compared else math.nan,
        alpha=krippendorff_alpha(counts),
        exact=float((apart[whole] == 0).mean()) if whole.any() else math.nan,
        within_one=float((np.abs(apart) <= 1).mean()) if compared else math.nan,
        offset=float(apart.mean()) if compared else math.nan,
        applies=float((applies | neither).mean()),
        shown=shown,
    )
