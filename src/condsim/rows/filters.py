"""Filters on existing pairs, whatever their source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from condsim.config import Settings
from condsim.data.reading import iter_rows, stem_of
from condsim.errors import InputError, unknown_name
from condsim.io import sha256_of
from condsim.rows.items import Measures, read_stop_words, text_facts
from condsim.rows.near_pairs import TextEncoder
from condsim.rows.records import Candidate, pair_id_of, write_manifest, write_rows


class FilterSettings(Settings):
    """Bounds; a pair that is outside one of them is rejected. None turns a filter off."""

    what = "filter"

    # Highest intersection over union of the bags of words.
    max_iou: Annotated[float, Field(ge=0, le=1)] | None = None
    # Lowest cosine of the two sentences' vectors.
    min_text_cosine: Annotated[float, Field(ge=-1, le=1)] | None = None
    # Lowest ratio of the word counts.
    min_length_ratio: Annotated[float, Field(ge=0, le=1)] | None = None
    min_length: Annotated[int, Field(ge=0)] | None = None  # fewest characters of the shorter one


def _preset(max_iou: float, min_length: int) -> FilterSettings:
    return FilterSettings(
        max_iou=max_iou, min_text_cosine=0.4, min_length_ratio=0.7, min_length=min_length
    )


PRESETS = {"coco": (64, _preset(0.12, 50)), "flickr30k": (128, _preset(0.2, 48))}
"""Neighbours an item and filters, Table 6; "d_text" is read as a similarity (READING.md)."""


@dataclass
class FilterCounts:
    """How many pairs were seen, rejected and kept.

    A pair that breaks several rules counts at each of them, so the rejections do not add up.
    """

    pairs: int = 0  # seen
    same_text: int = 0  # pairs of a sentence with itself
    max_iou: int = 0  # rejected by this filter; likewise the next three
    min_text_cosine: int = 0
    min_length_ratio: int = 0
    min_length: int = 0
    passed: int = 0  # rejected by no rule

    def add(self, other: FilterCounts) -> None:
        """Adds the counts of further pairs."""
        for name, count in other.to_dict().items():
            setattr(self, name, getattr(self, name) + count)

    def keep(self, measures: Measures, settings: FilterSettings) -> NDArray[np.bool_]:
        """Counts, and gives which pairs pass, in the shape of the measures."""
        broken = {"same_text": measures.same_text}
        for name, values in (
            ("max_iou", measures.iou),
            ("min_text_cosine", measures.text_cosine),
            ("min_length_ratio", measures.length_ratio),
            ("min_length", measures.min_length),
        ):
            bound = getattr(settings, name)
            if bound is not None:
                broken[name] = values > bound if name == "max_iou" else values < bound
        passes: NDArray[np.bool_] = ~np.logical_or.reduce(list(broken.values()))
        rejected = {name: int(mask.sum()) for name, mask in broken.items()}
        self.add(FilterCounts(pairs=passes.size, passed=int(passes.sum()), **rejected))
        return passes

    def to_dict(self) -> dict[str, int]:
        """Gives the counts by name, in order."""
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


_BATCH = 10_000  # pairs


class PairFilter:
    """Measures and filters pairs in batches, and counts.

    Args:
        encoder: Gives the vectors of the sentences; None for no cosine.
        stop_words: Words left out of the bags of words; English ones if None.

    Attributes:
        settings: The bounds.
        counts: What was seen, rejected and passed so far.
        repeated: Pairs that came up again and were left out before the filters.

    Raises:
        InputError: If there is a bound for the cosine and no encoder.
    """

    def __init__(
        self,
        settings: FilterSettings,
        *,
        encoder: TextEncoder | None = None,
        stop_words: frozenset[str] | None = None,
    ) -> None:
        if settings.min_text_cosine is not None and encoder is None:
            raise InputError(
                "The filter 'min_text_cosine' needs a text encoder; name one, or turn the filter "
                "off."
            )
        self.settings = settings
        self.counts = FilterCounts()
        self.repeated = 0
        self._encoder = encoder
        self._stop_words = read_stop_words() if stop_words is None else stop_words
        self._seen: set[str] = set()

    def passing(self, pairs: Iterator[Candidate]) -> Iterator[Candidate]:
        """Gives the pairs that pass, once each, with their measures."""
        fresh = self._fresh(pairs)
        while batch := list(islice(fresh, _BATCH)):
            measures = self._measures(batch)
            for number in np.flatnonzero(self.counts.keep(measures, self.settings)):
                yield _measured(batch[number], measures, int(number))

    def _fresh(self, pairs: Iterator[Candidate]) -> Iterator[Candidate]:
        for pair in pairs:
            if pair.pair_id in self._seen:
                self.repeated += 1
            else:
                self._seen.add(pair.pair_id)
                yield pair

    def _measures(self, batch: Sequence[Candidate]) -> Measures:
        known: dict[str, int] = {}
        first = [known.setdefault(pair.sentence1, len(known)) for pair in batch]
        second = [known.setdefault(pair.sentence2, len(known)) for pair in batch]
        texts = list(known)
        return text_facts(texts, stop_words=self._stop_words).paired(
            np.array(first),
            np.array(second),
            vectors=None if self._encoder is None else self._encoder.encode(texts),
        )


def read_pairs(path: Path) -> Iterator[Candidate]:
    """Reads sentence pairs: candidates, or any file with two columns of sentences.

    Args:
        path: File with the columns ``sentence1, sentence2`` and perhaps ``source, item1, item2,
            similarity``; formats as `condsim.data.reading.iter_rows` reads them.

    Yields:
        The pairs in file order.

    Raises:
        InputError: If the file cannot be read or a cell breaks a rule.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    optional = ("source", "item1", "item2", "similarity")
    for row in iter_rows(path, columns=("sentence1", "sentence2"), optional=optional):
        sentence1, sentence2 = row.text("sentence1"), row.text("sentence2")
        source = str(row.cells["source"] or stem_of(path))
        similarity = row.cells["similarity"]
        yield Candidate(
            pair_id=pair_id_of(source, sentence1, sentence2),
            source=source,
            item1=str(row.cells["item1"] or _text_name(sentence1)),
            item2=str(row.cells["item2"] or _text_name(sentence2)),
            sentence1=sentence1,
            sentence2=sentence2,
            similarity=None
            if similarity is None or similarity == ""
            else row.score("similarity", label_range=(-1, 1), fix="Correct or remove it."),
        )


