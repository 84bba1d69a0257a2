"""Texts to pair: their vectors, pairs of near ones, measures of pairs and filters on them.

IOU is of the sets of words, without stop words and in lower case; 0 where neither sentence has a
content word. The length ratio is of the numbers of words, as white space separates them: counted
like this, 94.6 % of the C-STS pairs reach 0.7 (93.6 % where punctuation marks are not words).
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterator, Sequence, Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from condsim.cache import cached_rows
from condsim.config import Settings
from condsim.console import Progress
from condsim.data.batch import in_blocks
from condsim.data.row import Row
from condsim.errors import InputError, require
from condsim.io import read_text, replacing
from condsim.loading import load_encoder, load_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.model.minilm import packaged_folder
from condsim.model.settings import revision_of
from condsim.rows.records import TableRow
from condsim.types import FloatArray, IntArray

# A general encoder. The default model needs no torch, but is trained to compare under a condition;
# without one it separates near captions from random ones less well (docs/annotation.md).
_TEXT_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
# About half a minute's work on a slow machine.
_TEXTS_PER_BLOCK = 4096
_ITEMS_PER_BLOCK = 2048
_PAIRS_PER_BATCH = 10_000

EXACT_UP_TO = 200_000
"""Items up to which every one is compared with every other; more are searched by HNSW."""

# Links of an item in the HNSW graph, and candidates for them; FAISS's default is 40.
_HNSW_LINKS, _HNSW_BUILD_WIDTH = 32, 200
_NEIGHBOR = np.dtype([("item", np.int32), ("similarity", np.float32)])
# \u2019 is the curly apostrophe.
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


def unit_length(vectors: FloatArray, *, subject: str) -> FloatArray:
    """Scale vectors ``(n, width)`` to length 1, in float32."""
    lengths = np.linalg.norm(vectors.astype(np.float32, copy=False), axis=1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise InputError(
            f"{subject}: every embedding must be finite and not zero; row {bad[0]} (from 0) and "
            f"{len(bad) - 1} more are not."
        )
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """A model that embeds texts; its revision is a hash of its files, its commit or None."""

    name: str
    revision: str | None
    model: EmbeddingScorer

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return vectors of length 1, ``(n, width)``."""
        return unit_length(self.model.encode(list(texts)), subject=self.name)


def load_text_encoder(name: str | None = None, *, device: str | None = None) -> TextEncoder:
    """Load a text encoder.

    The name is ``default``, a folder or a name on the Hub, all-MiniLM-L6-v2 if None. Raises a
    ModelError if there is no such model, or it compares pairs and does not embed texts.
    """
    name = name or _TEXT_ENCODER
    folder = packaged_folder(name)
    model = load_encoder(load_scorer(name if folder is None else str(folder), device=device))
    return TextEncoder(name, revision_of(name), model)


def caption_vectors(
    captions: Sequence[str], encoder: TextEncoder, *, cache: Path, progress: Progress
) -> FloatArray:
    """Embed captions, ``(m, width)``, once for a model and a set of captions."""
    digest = hashlib.sha256(f"{encoder.name}\0{encoder.revision}".encode())
    for caption in captions:
        digest.update(f"\0{caption}".encode())
    return cached_rows(
        cache / f"captions-{digest.hexdigest()[:12]}.npy",
        lambda start, stop: encoder.encode(captions[start:stop]),
        rows=len(captions),
        block=_TEXTS_PER_BLOCK,
        progress=partial(progress, "captions"),
    )


@dataclass(frozen=True, eq=False)
class ItemPairs:
    """Pairs of near items, none twice, none with itself, sorted; the first has the lower number."""

    items1: IntArray  # (pairs,)
    items2: IntArray  # (pairs,)
    similarity: FloatArray  # (pairs,)

    def __len__(self) -> int:
        return len(self.items1)


