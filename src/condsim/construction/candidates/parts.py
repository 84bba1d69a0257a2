"""Candidate pairs in parts: each part a Parquet file that is whole or not there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.construction.candidates.filters import FilterCounts, FilterSettings
from condsim.construction.candidates.items import Collection
from condsim.construction.candidates.measures import TextFacts, ranges
from condsim.construction.candidates.neighbours import ItemPairs
from condsim.construction.row_files import parquet_schema
from condsim.construction.rows import Candidate, pair_id_of
from condsim.errors import require
from condsim.files import replacing
from condsim.types import FloatArray

_COUNTS = b"counts"  # key in the metadata of a part
_ROWS = 100_000  # in a row group


class PartMaker:
    """Pairs the captions of near items, measures and filters them.

    Args:
        vectors: Vectors of the captions, of length 1, ``(m, width)``; None for no cosine.
    """

    def __init__(
        self,
        collection: Collection,
        pairs: ItemPairs,
        facts: TextFacts,
        *,
        vectors: FloatArray | None,
        filters: FilterSettings,
    ) -> None:
        self._collection = collection
        self._pairs = pairs
        self._facts = facts
        self._vectors = vectors
        self._filters = filters
        most = int(np.diff(collection.starts).max())
        self._seen = np.zeros((facts.vocabulary, most), dtype=np.int16)

    def write(self, path: Path, start: int, stop: int) -> None:
        """Writes the candidates of some item pairs."""
        counts = FilterCounts()
        kept = list(self._kept(start, stop, counts))
        schema = parquet_schema(Candidate)
        schema = schema.with_metadata({_COUNTS: json.dumps(counts.to_dict())})
        with _writer(path, schema) as writer:
            for batch in _batches(kept):
                writer.write_table(self._table(batch, schema))

    def _kept(
        self, start: int, stop: int, counts: FilterCounts
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Gives what passes of each item's pairs: numbers of captions and item pairs, measures."""
        starts = self._collection.starts
        items = self._pairs.items1[start:stop]
        edges = [0, *(np.flatnonzero(np.diff(items)) + 1).tolist(), len(items)]
        for first, last in pairwise(edges):
            rows = slice(int(starts[items[first]]), int(starts[items[first] + 1]))
            others = self._pairs.items2[start + first : start + last]
            sizes = starts[others + 1] - starts[others]
            captions = ranges(starts[others], sizes)
            made = self._facts.product(rows, captions, vectors=self._vectors, seen=self._seen)
            at = np.nonzero(counts.keep(made, self._filters))
            kept = {
                "captions1": at[0] + rows.start,
                "captions2": captions[at[1]],
                "pairs": np.repeat(np.arange(start + first, start + last), sizes)[at[1]],
                "iou": made.iou[at],
                "length_ratio": made.length_ratio[at],
                "min_length": made.min_length[at],
            }
            yield kept if made.text_cosine is None else kept | {"text_cosine": made.text_cosine[at]}

    def _table(self, kept: Sequence[dict[str, NDArray[Any]]], schema: Any) -> Any:  # noqa: ANN401  (pyarrow has no types)
        arrow = require("pyarrow", extra="build")
        joined = {name: np.concatenate([one[name] for one in kept]) for name in kept[0]}
        texts, items = self._collection.captions, self._collection.item_ids
        source, pairs = self._collection.source, joined["pairs"]
        sentences1 = [texts[number] for number in joined["captions1"]]
        sentences2 = [texts[number] for number in joined["captions2"]]
        columns = {
            "pair_id": [
                pair_id_of(source, one, two)
                for one, two in zip(sentences1, sentences2, strict=True)
            ],
            "source": [source] * len(pairs),
            "item1": [items[number] for number in self._pairs.items1[pairs]],
            "item2": [items[number] for number in self._pairs.items2[pairs]],
            "sentence1": sentences1,
            "sentence2": sentences2,
            "similarity": self._pairs.similarity[pairs],
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
    """Makes one file of the parts: each pair of texts once, and a sample of them if wished.

    Two items may have a caption in common, so a pair can come up several times; the first stays.
    Which pairs a sample takes depends on the pairs and the seed alone.
    """
    parquet = require("pyarrow.parquet", extra="build")
    arrow = require("pyarrow", extra="build")
    keys = np.concatenate([_keys(parquet.read_table(part, columns=["pair_id"])) for part in parts])
    keep = np.zeros(len(keys), dtype=bool)
    keep[np.unique(keys, return_index=True)[1]] = True
    repeated = int((~keep).sum())
    if sample is not None and sample < int(keep.sum()):
        places = np.flatnonzero(keep)
        chosen = places[np.argpartition(_shuffled(keys[places], seed), sample)[:sample]]
        keep[:] = False
        keep[chosen] = True
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
    return repeated, int(keep.sum())


@contextmanager
def _writer(path: Path, schema: Any) -> Iterator[Any]:  # noqa: ANN401  (pyarrow has no types)
    parquet = require("pyarrow.parquet", extra="build")
    with (
        replacing(path) as partial,
        parquet.ParquetWriter(partial, schema, compression="zstd") as writer,
    ):
        yield writer


def _batches(
    kept: Sequence[dict[str, NDArray[Any]]],
) -> Iterator[Sequence[dict[str, NDArray[Any]]]]:
    """Cuts what was kept into row groups; at least one, if only an empty one."""
    start, rows = 0, 0
    for number, one in enumerate(kept, start=1):
        rows += len(one["pairs"])
        if rows >= _ROWS or number == len(kept):
            yield kept[start:number]
            start, rows = number, 0


def _keys(table: Any) -> NDArray[np.uint64]:  # noqa: ANN401  (pyarrow has no types)
    """Turns the ids of pairs into numbers."""
    digits = "".join(table.column("pair_id").to_pylist())
    return np.frombuffer(bytes.fromhex(digits), dtype=">u8").astype(np.uint64)


def _shuffled(keys: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Gives each key a random number of its own (the mixing function of SplitMix64)."""
    mixed = keys + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
