"""The ``openai`` client: how it is opened, one request, and what its failures mean."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import openai

from condsim.errors import BackendError
from condsim.prompting.backends.base import Answer
from condsim.prompting.backends.server_address import Address
from condsim.prompting.backends.server_dialect import (
    Dialect,
    is_completion,
    read_answer,
    refused_content,
    without,
)

__all__ = ["Asker", "failure", "listed_models"]

_CONNECT_S = 10.0
_CHECK_S = 10.0
_COMPLETION = "condsim.completion"  # where a response carries its decoded body


@dataclass
class Asker:
    """Asks one model of one server.

    Attributes:
        model: Name of the model.
        address: The server and its key.
        concurrency: Requests under way at once.
        timeout_s: Seconds without a byte after which a try is given up.
        retries: Tries after the first.
        max_new_tokens: Longest answer in tokens.
        dialect: The fields the server takes, learnt from its refusals.
    """

    model: str
    address: Address
    concurrency: int
    timeout_s: float
    retries: int
    max_new_tokens: int
    dialect: Dialect

    @property
    def notes(self) -> tuple[str, ...]:
        """How the server is asked otherwise than usual, because it refused a field."""
        return self.dialect.notes

    @asynccontextmanager
    async def open(
        self, *, probabilities: bool
    ) -> AsyncIterator[Callable[[str], Awaitable[Answer]]]:
        """Opens the client.

        Args:
            probabilities: Whether to ask for log-probabilities.

        Yields:
            What answers a prompt; it raises ``BackendError`` if the request fails for good.
        """
        count = self.concurrency
        timeout = httpx2.Timeout(self.timeout_s, connect=min(self.timeout_s, _CONNECT_S))
        http = openai.DefaultAsyncHttpxClient(
            limits=httpx2.Limits(max_connections=count, max_keepalive_connections=count),
            event_hooks={"response": [self._keep_completion]},
            trust_env=not self.address.local,  # no proxy to this machine
        )
        async with openai.AsyncOpenAI(
            api_key=self.address.key,
            base_url=self.address.url,
            timeout=timeout,  # for each try; left to ``http``, 5 s would be taken for "not given"
            max_retries=self.retries,
            http_client=http,
        ) as client:

            async def ask(prompt: str) -> Answer:
                return await self._ask(client, prompt, probabilities=probabilities)

            yield ask

    async def _ask(self, client: openai.AsyncOpenAI, prompt: str, *, probabilities: bool) -> Answer:
        """Answers a prompt, in the dialect that the server turns out to take."""
        while True:
            body = self.dialect.body(
                prompt,
                model=self.model,
                max_new_tokens=self.max_new_tokens,
                probabilities=probabilities,
            )
            try:
                # The plain response: to build the library's typed one takes half as long again.
                response = await client.post(
                    "/chat/completions", body=body, cast_to=httpx2.Response
                )
            except openai.OpenAIError as error:
                problem = error
            else:
                completion = response.extensions[_COMPLETION]
                return read_answer(completion, probabilities=probabilities)
            if isinstance(problem, openai.APIError) and refused_content(problem.body):
                return Answer("", probabilities={} if probabilities else None)
            dialect = self._after(problem, body)
            if dialect is None:
                # Not from the client's error, which may hold the key.
                raise failure(problem, self.address, model=self.model, timeout_s=self.timeout_s)
            self.dialect = dialect

    async def _keep_completion(self, response: httpx2.Response) -> None:
        """Decodes an answer where the client still tries again if it cannot be."""
        if not response.is_success:
            return
        await response.aread()
        try:
            completion = json.loads(response.content)
        except ValueError:
            completion = None
        if not is_completion(completion):
            start = self.address.clean(response.text)[:200]  # cleaned whole, then cut
            raise httpx2.DecodingError(f"the body is no chat completion: {start!r}")
        response.extensions[_COMPLETION] = completion

    def _after(self, error: openai.OpenAIError, body: dict[str, object]) -> Dialect | None:
        """The dialect to ask again in; None if the failure is not about a field."""
        if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
            return without(self.dialect, body, f"{error.param or ''} {_said(error.body)}".lower())
        return None


def listed_models(address: Address, *, model: str) -> list[str] | None:
    """Asks the server for its models, quickly.

    Args:
        address: The server and its key.
        model: The model that will be asked, for the error's text.

    Returns:
        Their names; None if the server has no list, or none that can be read to its end.

    Raises:
        BackendError: If nothing that speaks HTTP answers, or the key is refused.
    """
    with openai.OpenAI(
        api_key=address.key,
        base_url=address.url,
        timeout=_CHECK_S,
        max_retries=1,
        http_client=openai.DefaultHttpxClient(trust_env=not address.local),
    ) as client:
        try:
            response = client.get("/models", cast_to=httpx2.Response)
        except openai.OpenAIError as error:
            problem = error
        else:
            return _names(response)
    if isinstance(problem, openai.APIStatusError) and problem.status_code not in (401, 403):
        return None
    raise failure(problem, address, model=model, timeout_s=_CHECK_S, checking=True)


def failure(
    error: openai.OpenAIError,
    address: Address,
    *,
    model: str,
    timeout_s: float,
    checking: bool = False,
) -> BackendError:
    """Says in one line what went wrong, after how many tries, and what to do.

    Args:
        error: The client's last error.
        address: The server; its key is taken out of the text.
        model: The model that was asked.
        timeout_s: Seconds that a try was given.
        checking: Whether no prompt was sent yet, so that the URL is in doubt first.

    Returns:
        The error to raise.
    """
    tries = _tries(error)
    times = f"after {tries} {'try' if tries == 1 else 'tries'}"
    if isinstance(error, openai.APIStatusError):
        said = f"HTTP {error.status_code} {times}: {_said(error.body)}"
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


def _said(body: object) -> str:
    """The server's words in the body of a refusal."""
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
    except ValueError:
        return None
    data = models.get("data") if isinstance(models, dict) else None
    if not isinstance(data, list) or models.get("has_more"):
        return None
    names = [entry.get("id") if isinstance(entry, dict) else None for entry in data]
    return [name for name in names if isinstance(name, str)] or None
