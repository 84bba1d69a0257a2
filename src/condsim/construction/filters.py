"""Which pairs are worth annotating: neither too alike nor too far apart (C-STS A.2, Table 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from condsim.construction.measures import Measures
from condsim.errors import InputError, unknown_name

__all__ = ["PRESETS", "FilterCounts", "FilterSettings", "preset"]


@dataclass(frozen=True)
class FilterSettings:
    """Bounds; a pair that is outside one of them is rejected. None turns a filter off.

    Attributes:
        max_iou: Highest intersection over union of the bags of words, 0 to 1.
        min_text_cosine: Lowest cosine of the two sentences' vectors, -1 to 1.
        min_length_ratio: Lowest ratio of the word counts, 0 to 1.
        min_length: Fewest characters of the shorter sentence.
    """

    max_iou: float | None = None
    min_text_cosine: float | None = None
    min_length_ratio: float | None = None
    min_length: int | None = None

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name, low, high in (
            ("max_iou", 0, 1),
            ("min_text_cosine", -1, 1),
            ("min_length_ratio", 0, 1),
            ("min_length", 0, None),
        ):
            value = getattr(self, name)
            if value is None:
                continue
            if not low <= value or (high is not None and not value <= high):
                rule = f"from {low} to {high}" if high is not None else f"{low} or more"
                raise InputError(f"The filter {name!r} must be {rule}. Got {value!r} instead.")

    def changed(self, changes: Mapping[str, float | int | None]) -> FilterSettings:
        """Replaces some bounds.

        Args:
            changes: New bounds by name; None leaves the bound as it is.

        Returns:
            The settings.

        Raises:
            InputError: If a bound is out of range.
        """
        return replace(self, **{k: v for k, v in changes.items() if v is not None})  # type: ignore[arg-type]


PRESETS: dict[str, tuple[int, FilterSettings]] = {
    "coco": (64, FilterSettings(0.12, 0.4, 0.7, 50)),
    "flickr30k": (128, FilterSettings(0.2, 0.4, 0.7, 48)),
}
"""Neighbours an item and filters, Table 6; "d_text" is read as a similarity (READING.md)."""


@dataclass
class FilterCounts:
    """How many pairs were seen, rejected and kept.

    A pair that breaks several rules counts at each of them, so the rejections do not add up.

    Attributes:
        pairs: Sentence pairs seen.
        same_text: Pairs of a sentence with itself.
        max_iou: Pairs that this filter rejects; likewise the next three.
        min_text_cosine: See above.
        min_length_ratio: See above.
        min_length: See above.
        passed: Pairs that no rule rejects.
    """

    pairs: int = 0
    same_text: int = 0
    max_iou: int = 0
    min_text_cosine: int = 0
    min_length_ratio: int = 0
    min_length: int = 0
    passed: int = 0

    def add(self, other: FilterCounts) -> None:
        """Adds the counts of further pairs.

        Args:
            other: Their counts.
        """
        for name in self.to_dict():
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def keep(self, measures: Measures, settings: FilterSettings) -> NDArray[np.bool_]:
        """Applies the filters and counts.

        Args:
            measures: What is known of the pairs.
            settings: The bounds.

        Returns:
            Which pairs pass, in the shape of the measures.

        Raises:
            InputError: If there is a bound for the cosine and none was measured.
        """
        broken = {"same_text": measures.same_text}
        if settings.max_iou is not None:
            broken["max_iou"] = measures.iou > settings.max_iou
        if settings.min_text_cosine is not None:
            if measures.text_cosine is None:
                raise InputError(
                    "The filter 'min_text_cosine' needs a text encoder; name one, or turn the "
                    "filter off."
                )
            broken["min_text_cosine"] = measures.text_cosine < settings.min_text_cosine
        if settings.min_length_ratio is not None:
            broken["min_length_ratio"] = measures.length_ratio < settings.min_length_ratio
        if settings.min_length is not None:
            broken["min_length"] = measures.min_length < settings.min_length
        passes: NDArray[np.bool_] = ~np.logical_or.reduce(list(broken.values()))
        for name, rejected in broken.items():
            setattr(self, name, getattr(self, name) + int(rejected.sum()))
        self.pairs += passes.size
        self.passed += int(passes.sum())
        return passes

    def to_dict(self) -> dict[str, int]:
        """Gives the counts as plain values, in order."""
        return asdict(self)


def preset(name: str) -> tuple[int, FilterSettings]:
    """Gives the settings of the paper for a collection.

    Args:
        name: ``coco`` or ``flickr30k``.

    Returns:
        Neighbours of an item, and the filters.

    Raises:
        InputError: If there is no such preset.
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]
