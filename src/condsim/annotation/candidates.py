"""Candidate pairs: the captions of near items, filtered, and filters for files of pairs.

C-STS §2.2.1: the images of two captions are near each other, so the captions have something in
common; the filters of A.2 remove pairs that are too alike or too far apart to write conditions for.
Each stage is cached in a folder, so the same command continues an interrupted run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from condsim.annotation.items import Collection
from condsim.cache import sole_process
from condsim.config import Settings
from condsim.console import Progress
from condsim.data.files import iter_rows, stem_of
from condsim.errors import require, unknown_name
from condsim.io import replacing, sha256_of
from condsim.rows.near_pairs import EXACT_UP_TO, ItemPairs, nearest_pairs
from condsim.rows.pairs import (
    Candidate,
    FilterCounts,
    FilterSettings,
    PairFilter,
    TextFacts,
    pair_id_of,
    read_stop_words,
    text_facts,
)
from condsim.rows.records import (
    manifest_of,
    parquet_schema,
    read_manifest,
    write_manifest,
    write_rows,
)
from condsim.types import FloatArray

_ROWS_PER_GROUP = 100_000
# A few seconds' work.
_PAIRS_PER_PART = 500_000
_MANIFEST_FORMAT = 1


def _paper_filters(max_iou: float, min_length: int) -> FilterSettings:
    return FilterSettings(
        max_iou=max_iou, min_text_cosine=0.4, min_length_ratio=0.7, min_length=min_length
    )


PRESETS = {"coco": (64, _paper_filters(0.12, 50)), "flickr30k": (128, _paper_filters(0.2, 48))}
"""Neighbors of an item and filters, Table 6; "d_text" is read as a similarity (READING.md)."""


def preset(name: str) -> tuple[int, FilterSettings]:
    """Return the neighbors of an item and the filters for ``coco`` or ``flickr30k``."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]


class CandidateSettings(Settings):
    """Settings of a run."""

    what = "candidates"

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
    vectors: FloatArray,
    path: Path,
    *,
    settings: CandidateSettings,
    cache: Path,
    progress: Progress,
    caption_vectors: FloatArray | None = None,
    stop_words: frozenset[str] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> CandidateReport:
    """Write the candidates of one collection, and a manifest next to them.

    Args:
        vectors: Vectors of the items, of length 1, ``(n, width)``.
        path: A ``.parquet`` file.
        cache: Folder for intermediate results.
        caption_vectors: Vectors of the captions, of length 1, ``(m, width)``; None for no cosine.
        stop_words: Words left out of the bags of words; English ones if None.
        provenance: Plain values to add to the manifest, such as the encoders.
    """
    stop_words = read_stop_words() if stop_words is None else stop_words
    manifest = _run_manifest(collection, vectors, caption_vectors, settings, stop_words, provenance)
    key = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:12]
    with sole_process(cache):
        report = _finished_report(path, key)
        if report is not None:
            return report
        pairs = nearest_pairs(
            vectors, settings.k, cache=cache, progress=progress, exact_up_to=settings.exact_up_to
        )
        facts = text_facts(collection.captions, stop_words=stop_words)
        maker = PartMaker(collection, pairs, facts, caption_vectors, settings.filters)
        parts = _write_parts(maker, cache / f"parts-{key}", progress)
        # The manifest describes the file that is replaced.
        manifest_of(path).unlink(missing_ok=True)
        repeated, written = _join_parts(parts, path, sample=settings.sample, seed=settings.seed)
        report = CandidateReport(
            items=len(collection),
            captions=len(collection.captions),
            repeated_captions=collection.repeated,
            item_pairs=len(pairs),
            counts=_sum_counts(parts),
            repeated=repeated,
            written=written,
        )
        write_manifest(path, {**manifest, "key": key, "report": asdict(report)})
        for folder in cache.glob("parts-*"):
            shutil.rmtree(folder)
    return report


