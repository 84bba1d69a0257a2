"""Candidate sentence pairs: near items, and every pair of their captions that the filters let by.

C-STS §2.2.1: the images of two captions are near each other, so the captions share something; the
filters of A.2 then take out what is too alike or too far apart to write conditions for.

Each stage is kept in a cache folder: embeddings, neighbours, and parts of the product. A run that
was killed goes on from there with the same command; another setting uses what it can.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from condsim.construction.candidates.filters import FilterCounts, FilterSettings
from condsim.construction.candidates.items import Collection
from condsim.construction.candidates.measures import read_stop_words, text_facts
from condsim.construction.candidates.neighbours import EXACT_UP_TO, nearest_pairs
from condsim.construction.candidates.parts import PartMaker, cut, join_parts, read_counts
from condsim.construction.row_files import manifest_of, read_manifest, write_manifest
from condsim.errors import InputError, require
from condsim.kept import sole_process
from condsim.progress import Progress
from condsim.types import FloatArray

_PART = 500_000  # pairs of captions: a few seconds' work
_FORMAT = 1  # of the manifest


@dataclass(frozen=True)
class CandidateSettings:
    """What candidates are made of."""

    k: int = 64  # neighbours of an item
    # Bounds for the pairs of captions.
    filters: FilterSettings = field(default_factory=FilterSettings)
    exact_up_to: int = EXACT_UP_TO  # most items for exact search; more are searched by HNSW
    sample: int | None = None  # most pairs to write, drawn at random; all if None
    seed: int = 0  # seed of the sample

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name, least in (("k", 1), ("exact_up_to", 0), ("sample", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name!r} of candidates must be {least} or more. Got {value}.")


@dataclass(frozen=True)
class CandidateReport:
    """What came of a run."""

    items: int
    captions: int
    repeated_captions: int  # rows of the source that repeat a caption of the same item
    item_pairs: int  # pairs of near items
    counts: FilterCounts  # pairs of captions seen, rejected by each filter and passed
    repeated: int  # pairs that passed and have the texts of an earlier pair
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
    """Writes the candidates of one collection, and a manifest beside them.

    Args:
        vectors: Vectors of the items, of length 1, ``(n, width)``.
        cache: Folder for what is kept between runs.
        progress: Called with the stage and how far it is.
        caption_vectors: Vectors of the captions by the text encoder, of length 1, ``(m, width)``;
            needed by the filter of cosines, None for no cosine.
        stop_words: Words left out of the bags of words; English ones if None.
        provenance: What else belongs in the manifest, such as the encoders; plain values.

    Returns:
        Counts; they are in the manifest too.

    Raises:
        InputError: If the numbers of vectors are wrong, a filter needs vectors that are not given,
            a file cannot be written or another process is at work on it.
        MissingExtraError: If an optional library is not installed.
    """
    for module in ("faiss", "filelock", "pyarrow.parquet"):
        require(module, extra="build")
    _check(collection, vectors, path, settings, caption_vectors)
    stop_words = read_stop_words() if stop_words is None else stop_words
    manifest = {
        "format": _FORMAT,
        "kind": "candidates",
        "source": collection.source,
        "source_revision": collection.revision,
        "content": collection.fingerprint(),
        "vectors": _digest(vectors),
        "caption_vectors": None if caption_vectors is None else _digest(caption_vectors),
        "stop_words": hashlib.sha256(" ".join(sorted(stop_words)).encode()).hexdigest()[:12],
        "settings": asdict(settings),
        **(provenance or {}),
    }
    key = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:12]
    with sole_process(cache):
        finished = _finished(path, key)
        if finished is not None:
            return finished
        pairs = nearest_pairs(
            vectors, settings.k, cache=cache, progress=progress, exact_up_to=settings.exact_up_to
        )
        facts = text_facts(collection.captions, stop_words=stop_words)
        maker = PartMaker(
            collection, pairs, facts, vectors=caption_vectors, filters=settings.filters
        )
        folder = cache / f"parts-{key}"
        folder.mkdir(exist_ok=True)
        parts = []
        for start, stop in cut(pairs, collection, caption_pairs=_PART):
            progress("candidates", start, len(pairs))
            parts.append(folder / f"{start:012d}.parquet")
            if not parts[-1].is_file():
                maker.write(parts[-1], start, stop)
        progress("candidates", len(pairs), len(pairs))
        counts = read_counts(parts)
        manifest_of(path).unlink(missing_ok=True)  # it tells of the file that is replaced
        repeated, written = join_parts(parts, path, sample=settings.sample, seed=settings.seed)
        report = CandidateReport(
            items=len(collection),
            captions=len(collection.captions),
            repeated_captions=collection.repeated,
            item_pairs=len(pairs),
            counts=counts,
            repeated=repeated,
            written=written,
        )
        write_manifest(path, {**manifest, "key": key, "report": asdict(report)})
        for old in cache.glob("parts-*"):
            shutil.rmtree(old)
    return report


def _check(
    collection: Collection,
    vectors: FloatArray,
    path: Path,
    settings: CandidateSettings,
    caption_vectors: FloatArray | None,
) -> None:
    if path.suffix.lower() != ".parquet":
        raise InputError(f"{path}: candidates are written as .parquet. Give a name that ends so.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} does not exist; make the folder first.")
    for found, needed, of in (
        (vectors, collection.item_ids, "items"),
        (caption_vectors, collection.captions, "captions"),
    ):
        if found is not None and len(found) != len(needed):
            raise InputError(
                f"There must be a vector for each of the {len(needed)} {of} of "
                f"{collection.source!r}. Got {len(found)}."
            )
    if settings.filters.min_text_cosine is not None and caption_vectors is None:
        raise InputError(
            "The filter 'min_text_cosine' needs the vectors of the captions. Give a text encoder, "
            "or turn the filter off."
        )


def _finished(path: Path, key: str) -> CandidateReport | None:
    """Gives the report of an earlier run that made just this file."""
    manifest = read_manifest(path) if path.is_file() else None
    if manifest is None or manifest.get("key") != key:
        return None
    report = dict(manifest["report"])
    return CandidateReport(counts=FilterCounts(**report.pop("counts")), **report)


def _digest(vectors: FloatArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()[:12]
