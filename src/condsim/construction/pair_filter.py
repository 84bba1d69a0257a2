"""The filters on pairs that there are already, whoever made them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

import numpy as np

from condsim.construction.filters import FilterCounts, FilterSettings
from condsim.construction.measures import Measures, text_facts
from condsim.construction.rows import Candidate, pair_id_of
from condsim.construction.stop_words import ENGLISH_STOP_WORDS
from condsim.construction.tables import write_manifest, write_rows
from condsim.construction.text_vectors import TextEncoder
from condsim.errors import InputError
from condsim.files import sha256_of
from condsim.tasks.files import scan_rows, stem_of
from condsim.tasks.row import place, score_of, text_cell

__all__ = ["PairFilter", "filter_files", "read_pairs"]

_BATCH = 10_000  # pairs


class PairFilter:
    """Measures and filters pairs in batches, and counts.

    Attributes:
        settings: The bounds.
        counts: What was seen, rejected and passed so far.
        repeated: Pairs that came up again and were left out before the filters.
    """

    def __init__(
        self,
        settings: FilterSettings,
        *,
        encoder: TextEncoder | None = None,
        stop_words: frozenset[str] = ENGLISH_STOP_WORDS,
    ) -> None:
        """Takes the rules.

        Args:
            settings: The bounds.
            encoder: Gives the vectors of the sentences; None for no cosine.
            stop_words: Words left out of the bags of words.

        Raises:
            InputError: If there is a bound for the cosine and no encoder.
        """
        if settings.min_text_cosine is not None and encoder is None:
            raise InputError(
                "The filter 'min_text_cosine' needs a text encoder; name one, or turn the filter "
                "off."
            )
        self.settings = settings
        self.counts = FilterCounts()
        self.repeated = 0
        self._encoder = encoder
        self._stop_words = stop_words
        self._seen: set[str] = set()

    def passing(self, pairs: Iterator[Candidate]) -> Iterator[Candidate]:
        """Filters pairs.

        Args:
            pairs: The pairs.

        Yields:
            Those that pass, once each, with their measures.
        """
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
        path: File with the columns ``sentence1`` and ``sentence2``, and perhaps ``source``,
            ``item1``, ``item2``, ``similarity``; formats as `condsim.tasks.iter_rows` reads them.

    Yields:
        The pairs. Where it is absent, the source is the file's stem and an item is named by the
        hash of its sentence.

    Raises:
        InputError: If the file cannot be read or a sentence is empty.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    optional = ("source", "item1", "item2", "similarity")
    for row in scan_rows(path, columns=("sentence1", "sentence2"), optional=optional):
        sentence1, sentence2 = text_cell(path, row, "sentence1"), text_cell(path, row, "sentence2")
        source = str(row.cells["source"] or stem_of(path))
        similarity = row.cells["similarity"]
        where = place(path, row=row.number, line=row.line, column="similarity")
        yield Candidate(
            pair_id=pair_id_of(source, sentence1, sentence2),
            source=source,
            item1=str(row.cells["item1"] or _text_name(sentence1)),
            item2=str(row.cells["item2"] or _text_name(sentence2)),
            sentence1=sentence1,
            sentence2=sentence2,
            similarity=None
            if similarity is None or similarity == ""
            else score_of(similarity, where, label_range=(-1, 1), fix="Correct or remove it."),
        )


def filter_files(paths: Sequence[Path], rules: PairFilter, *, output: Path | None) -> int:
    """Filters files of pairs into one, with a manifest beside it.

    Args:
        paths: The files.
        rules: The filters; it counts.
        output: A ``.parquet`` or ``.csv`` file; None to count only.

    Returns:
        Pairs that pass.

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
        "settings": asdict(rules.settings),
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
