"""The harvest on a Ray cluster: the same shards, written by workers on several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from condsim.contexts.harvest.harvesting import Origin, drawer_of, write_shard
from condsim.contexts.harvest.stored import Harvest
from condsim.ray_workers import RayWorkers

_FAILED = (
    "A worker of the harvest failed: {} Shards that are written stay; run the same command again "
    "for the rest."
)


class RayEngine(RayWorkers):
    """Writes shards on a Ray cluster; the folder must be one that all machines share."""

    def __call__(
        self, made: Harvest, opener: Callable[[], Origin], numbers: list[int]
    ) -> Iterator[int]:
        """Writes the shards of some numbers; if a worker dies, another writes its shard.

        Args:
            opener: Opens corpus, index and scorer in a worker.
            numbers: Numbers of the shards.

        Yields:
            Each number when its shard is written, in any order.
        """
        made = replace(made, folder=made.folder.resolve())  # workers have directories of their own
        yield from self.map(_Worker, (made, opener), numbers, most=len(numbers), what=_FAILED)


class _Worker:
    """Holds the models and writes shards."""

    def __init__(self, made: Harvest, opener: Callable[[], Origin]) -> None:
        self._made = made
        self._origin = opener()
        self._drawer = drawer_of(self._origin, made.settings)

    def work(self, number: int) -> int:
        """Writes a shard, unless it is there already: a call may come twice after a failure."""
        if number in self._made.missing([number]):
            write_shard(self._made, self._origin, self._drawer, number)
        return number
