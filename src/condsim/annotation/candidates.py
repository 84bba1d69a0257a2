"""Candidate pairs: near items, and every pair of their captions that the filters let by."""

# C-STS §2.2.1: the images of two captions are near each other, so the captions share something; the
# filters of A.2 take out what is too alike or too far apart to write conditions for. Each stage is
# kept in a cache folder, so a run that was killed goes on from there with the same command.

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from condsim.cache import sole_process
from condsim.config import Settings
from condsim.console import Progress
from condsim.errors import InputError, require
from condsim.io import replacing
from condsim.rows.filters import FilterCounts, FilterSettings
from condsim.rows.items import Collection, TextFacts, read_stop_words, text_facts
from condsim.rows.near_pairs import EXACT_UP_TO, ItemPairs, nearest_pairs
from condsim.rows.records import (
    Candidate,
    manifest_of,
    pair_id_of,
    parquet_schema,
    read_manifest,
    write_manifest,
)
from condsim.types import FloatArray

_COUNTS = b"counts"  # key in the metadata of a part
_ROWS = 100_000  # in a row group


@dataclass(frozen=True, eq=False)
class PartMaker:
    """Pairs the captions of near items, measures and filters them."""

    collection: Collection
    pairs: ItemPairs
    facts: TextFacts  # of the captions
    vectors: FloatArray | None  # of the captions, of length 1, (m, width); None for no cosine
    filters: FilterSettings

    def write(self, path: Path, start: int, stop: int) -> None:
        """Writes the candidates of some item pairs."""
        counts = FilterCounts()
        kept = list(self._kept(start, stop, counts))
        joined = {name: np.concatenate([one[name] for one in kept]) for name in kept[0]}
        schema = parquet_schema(Candidate)
        schema = schema.with_metadata({_COUNTS: json.dumps(counts.to_dict())})
        with _writer(path, schema) as writer:
            for first in range(0, max(1, len(joined["pairs"])), _ROWS):
                rows = {name: values[first : first + _ROWS] for name, values in joined.items()}
                writer.write_table(self._table(rows, schema))

    def _kept(
        self, start: int, stop: int, counts: FilterCounts
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Gives what passes of each item's pairs: numbers of captions and item pairs, measures."""
        starts = self.collection.starts
        items = self.pairs.items1[start:stop]
        edges = [0, *(np.flatnonzero(np.diff(items)) + 1).tolist(), len(items)]
        for first, last in pairwise(edges):
            rows = slice(int(starts[items[first]]), int(starts[items[first] + 1]))
            others = self.pairs.items2[start + first : start + last]
            sizes = starts[others + 1] - starts[others]
            captions = np.concatenate([np.arange(starts[one], starts[one + 1]) for one in others])
            made = self.facts.product(rows, captions, vectors=self.vectors)
            at = np.nonzero(counts.keep(made, self.filters))
            kept = {
                "captions1": at[0] + rows.start,
                "captions2": captions[at[1]],
                "pairs": np.repeat(np.arange(start + first, start + last), sizes)[at[1]],
                "iou": made.iou[at],
                "length_ratio": made.length_ratio[at],
                "min_length": made.min_length[at],
            }
            yield kept if made.text_cosine is None else kept | {"text_cosine": made.text_cosine[at]}

    def _table(self, joined: dict[str, NDArray[Any]], schema: Any) -> Any:  # noqa: ANN401  (pyarrow has no types)
        arrow = require("pyarrow", extra="build")
        texts, items = self.collection.captions, self.collection.item_ids
        source, pairs = self.collection.source, joined["pairs"]
        sentences1 = [texts[number] for number in joined["captions1"]]
        sentences2 = [texts[number] for number in joined["captions2"]]
        columns = {
            "pair_id": [
                pair_id_of(source, one, two)
                for one, two in zip(sentences1, sentences2, strict=True)
            ],
            "source": [source] * len(pairs),
            "item1": [items[number] for number in self.pairs.items1[pairs]],
            "item2": [items[number] for number in self.pairs.items2[pairs]],
            "sentence1": sentences1,
            "sentence2": sentences2,
            "similarity": self.pairs.similarity[pairs],
            "text_cosine": [None] * len(pairs),
            **joined,
        }
        arrays = [arrow.array(columns[one.name]).cast(one.type) for one in schema]
        return arrow.table(arrays, schema=schema)


def cut(pairs: ItemPairs, collection: Collection, *, caption_pairs: int) -> list[tuple[int, int]]:
    """Cuts item pairs into parts; all pairs of an item stay together."""
    sizes = np.diff(collection.starts)
    total = np.cumsum(sizes[pairs.items1] * sizes[pairs.items2])
    ends = np.flatnonzero(np.append(np.diff(pairs.items1) > 0, True)) + 1
    parts, start = [], 0
    for end in ends:
        done = total[end - 1] - (total[start - 1] if start else 0)
        if done >= caption_pairs or end == ends[-1]:
            parts.append((start, int(end)))
            start = int(end)
    return parts


def read_counts(parts: Sequence[Path]) -> FilterCounts:
    """Adds up what the parts counted."""
    parquet = require("pyarrow.parquet", extra="build")
    counts = FilterCounts()
    for part in parts:
        counts.add(FilterCounts(**json.loads(parquet.read_metadata(part).metadata[_COUNTS])))
    return counts


def join_parts(
    parts: Sequence[Path], path: Path, *, sample: int | None, seed: int
) -> tuple[int, int]:
    """Makes one file of the parts: each pair of texts once, and a sample of them if wished."""
    # Two items may have a caption in common, so a pair can come up several times; the first stays.
    # Which pairs a sample takes depends on the pairs and the seed alone.
    parquet = require("pyarrow.parquet", extra="build")
    arrow = require("pyarrow", extra="build")
    keys = np.concatenate([_keys(parquet.read_table(part, columns=["pair_id"])) for part in parts])
    unique, places = np.unique(keys, return_index=True)
    repeated = len(keys) - len(unique)
    if sample is not None and sample < len(places):
        places = np.random.default_rng(seed).choice(places, sample, replace=False)
    keep = np.zeros(len(keys), dtype=bool)
    keep[places] = True
    done = 0
    with _writer(path, parquet_schema(Candidate)) as writer:
        for part in parts:
            with parquet.ParquetFile(part) as file:
                for batch in file.iter_batches(batch_size=_ROWS):
                    mask = keep[done : done + len(batch)]
                    done += len(batch)
                    if mask.any():
                        table = arrow.Table.from_batches([batch.filter(arrow.array(mask))])
                        writer.write_table(table.replace_schema_metadata(None))
    return repeated, len(places)


@contextmanager
def _writer(path: Path, schema: Any) -> Iterator[Any]:  # noqa: ANN401  (pyarrow has no types)
    parquet = require("pyarrow.parquet", extra="build")
    with (
        replacing(path) as partial,
        parquet.ParquetWriter(partial, schema, compression="zstd") as writer,
    ):
        yield writer


def _keys(table: Any) -> NDArray[np.uint64]:  # noqa: ANN401  (pyarrow has no types)
    """Turns the ids of pairs into numbers."""
    digits = "".join(table.column("pair_id").to_pylist())
    return np.frombuffer(bytes.fromhex(digits), dtype=">u8").astype(np.uint64)


_PART = 500_000  # pairs of captions: a few seconds' work
_FORMAT = 1  # of the manifest


class CandidateSettings(Settings):
    """What candidates are made of."""

    what = "candidates"

    k: Annotated[int, Field(ge=1)] = 64  # neighbours of an item
    filters: FilterSettings = FilterSettings()  # bounds for the pairs of captions
    # Most items for exact search; more are searched by HNSW.
    exact_up_to: Annotated[int, Field(ge=0)] = EXACT_UP_TO
    # Most pairs to write, drawn at random; all if None.
    sample: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0  # seed of the sample


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
        "settings": settings.model_dump(),
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
        maker = PartMaker(collection, pairs, facts, caption_vectors, settings.filters)
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


def check_candidates_file(path: Path) -> None:
    """Checks that candidates can be written to a file, before hours of encoding.

    Raises:
        InputError: If its name does not end in ``.parquet``, or its folder does not exist.
    """
    if path.suffix.lower() != ".parquet":
        raise InputError(f"{path}: candidates are written as .parquet. Give a name that ends so.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} does not exist; make the folder first.")


def _check(
    collection: Collection,
    vectors: FloatArray,
    path: Path,
    settings: CandidateSettings,
    caption_vectors: FloatArray | None,
) -> None:
    check_candidates_file(path)
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
