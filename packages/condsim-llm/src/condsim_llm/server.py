"""A language model behind any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import cache
from itertools import islice
from queue import SimpleQueue
from typing import Any

from tokenizers import Tokenizer

from condsim.errors import requires_extra
from condsim.model.session import TOKENIZER_FILE
from condsim.model.settings import DEFAULT_FOLDER
from condsim_llm.backend import (
    SECRET_CHARACTERS,
    Address,
    Answer,
    PromptSettings,
    base_address,
    environment_key,
)
from condsim_llm.errors import BackendError

with requires_extra("llm"):
    import httpx2
    import openai
    from anyio.from_thread import start_blocking_portal

_LOGGER = logging.getLogger(__name__)
_CONNECT_S = 10.0
# Alternatives to each token: the most that OpenAI gives, and the most that some servers give.
_TOP_LOGPROBS = 20
_FEWER_TOP_LOGPROBS = 5
# Key of ``Response.extensions`` under which the answer is.
_ANSWER = "condsim.answer"
_MAX_TOKENS = 10**9
_MAX_BODY_BYTES = 16 * 2**20
# What reading another body raises; a number of 400 digits overflows.
_NO_COMPLETION = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

_URL_HINT = "Is the base URL right, and does the server run?"
_KEY_HINT = "Set OPENAI_API_KEY to a key that this server and model accept."
_SERVER_HINT = "See the server's log, and run again: answers so far are stored."
_HINTS = {
    400: "If the prompt is too long, give fewer shots or a shorter instruction.",
    401: _KEY_HINT,
    403: _KEY_HINT,
    404: "Is that the model's name, and the base URL right? It often ends in /v1.",
    429: "Ask less at once, or check the quota of the key.",
}


class _HttpClient(openai.DefaultAsyncHttpxClient):
    """Limit the time for a whole answer and read it, so that the `openai` client repeats both."""

    def __init__(self, address: Address) -> None:
        # Without proxies to this machine.
        super().__init__(trust_env=not address.local)
        self._address = address

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # noqa: ANN401
        try:
            # Servers may send blanks while a request waits, so a limit for each read is not enough.
            async with asyncio.timeout(request.extensions["timeout"]["read"]):
                response = await _read(await super().send(request, **{**options, "stream": True}))
        except TimeoutError as error:
            raise httpx2.ReadTimeout("the answer is incomplete", request=request) from error
        if response.is_success:
            try:
                response.extensions[_ANSWER] = parse_completion(json.loads(response.content))
            except _NO_COMPLETION as error:
                # Clean the whole text first: the key could be cut in two.
                start = self._address.clean(response.text)[:200]
                message = f"the body is not a chat completion: {start!r}"
                raise httpx2.DecodingError(message, request=request) from error
        return response


async def _read(response: httpx2.Response) -> httpx2.Response:
    """Read an answer of a limited size, which a packed body may exceed by far."""
    content = bytearray()
    try:
        async for block in response.aiter_bytes():
            content += block
            if len(content) > _MAX_BODY_BYTES:
                message = f"the body has more than {_MAX_BODY_BYTES // 2**20} MB"
                raise httpx2.DecodingError(message, request=response.request)
    finally:
        await response.aclose()
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
    ]
    return httpx2.Response(
        response.status_code, headers=headers, content=bytes(content), request=response.request
    )


class ServerBackend:
    """Client of a model behind an OpenAI-compatible server, for several prompts at once.

    The key is read from ``OPENAI_API_KEY`` when it is needed and is never shown. The ``openai``
    client retries a rate limit (429), a server error, a lost connection or a broken answer, later
    each time and as ``Retry-After`` says. An answer that the server withholds because of its
    content is an empty text.
    """

    def __init__(self, settings: PromptSettings) -> None:
        self.name = settings.model
        self.max_new_tokens = settings.max_new_tokens
        self.longest_prompt: int | None = None
        self.answer_gap = " "
        self.notes: tuple[str, ...] = ()
        self._address = base_address(settings.base_url)
        self._settings = settings
        # Fields in which servers differ; `_adapt` changes them after a refusal.
        self._fields: dict[str, object] = {
            "max_tokens": settings.max_new_tokens,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": _TOP_LOGPROBS,
        }

    @property
    def identity(self) -> Mapping[str, str]:
        """Kind, address, model and longest answer; no key.

        The address is part of it, since another server may have other weights of the same name.
        """
        return {
            "backend": "server",
            "url": self._address.url,
            "model": self.name,
            "max_new_tokens": str(self.max_new_tokens),
        }

    def check(self) -> None:
        """Ask for the list of models, with few retries; servers without a list pass, too."""
        address = environment_key(self._address)
        with openai.OpenAI(
            api_key=address.key,
            base_url=address.url,
            timeout=_CONNECT_S,
            max_retries=1,
            http_client=openai.DefaultHttpxClient(trust_env=not address.local),
        ) as client:
            try:
                # The status is the answer; the body, which may never end, is not read.
                client.get(
                    "/models",
                    cast_to=httpx2.Response,
                    stream=True,
                    stream_cls=openai.Stream[httpx2.Response],
                ).close()
                return
            except openai.OpenAIError as error:
                problem = error
        if not isinstance(problem, openai.APIStatusError) or problem.status_code in (401, 403):
            # Raised here, without the client's error as its context: that may contain the key.
            raise self._failure(problem, address, timeout=_CONNECT_S)

    def answers(
        self, prompts: Iterable[str], *, probabilities: bool = False
    ) -> Generator[tuple[int, Answer], None, None]:
        """Yield indices and answers, as `Backend.answers`; also inside a running event loop.

        At most ``concurrency`` prompts are read ahead. After a failure, answers under way are
        awaited for at most ``timeout`` seconds.
        """
        address, settings = environment_key(self._address), self._settings
        numbered = enumerate(prompts)
        pending: dict[Future[Answer], int] = {}
        arrived: SimpleQueue[Future[Answer]] = SimpleQueue()
        client = openai.AsyncOpenAI(
            api_key=address.key,
            base_url=address.url,
            timeout=httpx2.Timeout(settings.timeout, connect=min(settings.timeout, _CONNECT_S)),
            max_retries=settings.retries,
            http_client=_HttpClient(address),
        )
        # A separate thread is needed, since the caller may be in an event loop.
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
            while True:
                for index, prompt in islice(numbered, settings.concurrency - len(pending)):
                    future = portal.start_task_soon(
                        self._answer, client, address, prompt, probabilities
                    )
                    pending[future] = index
                    future.add_done_callback(arrived.put)
                if not pending:
                    return
                future = arrived.get()
                index = pending.pop(future)
                try:
                    answer = future.result()
                except BackendError as error:
                    error.index = index
                    for late in wait(pending, timeout=settings.timeout).done:
                        if late.exception() is None:
                            yield pending[late], late.result()
                    raise
                yield index, answer

    def count_tokens(self, prompt: str) -> int:
        """Estimate the tokens of a prompt with the tokenizer of condsim's default model.

        The server's own tokenizer is unknown; most need about as many tokens for English.
        """
        return len(_tokenizer().encode(prompt, add_special_tokens=False).ids)

    async def _answer(
        self, client: openai.AsyncOpenAI, address: Address, prompt: str, probabilities: bool
    ) -> Answer:
        """Answer a prompt, with the fields that the server turns out to accept."""
        messages = [{"role": "user", "content": prompt}]
        while True:
            fields = {
                name: value
                for name, value in self._fields.items()
                if probabilities or "logprobs" not in name
            }
            try:
                # The plain response: building the library's typed one takes half as long again.
                response = await client.post(
                    "/chat/completions",
                    body={"model": self.name, "messages": messages, **fields},
                    cast_to=httpx2.Response,
                )
            except openai.OpenAIError as error:
                problem = error
            else:
                answer: Answer = response.extensions[_ANSWER]
                secret = len(address.key) >= SECRET_CHARACTERS
                text = address.masked(answer.text) if secret else answer.text
                shares = answer.probabilities if probabilities else None
                return replace(answer, text=text, probabilities=shares)
            body = getattr(problem, "body", None)
            match body:
                # The content of the prompt is refused, which counts as an empty answer.
                case {"code": "content_filter"} | {
                    "innererror": {"code": "content_filter" | "ResponsibleAIPolicyViolation"}
                }:
                    return Answer("", probabilities={} if probabilities else None)
            if isinstance(problem, openai.BadRequestError | openai.UnprocessableEntityError):
                if self._adapt(fields, f"{problem.param or ''} {_message(body)}".lower()):
                    continue
            raise self._failure(problem, address, timeout=self._settings.timeout)

    def _adapt(self, sent: Mapping[str, object], refusal: str) -> bool:
        """Change the fields of a request after a refusal that names one of them."""
        fields = dict(self._fields)
        if not sent.items() <= fields.items():
            # An answer to another request has changed the fields in the meantime.
            return True
        if "max_tokens" in sent and "max_completion_tokens" in refusal:
            fields["max_completion_tokens"] = fields.pop("max_tokens")
            change = "max_completion_tokens for max_tokens"
        elif "temperature" in sent and "temperature" in refusal:
            del fields["temperature"]
            change = "its own temperature, so answers may differ between runs"
            _LOGGER.warning("The server refused temperature 0; it is asked with %s.", change)
        elif "logprobs" in sent and ("logprobs" in refusal or "log prob" in refusal):
            if fields["top_logprobs"] == _TOP_LOGPROBS:
                fields["top_logprobs"] = _FEWER_TOP_LOGPROBS
                change = f"top_logprobs {_FEWER_TOP_LOGPROBS}"
            else:
                del fields["logprobs"], fields["top_logprobs"]
                change = "no log-probabilities"
        else:
            return False
        self._fields = fields
        self.notes += (f"asked with {change}",)
        return True

    def _failure(
        self, error: openai.OpenAIError, address: Address, *, timeout: float
    ) -> BackendError:
        """Describe an error of the client in one line, with the number of tries and a hint."""
        request = getattr(error, "request", None)
        retries = request.headers.get("x-stainless-retry-count", "0") if request else "0"
        tries = "1 try" if retries == "0" else f"{int(retries) + 1} tries"
        if isinstance(error, openai.APIStatusError):
            reason = f"HTTP {error.status_code} after {tries}: {_message(error.body)}"
            hint = _HINTS.get(error.status_code, _SERVER_HINT if error.status_code >= 500 else "")
        elif isinstance(error, openai.APITimeoutError):
            reason = f"no answer within {timeout:g} s after {tries}"
            hint = "Is the server overloaded? Give it more time or ask less at once."
        else:
            cause = error.__cause__ or error
            reason = f"{str(cause) or type(cause).__name__} after {tries}"
            broken = isinstance(cause, httpx2.DecodingError | httpx2.RemoteProtocolError)
            hint = _SERVER_HINT if broken else _URL_HINT
        text = address.clean(reason).rstrip(".")
        return BackendError(f"{self.name} at {address.url}: {text}. {hint}".rstrip())


def parse_completion(completion: Mapping[str, Any]) -> Answer:
    """Read an answer out of a decoded chat completion."""
    choice = completion["choices"][0]
    text = choice["message"].get("content") or ""
    if isinstance(text, list):
        text = "".join(part.get("text", "") for part in text)
    if choice.get("finish_reason") == "content_filter":
        text = ""
    usage = completion.get("usage") or {}
    prompt_tokens, new_tokens = (
        _count(usage, key) for key in ("prompt_tokens", "completion_tokens")
    )
    return Answer(
        # Half of an emoji cannot be stored.
        text=text.encode("utf-8", "replace").decode("utf-8"),
        probabilities=_probabilities(choice.get("logprobs") or {}),
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
    )


def _count(usage: object, key: str) -> int | None:
    """Read a number of tokens; None, said once, if the server reports something else."""
    count = usage.get(key) if isinstance(usage, dict) else usage
    if count is None or (isinstance(count, int) and 0 <= count < _MAX_TOKENS):
        return count
    _warn_of_usage()
    return None


@cache
def _warn_of_usage() -> None:
    _LOGGER.warning("The server's usage is not in numbers; tokens are estimated instead.")


def _probabilities(logprobs: Mapping[str, Any]) -> dict[float, float]:
    """Read the probabilities of numbers at the first token of an answer that is a number."""
    for token in logprobs.get("content") or ():
        if _NUMBER.fullmatch(token["token"].strip()):
            # Some servers leave the chosen token out of its alternatives.
            alternatives = {token["token"]: token["logprob"]}
            for entry in token.get("top_logprobs") or ():
                alternatives[entry["token"]] = entry["logprob"]
            shares: dict[float, float] = {}
            for text, logprob in alternatives.items():
                probability = math.exp(min(logprob, 0))
                if probability and _NUMBER.fullmatch(text.strip()):
                    value = float(text)
                    shares[value] = min(1.0, shares.get(value, 0.0) + probability)
            return shares
    return {}


def _message(body: object) -> str:
    """Find the reason in the body of a refusal."""
    if isinstance(body, dict):
        for key in ("message", "detail", "error"):
            if isinstance(reason := body.get(key), str):
                return reason
        return json.dumps(body)
    return str(body or "no reason given")


@cache
def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(DEFAULT_FOLDER / TOKENIZER_FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
