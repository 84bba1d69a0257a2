"""The ``openai`` client: how it is opened, one request, and what its failures mean."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx2
import openai

from condsim.errors import BackendError
from condsim.prompting.backend import (
    SECRET,
    Address,
    Answer,
    Dialect,
    is_completion,
    read_answer,
    refused_content,
    without,
)
from condsim.prompting.settings import PromptSettings

_CONNECT_S = 10.0
_CHECK_S = 10.0
_COMPLETION = "condsim.completion"  # where a response carries its decoded body
_BODY = 16_000_000  # bytes of an answer
_PACKED = 64_000  # bytes of a compressed one: a thousand times as much at most
_PLAIN = {"Accept-Encoding": "identity"}
_OnResponse = Callable[[httpx2.Response], Awaitable[None]]


class _Bounded(httpx2.AsyncByteStream):
    """The body of a response up to a size."""

    def __init__(self, stream: Any, *, most: int) -> None:  # noqa: ANN401
        self._stream, self._most = stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for part in self._stream:
            read += len(part)
            if read > self._most:
                raise httpx2.DecodingError(f"the body is too large: more than {self._most:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    """Bounds what is read of a response, plain or compressed."""
    packing = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packing not in ("", "identity", "gzip", "deflate"):
        raise httpx2.DecodingError(f"the body is packed as {packing!r}, which was not asked for")
    most = _BODY if packing in ("", "identity") else _PACKED
    response.stream = _Bounded(response.stream, most=most)


class _AsyncHttp(openai.DefaultAsyncHttpxClient):
    """Gives up a try whose whole answer is not there in time, however often a byte comes."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # noqa: ANN401
        try:
            async with asyncio.timeout(request.extensions["timeout"]["read"]):
                return await super().send(request, **options)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("the answer is not whole", request=request) from error


def _opened(
    address: Address, *on_response: _OnResponse, timeout_s: float, retries: int
) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        api_key=address.key,
        base_url=address.url,
        # For each try; left to ``http_client``, 5 s would be taken for "not given".
        timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S)),
        max_retries=retries,
        http_client=_AsyncHttp(
            headers=_PLAIN,
            limits=httpx2.Limits(),  # none: the caller bounds what is under way
            event_hooks={"response": [_bound, *on_response]},
            trust_env=not address.local,  # no proxy to this machine
        ),
    )


