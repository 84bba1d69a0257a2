"""Candidate pairs: items with captions and their vectors, the captions of near items, filtered.

C-STS §2.2.1: the images of two captions are near each other, so the captions have something in
common; the filters of A.2 remove pairs that are too alike or too far apart to write conditions for.
Each stage is cached in a folder, so the same command continues an interrupted run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from condsim.cache import cached_rows, open_array, sole_process
from condsim.config import Settings
from condsim.console import Progress
from condsim.data.files import iter_rows
from condsim.errors import InputError, ModelError, one_line, require
from condsim.io import replacing, write_json
from condsim.model.settings import revision_of
from condsim.model.torch import loading_reason
from condsim.paths import sha256_of, stem_of
from condsim.rows.records import manifest_of, parquet_schema, write_rows
from condsim.types import FloatArray, IntArray
from condsim_annotation.pairs import (
    EXACT_UP_TO,
    Candidate,
    FilterCounts,
    FilterSettings,
    ItemPairs,
    PairFilter,
    TextFacts,
    caption_vectors,
    item_name,
    load_text_encoder,
    nearest_pairs,
    pair_id_of,
    text_facts,
    unit_length,
)
from condsim_annotation.tables import read_manifest

# The paper does not say which size.
_IMAGE_ENCODER = "sentence-transformers/clip-ViT-B-32"
_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_IMAGES_PER_BLOCK = 256
_ROWS_PER_GROUP = 100_000
# A few seconds' work.
_PAIRS_PER_PART = 500_000
_PAPER_FILTERS = FilterSettings(min_text_cosine=0.4, min_length_ratio=0.7)

PRESETS = {
    "coco": (64, _PAPER_FILTERS.replaced(max_iou=0.12, min_length=50)),
    "flickr30k": (128, _PAPER_FILTERS.replaced(max_iou=0.2, min_length=48)),
}
"""Neighbors of an item and filters, Table 6; "d_text" is read as a similarity."""


@dataclass(frozen=True, eq=False)
class Collection:
    """Items and their captions.

    Attributes:
        revision: First 12 hexadecimal digits of the SHA-256 of the file.
        item_ids: In the order of their first row, length n.
        captions: Grouped by item, length m.
        starts: Index of the first caption of each item, and m, ``(n + 1,)``.
        repeated: Rows left out because their text was there before: for the same item, or, of
            plain texts, at all.
    """

    source: str
    revision: str
    item_ids: tuple[str, ...]
    captions: tuple[str, ...]
    starts: IntArray
    repeated: int

    def __len__(self) -> int:
        return len(self.item_ids)


def read_items(
    path: Path,
    *,
    item_column: str | None = "item_id",
    caption_column: str = "caption",
    source: str | None = None,
) -> Collection:
    """Read items with captions, one in each row.

    Without an ``item_column`` each distinct text is an item, named by its first row: ``row-1``.
    """
    columns = [caption_column] if item_column is None else [item_column, caption_column]
    # Dictionaries without values are ordered sets.
    captions: dict[str, dict[str, None]] = defaultdict(dict)
    item_of_text: dict[str, str] = {}
    rows = 0
    for rows, row in enumerate(iter_rows(path, columns=columns), start=1):
        if item_column is None:
            text = row.text(caption_column)
            item = item_of_text.setdefault(text, f"row-{rows}")
        else:
            item, text = item_name(row, item_column), row.text(caption_column)
        captions[item][text] = None
    if len(captions) < 2:
        raise InputError(
            f"{path}: pairs need at least two items with different texts, got {len(captions)}. "
            "Check which column names the item."
        )
    texts = tuple(chain.from_iterable(captions.values()))
    return Collection(
        source=stem_of(path) if source is None else source,
        revision=sha256_of(path)[:12],
        item_ids=tuple(captions),
        captions=texts,
        starts=np.cumsum([0, *map(len, captions.values())], dtype=np.int64),
        repeated=rows - len(texts),
    )


def find_images(collection: Collection, folder: Path) -> list[Path]:
    """Find the image of each item: the file with its name, with or without the suffix."""
    by_name: dict[str, list[Path]] = defaultdict(list)
    with one_line(f"{folder} cannot be read", OSError):
        files = sorted(folder.iterdir())
    for path in files:
        if path.suffix.lower() in _IMAGE_SUFFIXES:
            by_name[path.name].append(path)
            by_name[path.stem].append(path)
    missing = [item for item in collection.item_ids if item not in by_name]
    if missing:
        raise InputError(
            f"{folder}: {len(missing)} of {len(collection)} items have no image, the first is "
            f"{missing[0]!r}. An image has the name of its item and a suffix such as .jpg."
        )
    paths = [by_name[item] for item in collection.item_ids]
    for item, images in zip(collection.item_ids, paths, strict=True):
        if len(images) > 1:
            names = " and ".join(path.name for path in images)
            raise InputError(f"{folder}: the item {item!r} has two images, {names}.")
    return [path for path, *_ in paths]


def image_vectors(
    paths: Sequence[Path], model: str, *, cache: Path, progress: Progress, device: str | None = None
) -> FloatArray:
    """Embed images, ``(n, width)``, once for a model and a set of images."""
    pillow = require("PIL.Image", extra="build")
    causes = (OSError, SyntaxError, ValueError, pillow.DecompressionBombError)
    encoder = _load_image_encoder(model, device)
    digest = hashlib.sha256(f"{model}\0{revision_of(model)}".encode())
    for path in paths:
        # Reading the bytes themselves would take as long as embedding them.
        status = path.stat()
        digest.update(f"\0{path.name}\0{status.st_size}\0{status.st_mtime_ns}".encode())

    def embed(start: int, stop: int) -> FloatArray:
        with ExitStack() as stack:
            images = []
            for path in paths[start:stop]:
                with one_line(f"{path} cannot be read as an image", *causes):
                    images.append(stack.enter_context(pillow.open(path)).convert("RGB"))
            vectors = encoder.encode(images, show_progress_bar=False)
        return unit_length(np.asarray(vectors), subject=f"The images {start} to {stop - 1}")

    return cached_rows(
        cache / f"images-{digest.hexdigest()[:12]}.npy",
        embed,
        rows=len(paths),
        block=_IMAGES_PER_BLOCK,
        progress=partial(progress, "images"),
    )


def _load_image_encoder(model: str, device: str | None) -> Any:  # noqa: ANN401
    library = require("sentence_transformers", extra="build")
    from condsim.model.builders import without_progress_bars

    try:
        with without_progress_bars():
            encoder = library.SentenceTransformer(model, device=device)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise ModelError(
            f"The image encoder {model!r} cannot be loaded: {loading_reason(error)}"
        ) from error
    if not encoder.supports("image"):
        raise ModelError(
            f"The image encoder {model!r} encodes {', '.join(map(str, encoder.modalities))}, not "
            "images. Use a CLIP model, such as clip-ViT-B-32."
        )
    return encoder


def read_item_vectors(path: Path, collection: Collection) -> FloatArray:
    """Read the embeddings of the items, ``(n, width)``, from a ``.npy`` file."""
    vectors = open_array(path)
    is_table = vectors.ndim == 2 and vectors.dtype.kind in "fiu"
    if not is_table or len(vectors) != len(collection):
        raise InputError(
            f"{path}: must contain one array of numbers with two axes and a row for each of the "
            f"{len(collection)} items of {collection.source!r}, in the order of their first "
            f"caption; got {vectors.dtype} of the shape {vectors.shape}."
        )
    return unit_length(vectors, subject=str(path))


def mean_vectors(captions: FloatArray, collection: Collection) -> FloatArray:
    """Embed items by the mean of their captions: ``(m, width)`` becomes ``(n, width)``."""
    sums = np.add.reduceat(captions, collection.starts[:-1], axis=0)
    return unit_length(sums, subject="The mean of the captions of each item")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of length 1 of items, ``(n, width)``, and captions, ``(m, width)``, if needed."""

    items: FloatArray
    captions: FloatArray | None
    provenance: dict[str, Any]


