"""All that can be said of a file of ratings before it becomes a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from condsim.construction.agreement import Agreement, measure_agreement
from condsim.construction.model_agreement import (
    AgainstPeople,
    model_agreement,
    one_person_agreement,
)
from condsim.construction.plain import plain_values
from condsim.construction.quality import (
    AnnotatorQuality,
    Times,
    annotator_quality,
    time_per_rating,
)
from condsim.construction.votes import RatedRow

__all__ = ["RatingReport", "report_ratings"]


@dataclass(frozen=True)
class RatingReport:
    """Agreement and quality of ratings.

    Attributes:
        agreement: How far people agree.
        times: How long they take.
        annotators: Each of them, by name.
        models: Each model that rated, against the people.
        one_person: One person against the others in the same way, on the rows that models have
            rated if any has; None if no row has two people.
    """

    agreement: Agreement
    times: Times
    annotators: tuple[AnnotatorQuality, ...]
    models: tuple[AgainstPeople, ...]
    one_person: AgainstPeople | None

    def to_dict(self) -> dict[str, object]:
        """Gives the report as JSON can hold it.

        Returns:
            The attributes by name; NaN is None.
        """
        return plain_values(self)


def report_ratings(rows: Sequence[RatedRow]) -> RatingReport:
    """Reports on ratings.

    Args:
        rows: The rows with their ratings, of `condsim.construction.votes.collect_votes`.

    Returns:
        The report.

    Raises:
        InputError: If no row has a rating by a person.
        MissingExtraError: If statsmodels or krippendorff is not installed.
    """
    models = model_agreement(rows)
    return RatingReport(
        agreement=measure_agreement(rows),
        times=time_per_rating(rating for row in rows for rating in row.people),
        annotators=annotator_quality(rows),
        models=models,
        one_person=one_person_agreement(rows, beside_models=bool(models)),
    )
