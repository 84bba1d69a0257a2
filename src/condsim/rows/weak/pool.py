"""Sentences to pair, and the near pairs among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from condsim.console import Progress
from condsim.data.files import iter_rows
from condsim.data.held_out import HeldOutTexts, text_digest
from condsim.errors import InputError, one_line, require
from condsim.rows.near_pairs import (
    caption_vectors,
    load_text_encoder,
    nearest_pairs,
    unit_length,
)
from condsim.rows.pairs import Candidate, item_name, pair_id_of
from condsim.types import FloatArray

_WORD_VECTOR_WIDTH = 200
_NO_TEXTS = HeldOutTexts()


class Pool(NamedTuple):
    """Sentences of one or more files; no two differ in case and punctuation alone."""

    sentences: Sequence[str]
    # Sentences of one item are not paired.
    items: Sequence[object]
    # Sentences left out since they came before, and since they are held out.
    repeated: int
    excluded: int


def read_pool(
    paths: Sequence[Path],
    *,
    caption_column: str = "caption",
    item_column: str | None = None,
    exclude: HeldOutTexts = _NO_TEXTS,
    sample: int | None = None,
    seed: int = 0,
) -> Pool:
    """Read sentences, one a row, leave out those that are held out, and draw a sample.

    The item column names what several sentences describe; without one, each is a separate item.

    Raises:
        InputError: If a file cannot be read, or fewer than two sentences remain.
    """
    seen: set[bytes] = set()
    sentences: list[str] = []
    items: list[object] = []
    excluded = repeated = 0
    columns = [caption_column] if item_column is None else [caption_column, item_column]
    for row in chain.from_iterable(iter_rows(path, columns=columns) for path in paths):
        text = row.text(caption_column)
        item = None if item_column is None else (row.path, item_name(row, item_column))
        key = text_digest(text)
        if key in seen:
            repeated += 1
            continue
        seen.add(key)
        if text in exclude:
            excluded += 1
        else:
            sentences.append(text)
            items.append(item or len(items))
    if len(sentences) < 2:
        raise InputError(
            f"Pairs need at least two sentences, got {len(sentences)} and {excluded} that are in "
            "the files to be left out."
        )
    if sample is not None and sample < len(sentences):
        generator = np.random.default_rng(seed)
        chosen = np.sort(generator.choice(len(sentences), sample, replace=False)).tolist()
        sentences = [sentences[index] for index in chosen]
        items = [items[index] for index in chosen]
    return Pool(sentences, items, repeated, excluded)


def embed_sentences(
    texts: Sequence[str],
    text_encoder: str | None,
    *,
    seed: int,
    cache: Path,
    progress: Progress,
    device: str | None,
) -> tuple[FloatArray, str | None]:
    """Embed sentences by a model, or by their ``words``; return the revision of the model, too."""
    if text_encoder == "words":
        return _word_vectors(texts, seed, progress), None
    encoder = load_text_encoder(text_encoder, device=device)
    return caption_vectors(texts, encoder, cache=cache, progress=progress), encoder.revision


def _word_vectors(texts: Sequence[str], seed: int, progress: Progress) -> FloatArray:
    """Embed sentences by latent semantic analysis of their words (Deerwester et al., 1990)."""
    text = require("sklearn.feature_extraction.text", extra="build")
    decomposition = require("sklearn.decomposition", extra="build")
    progress("words", 0, len(texts))
    vectorizer = text.TfidfVectorizer(sublinear_tf=True, min_df=1, stop_words="english")
    with one_line("The sentences have no words to compare", ValueError):
        weights = vectorizer.fit_transform(texts)
    width = min(_WORD_VECTOR_WIDTH, weights.shape[1] - 1, weights.shape[0] - 1)
    reduced = decomposition.TruncatedSVD(max(width, 1), random_state=seed).fit_transform(weights)
    # No vector must have the length 0.
    reduced = np.asarray(reduced, np.float32) + np.float32(1e-6)
    return unit_length(reduced, subject="words")


def near_pairs(
    pool: Pool, vectors: FloatArray, *, k: int, seed: int, cache: Path, progress: Progress
) -> Iterator[Candidate]:
    """Return near pairs of sentences of different items, in random order."""
    pairs = nearest_pairs(vectors, k, cache=cache, progress=progress)
    random = np.random.default_rng(seed)
    order, swapped = random.permutation(len(pairs)), random.random(len(pairs)) < 0.5
    for index, swap in zip(order, swapped, strict=True):
        first, second = int(pairs.items1[index]), int(pairs.items2[index])
        if pool.items[first] == pool.items[second]:
            continue
        if swap:
            first, second = second, first
        sentence1, sentence2 = pool.sentences[first], pool.sentences[second]
        pair_id = pair_id_of("weak", sentence1, sentence2)
        yield Candidate(pair_id, "weak", str(first), str(second), sentence1, sentence2)