def nearest_pairs(
    vectors: FloatArray, k: int, *, cache: Path, progress: Progress, exact_up_to: int = EXACT_UP_TO
) -> ItemPairs:
    """Pair each item with its k nearest others; vectors are of length 1, ``(n, width)``."""
    n, k = len(vectors), min(k, len(vectors) - 1)
    exact = n <= exact_up_to
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    digest = hashlib.sha256(vectors.tobytes()).hexdigest()[:12]
    name = f"{digest}-{'exact' if exact else 'hnsw'}"

    @lru_cache
    def index() -> Any:  # noqa: ANN401
        progress("index", 0, n)
        return _make_index(vectors, k, exact=exact, path=cache / f"index-{name}.faiss")

    def search(start: int, stop: int) -> NDArray[np.void]:
        similarity, ids = index().search(vectors[start:stop], k + 1)
        return _without_self(ids, similarity, first=start)

    cache.mkdir(parents=True, exist_ok=True)
    neighbors = cached_rows(
        cache / f"neighbors-{name}-{k}.npy",
        search,
        rows=n,
        block=_ITEMS_PER_BLOCK,
        progress=partial(progress, "neighbors"),
    )
    return _unordered(neighbors["item"], neighbors["similarity"])


def _make_index(vectors: FloatArray, k: int, *, exact: bool, path: Path) -> Any:  # noqa: ANN401
    """Make the index, or read the graph that an earlier run made."""
    faiss = require("faiss", extra="build")
    if exact:
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        return index
    if path.is_file():
        index = faiss.read_index(str(path))
    else:
        index = faiss.IndexHNSWFlat(vectors.shape[1], _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = _HNSW_BUILD_WIDTH
        index.add(vectors)
        with replacing(path) as partial_path:
            faiss.write_index(index, str(partial_path))
    index.hnsw.efSearch = max(2 * (k + 1), 64)
    return index


def _without_self(ids: IntArray, similarity: FloatArray, *, first: int) -> NDArray[np.void]:
    """Remove each item from its own neighbors; ``(rows, k + 1)`` becomes ``(rows, k)``."""
    rows, width = ids.shape
    keep = ids != np.arange(first, first + rows)[:, None]
    # Equal vectors may crowd an item out of its list.
    keep[keep.all(axis=1), -1] = False
    neighbors = np.empty((rows, width - 1), _NEIGHBOR)
    neighbors["item"] = ids[keep].reshape(rows, width - 1)
    neighbors["similarity"] = np.clip(similarity[keep].reshape(rows, width - 1), -1, 1)
    return neighbors


def _unordered(ids: NDArray[np.int32], similarity: FloatArray) -> ItemPairs:
    """Make one pair of both directions; HNSW marks a missing neighbor by -1."""
    n, k = ids.shape
    items = np.repeat(np.arange(n, dtype=np.int64), k)
    neighbors = ids.reshape(-1).astype(np.int64)
    keys = np.minimum(items, neighbors) * n + np.maximum(items, neighbors)
    keys[neighbors < 0] = -1
    unique, indices = np.unique(keys, return_index=True)
    unique, indices = unique[unique >= 0], indices[unique >= 0]
    return ItemPairs(unique // n, unique % n, similarity.reshape(-1)[indices])


@dataclass(frozen=True, slots=True)
class Candidate(TableRow):
    """A sentence pair that may be annotated; its measures are None until it is filtered.

    Attributes:
        pair_id: See `pair_id_of`.
        source: Name of the collection that both sentences are from.
        item1: Item of the first sentence; the other one is of another item.
        similarity: Cosine of the embeddings of both items, -1 to 1; None where there are none.
        iou: Intersection over union of the bags of words, 0 to 1.
        text_cosine: Cosine of the embeddings of both sentences, -1 to 1.
        length_ratio: Words of the shorter by words of the longer, 0 to 1.
        min_length: Characters of the shorter.
    """

    pair_id: str
    source: str
    item1: str
    item2: str
    sentence1: str
    sentence2: str
    similarity: float | None = None
    iou: float | None = None
    text_cosine: float | None = None
    length_ratio: float | None = None
    min_length: int | None = None


def pair_id_of(source: str, sentence1: str, sentence2: str) -> str:
    """Return the id of a sentence pair, 16 hexadecimal digits, the same in either order.

    Example:
        >>> pair_id_of("demo", "A cat.", "A dog.") == pair_id_of("demo", "A dog.", "A cat.")
        True
    """
    first, second = sorted((sentence1, sentence2))
    return hashlib.sha256(f"{source}\0{first}\0{second}".encode()).hexdigest()[:16]


def item_name(row: Row, column: str) -> str:
    """Return the name of the item that a caption describes."""
    value = row.value(column)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def read_stop_words(path: Path | None = None) -> frozenset[str]:
    """Read stop words separated by white space; an English list if the path is None."""
    own = resources.files("condsim_annotation") / "stop_words.txt"
    text = own.read_text(encoding="utf-8") if path is None else read_text(path)
    return frozenset(text.casefold().split())


def bag_of_words(text: str, stop_words: AbstractSet[str]) -> frozenset[str]:
    """Return the content words of a text."""
    words = (word.replace("\u2019", "'") for word in _WORD.findall(text.casefold()))
    return frozenset(words) - stop_words


class Measures(NamedTuple):
    """Measures of sentence pairs, arrays of one shape; see `Candidate`."""

    same_text: NDArray[np.bool_]
    iou: NDArray[np.float64]
    # None where there is no text encoder.
    text_cosine: FloatArray | None
    length_ratio: NDArray[np.float64]
    min_length: IntArray


class TextFacts(NamedTuple):
    """Counts of n texts."""

    # 1 where a text has a content word, sparse.
    bags: Any  # (n, vocabulary)
    # Content words.
    sizes: IntArray  # (n,)
    # Words that white space separates.
    word_counts: IntArray  # (n,)
    # Characters.
    lengths: IntArray  # (n,)
    # The same number for equal texts.
    text_ids: IntArray  # (n,)

    def product(self, rows: slice, columns: IntArray, *, vectors: FloatArray | None) -> Measures:
        """Measure all pairs of r texts with c others, ``(r, c)``; vectors are of length 1."""
        common = (self.bags[rows] @ self.bags[columns].T).toarray()
        cosine = None if vectors is None else np.asarray(vectors[rows]) @ vectors[columns].T
        return self._measure(np.arange(rows.start, rows.stop)[:, None], columns, common, cosine)

    def paired(self, first: IntArray, second: IntArray, *, vectors: FloatArray | None) -> Measures:
        """Measure pairs of texts one by one: numbers of both, ``(p,)``, to shape ``(p,)``."""
        common = self.bags[first].multiply(self.bags[second]).sum(axis=1)
        cosine = None
        if vectors is not None:
            cosine = np.einsum("pd,pd->p", vectors[first], vectors[second])
        return self._measure(first, second, common, cosine)

    def _measure(
        self, first: IntArray, second: IntArray, common: IntArray, cosine: FloatArray | None
    ) -> Measures:
        counts1, counts2 = self.word_counts[first], self.word_counts[second]
        union = self.sizes[first] + self.sizes[second] - common
        return Measures(
            same_text=self.text_ids[first] == self.text_ids[second],
            iou=common / np.maximum(union, 1),
            text_cosine=None if cosine is None else np.clip(cosine, -1, 1),
            length_ratio=np.minimum(counts1, counts2) / np.maximum(counts1, counts2),
            min_length=np.minimum(self.lengths[first], self.lengths[second]),
        )


def text_facts(texts: Sequence[str], *, stop_words: AbstractSet[str] | None = None) -> TextFacts:
    """Count what the filters need of each text; the stop words are English ones if None."""
    stop_words = read_stop_words() if stop_words is None else stop_words
    vocabulary: dict[str, int] = {}
    text_ids: dict[str, int] = {}
    words = array("i")
    facts: list[tuple[int, ...]] = []
    for text in texts:
        bag = bag_of_words(text, stop_words)
        words.extend(vocabulary.setdefault(word, len(vocabulary)) for word in bag)
        text_id = text_ids.setdefault(text, len(text_ids))
        facts.append((len(bag), len(text.split()), len(text), text_id))
    columns = np.array(facts, np.int64).reshape(-1, 4).T
    sizes, counts, lengths, ids = np.ascontiguousarray(columns)
    bags = require("scipy.sparse", extra="build").csr_array(
        (np.ones(len(words), np.int32), np.array(words), np.append(0, np.cumsum(sizes))),
        shape=(len(texts), max(1, len(vocabulary))),
    )
    return TextFacts(bags, sizes, counts, lengths, ids)


class FilterSettings(Settings):
    """Bounds; a pair that is outside one of them is rejected. None turns a filter off."""

    subject = "filter"

    # Highest intersection over union of the bags of words.
    max_iou: Annotated[float, Field(ge=0, le=1)] | None = None
    # Lowest cosine of the vectors of both sentences.
    min_text_cosine: Annotated[float, Field(ge=-1, le=1)] | None = None
    # Lowest ratio of the word counts.
    min_length_ratio: Annotated[float, Field(ge=0, le=1)] | None = None
    # Minimum number of characters of the shorter sentence.
    min_length: Annotated[int, Field(ge=0)] | None = None


@dataclass
class FilterCounts:
    """Numbers of pairs that were read, rejected by each rule, and passed.

    A pair that breaks several rules counts at each of them, so the rejections do not add up.
    """

    pairs: int = 0
    same_text: int = 0
    max_iou: int = 0
    min_text_cosine: int = 0
    min_length_ratio: int = 0
    min_length: int = 0
    passed: int = 0

    def add(self, counts: FilterCounts) -> None:
        """Add the counts of further pairs."""
        for name, count in counts.to_dict().items():
            setattr(self, name, getattr(self, name) + count)

    def keep(self, measures: Measures, settings: FilterSettings) -> NDArray[np.bool_]:
        """Count pairs, and return which of them pass, in the shape of the measures."""
        broken = {"same_text": measures.same_text}
        if settings.max_iou is not None:
            broken["max_iou"] = measures.iou > settings.max_iou
        for name, values in (
            ("min_text_cosine", measures.text_cosine),
            ("min_length_ratio", measures.length_ratio),
            ("min_length", measures.min_length),
        ):
            bound = getattr(settings, name)
            if bound is not None:
                broken[name] = values < bound
        passes: NDArray[np.bool_] = ~np.logical_or.reduce(list(broken.values()))
        rejected = {name: int(mask.sum()) for name, mask in broken.items()}
        self.add(FilterCounts(pairs=passes.size, passed=int(passes.sum()), **rejected))
        return passes

    def to_dict(self) -> dict[str, int]:
        """Return the counts by name, in order."""
        return asdict(self)


class PairFilter:
    """Filter that measures pairs in batches, and counts them.

    A bound for the cosine needs an encoder; stop words are left out of the bags of words, English
    ones if None.
    """

    def __init__(
        self,
        settings: FilterSettings,
        *,
        encoder: TextEncoder | None = None,
        stop_words: frozenset[str] | None = None,
    ) -> None:
        self.settings = settings
        self.counts = FilterCounts()
        self.repeated = 0
        self._encoder = encoder
        self._stop_words = stop_words

    def passing(self, pairs: Iterator[Candidate]) -> Iterator[Candidate]:
        """Return the pairs that pass, once each, with their measures."""
        for batch in in_blocks(self._fresh(pairs), _PAIRS_PER_BATCH):
            measures = self._measure(batch)
            cosine = measures.text_cosine
            for index in np.flatnonzero(self.counts.keep(measures, self.settings)):
                yield replace(
                    batch[index],
                    iou=float(measures.iou[index]),
                    text_cosine=None if cosine is None else float(cosine[index]),
                    length_ratio=float(measures.length_ratio[index]),
                    min_length=int(measures.min_length[index]),
                )

    def _fresh(self, pairs: Iterator[Candidate]) -> Iterator[Candidate]:
        seen: set[str] = set()
        for pair in pairs:
            if pair.pair_id in seen:
                self.repeated += 1
            else:
                seen.add(pair.pair_id)
                yield pair

    def _measure(self, batch: Sequence[Candidate]) -> Measures:
        numbers: dict[str, int] = {}
        first = [numbers.setdefault(pair.sentence1, len(numbers)) for pair in batch]
        second = [numbers.setdefault(pair.sentence2, len(numbers)) for pair in batch]
        vectors = None if self._encoder is None else self._encoder.encode([*numbers])
        facts = text_facts([*numbers], stop_words=self._stop_words)
        return facts.paired(np.array(first), np.array(second), vectors=vectors)
