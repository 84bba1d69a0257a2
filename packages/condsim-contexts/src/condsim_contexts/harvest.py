"""Harvest of scored pairs: a manifest, and Parquet shards that are whole or missing (SSBC §3.4).

The paper scores 100 M pairs and does not say how it draws them. Nearly all random pairs are unlike,
so a surrogate would see no similar ones; hence a mix. Pairs are drawn by their numbers.

A shard depends on the settings and its own number alone, so a harvest that was killed writes the
missing shards, on one machine or several, and ends with the same pairs as an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from condsim.cache import changed_keys, check_unchanged
from condsim.config import Settings, validated_json
from condsim.errors import InputError, one_line
from condsim.io import replacing, write_json
from condsim.paths import sha256_of
from condsim.types import IntArray
from condsim_contexts.corpus import Corpus
from condsim_contexts.index import TfidfIndex
from condsim_contexts.recipe import PAIR_KINDS, HarvestSettings, PairMix

if TYPE_CHECKING:
    from condsim_contexts.origin import ContextsRun

SPLITS = ("train", "dev", "test")
"""The splits of pairs; a sentence is in one of them."""

# Name of the index of single sentences in the folder of the index.
_SINGLES = "lone"
_SENTENCES_PER_BLOCK = 10_000

_TRAIN, _DEV, _TEST = range(len(SPLITS))
_TFIDF, _DOCUMENT, _RANDOM = range(len(PAIR_KINDS))

# One of a hundred pairs is a dev pair, and one a test pair: the pairs of these numbers.
_PAIRS_PER_SPLIT = 100
_DEV_NUMBER, _TEST_NUMBER = 49, 99
# Sentences of the dev and of the test split, if that is at most a tenth of all.
_MIN_SPLIT_SENTENCES = 10

# Largest distance of two sentences of one document.
_MAX_DISTANCE = 10
# The best chunks that a partner is taken from, and as many single-sentence documents as there are
# sentences in those chunks.
_NEAR_CHUNKS = 20
_NEAR_SINGLES = 200
# The sentences among these that are most similar to the first, of which one is drawn.
_MOST_SIMILAR = 10
# Dev and test sentences are rare, so they are searched for this many times as far.
_RARE_FACTOR = 10

HARVEST_MANIFEST = "harvest.json"
HARVEST_FORMAT = 3
"""Changes when the same settings and models draw other pairs, or score them differently."""

_COLUMNS = ["sentence1", "sentence2", "score", "id1", "id2"]
# Key in the metadata of a shard.
_RANDOM_CONTEXTS = b"sentences_without_contexts"
# The last bytes of a whole Parquet file.
_PARQUET_END = b"PAR1"


def build_single_index(corpus: Corpus, index: Path, *, min_df: int) -> TfidfIndex | None:
    """Build or open the index of the single-sentence documents; None if fewer than two."""
    rows = np.flatnonzero(~corpus.has_context)
    if len(rows) < 2:
        return None
    starts = range(0, len(rows), _SENTENCES_PER_BLOCK)
    blocks = (corpus.sentences(rows[start : start + _SENTENCES_PER_BLOCK]) for start in starts)
    return TfidfIndex.build(
        chain.from_iterable(blocks),
        index / _SINGLES,
        revision=corpus.revision,
        min_df=min_df,
        may_be_empty=True,
    )


def open_single_index(corpus: Corpus, index: Path) -> TfidfIndex | None:
    """Open the index of the single-sentence documents; None if there are fewer than two."""
    return TfidfIndex(index / _SINGLES) if (~corpus.has_context).sum() > 1 else None


def splits_of(corpus: Corpus) -> NDArray[np.int8]:
    """Find the split of every sentence, as its place in `SPLITS`, ``(n,)``: 98 %, 1 % and 1 %.

    The text decides, so a repeated sentence is in one split. Below 1,000 sentences dev and test
    have ten each, but at most a tenth, or no pairs would be left to judge a model on.
    """
    count = max(round(len(corpus) / _PAIRS_PER_SPLIT), min(_MIN_SPLIT_SENTENCES, len(corpus) // 10))
    if count < 2:
        raise InputError(
            "A harvest needs 20 sentences or more, so that dev and test have two each; this corpus "
            f"has {len(corpus)}."
        )
    sentences = chain.from_iterable(corpus.blocks(_SENTENCES_PER_BLOCK))
    hashes = np.fromiter(map(_sentence_hash, sentences), np.uint64, len(corpus))
    lowest = np.partition(hashes, [count - 1, 2 * count - 1])
    splits = np.full(len(corpus), _TRAIN, np.int8)
    splits[hashes <= lowest[2 * count - 1]] = _TEST
    splits[hashes <= lowest[count - 1]] = _DEV
    return splits


def _sentence_hash(sentence: str) -> int:
    """Hash the words of a sentence; ignores case and white space."""
    text = " ".join(sentence.casefold().split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


class DrawnPairs(NamedTuple):
    """n pairs of sentences, as rows of the corpus, both of the same split.

    ``kinds`` are places in `PAIR_KINDS`, ``splits`` in `SPLITS`. A pair is random instead if its
    kind had no partner of its split.
    """

    first: IntArray
    second: IntArray
    kinds: NDArray[np.int8]
    splits: NDArray[np.int8]


class PairDrawer:
    """Sampler of pairs by their numbers: the same ones in every process."""

    def __init__(
        self,
        corpus: Corpus,
        index: TfidfIndex,
        single_index: TfidfIndex | None = None,
        *,
        mix: PairMix | None = None,
        seed: int = 0,
    ) -> None:
        self._corpus, self._index, self._single_index = corpus, index, single_index
        self._mix, self._seed = mix or PairMix(), seed
        self._singles = np.flatnonzero(~corpus.has_context & (single_index is not None))
        self._splits = splits_of(corpus)
        self._ids = [np.flatnonzero(self._splits == split) for split in range(len(SPLITS))]

    def draw(self, start: int, count: int) -> DrawnPairs:
        """Draw the pairs with the numbers from ``start``; of pairs drawn twice the first stays.

        The numbers decide the splits, chance decides the kinds and the first sentences. The second
        sentence is one of the candidates that the kind has for the first.
        """
        random = np.random.default_rng([self._seed, start])
        numbers = np.arange(start, start + count) % _PAIRS_PER_SPLIT
        splits = np.full(count, _TRAIN, np.int8)
        splits[numbers == _DEV_NUMBER] = _DEV
        splits[numbers == _TEST_NUMBER] = _TEST
        kinds = random.choice(len(PAIR_KINDS), size=count, p=self._mix.values).astype(np.int8)
        first = np.array([random.choice(self._ids[split]) for split in splits], np.int64)
        second = np.full(count, -1, np.int64)
        is_single = np.isin(first, self._singles)
        for is_rare in (False, True):
            factor = _RARE_FACTOR if is_rare else 1
            in_split = (splits != _TRAIN) == is_rare
            for chosen, candidates in (
                (in_split & (kinds == _TFIDF) & ~is_single, self._similar_in_chunks),
                (in_split & (kinds == _TFIDF) & is_single, self._similar_singles),
                (in_split & (kinds == _DOCUMENT), self._near),
            ):
                rows = np.flatnonzero(chosen)
                for row, ids in zip(rows, candidates(first[rows], factor), strict=True):
                    second[row] = random.choice(ids) if len(ids) else -1
        kinds[second < 0] = _RANDOM
        for row in np.flatnonzero(second < 0):
            # Of two sentences, at least one is not the first of the pair.
            two = random.choice(self._ids[splits[row]], size=2, replace=False)
            second[row] = random.choice(two[two != first[row]])
        ordered = np.sort(np.stack([first, second]), axis=0)
        _, distinct = np.unique(ordered, axis=1, return_index=True)
        distinct.sort()
        return DrawnPairs(first[distinct], second[distinct], kinds[distinct], splits[distinct])

    def _similar_in_chunks(self, ids: IntArray, factor: int) -> Iterator[IntArray]:
        texts = self._corpus.sentences(ids)
        results = self._index.search(texts, top_n=_NEAR_CHUNKS * factor)
        rows = (self._corpus.chunk_rows(chunks) for chunks, _ in results)
        return self._most_similar(ids, texts, rows, self._index)

    def _similar_singles(self, ids: IntArray, factor: int) -> Iterator[IntArray]:
        if self._single_index is None:
            return iter(())
        texts = self._corpus.sentences(ids)
        results = self._single_index.search(texts, top_n=_NEAR_SINGLES * factor)
        rows = (self._singles[chunks] for chunks, _ in results)
        return self._most_similar(ids, texts, rows, self._single_index)

    def _most_similar(
        self, ids: IntArray, texts: list[str], rows: Iterable[IntArray], index: TfidfIndex
    ) -> Iterator[IntArray]:
        """Choose the ten rows most similar to each sentence, with a word in common."""
        for first, text, candidates in zip(ids, texts, rows, strict=True):
            partners = self._partners(first, candidates)
            likeness = index.likeness(text, self._corpus.sentences(partners))
            best = np.argsort(-likeness, kind="stable")[:_MOST_SIMILAR]
            yield partners[best[likeness[best] > 0]]

    def _near(self, ids: IntArray, factor: int) -> Iterator[IntArray]:
        """Find the sentences around each in its document."""
        reach = _MAX_DISTANCE * factor
        around = self._corpus.neighbors(ids, left=reach, right=reach)
        for first, near in zip(ids, around, strict=True):
            yield self._partners(first, near[near >= 0])

    def _partners(self, first: np.int64, ids: IntArray) -> IntArray:
        """Leave out the first sentence and sentences of other splits."""
        partners: IntArray = ids[(self._splits[ids] == self._splits[first]) & (ids != first)]
        return partners


class _Manifest(Settings):
    format: Literal[3]
    settings: HarvestSettings
    identity: dict[str, Any]


@dataclass(frozen=True)
class Harvest:
    """A finished or unfinished harvest on disk; ``identity`` is all that decides a score."""

    folder: Path
    settings: HarvestSettings
    identity: Mapping[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Harvest:
        """Open a harvest."""
        path = folder / HARVEST_MANIFEST
        manifest = validated_json(_Manifest, path.read_bytes(), subject="harvest", source=str(path))
        return cls(folder, manifest.settings, manifest.identity)

    @property
    def revision(self) -> str:
        """A hash of all that decides the pairs and their scores."""
        return sha256_of(self.folder / HARVEST_MANIFEST)[:12]

    def summary(self) -> str:
        """Describe the harvest in one line."""
        finished = sorted({*range(self.settings.shards)} - {*self.missing()})
        pairs = random = 0
        for number in finished:
            metadata = pq.read_metadata(self.shard(number))
            pairs += metadata.num_rows
            random += int((metadata.metadata or {}).get(_RANDOM_CONTEXTS, b"0"))
        text = (
            f"harvest: {pairs:,} pairs in {self.folder}, {len(finished)} of "
            f"{self.settings.shards} shards"
        )
        return f"{text}; {random} sentences had no context but random ones" if random else text

    def changes(self, settings: HarvestSettings, identity: Mapping[str, Any]) -> list[str]:
        """Name the sections that differ between this harvest and another one."""
        return changed_keys(identity, self.identity) + ["harvest"] * (self.settings != settings)

    def shard(self, number: int) -> Path:
        """Name the file of a shard."""
        return self.folder / f"pairs-{number:05d}.parquet"

    def missing(self) -> list[int]:
        """List the shards still to be written."""
        return [number for number in range(self.settings.shards) if not self.has(number)]

    def has(self, number: int) -> bool:
        """Check that a shard exists and is not cut off, as by a power failure."""
        try:
            with self.shard(number).open("rb") as stream:
                stream.seek(-len(_PARQUET_END), 2)
                return stream.read() == _PARQUET_END
        except OSError:
            return False

    def tables(self, split: str) -> Iterator[pa.Table]:
        """Read the pairs of a split, a shard at a time."""
        for path in filter(Path.exists, map(self.shard, range(self.settings.shards))):
            causes = (OSError, ValueError, KeyError, pa.ArrowException)
            advice = "Delete it and run the same command again to write this shard alone."
            with one_line(f"{path} is damaged", *causes, advice=advice):
                table = pq.read_table(path, columns=_COLUMNS, filters=[("split", "==", split)])
            if len(table):
                yield table


class ShardWriter:
    """Draw and score pairs of one run, and write shards."""

    def __init__(self, target: Harvest, opener: Callable[[], ContextsRun]) -> None:
        self._target, self._origin = target, opener()
        self._drawer = PairDrawer(
            self._origin.corpus,
            self._origin.index,
            self._origin.single_index,
            mix=target.settings.mix,
            seed=target.settings.seed,
        )

    def work(self, number: int) -> int:
        """Write a shard and return its number."""
        settings, corpus, scorer = self._target.settings, self._origin.corpus, self._origin.scorer
        pairs = self._drawer.draw(number * settings.shard_pairs, settings.pairs_of(number))
        first, second = corpus.sentences(pairs.first), corpus.sentences(pairs.second)
        before = scorer.without_contexts
        columns = {
            "sentence1": first,
            "sentence2": second,
            "score": scorer.cosines(first, second),
            "id1": pairs.first,
            "id2": pairs.second,
            "kind": [PAIR_KINDS[kind] for kind in pairs.kinds],
            "split": [SPLITS[split] for split in pairs.splits],
        }
        metadata = {_RANDOM_CONTEXTS: str(scorer.without_contexts - before)}
        with replacing(self._target.shard(number)) as partial:
            pq.write_table(pa.table(columns, metadata=metadata), partial, compression="zstd")
        return number


def harvest_pairs(
    folder: Path,
    settings: HarvestSettings,
    opener: Callable[[], ContextsRun],
    *,
    identity: Mapping[str, Any],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Harvest:
    """Draw pairs of the corpus and score them, or continue a harvest that was stopped."""
    plain = json.loads(json.dumps(identity))
    target = Harvest(folder, settings, plain)
    if (folder / HARVEST_MANIFEST).exists():
        changed = Harvest.open(folder).changes(settings, plain)
        check_unchanged(folder, changed, subject="a harvest")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        content = {"format": HARVEST_FORMAT, "settings": settings.model_dump(), "identity": plain}
        write_json(content, folder / HARVEST_MANIFEST)
    missing = target.missing()
    done = settings.pairs - sum(map(settings.pairs_of, missing))
    if missing:
        progress(done, settings.pairs)
        for number in map(ShardWriter(target, opener).work, missing):
            done += settings.pairs_of(number)
            progress(done, settings.pairs)
    return target
