"""Encoding on a Ray cluster, for collections that one machine is too slow for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from condsim.integrations.ray import RayWorkers
from condsim.loading import load_encoder
from condsim.types import FloatArray, IntArray

_FAILED = "A worker failed: {} What was encoded stays; run the same command again for the rest."


class RayEncoding(RayWorkers):
    """Encodes texts on a Ray cluster; this process reads and writes the index."""

    def __init__(
        self, model: str | None = None, *, address: str | None = None, workers: int | None = None
    ) -> None:
        """Checks the numbers; connects on first use.

        Args:
            model: The model of the index, by a name or folder that all machines know.
            address: Address of the cluster; a local one is started if None.
            workers: Workers that each hold the model; as many as fit by default.

        Raises:
            MissingExtraError: If Ray is not installed.
            InputError: If the number is below 1.
        """
        super().__init__(address=address, workers=workers)
        self._model = model

    def __call__(
        self, parts: Iterable[tuple[IntArray, list[str]]], condition: str
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yields numbers and embeddings, (m, d), of parts of the rows, in any order."""
        yield from self.map(_Worker, (self._model, condition), parts, most=None, what=_FAILED)


class _Worker:
    """Holds the model."""

    def __init__(self, model: str | None, condition: str) -> None:
        self._scorer = load_encoder(model)
        self._condition = condition

    def work(self, part: tuple[IntArray, list[str]]) -> tuple[IntArray, FloatArray]:
        numbers, texts = part
        return numbers, self._scorer.encode(texts, self._condition)
