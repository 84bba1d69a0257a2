"""What is known of a data set when it is written: the content of its card and its manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from condsim.construction.figures import number
from condsim.construction.labels import Dropped, LabelRules, OrderCheck
from condsim.construction.leakage import LeakageReport
from condsim.construction.rating_report import RatingReport
from condsim.construction.rows import HUMAN, Candidate, DatasetRow
from condsim.construction.splits import SplitRules, Splitting
from condsim.errors import InputError
from condsim.tasks import TaskStatistics

__all__ = ["DatasetFacts", "Description", "Source", "origins", "pairs_by_source", "reasons"]


@dataclass(frozen=True)
class Source:
    """A collection that the sentences are from.

    Attributes:
        name: The name, as the candidates have it.
        licence: What its owners allow, in their words; empty where it was not said.
    """

    name: str
    licence: str = ""

    @classmethod
    def parse(cls, text: str) -> Source:
        """Reads a source from the command line.

        Args:
            text: Such as ``"tickets=internal use only"``; without ``=`` the licence is not stated.

        Returns:
            The source.

        Raises:
            InputError: If it has no name.
        """
        name, _, licence = text.partition("=")
        if not name.strip():
            raise InputError(f"A source is written NAME=LICENCE. Got {text!r}.")
        return cls(name.strip(), licence.strip())


@dataclass(frozen=True)
class Description:
    """What the maker says of a data set.

    Attributes:
        name: Its name.
        license: Its licence as the Hub names it, such as ``cc-by-4.0``; None where it is not said.
        sources: Where the sentences are from.
        language: Language code of the texts.
        made_from: First 12 hex digits of the SHA-256 of each input, by the name of its file.
    """

    name: str
    license: str | None = None
    sources: tuple[Source, ...] = ()
    language: str = "en"
    made_from: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetFacts:
    """All that the card and the manifest tell.

    Attributes:
        description: What the maker says.
        revision: First 12 hex digits of the SHA-256 of the hashes of the split files.
        files: SHA-256 of each split file by its name.
        statistics: Statistics of each split by its name (C-STS §3).
        rows_by_origin: Rows by their origin, people first.
        pairs_by_source: Sentence pairs by the source of their candidates; empty if not known.
        dropped: Rows left out, by reason, the most frequent first.
        label_rules: How ratings became labels; None if the labels were given.
        order: Whether conditions turned out as meant; None if the labels were given.
        ratings: Agreement and quality; None if the labels were given.
        split_rules: How rows were split.
        splitting: What came of it.
        leakage: What the splits give away.
    """

    description: Description
    revision: str
    files: Mapping[str, str]
    statistics: Mapping[str, TaskStatistics]
    rows_by_origin: Mapping[str, int]
    pairs_by_source: Mapping[str, int]
    dropped: Mapping[str, int]
    label_rules: LabelRules | None
    order: OrderCheck | None
    ratings: RatingReport | None
    split_rules: SplitRules
    splitting: Splitting
    leakage: LeakageReport

    def summary(self) -> str:
        """Says what was made.

        Returns:
            A few lines: rows, what was left out, order, agreement, warnings.
        """
        counts = ", ".join(f"{name} {one.rows:,}" for name, one in self.statistics.items())
        dropped = ", ".join(f"{reason} {count:,}" for reason, count in self.dropped.items())
        lines = [f"revision {self.revision}; rows: {counts}", f"left out: {dropped or 'none'}"]
        if self.order and self.order.pairs:
            order = self.order
            lines.append(
                f"of {order.pairs:,} pairs the high condition is rated above the low one in "
                f"{order.as_intended:,}, alike in {order.ties:,}, below in {order.reversed:,}"
            )
        if self.ratings:
            one = self.ratings.agreement
            lines.append(
                f"agreement: Fleiss' kappa {number(one.kappa.value, 3)}, Krippendorff's alpha "
                f"(ordinal) {number(one.alpha, 3)}"
            )
        lines += [f"warning: {text}" for text in self.leakage.warnings]
        return "\n".join(lines)


def pairs_by_source(rows: Iterable[DatasetRow], candidates: Iterable[Candidate]) -> dict[str, int]:
    """Counts the sentence pairs of a data set by their source.

    Args:
        rows: The rows.
        candidates: The candidates they were made from.

    Returns:
        Pairs by source, by name; those that are no candidate come last as ``not known``. Empty
        without candidates.
    """
    pairs = {row.pair_id for row in rows}
    source = {one.pair_id: one.source for one in candidates if one.pair_id in pairs}
    if not source:
        return {}
    counts = dict(sorted(Counter(source.values()).items()))
    return counts | ({"not known": len(pairs - set(source))} if pairs - set(source) else {})


def reasons(dropped: Iterable[Dropped]) -> dict[str, int]:
    """Counts dropped rows by reason.

    Args:
        dropped: The rows.

    Returns:
        Rows by reason, the most frequent first.
    """
    return dict(Counter(one.reason for one in dropped).most_common())


def origins(rows: Iterable[DatasetRow]) -> dict[str, int]:
    """Counts rows by origin.

    Args:
        rows: The rows.

    Returns:
        Rows by origin, those of people first.
    """
    counts = Counter(row.origin for row in rows)
    return {name: counts[name] for name in sorted(counts, key=lambda one: (one != HUMAN, one))}
