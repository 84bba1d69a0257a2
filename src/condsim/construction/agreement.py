"""How far annotators agree: Fleiss' kappa and Krippendorff's alpha.

C-STS §3 reports Fleiss' kappa of 0.61 over three ratings of 100 rows. Kappa takes the labels for
names: 4 against 5 is as wrong as 1 against 5. Alpha with the ordinal distance does not, and takes
rows with different numbers of ratings, so it is the better figure for a Likert scale. Both come
from maintained libraries: ``statsmodels`` and ``krippendorff``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from condsim.construction.votes import RatedRow, vote_counts
from condsim.errors import InputError, require
from condsim.types import IntArray

__all__ = ["Agreement", "Kappa", "fleiss_kappa", "krippendorff_alpha", "measure_agreement"]

Distance = Literal["nominal", "ordinal"]


@dataclass(frozen=True)
class Kappa:
    """Fleiss' kappa, which needs the same number of ratings of every row.

    Attributes:
        value: At most 1 (all agree); 0 is chance. NaN where it does not exist: no row has two
            ratings, or every rating is the same.
        raters: Ratings of each row that is counted: what most rows with two or more have.
        rows: Rows counted.
        left_out: Rows with another number of ratings, not counted.
    """

    value: float
    raters: int
    rows: int
    left_out: int


@dataclass(frozen=True)
class Agreement:
    """How far people agree.

    Attributes:
        rows: Rows that people rated.
        ratings: Their ratings.
        annotators: How many people rated.
        does_not_apply: Ratings that say the condition does not apply.
        ratings_per_row: (number of ratings, rows that have it), smallest number first.
        kappa: Of the labels 1 to 5; ratings that say a condition does not apply are left out.
        kappa_verdicts: The same with "does not apply" as a sixth label.
        alpha: Krippendorff's alpha of the labels 1 to 5 with the ordinal distance, over all rows
            with two labels or more; at most 1, 0 is chance, NaN where it does not exist.
        alpha_rows: Rows with two labels or more.
        alpha_applies: Krippendorff's alpha of whether the condition applies.
        exact: Share in [0, 1] of two labels of one row that are equal; NaN without such labels.
        within_one: Share that differ by 1 at most.
    """

    rows: int
    ratings: int
    annotators: int
    does_not_apply: int
    ratings_per_row: tuple[tuple[int, int], ...]
    kappa: Kappa
    kappa_verdicts: Kappa
    alpha: float
    alpha_rows: int
    alpha_applies: float
    exact: float
    within_one: float


def measure_agreement(rows: Sequence[RatedRow]) -> Agreement:
    """Measures how far the people agree; ratings of models take no part.

    Args:
        rows: The rows with their ratings, of `condsim.construction.votes.collect_votes`.

    Returns:
        The figures.

    Raises:
        InputError: If no row has a rating by a person.
        MissingExtraError: If statsmodels or krippendorff is not installed.
    """
    rated = [row.people for row in rows if row.people]
    if not rated:
        raise InputError(
            "Agreement is measured between people, and none of the ratings has the origin 'human'."
        )
    verdicts = vote_counts(rated)  # (rows, 6)
    labels = verdicts[:, 1:]  # (rows, 5)
    applies = np.stack([verdicts[:, 0], labels.sum(axis=1)], axis=1)  # (rows, 2)
    exact, within_one = _pairwise(labels)
    return Agreement(
        rows=len(rated),
        ratings=int(verdicts.sum()),
        annotators=len({rating.annotator for votes in rated for rating in votes}),
        does_not_apply=int(verdicts[:, 0].sum()),
        ratings_per_row=tuple(sorted(Counter(verdicts.sum(axis=1).tolist()).items())),
        kappa=fleiss_kappa(labels),
        kappa_verdicts=fleiss_kappa(verdicts),
        alpha=krippendorff_alpha(labels, distance="ordinal"),
        alpha_rows=int((labels.sum(axis=1) >= 2).sum()),
        alpha_applies=krippendorff_alpha(applies, distance="nominal"),
        exact=exact,
        within_one=within_one,
    )


def fleiss_kappa(counts: ArrayLike) -> Kappa:
    """Computes Fleiss' kappa over the rows with the most common number of ratings.

    Fleiss, "Measuring nominal scale agreement among many raters", 1971. Of equally common numbers
    the larger is taken.

    Args:
        counts: How often each row was given each label, whole numbers ``(n, labels)``.

    Returns:
        Kappa, and the rows it is of.

    Raises:
        MissingExtraError: If statsmodels is not installed.
    """
    table = _table(counts)
    ratings = table.sum(axis=1)
    frequent = Counter(ratings[ratings >= 2].tolist())
    if not frequent:
        return Kappa(math.nan, raters=0, rows=0, left_out=len(table))
    raters, rows = max(frequent.items(), key=lambda item: (item[1], item[0]))
    counted = table[ratings == raters]
    value = math.nan
    if _several_values(counted):
        library = require("statsmodels.stats.inter_rater", extra="build")
        value = float(library.fleiss_kappa(counted))
    return Kappa(value, raters=int(raters), rows=rows, left_out=len(table) - rows)


def krippendorff_alpha(counts: ArrayLike, *, distance: Distance = "ordinal") -> float:
    """Computes Krippendorff's alpha; rows may have any number of ratings.

    Krippendorff, "Computing Krippendorff's alpha-reliability", 2011. Rows with fewer than two
    ratings say nothing of agreement and are left out.

    Args:
        counts: How often each row was given each label, whole numbers ``(n, labels)``; for the
            ordinal distance the labels are in their order.
        distance: ``ordinal``: labels further apart disagree more; ``nominal``: they just differ.

    Returns:
        Alpha, at most 1; NaN if no row has two ratings or every rating is the same.

    Raises:
        MissingExtraError: If krippendorff is not installed.
    """
    table = _table(counts)
    table = table[table.sum(axis=1) >= 2]
    if not _several_values(table):
        return math.nan
    library = require("krippendorff", extra="build")
    return float(library.alpha(value_counts=table, level_of_measurement=distance))


def _table(counts: ArrayLike) -> IntArray:
    table = np.asarray(counts, dtype=np.int64)
    if table.ndim != 2 or (table.size and table.min() < 0):
        raise InputError(
            "Counts of ratings must be whole numbers of 0 or more, (rows, labels). Got the shape "
            f"{table.shape}."
        )
    return table


def _several_values(table: IntArray) -> bool:
    """Whether the ratings are not all the same: chance agreement would be certain."""
    return int((table.sum(axis=0) > 0).sum()) >= 2


def _pairwise(labels: IntArray) -> tuple[float, float]:
    """Share of two labels of one row, ``(n, 5)``, that are equal, and that are at most 1 apart."""
    ratings = labels.sum(axis=1)
    pairs = int((ratings * (ratings - 1)).sum()) // 2
    if not pairs:
        return math.nan, math.nan
    equal = int((labels * (labels - 1)).sum()) // 2
    near = int((labels[:, :-1] * labels[:, 1:]).sum())
    return equal / pairs, (equal + near) / pairs
