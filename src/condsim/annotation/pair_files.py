"""Filters on files of existing pairs, and the bounds of the paper."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from condsim.data.reading import iter_rows, stem_of
from condsim.errors import unknown_name
from condsim.io import sha256_of
from condsim.rows.pairs import Candidate, FilterSettings, PairFilter, pair_id_of
from condsim.rows.records import write_manifest, write_rows


def _preset(max_iou: float, min_length: int) -> FilterSettings:
    return FilterSettings(
        max_iou=max_iou, min_text_cosine=0.4, min_length_ratio=0.7, min_length=min_length
    )


PRESETS = {"coco": (64, _preset(0.12, 50)), "flickr30k": (128, _preset(0.2, 48))}
"""Neighbours an item and filters, Table 6; "d_text" is read as a similarity (READING.md)."""


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


def _text_name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
