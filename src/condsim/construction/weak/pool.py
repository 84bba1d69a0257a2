"""The sentences that pairs are drawn from, and which of them are near."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.construction.candidates import (
    DEFAULT_TEXT_ENCODER,
    Collection,
    TextEncoder,
    caption_vectors,
    load_text_encoder,
    nearest_pairs,
    read_items,
    read_texts,
    unit_length,
)
from condsim.construction.dataset import sentence_key
from condsim.construction.rows import Candidate, pair_id_of
from condsim.errors import InputError, require
from condsim.progress import Progress
from condsim.tasks import iter_rows
from condsim.types import FloatArray

WORDS = "words"  # names the vectors that need no model
_WIDTH = 200  # of those vectors


@dataclass(frozen=True, eq=False)
class Pool:
    """Sentences of one or more files.

    Attributes:
        collection: The sentences, with those of an item side by side.
        items: The item of each sentence, ``(n,)``; sentences of an item are not paired.
        excluded: Sentences left out since a file to be kept apart has them.
        repeated: Sentences left out since an earlier one is the same but for case and punctuation.
    """

    collection: Collection
    items: Sequence[str]
    excluded: int
    repeated: int


def excluded_keys(paths: Sequence[Path]) -> frozenset[str]:
    """Reads the sentences that must not be used."""
    return frozenset(
        sentence_key(str(cell))
        for path in paths
        for row in iter_rows(path, columns=("sentence1", "sentence2"))
        for cell in row.cells.values()
    )


def read_pool(
    paths: Sequence[Path],
    *,
    caption_column: str = "caption",
    item_column: str | None = None,
    exclude: frozenset[str] = frozenset(),
    sample: int | None = None,
    seed: int = 0,
) -> Pool:
    """Reads sentences, leaves out what must be, and draws some.

    Args:
        paths: Files with a row a sentence; formats as `condsim.tasks.iter_rows` reads them.
        caption_column: The column of the sentence.
        item_column: The column that names what several sentences describe, which are not paired;
            each sentence is by itself if None.
        exclude: Sentences to leave out, in small letters without punctuation.
        sample: Sentences to draw; all if None.
        seed: Seed of the draw.

    Returns:
        The sentences.

    Raises:
        InputError: If a file cannot be read, or fewer than two sentences are left.
    """
    seen = set(exclude)
    texts: list[str] = []
    items: list[str] = []
    excluded = repeated = 0
    for path in paths:
        read = (
            read_texts(path, text_column=caption_column)
            if item_column is None
            else read_items(path, item_column=item_column, caption_column=caption_column)
        )
        repeated += read.repeated
        names = np.repeat(np.array(read.item_ids, dtype=object), np.diff(read.starts))
        for text, name in zip(read.captions, names, strict=True):
            key = sentence_key(text)
            if key in exclude:
                excluded += 1
            elif key in seen:
                repeated += 1
            else:
                seen.add(key)
                texts.append(text)
                items.append(f"{read.source}:{name}")
    if len(texts) < 2:
        raise InputError(
            f"Pairs need at least two sentences that are not left out. Got {len(texts)}; "
            f"{excluded} are in the files to be kept apart. Give more captions."
        )
    chosen = np.arange(len(texts))
    if sample is not None and sample < len(texts):
        chosen = np.sort(np.random.default_rng(seed).choice(len(texts), sample, replace=False))
    collection = Collection(
        source="weak",
        revision="",
        item_ids=tuple(f"sentence-{place}" for place in chosen),
        captions=tuple(texts[place] for place in chosen),
        starts=np.arange(len(chosen) + 1),
        repeated=repeated,
    )
    return Pool(collection, [items[place] for place in chosen], excluded, repeated)


def vectors_of(
    collection: Collection,
    *,
    text_encoder: str | None,
    cache: Path,
    progress: Progress,
    seed: int = 0,
    device: str | None = None,
) -> tuple[FloatArray, str | None]:
    """Gives the sentences' vectors of length 1, ``(n, width)``, and the revision of the model."""
    if text_encoder != WORDS:
        encoder: TextEncoder = load_text_encoder(
            text_encoder or DEFAULT_TEXT_ENCODER, device=device
        )
        found = caption_vectors(collection, encoder, cache=cache, progress=progress)
        return found, encoder.revision
    text = require("sklearn.feature_extraction.text", extra="build")
    decomposition = require("sklearn.decomposition", extra="build")
    progress("words", 0, len(collection.captions))
    counts = text.TfidfVectorizer(sublinear_tf=True, min_df=1, stop_words="english")
    try:
        weights = counts.fit_transform(collection.captions)
    except ValueError as error:  # only stop words
        raise InputError(f"The sentences have no words to compare ({error}).") from error
    width = min(_WIDTH, weights.shape[1] - 1, weights.shape[0] - 1)
    reduced = decomposition.TruncatedSVD(max(width, 1), random_state=seed).fit_transform(weights)
    reduced = np.asarray(reduced, np.float32) + np.float32(1e-6)  # none is of length 0
    return unit_length(reduced, what="words"), None


def near_pairs(
    pool: Pool, vectors: FloatArray, *, k: int, cache: Path, progress: Progress, seed: int
) -> Iterator[Candidate]:
    """Gives near pairs in random order, by vectors of length 1, ``(n, width)``."""
    pairs = nearest_pairs(vectors, k, cache=cache, progress=progress)
    rng = np.random.default_rng(seed)
    texts = pool.collection.captions
    for place, swapped in zip(
        rng.permutation(len(pairs)), rng.random(len(pairs)) < 0.5, strict=True
    ):
        one, two = int(pairs.items1[place]), int(pairs.items2[place])
        if pool.items[one] == pool.items[two]:
            continue
        if swapped:
            one, two = two, one
        yield Candidate(
            pair_id=pair_id_of(pool.collection.source, texts[one], texts[two]),
            sentence1=texts[one],
            sentence2=texts[two],
            source=pool.collection.source,
            item1=str(one),
            item2=str(two),
            similarity=float(pairs.similarity[place]),
        )