def filter_files(paths: Sequence[Path], rules: PairFilter, *, output: Path | None) -> int:
    """Filters files of pairs into one, with a manifest beside it.

    Args:
        rules: The filters; it counts.
        output: A ``.parquet`` or ``.csv`` file; None to count only.

    Raises:
        InputError: If a file cannot be read or written.
        MissingExtraError: If a file is Parquet and pyarrow is not installed.
    """
    passing = rules.passing(pair for path in paths for pair in read_pairs(path))
    if output is None:
        return sum(1 for _ in passing)
    written = write_rows(passing, output, kind=Candidate)
    content = {
        "kind": "filtered pairs",
        "files": [{"name": path.name, "sha256": sha256_of(path)[:12]} for path in paths],
        "settings": rules.settings.model_dump(),
        "counts": rules.counts.to_dict(),
        "repeated": rules.repeated,
        "written": written,
    }
    write_manifest(output, content)
    return written


def _measured(pair: Candidate, measures: Measures, number: int) -> Candidate:
    cosine = measures.text_cosine
    return replace(
        pair,
        iou=float(measures.iou[number]),
        text_cosine=None if cosine is None else float(cosine[number]),
        length_ratio=float(measures.length_ratio[number]),
        min_length=int(measures.min_length[number]),
    )


def _text_name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