def _run_manifest(
    collection: Collection,
    vectors: FloatArray,
    caption_vectors: FloatArray | None,
    settings: CandidateSettings,
    stop_words: frozenset[str],
    provenance: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return all inputs and settings, which identify a run."""
    return {
        "format": _MANIFEST_FORMAT,
        "kind": "candidates",
        "source": collection.source,
        "source_revision": collection.revision,
        "content": collection.fingerprint(),
        "vectors": _digest(vectors),
        "caption_vectors": None if caption_vectors is None else _digest(caption_vectors),
        "stop_words": hashlib.sha256(" ".join(sorted(stop_words)).encode()).hexdigest()[:12],
        "settings": settings.model_dump(),
        **(provenance or {}),
    }


def _finished_report(path: Path, key: str) -> CandidateReport | None:
    """Return the report of an earlier run with the same inputs and settings."""
    manifest = read_manifest(path) if path.is_file() else None
    if manifest is None or manifest.get("key") != key:
        return None
    report = dict(manifest["report"])
    return CandidateReport(counts=FilterCounts(**report.pop("counts")), **report)


def _digest(vectors: FloatArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()[:12]


@dataclass(frozen=True, eq=False)
class PartMaker:
    """Pairs of captions of near items, measured and filtered, in parts."""

    collection: Collection
    pairs: ItemPairs
    facts: TextFacts
    vectors: FloatArray | None
    filters: FilterSettings

    def write(self, path: Path, start: int, stop: int) -> None:
        """Write the candidates of some item pairs, and the counts as manifest."""
        counts = FilterCounts()
        write_rows(self._passing(start, stop, counts), path, kind=Candidate)
        write_manifest(path, counts.to_dict())

    def _passing(self, start: int, stop: int, counts: FilterCounts) -> Iterator[Candidate]:
        starts, source = self.collection.starts, self.collection.source
        item_ids = self.collection.item_ids
        items = self.pairs.items1[start:stop]
        edges = [0, *(np.flatnonzero(np.diff(items)) + 1).tolist(), len(items)]
        for first, last in pairwise(edges):
            # Captions of one item against those of all its partners.
            rows = slice(int(starts[items[first]]), int(starts[items[first] + 1]))
            numbers = np.arange(start + first, start + last)
            partners = self.pairs.items2[numbers]
            captions = np.concatenate(
                [np.arange(starts[item], starts[item + 1]) for item in partners]
            )
            item_pairs = np.repeat(numbers, starts[partners + 1] - starts[partners])
            measures = self.facts.product(rows, captions, vectors=self.vectors)
            cosine = measures.text_cosine
            for row, column in np.argwhere(counts.keep(measures, self.filters)):
                number, cell = item_pairs[column], (row, column)
                sentence1 = self.collection.captions[rows.start + row]
                sentence2 = self.collection.captions[captions[column]]
                yield Candidate(
                    pair_id=pair_id_of(source, sentence1, sentence2),
                    source=source,
                    item1=item_ids[self.pairs.items1[number]],
                    item2=item_ids[self.pairs.items2[number]],
                    sentence1=sentence1,
                    sentence2=sentence2,
                    similarity=float(self.pairs.similarity[number]),
                    iou=float(measures.iou[cell]),
                    text_cosine=None if cosine is None else float(cosine[cell]),
                    length_ratio=float(measures.length_ratio[cell]),
                    min_length=int(measures.min_length[cell]),
                )


def _write_parts(maker: PartMaker, folder: Path, progress: Progress) -> list[Path]:
    """Write the parts that an earlier run did not; all pairs of an item are in one part."""
    pairs = maker.pairs
    sizes = np.diff(maker.collection.starts)
    total = np.cumsum(sizes[pairs.items1] * sizes[pairs.items2])
    ends = np.flatnonzero(np.append(np.diff(pairs.items1) > 0, True)) + 1
    folder.mkdir(exist_ok=True)
    parts: list[Path] = []
    start = 0
    for end in ends.tolist():
        caption_pairs = total[end - 1] - (total[start - 1] if start else 0)
        if caption_pairs < _PAIRS_PER_PART and end != len(pairs):
            continue
        progress("candidates", start, len(pairs))
        parts.append(folder / f"{start:012d}.parquet")
        # The manifest is written last.
        if not manifest_of(parts[-1]).is_file():
            maker.write(parts[-1], start, end)
        start = end
    progress("candidates", len(pairs), len(pairs))
    return parts


def _sum_counts(parts: Sequence[Path]) -> FilterCounts:
    counts = FilterCounts()
    for part in parts:
        counts.add(FilterCounts(**(read_manifest(part) or {})))
    return counts


def _join_parts(
    parts: Sequence[Path], path: Path, *, sample: int | None, seed: int
) -> tuple[int, int]:
    """Join parts, each pair of texts once or a sample; return repeated and written pairs.

    Two items may have a caption in common, so a pair can occur several times; the first stays.
    The sample depends on the pairs and the seed alone.
    """
    parquet = require("pyarrow.parquet", extra="build")
    arrow = require("pyarrow", extra="build")
    keys = np.concatenate(
        [_pair_keys(parquet.read_table(part, columns=["pair_id"])) for part in parts]
    )
    unique, indices = np.unique(keys, return_index=True)
    if sample is not None and sample < len(indices):
        indices = np.random.default_rng(seed).choice(indices, sample, replace=False)
    chosen = np.zeros(len(keys), dtype=bool)
    chosen[indices] = True
    start = 0
    schema = parquet_schema(Candidate)
    with (
        replacing(path) as partial,
        parquet.ParquetWriter(partial, schema, compression="zstd") as writer,
    ):
        for part in parts:
            table = parquet.read_table(part)
            mask = chosen[start : start + len(table)]
            start += len(table)
            writer.write_table(table.filter(arrow.array(mask)), row_group_size=_ROWS_PER_GROUP)
    return len(keys) - len(unique), len(indices)


def _pair_keys(table: Any) -> NDArray[np.uint64]:  # noqa: ANN401
    """Convert the ids of pairs to numbers."""
    digits = "".join(table.column("pair_id").to_pylist())
    return np.frombuffer(bytes.fromhex(digits), dtype=">u8").astype(np.uint64)


def read_pairs(path: Path) -> Iterator[Candidate]:
    """Read sentence pairs: candidates, or any file with two columns of sentences.

    The columns ``source, item1, item2, similarity`` are used if present.

    Raises:
        InputError: If the file cannot be read or a cell breaks a rule.
        MissingExtraError: If the file is Parquet and pyarrow is not installed.
    """
    optional = ("source", "item1", "item2", "similarity")
    for row in iter_rows(path, columns=("sentence1", "sentence2"), optional=optional):
        sentence1, sentence2 = row.text("sentence1"), row.text("sentence2")
        source = str(row.cells["source"] or stem_of(path))
        similarity = None
        if row.cells["similarity"] not in (None, ""):
            similarity = row.score("similarity", label_range=(-1, 1), fix="Correct or remove it.")
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