class Client:
    """Asks one model of one server; after a failure, what was not sent is dropped."""

    def __init__(
        self,
        model: str,
        address: Address,
        settings: PromptSettings,
        *,
        dialect: Dialect,
        probabilities: bool,
    ) -> None:
        self.dialect = dialect  # the fields that the server takes, learnt from its refusals
        self._model, self._address, self._timeout_s = model, address, settings.timeout
        self._max_new_tokens, self._probabilities = settings.max_new_tokens, probabilities
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._failed = False
        self._client = _opened(
            address, self._keep_completion, timeout_s=settings.timeout, retries=settings.retries
        )

    async def close(self) -> None:
        """Cancels what is under way and closes the connections."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.close()
        await asyncio.get_running_loop().shutdown_asyncgens()

    async def ask(self, prompt: str) -> Answer:
        """Sends a prompt as soon as a slot is free."""
        async with self._slots:
            if self._failed:
                raise asyncio.CancelledError
            try:
                return await self._ask(prompt)
            except BaseException:
                self._failed = True  # at once: no other prompt may take the slot
                raise

    async def _ask(self, prompt: str) -> Answer:
        """Answers a prompt, in the dialect that the server turns out to take."""
        while True:
            body = self.dialect.body(
                prompt,
                model=self._model,
                max_new_tokens=self._max_new_tokens,
                probabilities=self._probabilities,
            )
            try:
                # The plain response: to build the library's typed one takes half as long again.
                response = await self._client.post(
                    "/chat/completions", body=body, cast_to=httpx2.Response
                )
            except openai.OpenAIError as error:
                problem = error
            else:
                completion = response.extensions[_COMPLETION]
                answer = read_answer(completion, probabilities=self._probabilities)
                if len(self._address.key) < SECRET:
                    return answer
                return replace(answer, text=self._address.masked(answer.text))
            if isinstance(problem, openai.APIError) and refused_content(problem.body):
                return Answer("", probabilities={} if self._probabilities else None)
            dialect = None
            if isinstance(problem, openai.BadRequestError | openai.UnprocessableEntityError):
                refusal = f"{problem.param or ''} {_message(problem.body)}".lower()
                dialect = without(self.dialect, body, refusal)
            if dialect is None:
                # Not from the client's error, which may hold the key.
                raise _failure(problem, self._address, model=self._model, timeout_s=self._timeout_s)
            self.dialect = dialect

    async def _keep_completion(self, response: httpx2.Response) -> None:
        """Decodes an answer where the client still tries again if it cannot be."""
        if not response.is_success:
            return
        await response.aread()
        try:
            completion = json.loads(response.content)
        except (ValueError, RecursionError):
            completion = None
        if not is_completion(completion):
            start = self._address.clean(response.text)[:200]  # cleaned whole, then cut
            raise httpx2.DecodingError(f"the body is no chat completion: {start!r}")
        response.extensions[_COMPLETION] = completion


def listed_models(address: Address, *, model: str) -> list[str] | None:
    """Asks the server for its models, quickly; None if it has no list."""
    try:
        with ThreadPoolExecutor(1) as pool:  # the caller may be in an event loop
            response = pool.submit(lambda: asyncio.run(_models(address))).result()
    except openai.OpenAIError as error:
        problem = error
    else:
        return _names(response)
    if isinstance(problem, openai.APIStatusError) and problem.status_code not in (401, 403):
        return None
    raise _failure(problem, address, model=model, timeout_s=_CHECK_S, checking=True)


async def _models(address: Address) -> httpx2.Response:
    async with _opened(address, timeout_s=_CHECK_S, retries=1) as client:
        return await client.get("/models", cast_to=httpx2.Response)


def _failure(
    error: openai.OpenAIError,
    address: Address,
    *,
    model: str,
    timeout_s: float,
    checking: bool = False,
) -> BackendError:
    """The one-line error: what went wrong, after how many tries, and what to do."""
    tries = _tries(error)
    times = f"after {tries} {'try' if tries == 1 else 'tries'}"
    if isinstance(error, openai.APIStatusError):
        said = f"HTTP {error.status_code} {times}: {_message(error.body)}"
        fix = _FIXES.get(error.status_code, _SERVER_FIX if error.status_code >= 500 else "")
    elif isinstance(error, openai.APITimeoutError):
        said = f"no answer within {timeout_s:g} s {times}"
        fix = "Is the server overloaded? Give it more time or ask less at once."
    else:
        cause = error.__cause__
        said = f"{f'{cause}' or type(cause).__name__} {times}" if cause else f"{error} {times}"
        broken = isinstance(cause, httpx2.DecodingError | httpx2.RemoteProtocolError)
        fix = _SERVER_FIX if broken else _URL_FIX
    if checking and isinstance(error, openai.APIConnectionError):
        fix = _URL_FIX
    text = address.clean(said).rstrip(".")
    return BackendError(f"{model} at {address.url}: {text}. {fix}".rstrip())


_URL_FIX = "Is the base URL right, and does the server run?"
_KEY_FIX = "Set OPENAI_API_KEY to a key that this server and model accept."
_SERVER_FIX = "Look into the server's log, and run again: what was answered is kept."
_FIXES = {
    401: _KEY_FIX,
    403: _KEY_FIX,
    404: "Is that the model's name, and the base URL right? It often ends in /v1.",
    400: "If it is about the length, give fewer shots, a shorter instruction or leave the row out.",
    429: "Ask less at once, or see whether the quota of the key is used up.",
}


def _tries(error: openai.OpenAIError) -> int:
    """How often the request was sent; the client counts its retries in a header."""
    request = getattr(error, "request", None)
    count = request.headers.get("x-stainless-retry-count", "0") if request else "0"
    return 1 + (int(count) if count.isdecimal() else 0)


def _message(body: object) -> str:
    """What the server says in the body of a refusal."""
    if isinstance(body, dict):
        for name in ("message", "detail", "error"):
            if isinstance(said := body.get(name), str):
                return said
        return json.dumps(body)
    return str(body or "no reason given")


def _names(response: httpx2.Response) -> list[str] | None:
    """The names in a list of models."""
    try:
        models = json.loads(response.content)
    except (ValueError, RecursionError):
        return None
    data = models.get("data") if isinstance(models, dict) else None
    if not isinstance(data, list) or models.get("has_more"):
        return None
    names = [entry.get("id") if isinstance(entry, dict) else None for entry in data]
    return [name for name in names if isinstance(name, str)] or None