def embed_collection(
    collection: Collection,
    *,
    cache: Path,
    progress: Progress,
    images: Path | None = None,
    image_encoder: str | None = None,
    embeddings: Path | None = None,
    text_encoder: str | None = None,
    cosine: bool = True,
    device: str | None = None,
) -> Embeddings:
    """Embed the items of a collection, and its captions if they are needed.

    Items are embedded by a folder of images, by a ``.npy`` file, or by the mean of their captions'
    vectors; with ``cosine`` captions are embedded in any case. An interrupted run continues from
    the cache.
    """
    items: FloatArray | None = None
    captions: FloatArray | None = None
    provenance: dict[str, Any] = {"items": {"by": "mean of captions"}}
    with sole_process(cache):
        if images is not None:
            name = image_encoder or _IMAGE_ENCODER
            paths = find_images(collection, images)
            items = image_vectors(paths, name, cache=cache, progress=progress, device=device)
            provenance["items"] = {"by": "images", "model": name, "revision": revision_of(name)}
        elif embeddings is not None:
            items = read_item_vectors(embeddings, collection)
            provenance["items"] = {"by": "file", "sha256": sha256_of(embeddings)[:12]}
        if items is None or cosine:
            encoder = load_text_encoder(text_encoder, device=device)
            captions = caption_vectors(collection.captions, encoder, cache=cache, progress=progress)
            provenance["text_encoder"] = {"model": encoder.name, "revision": encoder.revision}
            items = mean_vectors(captions, collection) if items is None else items
    return Embeddings(items, captions if cosine else None, provenance)


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
    """Write the candidates of one collection to a Parquet file, and a manifest next to it."""
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
                write_json(counts.to_dict(), manifest_of(parts[-1]))
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
        write_json({**manifest, "report": asdict(report)}, manifest_of(path))
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
    """Measure, count and filter the captions of one item against all its partners' captions."""
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
            similarity = row.score("similarity", label_range=(-1, 1))
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
    write_json(content, manifest_of(output))
    return written
