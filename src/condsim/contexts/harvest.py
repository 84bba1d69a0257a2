"""Harvest of scored pairs: a manifest, and Parquet shards that are whole or missing (SSBC §3.4).

A shard depends on the settings and its own number alone, so a harvest that was killed writes the
missing shards, on one machine or several, and ends with the same pairs as an uninterrupted one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from condsim.config import Settings, validated_json
from condsim.contexts.pairs import SPLITS, PairDrawer
from condsim.contexts.recipe import PAIR_KINDS, HarvestSettings
from condsim.errors import InputError
from condsim.io import replacing, sha256_of, write_text

if TYPE_CHECKING:
    from condsim.contexts.run import ContextsRun
    from condsim.integrations.ray import RayWorkers

HARVEST_MANIFEST = "harvest.json"
HARVEST_FORMAT = 3
"""Changes when the same settings and models draw other pairs, or score them differently."""

_COLUMNS = ["sentence1", "sentence2", "score", "id1", "id2"]
# Key in the metadata of a shard.
_RANDOM_CONTEXTS = b"sentences_without_contexts"
# The last bytes of a whole Parquet file.
_PARQUET_END = b"PAR1"


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
        manifest = validated_json(_Manifest, path.read_bytes(), what="harvest", source=str(path))
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
        changed = [name for name, value in identity.items() if self.identity.get(name) != value]
        return changed + ["harvest"] * (self.settings != settings)

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
            try:
                table = pq.read_table(path, columns=_COLUMNS, filters=[("split", "==", split)])
            except (OSError, ValueError, KeyError, pa.ArrowException) as error:
                raise InputError(
                    f"{path} is damaged ({' '.join(str(error).split())}). Delete it and run the "
                    "same command again to write this shard alone."
                ) from error
            if len(table):
                yield table


Engine = Callable[[Harvest, Callable[[], "ContextsRun"], list[int]], Iterable[int]]
"""Writes the shards of those numbers and yields each number when its shard is finished."""


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
        """Write a shard, unless it exists already: a call may come twice after a failure."""
        if self._target.has(number):
            return number
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


def write_in_process(
    target: Harvest, opener: Callable[[], ContextsRun], numbers: list[int]
) -> Iterator[int]:
    """Write shards in this process; the default engine."""
    return map(ShardWriter(target, opener).work, numbers)


def ray_engine(workers: RayWorkers) -> Engine:
    """Make an engine of the workers of a Ray cluster; all machines must share the folder.

    Shards come in any order; a worker that dies is replaced.
    """

    def write(
        target: Harvest, opener: Callable[[], ContextsRun], numbers: list[int]
    ) -> Iterator[int]:
        yield from workers.map(
            ShardWriter,
            # Each worker has its own working directory.
            (replace(target, folder=target.folder.resolve()), opener),
            numbers,
            max_workers=len(numbers),
            failure="A worker of the harvest failed: {} Finished shards are saved; run the same "
            "command again for the rest.",
        )

    return write


def harvest_pairs(
    folder: Path,
    settings: HarvestSettings,
    opener: Callable[[], ContextsRun],
    *,
    identity: Mapping[str, Any],
    engine: Engine = write_in_process,
    progress: Callable[[int, int], None] | None = None,
) -> Harvest:
    """Draw pairs of the corpus and score them, or continue a harvest that was stopped."""
    plain = json.loads(json.dumps(identity))
    target = Harvest(folder, settings, plain)
    if (folder / HARVEST_MANIFEST).exists():
        if changed := Harvest.open(folder).changes(settings, plain):
            raise InputError(
                f"{folder} holds a harvest of something else: {', '.join(map(repr, changed))} "
                f"changed. Give another folder, or remove {folder}."
            )
    else:
        folder.mkdir(parents=True, exist_ok=True)
        content = {"format": HARVEST_FORMAT, "settings": settings.model_dump(), "identity": plain}
        write_text(folder / HARVEST_MANIFEST, json.dumps(content, indent=2) + "\n")
    missing = target.missing()
    done = settings.pairs - sum(map(settings.pairs_of, missing))
    if missing:
        report = progress or (lambda done, total: None)
        report(done, settings.pairs)
        for number in engine(target, opener, missing):
            done += settings.pairs_of(number)
            report(done, settings.pairs)
    return target
