"""What the routes share: the model behind a batcher, its limits, keys and counters."""

from __future__ import annotations

import asyncio
import hmac
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from condsim.config import validated_json
from condsim.errors import InputError, unknown_name
from condsim.model.base import PairScorer, Scale, check_rows
from condsim.model.embedding import EmbeddingScorer
from condsim.serving.batching import Batcher, QueuedEmbeddings, QueuedScores
from condsim.serving.errors import RESPONSES, RequestError, answer_to
from condsim.serving.metrics import Metrics
from condsim.serving.schemas import ModelRequest, RequestBody
from condsim.serving.settings import ServingSettings
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.search.index import Index

In = TypeVar("In", bound=RequestBody)


class Service:
    """A model that many callers share; ``keys`` are the API keys, none if everybody may ask."""

    def __init__(
        self,
        scorer: PairScorer,
        *,
        settings: ServingSettings,
        keys: Sequence[str],
        index: Index | None,
    ) -> None:
        self.scorer, self.settings, self.name = scorer, settings, scorer.name
        self.metrics = Metrics()
        self.batcher = Batcher(settings, metrics=self.metrics)
        # One function for each scale: requests with the same one share a batch.
        self._on: dict[str, Any] = {
            scale: partial(scorer.score, scale=scale) for scale in get_args(Scale)
        }
        self.beside: PairScorer = (
            QueuedEmbeddings(scorer, self.batcher)
            if isinstance(scorer, EmbeddingScorer)
            else QueuedScores(scorer.name, self._on, self.batcher)
        )
        """The model for other threads, in the same batches."""
        self.index = None
        if index is not None:
            self.index = index.using(QueuedEmbeddings(self.embedder, self.batcher))
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._keys = [key.encode() for key in keys]

    def authorise(self, request: Request) -> None:
        """Refuses a caller without a key, in the same time for every wrong one."""
        if not self._keys:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        found = [hmac.compare_digest(given.strip().encode(), key) for key in self._keys]
        if scheme.lower() != "bearer" or not any(found):
            raise RequestError(401, "Give a key of this server: 'Authorization: Bearer KEY'.")

    def check_model(self, name: str | None) -> None:
        """Refuses the name of another model with a `RequestError`."""
        if name not in (None, self.name, "default"):
            shown = unknown_name("model", name[:100], [self.name, "default"])
            raise RequestError(404, f"{shown} This server has {self.name!r}.")

    def check_size(self, rows: int, what: str, *columns: Iterable[str]) -> None:
        """Refuses too many rows or too long a text with a `RequestError`."""
        most, longest = self.settings.max_rows, self.settings.max_characters
        if rows > most:
            raise RequestError(
                413, f"A request may have {most} {what} (--max-rows). Got {rows}; send several."
            )
        for text in (text for column in columns for text in column):
            if len(text) > longest:
                raise RequestError(
                    413,
                    f"A text may have {longest} characters (--max-characters). Got one of "
                    f"{len(text)}; split it.",
                )

    @asynccontextmanager
    async def turn(self, what: str) -> AsyncIterator[None]:
        """Lets one request at a time do a kind of work on a thread beside that of the model."""
        lock, limit = self._turns[what], self.settings.time_limit
        try:
            await asyncio.wait_for(lock.acquire(), limit)
        except TimeoutError:
            raise RequestError(
                503,
                f"Others were served for {limit:g} s (--time-limit). Ask again later.",
                retry_after=1,
            ) from None
        try:
            yield
        finally:
            lock.release()

    @property
    def embedder(self) -> EmbeddingScorer:
        """The model, if it gives embeddings; else an `InputError`."""
        if isinstance(self.scorer, EmbeddingScorer):
            return self.scorer
        raise InputError(f"{self.name} gives scores only; this needs a bi- or tri-encoder.")

    async def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: Scale,
    ) -> FloatArray:
        """Scores n pairs, each under its condition; returns (n,)."""
        check_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        columns = (sentences1, sentences2, *([] if conditions is None else [conditions]))
        return await self.batcher.submit(self._on[scale], *columns)


Route = Callable[[In, Service], Awaitable[BaseModel]]


def service_of(request: Request) -> Service:
    """The service of the app that a request came to."""
    service: Service = request.app.state.service
    return service


async def _body_of(request: Request, settings: ServingSettings) -> bytes:
    """Reads a body as far as the limits allow."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(415, "The 'Content-Type' must be application/json.")
    too_long = RequestError(
        413,
        f"The body may have {settings.max_bytes} bytes (--max-bytes); send several requests.",
    )
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:19]) > settings.max_bytes:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(settings.time_limit):
            async for chunk in request.stream():
                body += chunk
                if len(body) > settings.max_bytes:
                    raise too_long
    except TimeoutError:
        raise RequestError(
            408, f"The body took longer than {settings.time_limit:g} s (--time-limit)."
        ) from None
    except ClientDisconnect:
        raise RequestError(400, "The connection was closed before the end of the body.") from None
    return bytes(body)


def post(
    router: APIRouter, path: str, request: type[In], response: type[BaseModel]
) -> Callable[[Route[In]], Route[In]]:
    """Makes a route of a function from a checked body to its answer, and leaves it as it is."""
    # The key is checked before anything is read, the body against the limits and the schema, and an
    # error is answered in the one form. The function calls `Service.check_size`.
    # The schema of the request must be flat, for it stands in the OpenAPI document as it is.
    content = {"application/json": {"schema": request.model_json_schema()}}
    extra = {"requestBody": {"required": True, "content": content}}

    def decorate(function: Route[In]) -> Route[In]:
        async def endpoint(asked: Request) -> Response:
            service = service_of(asked)
            try:
                service.authorise(asked)
                content = await _body_of(asked, service.settings)
                body = validated_json(request, content, what="request", source="The request")
                if isinstance(body, ModelRequest):
                    service.check_model(body.model)
                found = await function(body, service)
            except Exception as error:
                return answer_to(error)
            return Response(found.model_dump_json(exclude_none=True), media_type="application/json")

        router.add_api_route(
            path,
            endpoint,
            methods=["POST"],
            response_model=response,
            name=function.__name__,
            summary=(function.__doc__ or "").partition("\n")[0],
            description=request.__doc__,
            openapi_extra=extra,
            responses=RESPONSES,
        )
        return function

    return decorate
