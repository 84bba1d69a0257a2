"""The model behind a batcher, and the limits, that all routes share."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from fastapi import Request

from condsim.errors import InputError, unknown_name
from condsim.model.base import PairScorer, Scale, check_rows
from condsim.model.embedding import EmbeddingScorer
from condsim.serving.batching import Batcher, QueuedEmbeddings, QueuedScores
from condsim.serving.errors import RequestError
from condsim.serving.middleware import ServerMetrics
from condsim.serving.settings import ServingSettings
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.search.index import Index


class Service:
    """A model that many callers share.

    Attributes:
        batched_scorer: The model for other threads than the event loop's, in the same batches.
    """

    def __init__(
        self, scorer: PairScorer, *, settings: ServingSettings, index: Index | None
    ) -> None:
        self.scorer, self.settings, self.name = scorer, settings, scorer.name
        self.metrics = ServerMetrics()
        self.batcher = Batcher(settings, metrics=self.metrics)
        # One function for each scale: requests with the same one share a batch.
        self._score_on: dict[str, Any] = {
            scale: partial(scorer.score, scale=scale) for scale in get_args(Scale)
        }
        self.batched_scorer: PairScorer = (
            QueuedEmbeddings(scorer, self.batcher)
            if isinstance(scorer, EmbeddingScorer)
            else QueuedScores(scorer.name, self._score_on, self.batcher)
        )
        self.index = None
        if index is not None:
            self.index = index.using(QueuedEmbeddings(self.embedder, self.batcher))
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def embedder(self) -> EmbeddingScorer:
        """The model, if it gives embeddings."""
        if isinstance(self.scorer, EmbeddingScorer):
            return self.scorer
        raise InputError(f"{self.name} gives scores only; this needs a bi- or tri-encoder.")

    def check_model(self, name: str | None) -> None:
        """Reject the name of another model."""
        if name not in (None, self.name, "default"):
            error = unknown_name("model", name[:100], [self.name, "default"])
            raise RequestError(404, f"{error} This server has {self.name!r}.")

    def check_size(self, rows: int, unit: str, *columns: Iterable[str]) -> None:
        """Reject too many rows or too long a text."""
        max_rows, max_characters = self.settings.max_rows, self.settings.max_characters
        if rows > max_rows:
            raise RequestError(
                413, f"A request may have {max_rows} {unit} (--max-rows); got {rows}."
            )
        for column in columns:
            for text in column:
                if len(text) > max_characters:
                    raise RequestError(
                        413,
                        f"A text may have {max_characters} characters (--max-characters); got "
                        f"{len(text)}.",
                    )

    async def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: Scale,
    ) -> FloatArray:
        """Score n pairs, each under its condition; returns (n,)."""
        check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        columns = (sentences1, sentences2, *([] if conditions is None else [conditions]))
        return await self.batcher.submit(self._score_on[scale], *columns)

    @asynccontextmanager
    async def exclusive(self, kind: str) -> AsyncIterator[None]:
        """Let one request at a time do a kind of work on another thread than the model's."""
        lock, limit = self._locks[kind], self.settings.time_limit
        try:
            await asyncio.wait_for(lock.acquire(), limit)
        except TimeoutError:
            raise RequestError(
                503, f"Other requests took {limit:g} s (--time-limit).", retry_after=1
            ) from None
        try:
            yield
        finally:
            lock.release()


async def service_of(request: Request) -> Service:
    """Return the service of the app that received a request."""
    service: Service = request.app.state.service
    return service
