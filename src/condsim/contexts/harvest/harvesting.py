"""Scoring pairs of the corpus into shards that are never half written (SSBC §3.4)."""

# A shard depends on the settings and its own number alone, so a harvest that was killed writes the
# missing shards, on one machine or several, and ends with the same pairs as one without a break.
# The paper scores 100 M pairs and does not say how it draws them. Nearly all random pairs are
# unlike, so a surrogate would see no alike ones; hence a mix.

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from condsim.cache import sole_process
from condsim.contexts.corpus.stored import Corpus
from condsim.contexts.harvest.stored import (
    FORMAT,
    KINDS,
    LOST,
    MANIFEST,
    SPLITS,
    Harvest,
    HarvestSettings,
    PairMix,
)
from condsim.contexts.index.retrieval import TfidfIndex
from condsim.contexts.scoring.origin import OriginScorer
from condsim.contexts.scoring.selection import chunk_rows
from condsim.errors import InputError
from condsim.integrations.ray import RayWorkers
from condsim.io import replacing, write_text
from condsim.types import IntArray

_FOLDER = "lone"
_BLOCK = 10_000  # sentences read at once

_TRAIN, _DEV, _TEST = range(len(SPLITS))
_TFIDF, _DOCUMENT, _RANDOM = range(len(KINDS))

_NEAR = 10  # sentences; how far apart two of one document may be
_CHUNKS = 20  # the best chunks that a partner is taken from
_ALIKE = 10  # the sentences most like the first among these, of which one is drawn
_SINGLES = 200  # as many single-sentence documents as there are sentences in those chunks
_WIDER = 10  # as far, and as many chunks, for dev and test, of whose sentences few are at hand
_HUNDRED = 100  # of so many pairs one is a dev pair, and one a test pair
_DEV_PLACE, _TEST_PLACE = 49, 99  # among the hundred
_FEW = 10  # sentences of the dev and of the test split at least, if that is a tenth at most


def single_sentence_rows(corpus: Corpus) -> IntArray:
    """The rows of the documents of one sentence, ``(k,)``."""
    return np.flatnonzero(~corpus.has_context)


def build_single_index(corpus: Corpus, index: Path, *, min_df: int) -> TfidfIndex | None:
    """Builds or opens the index of the single-sentence documents; None if fewer than two."""
    rows = single_sentence_rows(corpus)
    if len(rows) < 2:
        return None
    blocks = (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))
    return TfidfIndex.build(
        (sentence for block in blocks for sentence in corpus.sentences(block)),
        index / _FOLDER,
        revision=corpus.revision,
        min_df=min_df,
        may_be_empty=True,
    )


def open_single_index(corpus: Corpus, index: Path) -> TfidfIndex | None:
    """Opens the index of the single-sentence documents; None if there are fewer than two."""
    return TfidfIndex(index / _FOLDER) if len(single_sentence_rows(corpus)) > 1 else None


@dataclass(frozen=True, eq=False)
class Drawn:
    """n pairs of sentences; one whose kind offered no partner of its split is random instead."""

    first: IntArray  # (n,), rows of the corpus
    second: IntArray  # (n,), of the same split
    kinds: NDArray[np.int8]  # (n,), places in `KINDS`
    splits: NDArray[np.int8]  # (n,), places in `SPLITS`


