"""The settings of a weak data set, its sentences, and which of them are near."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condsim.construction.candidates import (
    Collection,
    FilterSettings,
    PairFilter,
    TextEncoder,
    caption_vectors,
    load_text_encoder,
    nearest_pairs,
    read_items,
    read_texts,
    unit_length,
)
from condsim.construction.rows import Candidate, pair_id_of
from condsim.errors import InputError, require
from condsim.progress import Progress
from condsim.settings import Settings
from condsim.tasks import HeldOutTexts, text_digest
from condsim.types import FloatArray

_WIDTH = 200  # of vectors of words
_NONE = HeldOutTexts()


class WeakSettings(Settings):
    """How a weakly labelled data set is made."""

    rows: int = 60_000  # rows with a label from 1 to 5, two a pair
    absent: int = 0  # rows with the label -1
    seed: int = 0  # seed of all that is drawn
    k: int = 32  # neighbours of a sentence
    sample: int | None = None  # sentences to draw pairs from; all if None
    # The model whose vectors say which sentences are near; ``"words"`` needs none, None is that of
    # `condsim.construction.load_text_encoder`.
    text_encoder: str | None = None
    answers: bool = True  # whether the rows have the columns ``answer1`` and ``answer2``
    # Bounds that pairs must keep.
    filters: FilterSettings = FilterSettings(max_iou=0.3, min_length_ratio=0.6)


@dataclass(frozen=True, eq=False)
class Pool:
    """Sentences of one or more files."""

    collection: Collection
    items: Sequence[str]  # of each sentence; sentences of an item are not paired
    excluded: int  # left out, since a file to be kept apart has them
    repeated: int  # left out, since an earlier one is the same but for case and punctuation


def read_pool(
    paths: Sequence[Path],
    *,
    caption_column: str = "caption",
    item_column: str | None = None,
    exclude: HeldOutTexts = _NONE,
    sample: int | None = None,
    seed: int = 0,
) -> Pool:
    """Reads sentences, leaves out what must be, and draws some.

    Args:
        paths: Files with a row a sentence; formats as `condsim.tasks.iter_rows` reads them.
        item_column: The column that names what several sentences describe, which are not paired;
            each sentence is by itself if None.
        sample: Sentences to draw; all if None.
        seed: Seed of the draw.

    Raises:
        InputError: If a file cannot be read, or fewer than two sentences are left.
    """
    seen: set[bytes] = set()
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
            key = text_digest(text)
            if text in exclude:
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


def near_pairs(
    pool: Pool, settings: WeakSettings, *, cache: Path, progress: Progress, device: str | None
) -> tuple[Iterator[Candidate], str | None]:
    """Gives near pairs that pass the filters, in random order, and the revision of the model."""
    collection = pool.collection
    if settings.text_encoder == "words":
        revision, vectors = None, _word_vectors(collection.captions, settings.seed, progress)
    else:
        encoder: TextEncoder = load_text_encoder(settings.text_encoder, device=device)
        revision = encoder.revision
        vectors = caption_vectors(collection, encoder, cache=cache, progress=progress)
    near = _candidates(pool, vectors, settings, cache, progress)
    return PairFilter(settings.filters).passing(near), revision


def _word_vectors(texts: Sequence[str], seed: int, progress: Progress) -> FloatArray:
    """Latent semantic analysis of the sentences' own words (Deerwester et al., 1990)."""
    text = require("sklearn.feature_extraction.text", extra="build")
    decomposition = require("sklearn.decomposition", extra="build")
    progress("words", 0, len(texts))
    counts = text.TfidfVectorizer(sublinear_tf=True, min_df=1, stop_words="english")
    try:
        weights = counts.fit_transform(texts)
    except ValueError as error:  # only stop words
        raise InputError(f"The sentences have no words to compare ({error}).") from error
    width = min(_WIDTH, weights.shape[1] - 1, weights.shape[0] - 1)
    reduced = decomposition.TruncatedSVD(max(width, 1), random_state=seed).fit_transform(weights)
    reduced = np.asarray(reduced, np.float32) + np.float32(1e-6)  # none is of length 0
    return unit_length(reduced, what="words")


def _candidates(
    pool: Pool, vectors: FloatArray, settings: WeakSettings, cache: Path, progress: Progress
) -> Iterator[Candidate]:
    near = nearest_pairs(vectors, settings.k, cache=cache, progress=progress)
    random = np.random.default_rng(settings.seed)
    source, texts = pool.collection.source, pool.collection.captions
    order, swapped = random.permutation(len(near)), random.random(len(near)) < 0.5
    for place, swap in zip(order, swapped, strict=True):
        one, two = int(near.items1[place]), int(near.items2[place])
        if pool.items[one] == pool.items[two]:
            continue
        if swap:
            one, two = two, one
        yield Candidate(
            pair_id=pair_id_of(source, texts[one], texts[two]),
            source=source,
            item1=str(one),
            item2=str(two),
            sentence1=texts[one],
            sentence2=texts[two],
            similarity=float(near.similarity[place]),
        )
