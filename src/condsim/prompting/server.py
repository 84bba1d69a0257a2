"""A model behind any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import difflib
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread

from tokenizers import Tokenizer

from condsim.errors import BackendError, InputError, require, unknown_name
from condsim.model.onnx import TOKENIZER_FILE
from condsim.model.settings import DEFAULT_FOLDER
from condsim.prompting.backend import Address, Answer, Dialect, base_address, environment_key
from condsim.prompting.settings import PromptSettings

_CLOSE_S = 10.0
_SHOWN = 8


class ServerBackend:
    """Asks a model behind an OpenAI-compatible server, several prompts at once.

    The key is read from ``OPENAI_API_KEY`` when it is needed and is never shown. A request that
    meets a rate limit (429), a server error, a lost or hung connection or a broken answer is tried
    again, later each time and as ``Retry-After`` says. An answer that the server withholds because
    of its content is an empty text.
    """

    def __init__(self, settings: PromptSettings) -> None:
        """Takes the settings; nothing is sent and no key needed yet.

        Raises:
            InputError: If the model has no name, or the base URL is no address or holds a secret.
        """
        self.name = settings.model.strip()
        if not self.name:
            raise InputError("The model must have a name. Got an empty text.")
        self.max_new_tokens = settings.max_new_tokens
        self.longest_prompt: int | None = None  # not known of a server
        self.answer_gap = " "
        self._address = base_address(settings.base_url)
        self._settings = settings
        self._dialect = Dialect()

    def __repr__(self) -> str:
        return f"ServerBackend({self.name!r}, base_url={self._address.url!r})"

    @property
    def identity(self) -> Mapping[str, str]:
        """Kind, address, model and longest answer; no key.

        The address is part of it, since another server may serve other weights under the same name.
        """
        return {
            "backend": "server",
            "url": self._address.url,
            "model": self.name,
            "max_new_tokens": str(self.max_new_tokens),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What the server refused, and how it is asked instead."""
        return self._dialect.notes

    def check(self) -> None:
        """Asks the server for its list of models; it need not have one.

        Raises:
            InputError: If the server lists its models and this one is not among them, or no key is
                set for another machine.
            BackendError: If no server answers at the URL, or it refuses the key.
            MissingExtraError: If ``openai`` is not installed.
        """
        require("openai", extra="llm")
        from condsim.prompting.client import listed_models

        listed = listed_models(environment_key(self._address), model=self.name)
        # Some servers list more than the name that they answer to.
        names = {self.name, f"models/{self.name}", f"{self.name}:latest"}
        if listed is not None and not self._settings.unlisted and names.isdisjoint(listed):
            raise self._not_listed(listed)

    def answers(
        self, prompts: Iterable[str], *, probabilities: bool = False
    ) -> Generator[tuple[int, Answer], None, None]:
        """Answers prompts, ``concurrency`` at once; works inside a running event loop, too.

        Args:
            prompts: The prompts; read lazily in the caller's thread, at most ``2 * concurrency``
                ahead of the answers.
            probabilities: Whether to ask for log-probabilities; a server may give none.

        Returns:
            The place of each prompt and its answer, as they arrive. Close the generator to stop
            early: what is under way is cancelled.

        Raises:
            InputError: If no key is set for a server on another machine.
            BackendError: If a request fails for good; no more are sent, and the answers that were
                under way come first.
            MissingExtraError: If ``openai`` is not installed.
        """
        require("openai", extra="llm")
        return self._answers(environment_key(self._address), prompts, probabilities=probabilities)

    def count_tokens(self, prompt: str) -> int:
        """Estimates the tokens of a prompt with the tokenizer of condsim's default model.

        The server's own tokenizer is not known; most need about as many tokens for English.
        """
        return len(_tokenizer().encode(prompt, add_special_tokens=False).ids)

    def _answers(
        self, address: Address, prompts: Iterable[str], *, probabilities: bool
    ) -> Generator[tuple[int, Answer], None, None]:
        source = enumerate(prompts)
        concurrency = self._settings.concurrency
        ahead = 2 * concurrency
        low = ahead - max(1, concurrency // 2)  # several at once: each hand-over costs
        waiting: dict[Future[Answer], int] = {}
        arrived: SimpleQueue[Future[Answer]] = SimpleQueue()
        failures: list[BackendError] = []
        until = math.inf  # then what is still under way is given up
        with self._asking(address, probabilities=probabilities) as ask:
            while True:
                if not failures and len(waiting) <= low:
                    for place, prompt in islice(source, ahead - len(waiting)):
                        future = ask(prompt)
                        waiting[future] = place
                        future.add_done_callback(arrived.put)
                if not waiting:
                    break
                left = max(0.0, until - time.monotonic()) if failures else None
                try:
                    future = arrived.get(timeout=left)
                except Empty:
                    break
                place = waiting.pop(future)
                try:
                    answer = future.result()
                except CancelledError:  # it was not sent: another had failed
                    continue
                except BackendError as error:
                    error.place = place
                    failures.append(error)
                    until = min(until, time.monotonic() + self._settings.timeout)
                else:
                    yield place, answer
        if failures:
            raise failures[0]

    @contextmanager
    def _asking(
        self, address: Address, *, probabilities: bool
    ) -> Iterator[Callable[[str], Future[Answer]]]:
        """Opens the client on an event loop in a thread of its own, and closes both."""
        from condsim.prompting.client import Client

        client = Client(  # first: it takes a while, and Ctrl-C must not leave a loop open
            self.name,
            address,
            self._settings,
            dialect=self._dialect,
            probabilities=probabilities,
        )
        loop = asyncio.new_event_loop()
        thread = Thread(target=loop.run_forever, name="condsim-server", daemon=True)
        thread.start()
        try:
            yield lambda prompt: asyncio.run_coroutine_threadsafe(client.ask(prompt), loop)
        finally:
            self._dialect = client.dialect
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(client.close(), loop).result(_CLOSE_S)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_CLOSE_S)
            if not thread.is_alive():
                loop.close()

    def _not_listed(self, listed: list[str]) -> InputError:
        near = difflib.get_close_matches(self.name, listed, n=3)
        shown = near or sorted(listed)[:_SHOWN]
        error = unknown_name("model", self.name, shown)
        more = "" if near or len(listed) <= _SHOWN else f" There are {len(listed) - _SHOWN} more."
        return InputError(
            f"{error}{more} That is what {self._address.url} lists. If the server has the "
            "model and does not list it, give --unlisted (unlisted=True)."
        )


@cache
def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(DEFAULT_FOLDER / TOKENIZER_FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
