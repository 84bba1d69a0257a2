"""Candidate pairs: the captions of near items, filtered, and filters for files of pairs.

C-STS §2.2.1: the images of two captions are near each other, so the captions have something in
common; the filters of A.2 remove pairs that are too alike or too far apart to write conditions for.
Each stage is cached in a folder, so the same command continues an interrupted run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from condsim.annotation.items import Collection, Embeddings
from condsim.cache import sole_process
from condsim.config import Settings
from condsim.console import Progress
from condsim.data.files import iter_rows
from condsim.errors import require
from condsim.io import replacing, sha256_of, stem_of
from condsim.rows.near_pairs import EXACT_UP_TO, ItemPairs, nearest_pairs
from condsim.rows.pairs import (
    Candidate,
    FilterCounts,
    FilterSettings,
    PairFilter,
    TextFacts,
    pair_id_of,
    text_facts,
)
from condsim.rows.records import (
    manifest_of,
    parquet_schema,
    read_manifest,
    write_manifest,
    write_rows,
)

_ROWS_PER_GROUP = 100_000
# A few seconds' work.
_PAIRS_PER_PART = 500_000
_PAPER_FILTERS = FilterSettings(min_text_cosine=0.4, min_length_ratio=0.7)

PRESETS = {
    "coco": (64, _PAPER_FILTERS.replaced(max_iou=0.12, min_length=50)),
    "flickr30k": (128, _PAPER_FILTERS.replaced(max_iou=0.2, min_length=48)),
}
"""Neighbors of an item and filters, Table 6; "d_text" is read as a similarity (READING.md)."""


class CandidateSettings(Settings):
    """Settings of a run."""

    subject = "candidates"

    k: Annotated[int, Field(ge=1, description="Neighbors of an item.")] = 64
    filters: FilterSettings = FilterSettings()
    exact_up_to: Annotated[
        int, Field(ge=0, description="Maximum number of items for exact search; HNSW beyond.")
    ] = EXACT_UP_TO
    sample: Annotated[int, Field(ge=1, description="Pairs to draw; all if None.")] | None = None
    seed: Annotated[int, Field(ge=0, description="Seed of the sample.")] = 0


@dataclass(frozen=True)
class CandidateReport:
    """Counts of a run; ``repeated`` are pairs that pass and have the texts of an earlier pair."""

    items: int
    captions: int
    repeated_captions: int
    item_pairs: int
    counts: FilterCounts
    repeated: int
    written: int


def make_candidates(
    collection: Collection,
    embeddings: Embeddings,
    path: Path,
    settings: CandidateSettings,
    stop_words: frozenset[str],
    *,
    cache: Path,
    progress: Progress,
) -> CandidateReport:
    """Write the candidates of one collection to a Parquet file, and a manifest next to it.

    Args:
        stop_words: Words left out of the bags of words.
        cache: Folder for intermediate results.
    """
    manifest = {
        "kind": "candidates",
        "source": collection.source,
        "source_revision": collection.revision,
        "stop_words": hashlib.sha256(" ".join(sorted(stop_words)).encode()).hexdigest()[:12],
        "settings": settings.model_dump(),
        **embeddings.provenance,
    }
    # The parts of an interrupted run are used again if all that decides them is the same.
    key = hashlib.sha256(json.dumps([manifest, collection.item_ids, collection.captions]).encode())
    for vectors in (embeddings.items, embeddings.captions):
        key.update(b"" if vectors is None else np.ascontiguousarray(vectors).data)
    with sole_process(cache):
        pairs = nearest_pairs(
            embeddings.items,
            settings.k,
            cache=cache,
            progress=progress,
            exact_up_to=settings.exact_up_to,
        )
        facts = text_facts(collection.captions, stop_words=stop_words)
        folder = cache / f"parts-{key.hexdigest()[:12]}"
        folder.mkdir(exist_ok=True)
        parts = []
        for start, stop in pairwise(_part_bounds(collection, pairs)):
            progress("candidates", start, len(pairs))
            parts.append(folder / f"{start:012d}.parquet")
            # The manifest is written last.
            if not manifest_of(parts[-1]).is_file():
                counts = FilterCounts()
                rows = _passing(
                    collection, pairs, start, stop, facts, embeddings, settings.filters, counts
                )
                write_rows(rows, parts[-1], kind=Candidate)
                write_manifest(parts[-1], counts.to_dict())
        progress("candidates", len(pairs), len(pairs))
        # The manifest describes the file that is replaced.
        manifest_of(path).unlink(missing_ok=True)
        repeated, written = _join_parts(parts, path, sample=settings.sample, seed=settings.seed)
        total = FilterCounts()
        for part in parts:
            total.add(FilterCounts(**(read_manifest(part) or {})))
        report = CandidateReport(
            items=len(collection),
            captions=len(collection.captions),
            repeated_captions=collection.repeated,
            item_pairs=len(pairs),
            counts=total,
            repeated=repeated,
            written=written,
        )
        write_manifest(path, {**manifest, "report": asdict(report)})
        for folder in cache.glob("parts-*"):
            shutil.rmtree(folder)
    return report


def _part_bounds(collection: Collection, pairs: ItemPairs) -> list[int]:
    """Cut the pairs of items into parts; all pairs of an item are in one part."""
    sizes = np.diff(collection.starts)
    total = np.cumsum(sizes[pairs.items1] * sizes[pairs.items2])
    ends = np.append(np.flatnonzero(np.diff(pairs.items1)) + 1, len(pairs))
    steps = np.arange(_PAIRS_PER_PART, total[-1], _PAIRS_PER_PART)
    cuts = ends[np.searchsorted(total[ends - 1], steps)]
    bounds: list[int] = np.unique([0, *cuts, len(pairs)]).tolist()
    return bounds


def _passing(
    collection: Collection,
    pairs: ItemPairs,
    start: int,
    stop: int,
    facts: TextFacts,
    embeddings: Embeddings,
    filters: FilterSettings,
    counts: FilterCounts,
) -> Iterator[Candidate]:
    """Measure, count and filter the captions of one item against those of all its partners."""
    starts, captions = collection.starts, collection.captions
    items = pairs.items1[start:stop]
    edges = [0, *(np.flatnonzero(np.diff(items)) + 1).tolist(), len(items)]
    for first, last in pairwise(edges):
        rows = slice(int(starts[items[first]]), int(starts[items[first] + 1]))
        numbers = np.arange(start + first, start + last)
        partners = pairs.items2[numbers]
        columns = np.concatenate([np.arange(starts[item], starts[item + 1]) for item in partners])
        item_pairs = np.repeat(numbers, starts[partners + 1] - starts[partners])
        measures = facts.product(rows, columns, vectors=embeddings.captions)
        cosine = measures.text_cosine
        for cell in map(tuple, np.argwhere(counts.keep(measures, filters))):
            number = item_pairs[cell[1]]
            sentence1, sentence2 = captions[rows.start + cell[0]], captions[columns[cell[1]]]
            yield Candidate(
                pair_id=pair_id_of(collection.source, sentence1, sentence2),
                source=collection.source,
                item1=collection.item_ids[pairs.items1[number]],
                item2=collection.item_ids[pairs.items2[number]],
                sentence1=sentence1,
                sentence2=sentence2,
                similarity=float(pairs.similarity[number]),
                iou=float(measures.iou[cell]),
                text_cosine=None if cosine is None else float(cosine[cell]),
                length_ratio=float(measures.length_ratio[cell]),
                min_length=int(measures.min_length[cell]),
            )


def _join_parts(
    parts: Sequence[Path], path: Path, *, sample: int | None, seed: int
) -> tuple[int, int]:
    """Join parts, each pair of texts once or a sample; return repeated and written pairs.

    Two items may have a caption in common, so a pair can occur several times; the first stays.
    The sample depends on the pairs and the seed alone.
    """
    parquet = require("pyarrow.parquet", extra="build")
    arrow = require("pyarrow", extra="build")
    part_keys = []
    for part in parts:
        ids = parquet.read_table(part, columns=["pair_id"]).column("pair_id").to_pylist()
        part_keys.append(np.array([int(pair_id, 16) for pair_id in ids], np.uint64))
    keys = np.concatenate(part_keys)
    unique, indices = np.unique(keys, return_index=True)
    if sample is not None and sample < len(indices):
        indices = np.random.default_rng(seed).choice(indices, sample, replace=False)
    chosen = np.zeros(len(keys), dtype=bool)
    chosen[indices] = True
    start = 0
    with (
        replacing(path) as partial,
        parquet.ParquetWriter(partial, parquet_schema(Candidate), compression="zstd") as writer,
    ):
        for part in parts:
            table = parquet.read_table(part)
            mask = chosen[start : start + len(table)]
            start += len(table)
            writer.write_table(table.filter(arrow.array(mask)), row_group_size=_ROWS_PER_GROUP)
    return len(keys) - len(unique), len(indices)


def read_pairs(path: Path) -> Iterator[Candidate]:
    """Read sentence pairs: candidates, or any file with two columns of sentences.

    The columns ``source, item1, item2, similarity`` are used if present.
    """
    optional = ("source", "item1", "item2", "similarity")
    for row in iter_rows(path, columns=("sentence1", "sentence2"), optional=optional):
        sentence1, sentence2 = row.text("sentence1"), row.text("sentence2")
        source = str(row.cells["source"] or stem_of(path))
        similarity = None
        if row.cells["similarity"] not in (None, ""):
            similarity = row.score("similarity", label_range=(-1, 1), hint="Correct or remove it.")
        yield Candidate(
            pair_id=pair_id_of(source, sentence1, sentence2),
            source=source,
            item1=str(row.cells["item1"] or _text_digest(sentence1)),
            item2=str(row.cells["item2"] or _text_digest(sentence2)),
            sentence1=sentence1,
            sentence2=sentence2,
            similarity=similarity,
        )


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def filter_files(paths: Sequence[Path], rules: PairFilter, *, output: Path | None) -> int:
    """Filter files of pairs into one with a manifest, or only count if the output is None."""
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