def splits_of(corpus: Corpus) -> NDArray[np.int8]:
    """The split of every sentence, as its place in `SPLITS`, ``(n,)``: 98 %, 1 % and 1 %."""
    # The text decides, so a repeated sentence is in one split. Below 1,000 sentences dev and test
    # have ten each, but at most a tenth, or no pairs would be left to judge a model on.
    count = max(round(len(corpus) / _HUNDRED), min(_FEW, len(corpus) // _FEW))
    if count < 2:
        raise InputError(
            "A harvest needs 20 sentences or more, so that dev and test have two each. This corpus "
            f"has {len(corpus)}; take a larger one."
        )
    hashes = np.zeros(len(corpus), np.uint64)
    for start in range(0, len(corpus), _BLOCK):
        ids = np.arange(start, min(start + _BLOCK, len(corpus)), dtype=np.int64)
        hashes[ids] = [_hash(sentence) for sentence in corpus.sentences(ids)]
    lowest = np.partition(hashes, [count - 1, 2 * count - 1])
    splits = np.full(len(corpus), _TRAIN, np.int8)
    splits[hashes <= lowest[2 * count - 1]] = _TEST
    splits[hashes <= lowest[count - 1]] = _DEV
    return splits


class PairDrawer:
    """Draws pairs by their numbers: the same ones in every process."""

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
        none = np.zeros(0, np.int64)
        self._singles = none if single_index is None else single_sentence_rows(corpus)
        self._mix = mix or PairMix()
        self._seed = seed
        self._splits = splits_of(corpus)
        self._ids = [np.flatnonzero(self._splits == split) for split in range(len(SPLITS))]

    def draw(self, start: int, count: int) -> Drawn:
        """Draws the pairs of some numbers; of those drawn twice the first stays."""
        random = np.random.default_rng([self._seed, start])
        numbers = np.arange(start, start + count) % _HUNDRED
        splits = np.full(count, _TRAIN, np.int8)
        splits[numbers == _DEV_PLACE] = _DEV
        splits[numbers == _TEST_PLACE] = _TEST
        kinds = random.choice(len(KINDS), size=count, p=self._mix.values).astype(np.int8)
        first = np.array([random.choice(self._ids[split]) for split in splits], np.int64)
        second = np.full(count, -1, np.int64)
        single = np.isin(first, self._singles)
        for wider in (False, True):
            factor = _WIDER if wider else 1
            same = (splits != _TRAIN) == wider
            for chosen, candidates in (
                (same & (kinds == _TFIDF) & ~single, self._alike_in_chunks),
                (same & (kinds == _TFIDF) & single, self._alike_singles),
                (same & (kinds == _DOCUMENT), self._near),
            ):
                places = np.flatnonzero(chosen)
                for place, ids in zip(places, candidates(first[places], factor), strict=True):
                    second[place] = _any_of(ids, random)
        kinds[second < 0] = _RANDOM
        for place in np.flatnonzero(second < 0):
            two = random.choice(self._ids[splits[place]], size=2, replace=False)
            second[place] = _any_of(self._partners(first[place], two), random)
        ordered = np.sort(np.stack([first, second]), axis=0)
        _, kept = np.unique(ordered, axis=1, return_index=True)
        kept.sort()
        return Drawn(first[kept], second[kept], kinds[kept], splits[kept])

    def _alike_in_chunks(self, ids: IntArray, factor: int) -> Iterator[IntArray]:
        texts = self._corpus.sentences(ids)
        found = self._index.search(texts, top_n=_CHUNKS * factor)
        rows = (chunk_rows(chunks, self._corpus) for chunks, _ in found)
        return self._most_alike(ids, texts, rows, self._index)

    def _alike_singles(self, ids: IntArray, factor: int) -> Iterator[IntArray]:
        if self._single_index is None:
            return iter(())
        texts = self._corpus.sentences(ids)
        found = self._single_index.search(texts, top_n=_SINGLES * factor)
        rows = (self._singles[chunks] for chunks, _ in found)
        return self._most_alike(ids, texts, rows, self._single_index)

    def _most_alike(
        self, ids: IntArray, texts: list[str], rows: Iterable[IntArray], index: TfidfIndex
    ) -> Iterator[IntArray]:
        """Of each sentence's rows the ten that are most like it, with a word in common."""
        for one, text, found in zip(ids, texts, rows, strict=True):
            others = self._partners(one, found)
            likeness = index.likeness(text, self._corpus.sentences(others))
            best = np.argsort(-likeness, kind="stable")[:_ALIKE]
            yield others[best[likeness[best] > 0]]

    def _near(self, ids: IntArray, factor: int) -> Iterator[IntArray]:
        reach = _NEAR * factor
        around = self._corpus.neighbours(ids, left=reach, right=reach)
        for one, near in zip(ids, around, strict=True):
            yield self._partners(one, near[near >= 0])

    def _partners(self, first: np.int64, ids: IntArray) -> IntArray:
        """The given sentences without the first one and those of other splits."""
        others: IntArray = ids[(self._splits[ids] == self._splits[first]) & (ids != first)]
        return others


def _any_of(ids: IntArray, random: np.random.Generator) -> int:
    """One of some sentences; -1 if there is none."""
    return int(random.choice(ids)) if len(ids) else -1


def _hash(sentence: str) -> int:
    """A number that the words of a sentence decide; ignores case and white space."""
    text = " ".join(sentence.casefold().split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


class _Origin(Protocol):
    """What a worker needs, opened where it runs: a `condsim.contexts.opened.OpenedRun`."""

    @property
    def corpus(self) -> Corpus: ...
    @property
    def index(self) -> TfidfIndex: ...
    @property
    def single_index(self) -> TfidfIndex | None: ...
    @property
    def scorer(self) -> OriginScorer: ...


Engine = Callable[[Harvest, Callable[[], _Origin], list[int]], Iterable[int]]
"""Writes the shards of those numbers and yields each number when its shard is there."""


class _Worker:
    """Holds what scores pairs, and writes shards."""

    def __init__(self, made: Harvest, opener: Callable[[], _Origin]) -> None:
        self._made, self._origin = made, opener()
        self._drawer = PairDrawer(
            self._origin.corpus,
            self._origin.index,
            self._origin.single_index,
            mix=made.settings.mix,
            seed=made.settings.seed,
        )

    def work(self, number: int) -> int:
        """Writes a shard, unless it is there already: a call may come twice after a failure."""
        if number in self._made.missing([number]):
            self._write(number)
        return number

    def _write(self, number: int) -> None:
        """Draws, scores and writes one shard."""
        settings, corpus, scorer = self._made.settings, self._origin.corpus, self._origin.scorer
        drawn = self._drawer.draw(number * settings.shard_pairs, settings.pairs_of(number))
        first, second = corpus.sentences(drawn.first), corpus.sentences(drawn.second)
        before = scorer.without_contexts
        columns = {
            "sentence1": first,
            "sentence2": second,
            "score": scorer.cosines(first, second),
            "id1": drawn.first,
            "id2": drawn.second,
            "kind": [KINDS[kind] for kind in drawn.kinds],
            "split": [SPLITS[split] for split in drawn.splits],
        }
        metadata = {LOST: str(scorer.without_contexts - before)}
        try:
            with replacing(self._made.shard(number)) as partial:
                pq.write_table(pa.table(columns, metadata=metadata), partial, compression="zstd")
        except InputError as error:  # a full disk, or no right to write
            raise InputError(
                f"{error} The shards before it are whole; make room and run the same command again."
            ) from error


def harvest(
    folder: Path,
    settings: HarvestSettings,
    opener: Callable[[], _Origin],
    *,
    identity: Mapping[str, Any],
    engine: Engine | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Harvest:
    """Draws pairs of the corpus and scores them; a harvest that was stopped goes on."""
    report = progress or (lambda pairs, total: None)
    with sole_process(folder):
        made = _begin(folder, settings, identity)
        missing = made.missing()
        done = settings.pairs - sum(map(settings.pairs_of, missing))
        report(done, settings.pairs)
        if missing:
            for number in (engine or _here)(made, opener, missing):
                done += settings.pairs_of(number)
                report(done, settings.pairs)
    return made


def _here(made: Harvest, opener: Callable[[], _Origin], numbers: list[int]) -> Iterator[int]:
    """The engine of one process."""
    return map(_Worker(made, opener).work, numbers)


def _begin(folder: Path, settings: HarvestSettings, identity: Mapping[str, Any]) -> Harvest:
    """Opens the harvest of that folder if it is the same one, or writes its manifest."""
    plain = json.loads(json.dumps(identity))
    wanted = Harvest(folder, settings, plain)
    if (folder / MANIFEST).exists():
        if changed := Harvest.open(folder).changes(settings, plain):
            raise InputError(
                f"{folder} holds a harvest of something else: {', '.join(map(repr, changed))} "
                f"changed. Shards of two must not be mixed: give another one, or remove {folder}."
            )
        for left in folder.glob("*.partial"):  # of a process that was killed
            left.unlink()
        return wanted
    content = {"format": FORMAT, "settings": settings.model_dump(), "identity": plain}
    write_text(folder / MANIFEST, json.dumps(content, indent=2) + "\n")
    return wanted


_FAILED = (
    "A worker of the harvest failed: {} Shards that are written stay; run the same command again "
    "for the rest."
)


class RayEngine(RayWorkers):
    """Writes shards on a Ray cluster; the folder must be one that all machines share."""

    def __call__(
        self, made: Harvest, opener: Callable[[], _Origin], numbers: list[int]
    ) -> Iterator[int]:
        """Writes shards and yields their numbers, in any order; a worker that dies is replaced."""
        made = replace(made, folder=made.folder.resolve())  # workers have directories of their own
        yield from self.map(_Worker, (made, opener), numbers, most=len(numbers), what=_FAILED)
