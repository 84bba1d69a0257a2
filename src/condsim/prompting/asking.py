"""Asking: each prompt once, what is stored first, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from condsim.errors import BudgetError, InputError, require
from condsim.prompting.backends.base import Answer, Backend
from condsim.prompting.store import AnswerStore, answer_key

__all__ = ["Asker", "Budget", "Usage"]


@dataclass(frozen=True)
class Budget:
    """What a run may ask for; the rest is left for a later one.

    Attributes:
        requests: Prompts to send at most; no limit if None. A server's retries do not count.
        tokens: Tokens of prompts and answers together at most; no limit if None. A prompt that is
            under way counts with its estimate and the longest answer.
    """

    requests: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuses what allows nothing."""
        for name, limit in (("requests", self.requests), ("tokens", self.tokens)):
            if limit is not None and limit < 0:
                raise InputError(f"The budget of {name} must not be negative. Got {limit} instead.")


@dataclass
class Usage:
    """What was asked so far.

    Attributes:
        stored: Rows answered from the store, or by the answer to an equal row.
        requests: Prompts sent.
        prompt_tokens: Their tokens; estimated where the back end does not tell.
        new_tokens: Tokens of the answers.
    """

    stored: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers."""
        return self.prompt_tokens + self.new_tokens


class Asker:
    """Asks a back end through a file of stored answers.

    Attributes:
        usage: What was asked so far, over all calls.
    """

    def __init__(
        self,
        backend: Backend,
        stored: Path | str,
        *,
        budget: Budget | None = None,
        probabilities: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Prepares; nothing is asked.

        Args:
            backend: What answers.
            stored: File where answers are looked up and kept; see `AnswerStore`.
            budget: Limit over all calls; none by default.
            probabilities: Whether answers need the probabilities of the numbers. A stored answer
                that was asked for without them is asked for again.
            progress: Called with rows answered and rows in all.
        """
        self._backend = backend
        self._path = Path(stored)
        self._budget = budget or Budget()
        self._probabilities = probabilities
        self._progress = progress or (lambda done, total: None)
        self._identity = backend.identity
        self._reserved = 0  # tokens of the prompts under way
        self.usage = Usage()

    def missing(self, prompt_of: Callable[[int], str], rows: int) -> list[int]:
        """Tells which rows are still to be asked; nothing is.

        Args:
            prompt_of: Gives the prompt of a row; called anew when it is needed.
            rows: Number of rows.

        Returns:
            The first row of each prompt that has no stored answer, in order.
        """
        answered = {row for row, _ in self.stored(prompt_of, rows)}
        groups = self._rows_by_key(prompt_of, rows).values()
        return [group[0] for group in groups if group[0] not in answered]

    def count_tokens(self, prompt_of: Callable[[int], str], rows: Iterable[int]) -> int:
        """Counts the tokens of prompts; exact for a local model, an estimate for a server.

        Args:
            prompt_of: Gives the prompt of a row.
            rows: The rows.

        Returns:
            Tokens of all prompts together.
        """
        return sum(self._backend.count_tokens(prompt_of(row)) for row in rows)

    @property
    def max_new_tokens(self) -> int:
        """Longest answer in tokens."""
        return self._backend.max_new_tokens

    def stored(self, prompt_of: Callable[[int], str], rows: int) -> Iterator[tuple[int, Answer]]:
        """Gives the answers that are stored; nothing is asked.

        Args:
            prompt_of: Gives the prompt of a row.
            rows: Number of rows.

        Yields:
            Row and answer of those there are, in any order.
        """
        if not self._path.exists():
            return
        sharing = self._rows_by_key(prompt_of, rows)
        with AnswerStore(self._path) as store:
            for key, answer in self._stored(store, sharing):
                yield from ((row, answer) for row in sharing[key])

    def answers(self, prompt_of: Callable[[int], str], rows: int) -> Iterator[tuple[int, Answer]]:
        """Answers rows: first those that are stored, then the others as they arrive.

        Args:
            prompt_of: Gives the prompt of a row; called anew when it is needed, so that only keys
                are held for all rows.
            rows: Number of rows.

        Yields:
            Row and answer, each row once.

        Raises:
            InputError: If another process is asking this model with the same file.
            BudgetError: If the budget does not reach for all rows; what was answered is stored.
            BackendError: If the back end fails for good; likewise.
        """
        sharing = self._rows_by_key(prompt_of, rows)
        with AnswerStore(self._path) as store, self._alone():
            done = 0
            for key, answer in self._stored(store, sharing):
                for row in sharing.pop(key):
                    done += 1
                    self.usage.stored += 1
                    yield row, answer
            self._progress(done, rows)
            if sharing:
                yield from self._asked(store, list(sharing.items()), prompt_of, done, rows)

    def _asked(
        self,
        store: AnswerStore,
        waiting: Sequence[tuple[bytes, list[int]]],
        prompt_of: Callable[[int], str],
        done: int,
        rows: int,
    ) -> Generator[tuple[int, Answer], None, None]:
        """Asks for prompts and the rows that share them; ``done`` of ``rows`` are answered."""
        self._backend.check()
        sent: list[int] = []  # the estimate of each prompt
        prompts = self._within_budget((prompt_of(group[0]) for _, group in waiting), sent)
        asked = self._backend.answers(prompts, probabilities=self._probabilities)
        with closing(asked):
            for place, answer in asked:
                key, group = waiting[place]
                self._count(answer, estimate=sent[place])
                store.write(key, answer, prompt=prompt_of(group[0]), identity=self._identity)
                for row in group:
                    yield row, answer
                done += len(group)
                self.usage.stored += len(group) - 1
                self._progress(done, rows)
        if len(sent) < len(waiting):
            raise BudgetError(
                f"The budget is used up: {self.usage.requests} requests and {self.usage.tokens} "
                f"tokens. {done} of {rows} rows are answered and kept; allow more and run the same "
                "again for the rest."
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps a second process from asking, and paying for, the same prompts."""
        filelock = require("filelock", extra="llm")
        identity = answer_key("", self._identity).hex()[:8]
        lock = filelock.FileLock(f"{self._path}.{identity}.lock")
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise InputError(
                f"Another process is asking this model with {self._path}. Wait until it is done, "
                "or name another file for the answers."
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _rows_by_key(self, prompt_of: Callable[[int], str], rows: int) -> dict[bytes, list[int]]:
        sharing: dict[bytes, list[int]] = {}
        for row in range(rows):
            sharing.setdefault(answer_key(prompt_of(row), self._identity), []).append(row)
        return sharing

    def _stored(self, store: AnswerStore, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Answer]]:
        for key, answer in store.read(list(keys)):
            if not self._probabilities or answer.probabilities is not None:
                yield key, answer

    def _within_budget(self, prompts: Iterator[str], sent: list[int]) -> Iterator[str]:
        """Passes prompts on until the budget is used up; the back end reads them one by one."""
        budget = self._budget
        for prompt in prompts:
            estimate = self._backend.count_tokens(prompt) if budget.tokens is not None else 0
            reserve = estimate + self._backend.max_new_tokens
            if budget.requests is not None and self.usage.requests >= budget.requests:
                return
            if budget.tokens is not None:
                if self.usage.tokens + self._reserved + reserve > budget.tokens:
                    return
            self.usage.requests += 1
            self._reserved += reserve
            sent.append(estimate)
            yield prompt

    def _count(self, answer: Answer, *, estimate: int) -> None:
        self._reserved -= estimate + self._backend.max_new_tokens
        self.usage.prompt_tokens += (
            estimate if answer.prompt_tokens is None else answer.prompt_tokens
        )
        self.usage.new_tokens += (
            self._backend.max_new_tokens if answer.new_tokens is None else answer.new_tokens
        )
