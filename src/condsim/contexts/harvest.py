"""Harvest of scored pairs: a manifest, and Parquet shards that are whole or missing (SSBC §3.4).

A shard depends on the settings and its own number alone, so a harvest that was killed writes the
missing shards, on one machine or several, and ends with the same pairs as an uninterrupted one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from condsim.cache import sole_process
from condsim.contexts.corpus import Corpus
from condsim.contexts.index import TfidfIndex
from condsim.contexts.origin import OriginScorer
from condsim.contexts.pairs import SPLITS, PairDrawer
from condsim.contexts.recipe import PAIR_KINDS, HarvestSettings
from condsim.errors import InputError
from condsim.io import replacing, sha256_of, write_text

if TYPE_CHECKING:
    from condsim.integrations.ray import RayWorkers

HARVEST_MANIFEST = "harvest.json"
HARVEST_FORMAT = 3
"""Changes when the same settings and models draw other pairs, or score them differently."""

_COLUMNS = ["sentence1", "sentence2", "score", "id1", "id2"]
# Key in the metadata of a shard.
_RANDOM_CONTEXTS = b"sentences_without_contexts"
# The last bytes of a whole Parquet file.
_PARQUET_END = b"PAR1"


@dataclass(frozen=True)
class Harvest:
    """A finished or unfinished harvest on disk.

    Attributes:
        folder: Its folder.
        settings: Number and mix of its pairs.
        identity: All that decides a score.
    """

    folder: Path
    settings: HarvestSettings
    identity: Mapping[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Harvest:
        """Open a harvest."""
        try:
            content = json.loads((folder / HARVEST_MANIFEST).read_text(encoding="utf-8"))
            if content["format"] == HARVEST_FORMAT:
                settings = HarvestSettings.model_validate(content["settings"])
                return cls(folder, settings, content["identity"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{folder} is not a harvest: cannot read its {HARVEST_MANIFEST} "
                f"({_one_line(error)}). Give the folder that 'condsim contexts run' wrote."
            ) from error
        raise InputError(f"{folder} was made by another version of condsim. Harvest again.")

    @property
    def revision(self) -> str:
        """A hash of all that decides the pairs and their scores."""
        return sha256_of(self.folder / HARVEST_MANIFEST)[:12]

    def summary(self) -> str:
        """Describe the harvest in one line."""
        missing = set(self.missing())
        finished = [number for number in range(self.settings.shards) if number not in missing]
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
        for number in range(self.settings.shards):
            path = self.shard(number)
            if not path.exists():
                continue
            try:
                table = pq.read_table(path, columns=_COLUMNS, filters=[("split", "==", split)])
            except (OSError, ValueError, KeyError, pa.ArrowException) as error:
                raise InputError(
                    f"{path} is damaged ({_one_line(error)}). Delete it and run the same command "
                    "again to write this shard alone."
                ) from error
            if len(table):
                yield table


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


class PairOrigin(Protocol):
    """The parts that a worker needs of a `ContextsRun`, opened where it runs."""

    @property
    def corpus(self) -> Corpus: ...  # noqa: D102
    @property
    def index(self) -> TfidfIndex: ...  # noqa: D102
    @property
    def single_index(self) -> TfidfIndex | None: ...  # noqa: D102
    @property
    def scorer(self) -> OriginScorer: ...  # noqa: D102


Engine = Callable[[Harvest, Callable[[], PairOrigin], list[int]], Iterable[int]]
"""Writes the shards of those numbers and yields each number when its shard is finished."""


class ShardWriter:
    """Draws and scores pairs, and writes shards."""

    def __init__(self, target: Harvest, opener: Callable[[], PairOrigin]) -> None:
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
        if not self._target.has(number):
            self._write(number)
        return number

    def _write(self, number: int) -> None:
        settings, corpus = self._target.settings, self._origin.corpus
        scorer = self._origin.scorer
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
        try:
            with replacing(self._target.shard(number)) as partial:
                pq.write_table(pa.table(columns, metadata=metadata), partial, compression="zstd")
        # A full disk, or no right to write.
        except InputError as error:
            raise InputError(
                f"{error} The shards before it are whole; free some space and run the same command "
                "again."
            ) from error


def write_in_process(
    target: Harvest, opener: Callable[[], PairOrigin], numbers: list[int]
) -> Iterator[int]:
    """Write shards in this process; the default engine."""
    return map(ShardWriter(target, opener).work, numbers)


def ray_engine(workers: RayWorkers) -> Engine:
    """Make an engine of the workers of a Ray cluster; all machines must share the folder.

    Shards come in any order; a worker that dies is replaced.
    """
    failure = (
        "A worker of the harvest failed: {} Finished shards are saved; run the same command again "
        "for the rest."
    )

    def write(
        target: Harvest, opener: Callable[[], PairOrigin], numbers: list[int]
    ) -> Iterator[int]:
        # Workers have working directories of their own.
        target = replace(target, folder=target.folder.resolve())
        arguments = (target, opener)
        yield from workers.map(
            ShardWriter, arguments, numbers, max_workers=len(numbers), failure=failure
        )

    return write


def harvest_pairs(
    folder: Path,
    settings: HarvestSettings,
    opener: Callable[[], PairOrigin],
    *,
    identity: Mapping[str, Any],
    engine: Engine = write_in_process,
    progress: Callable[[int, int], None] | None = None,
) -> Harvest:
    """Draw pairs of the corpus and score them, or continue a harvest that was stopped."""
    with sole_process(folder):
        target = _begin(folder, settings, identity)
        missing = target.missing()
        done = settings.pairs - sum(map(settings.pairs_of, missing))
        if progress is not None:
            progress(done, settings.pairs)
        if missing:
            for number in engine(target, opener, missing):
                done += settings.pairs_of(number)
                if progress is not None:
                    progress(done, settings.pairs)
    return target


def _begin(folder: Path, settings: HarvestSettings, identity: Mapping[str, Any]) -> Harvest:
    """Open the harvest of a folder if it is the same one, or write its manifest."""
    plain = json.loads(json.dumps(identity))
    if (folder / HARVEST_MANIFEST).exists():
        if changed := Harvest.open(folder).changes(settings, plain):
            raise InputError(
                f"{folder} holds a harvest of something else: {', '.join(map(repr, changed))} "
                f"changed. Give another folder, or remove {folder}."
            )
        # Left by a process that was killed.
        for partial in folder.glob("*.partial"):
            partial.unlink()
    else:
        content = {"format": HARVEST_FORMAT, "settings": settings.model_dump(), "identity": plain}
        write_text(folder / HARVEST_MANIFEST, json.dumps(content, indent=2) + "\n")
    return Harvest(folder, settings, plain)
