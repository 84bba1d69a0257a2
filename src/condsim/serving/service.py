"""The model behind a batcher, and the limits, that all routes share."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar, get_args

import numpy as np
from fastapi import Depends, Header, Request
from numpy.typing import NDArray

from condsim.errors import InputError, unknown_name
from condsim.model.base import PairScorer, Scale, check_rows
from condsim.model.criterion import Criterion, is_criterion_file
from condsim.model.embedding import EmbeddingScorer
from condsim.model.legibility import collect_unread, suspects
from condsim.serving.batching import Batcher, QueuedEmbeddings, QueuedScores, Work
from condsim.serving.errors import RequestError
from condsim.serving.middleware import ServerMetrics, ServingSettings
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.model.judge import Judge
    from condsim.search.index import Index

P = ParamSpec("P")
R = TypeVar("R")

# Different shares of the whole whose requests can share a batch.
_CACHED_SHARES = 64


class Service:
    """A model that many callers share."""

    def __init__(
        self,
        scorer: PairScorer,
        *,
        settings: ServingSettings,
        index: Index | None,
        criteria: Iterable[str] = (),
        judge: Judge | None = None,
    ) -> None:
        self.scorer, self.settings, self.name = scorer, settings, scorer.name
        self.metrics = ServerMetrics()
        self.batcher = Batcher(settings, metrics=self.metrics)
        # One function for each scale: requests with the same one share a batch.
        self._score_on: dict[str, Any] = {
            scale: partial(scorer.score, scale=scale) for scale in get_args(Scale)
        }
        self._score_shared = lru_cache(_CACHED_SHARES)(partial(partial, scorer.score))
        self.index = index and index.using(self.queued_embedder)
        self.criteria = tuple(criteria)
        self._judge = judge
        # The same work each time, so that requests are joined; callers choose the share in it.
        self._under = lru_cache(_CACHED_SHARES)(self._work_under)
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def judge(self) -> Judge:
        """The judge; the one that comes with condsim is loaded when it is first asked."""
        # Slow to import.
        from condsim.model.judge import load_judge

        return self._judge or load_judge()

    @property
    def embedder(self) -> EmbeddingScorer:
        """The model, if it gives embeddings."""
        if isinstance(self.scorer, EmbeddingScorer):
            return self.scorer
        raise InputError(f"{self.name} gives scores only; this needs a bi- or tri-encoder.")

    @property
    def queued_embedder(self) -> EmbeddingScorer:
        """The model for other threads than the event loop's, in the same batches."""
        return QueuedEmbeddings(self.embedder, self.batcher)

    @property
    def queued_scorer(self) -> PairScorer:
        """The same for any model."""
        if isinstance(self.scorer, EmbeddingScorer):
            return self.queued_embedder
        return QueuedScores(self.name, self._score_on, self.batcher)

    def check_model(self, name: str | None) -> None:
        """Reject the name of another model."""
        if name not in (None, self.name, "default"):
            error = unknown_name("model", name[:100], [self.name, "default"])
            raise RequestError(404, f"{error} This server has {self.name!r}.")

    def check_size(self, rows: int, unit: str, *columns: Iterable[str]) -> None:
        """Reject too many rows or too long a text."""
        longest = max((len(text) for column in columns for text in column), default=0)
        for subject, parts, number, limit, option in (
            ("A request", unit, rows, self.settings.max_rows, "--max-rows"),
            ("A text", "characters", longest, self.settings.max_characters, "--max-characters"),
        ):
            if number > limit:
                raise RequestError(
                    413, f"{subject} may have {limit} {parts} ({option}); got {number}."
                )

    def condition(self, given: R | None, header: str | None) -> R | str | None:
        """Return the condition of a request: its field, or else its header."""
        condition = header if given is None else given
        self._check_criteria([condition] if isinstance(condition, str) else condition)
        return condition

    def conditions(self, given: list[str] | None, header: str | None) -> list[str] | None:
        """Return the conditions of a request that may have several."""
        conditions = [header] if given is None and header is not None else given
        self._check_criteria(conditions)
        return conditions

    def _check_criteria(self, conditions: Any) -> None:  # noqa: ANN401  (a field of any request)
        """Reject the name of a file: callers choose among the criteria of the server."""
        for name in conditions or ():
            if is_criterion_file(name) and self._criterion(name) is None:
                raise RequestError(
                    404, f"This server has no criterion {name[:100]!r}; see --criterion NAME=FILE."
                )

    def _criterion(self, condition: str) -> Criterion | None:
        if isinstance(self.scorer, EmbeddingScorer):
            return self.scorer.criteria.get(condition)
        return None

    def own_share(self, condition: str | None) -> bool:
        """Tell if no share of the whole can be added: there is no condition, or a learned one."""
        return condition is None or self._criterion(condition) is not None

    async def _submit(
        self, work: Work, *columns: Sequence[str], conditions: Sequence[str] | None
    ) -> NDArray[Any]:
        """Submit n rows, each under its condition: here its text becomes what the model takes."""
        if conditions is None:
            return await self.batcher.submit(work, *columns)
        learned = {name for name in set(conditions) if self._criterion(name) is not None}
        if not learned:
            return await self.batcher.submit(work, *columns, conditions)
        names = np.array(conditions)
        results: NDArray[Any] | None = None
        for name in dict.fromkeys(conditions):
            rows = np.flatnonzero(names == name).tolist()
            part = [[column[row] for row in rows] for column in columns]
            if name in learned:
                values = await self.batcher.submit(self._under(work, name), *part)
            else:
                values = await self.batcher.submit(work, *part, [name] * len(rows))
            if results is None:
                results = np.empty((len(conditions), *values.shape[1:]), values.dtype)
            if results.shape[1:] != values.shape[1:]:
                raise RequestError(422, "Embeddings under a criterion and others have two lengths.")
            results[rows] = values
        return np.empty(0, np.float32) if results is None else results

    def _work_under(self, work: Work, name: str) -> Work:
        return partial(work, condition=self._criterion(name))

    async def score(
        self,
        first: Sequence[str],
        second: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: Scale,
        overall: float = 0.0,
    ) -> FloatArray:
        """Score n checked pairs, each under its condition if there are any."""
        work = self._score_on[scale]
        if overall:
            work = self._score_shared(scale=scale, overall=overall)
        return await self._submit(work, first, second, conditions=conditions)

    def marks(self, rows: int, wanted: bool | None) -> bool:
        """Decide whether to mark scores; an InputError if that is wanted of a model without a head.

        By default, only requests that fit into a batch: it takes about three times the work.
        """
        if wanted is None:
            has_head = isinstance(self.scorer, EmbeddingScorer) and self.scorer.head is not None
            return has_head and rows <= self.settings.batch_rows
        if wanted and self.embedder.head is None:
            raise InputError(
                f"{self.name} has no applicability head; serve a model that has one, such as the "
                "default."
            )
        return wanted

    async def mentions(
        self, first: Sequence[str], second: Sequence[str], conditions: Sequence[str]
    ) -> tuple[FloatArray, FloatArray]:
        """Compute how likely each of n checked texts mentions its condition, twice ``(n,)``."""
        values = await self._submit(
            self.embedder.mentions, [*first, *second], conditions=[*conditions, *conditions]
        )
        return values[: len(first)], values[len(first) :]

    async def embed(self, condition: Sequence[str] | None, **texts: list[str]) -> FloatArray:
        """Embed texts under one condition or each under its own; their name is that in messages."""
        ((key, column),) = texts.items()
        conditions = [condition] if isinstance(condition, str) else condition
        self.check_size(len(column), key, column, conditions or ())
        if not isinstance(condition, str | None) and len(condition) != len(column):
            raise RequestError(
                422,
                f"Request key 'condition' must be one string, or a list with one for each of the "
                f"{len(column)} {key}; got a list of {len(condition)}.",
            )
        rows = check_rows(condition, **texts)
        return await self._submit(self.embedder.encode, column, conditions=rows.conditions)

    async def unread_pairs(self, pairs: Sequence[Sequence[str]]) -> list[int]:
        """List the pairs with texts that the model cannot read, or that differ only there."""
        texts = suspects(text for pair in pairs for text in pair)
        if not texts:
            return []
        words = await asyncio.to_thread(self.scorer.unread_parts, texts)
        unread = []
        for index, (first, second) in enumerate(pairs):
            words1, words2 = words.get(first), words.get(second)
            differ = None not in (words1, words2) and words1 != words2
            if differ or words1 == first or words2 == second:
                unread.append(index)
        return unread

    async def unread_texts(self, texts: Sequence[str]) -> list[int]:
        """List the texts that the model cannot read."""
        suspected = suspects(texts)
        if not suspected:
            return []
        words = await asyncio.to_thread(self.scorer.unread_parts, suspected)
        return [index for index, text in enumerate(texts) if words.get(text) == text]

    async def in_thread(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do work on another thread than the model's, for one request at a time."""
        lock, limit = self._locks[work.__name__], self.settings.time_limit
        try:
            await asyncio.wait_for(lock.acquire(), limit)
        except TimeoutError:
            raise RequestError(
                503, f"Other requests took {limit:g} s (--time-limit).", retry_after=1
            ) from None
        try:
            # The log shows no text of a caller.
            with collect_unread(log=False):
                return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            lock.release()


async def _service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _header_condition(
    value: Annotated[
        str | None,
        Header(
            alias="X-Condsim-Condition",
            description="The condition, for clients that cannot add one to the request.",
        ),
    ] = None,
) -> str | None:
    # Servers read headers as Latin-1, and many clients send UTF-8.
    try:
        return value and value.encode("latin-1").decode()
    except UnicodeError:
        return value


SharedService = Annotated[Service, Depends(_service_of)]
HeaderCondition = Annotated[str | None, Depends(_header_condition)]
