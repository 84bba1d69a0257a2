"""A model behind any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import difflib
import math
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from condsim.errors import BackendError, InputError, require, unknown_name
from condsim.prompting.backends.base import MAX_NEW_TOKENS, Answer
from condsim.prompting.backends.server_client import base_address, environment_key
from condsim.prompting.backends.server_dialect import Dialect

if TYPE_CHECKING:
    from condsim.prompting.backends.server_client import Asker

Ask = Callable[[str], Awaitable[Answer]]

_JOIN_S = 10.0


def pumped(
    prompts: Iterable[str],
    open_client: Callable[[], AbstractAsyncContextManager[Ask]],
    *,
    concurrency: int,
    patience_s: float,
) -> Generator[tuple[int, Answer], None, None]:
    """Answers prompts from an event loop in a thread of its own, so inside a running loop too.

    The prompts are read in the caller's thread, at most ``2 * concurrency`` ahead of the answers.
    When the generator is closed or fails, what is under way is cancelled and the thread joined.
    """
    source = enumerate(prompts)
    ahead, waiting, ended = 2 * concurrency, 0, False
    low = ahead - max(1, concurrency // 2)  # filled up by several at once: each hand-over costs
    pump = _Pump(open_client, concurrency, patience_s)
    try:
        while True:
            if not ended and waiting <= low:
                some = list(islice(source, ahead - waiting))
                ended = len(some) < ahead - waiting
                waiting += len(some)
                pump.send(some, last=ended)
            arrived = pump.arrived.get()
            if arrived is None:
                return
            if isinstance(arrived, BaseException):
                raise arrived
            waiting -= 1
            yield arrived
    finally:
        pump.close()


class _Pump:
    """The thread, its event loop and the two queues that lead there and back."""

    def __init__(
        self,
        open_client: Callable[[], AbstractAsyncContextManager[Ask]],
        concurrency: int,
        patience_s: float,
    ) -> None:
        self.arrived: SimpleQueue[tuple[int, Answer] | BaseException | None] = SimpleQueue()
        self._open_client = open_client
        self._concurrency = concurrency
        self._patience_s = patience_s
        self._waiting: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []
        self._stopped = False
        self._closed = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="condsim-server", daemon=True)
        self._thread.start()

    def send(self, prompts: list[tuple[int, str]], *, last: bool) -> None:
        """Hands prompts over; after the ``last`` ones the thread says when all are answered."""
        self._loop.call_soon_threadsafe(self._take, prompts, last)

    def close(self) -> None:
        """Cancels what is under way and waits for the thread."""
        self._loop.call_soon_threadsafe(self._leave)
        self._thread.join(_JOIN_S)

    def _turn(self) -> None:
        """The thread: runs the loop until the caller closes it."""
        try:
            self._loop.run_until_complete(self._run())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        """Answers what comes, then waits for the caller to close: the loop outlives its use."""
        try:
            async with self._open_client() as ask:
                failed = await self._answer(ask)
            self.arrived.put(failed)
        except Exception as error:  # whatever it is: the caller's thread raises it
            self.arrived.put(error)
        await self._closed.wait()

    async def _answer(self, ask: Ask) -> BaseException | None:
        """Lets the workers answer; returns why they stopped early, if they did."""
        if self._closed.is_set():
            return None
        self._workers = [asyncio.create_task(self._work(ask)) for _ in range(self._concurrency)]
        done, under_way = await asyncio.wait(self._workers, return_when=asyncio.FIRST_EXCEPTION)
        failures = (task.exception() for task in done if not task.cancelled())
        failed = next((failure for failure in failures if failure is not None), None)
        if under_way:
            patience_s = self._patience_s if isinstance(failed, BackendError) else 0.0
            await asyncio.wait(under_way, timeout=patience_s)
        for task in self._workers:
            task.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        return failed

    async def _work(self, ask: Ask) -> None:
        """Answers one prompt after another."""
        while (taken := await self._waiting.get()) is not None:
            place, prompt = taken
            try:
                answer = await ask(prompt)
            except BackendError as error:
                self._stop()  # at once: no other worker may take a prompt now
                error.place = place
                raise
            except Exception:
                self._stop()
                raise
            self.arrived.put((place, answer))

    def _leave(self) -> None:
        """Cancels what is under way, in the thread; the client is left to close by itself."""
        self._stopped = True
        self._closed.set()
        for task in self._workers:
            task.cancel()

    def _take(self, prompts: list[tuple[int, str]], last: bool) -> None:
        """Queues prompts, in the thread."""
        if self._stopped:
            return
        for prompt in prompts:
            self._waiting.put_nowait(prompt)
        if last:
            self._dismiss()

    def _stop(self) -> None:
        """Drops the prompts that were not sent."""
        self._stopped = True
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self._dismiss()

    def _dismiss(self) -> None:
        """Tells every worker that no prompt comes after those in the queue."""
        for _ in range(self._concurrency):
            self._waiting.put_nowait(None)


_TOKENIZER = Path(__file__).resolve().parents[2] / "assets" / "default" / "tokenizer.json"
_SHOWN = 8


class ServerBackend:
    """Asks a model behind an OpenAI-compatible server, several prompts at once.

    The key is read from ``OPENAI_API_KEY`` when it is needed and is never shown. A request that
    meets a rate limit (429), a server error, a lost or hung connection or a broken answer is tried
    again, later each time and as ``Retry-After`` says. An answer that the server withholds because
    of its content is an empty text.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        concurrency: int = 32,
        timeout_s: float = 60.0,
        retries: int = 5,
        max_new_tokens: int = MAX_NEW_TOKENS,
        unlisted: bool = False,
    ) -> None:
        """Takes the settings; nothing is sent and no key needed yet.

        Args:
            model: Name of the model on the server.
            base_url: Where the server is, such as ``"http://localhost:8000/v1"``; None for
                ``OPENAI_BASE_URL``, or else OpenAI.
            concurrency: Requests under way at once, 1 or more.
            timeout_s: Seconds without a byte after which a try is given up, above 0.
            retries: Tries after the first, 0 or more.
            max_new_tokens: Longest answer in tokens, 1 or more.
            unlisted: Whether the model may be missing from the server's list of models.

        Raises:
            InputError: If a setting breaks its rule.
        """
        if not model.strip():
            raise InputError("The model must have a name. Got an empty text.")
        for name, value, least in (
            ("concurrency", concurrency, 1),
            ("retries", retries, 0),
            ("max_new_tokens", max_new_tokens, 1),
        ):
            if value < least:
                raise InputError(f"{name} must be {least} or more. Got {value}.")
        if not (timeout_s > 0 and math.isfinite(timeout_s)):
            raise InputError(f"The timeout must be a number above 0. Got {timeout_s:g}.")
        self._model = model.strip()
        self._address = base_address(base_url)
        self._concurrency = concurrency
        self._timeout_s = timeout_s
        self._retries = retries
        self._max_new_tokens = max_new_tokens
        self._unlisted = unlisted
        self._asker: Asker | None = None

    def __repr__(self) -> str:
        return f"ServerBackend({self._model!r}, base_url={self._address.url!r})"

    @property
    def name(self) -> str:
        """The model's name on the server."""
        return self._model

    @property
    def identity(self) -> Mapping[str, str]:
        """Kind, address, model and longest answer; no key.

        The address is part of it, since a name on a server says little: another server may serve
        other weights under the same one.
        """
        return {
            "backend": "server",
            "url": self._address.url,
            "model": self._model,
            "max_new_tokens": str(self._max_new_tokens),
        }

    @property
    def max_new_tokens(self) -> int:
        """Longest answer in tokens."""
        return self._max_new_tokens

    @property
    def longest_prompt(self) -> int | None:
        """Not known of a server."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the server refused, and how it is asked instead."""
        return self._asker.notes if self._asker is not None else ()

    def check(self) -> None:
        """Asks the server for its list of models; it need not have one.

        Raises:
            InputError: If the server lists its models and this one is not among them, or no key is
                set for another machine.
            BackendError: If no server answers at the URL, or it refuses the key.
            MissingExtraError: If ``openai`` is not installed.
        """
        require("openai", extra="llm")
        from condsim.prompting.backends.server_client import listed_models

        listed = listed_models(environment_key(self._address), model=self._model)
        # Some servers list more than the name that they answer to.
        names = {self._model, f"models/{self._model}", f"{self._model}:latest"}
        if listed is not None and not self._unlisted and names.isdisjoint(listed):
            raise self._not_listed(listed)

    def answers(
        self, prompts: Iterable[str], *, probabilities: bool = False
    ) -> Generator[tuple[int, Answer], None, None]:
        """Answers prompts, ``concurrency`` at once, from an event loop in a thread of its own.

        Args:
            prompts: The prompts; read lazily in the caller's thread, at most ``2 * concurrency``
                ahead of the answers. Close the iterator to stop early: what is under way is
                cancelled.
            probabilities: Whether to ask for log-probabilities. From a server that gives none the
                answers have none.

        Returns:
            The place of each prompt and its answer, as they arrive.

        Raises:
            InputError: If no key is set for a server on another machine.
            BackendError: If a request fails for good; no more are sent, and the answers that were
                under way come first.
            MissingExtraError: If ``openai`` is not installed.
        """
        asker = self._opened()
        return pumped(
            prompts,
            lambda: asker.open(probabilities=probabilities),
            concurrency=self._concurrency,
            patience_s=self._timeout_s,
        )

    def count_tokens(self, prompt: str) -> int:
        """Estimates the tokens of a prompt with the tokenizer of condsim's default model.

        The server's own tokenizer is not known; most need about as many tokens for English.

        Args:
            prompt: The prompt, of any length.
        """
        return len(_tokenizer().encode(prompt, add_special_tokens=False).ids)

    def _opened(self) -> Asker:
        """What asks the server; kept, as it learns what the server takes."""
        require("openai", extra="llm")
        from condsim.prompting.backends.server_client import Asker

        address = environment_key(self._address)
        if self._asker is None or self._asker.address != address:
            self._asker = Asker(
                model=self._model,
                address=address,
                concurrency=self._concurrency,
                timeout_s=self._timeout_s,
                retries=self._retries,
                max_new_tokens=self._max_new_tokens,
                dialect=Dialect(),
            )
        return self._asker

    def _not_listed(self, listed: list[str]) -> InputError:
        """The error for a model that the server does not list."""
        near = difflib.get_close_matches(self._model, listed, n=3)
        shown = near or sorted(listed)[:_SHOWN]
        error = unknown_name("model", self._model, shown)
        more = "" if near or len(listed) <= _SHOWN else f" There are {len(listed) - _SHOWN} more."
        return InputError(
            f"{error}{more} That is what {self._address.url} lists. If the server has the "
            "model and does not list it, give --unlisted (unlisted=True)."
        )


@cache
def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(_TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
