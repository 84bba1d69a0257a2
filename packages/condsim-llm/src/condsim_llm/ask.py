"""Ask each prompt once: stored answers first, then the model, within a budget."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from condsim.cache import locked
from condsim.errors import InputError, one_line
from condsim_llm.backend import Answer, Backend
from condsim_llm.database import open_database
from condsim_llm.errors import BackendError, BudgetError

# One sync for many answers: a crash of the machine may lose the last few.
# ``key`` is the SHA-256 hash of identity and prompt; ``identity`` and ``probabilities`` are JSON.
_SCHEMA = """
pragma journal_mode = wal;
pragma synchronous = normal;
create table if not exists answers (
    key blob primary key,
    identity text not null,
    prompt text not null,
    text text not null,
    probabilities text,
    prompt_tokens integer,
    new_tokens integer,
    created text not null default current_timestamp
) without rowid
"""
_SCHEMA_VERSION = 1
_KEYS_PER_QUERY = 500

PromptOf = Callable[[int], str]
"""Returns the prompt of a row; called again when it is needed, so that only keys are held."""

Progress = Callable[[int, int], None]
"""Called with the number of rows answered and of all rows."""

RowsOfKey = dict[bytes, list[int]]
"""Rows by the key of their prompt: equal prompts are asked once."""


def answer_key(prompt: str, identity: Mapping[str, str]) -> bytes:
    """Hash everything that decides an answer into 32 bytes."""
    content = json.dumps([sorted(identity.items()), prompt], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


class AnswerStore(AbstractContextManager["AnswerStore"]):
    """A SQLite file of answers, opened or created; use it as a context manager.

    Each answer survives the process as soon as it is written. Several processes may share a file.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._connection = open_database(
            Path(path),
            _SCHEMA,
            version=_SCHEMA_VERSION,
            subject="a store of answers",
            autocommit=True,
        )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(
        self, key: bytes, answer: Answer, *, prompt: str, identity: Mapping[str, str]
    ) -> None:
        """Write an answer, or replace the one with the same `answer_key`."""
        shares = answer.probabilities
        row = (
            key,
            json.dumps(dict(identity), ensure_ascii=False),
            prompt,
            answer.text,
            None if shares is None else json.dumps(dict(shares)),
            answer.prompt_tokens,
            answer.new_tokens,
        )
        advice = "Make room and run the same command again; earlier answers are stored."
        message = f"{self._path}: an answer cannot be stored"
        with one_line(message, sqlite3.Error, OverflowError, advice=advice):
            self._connection.execute(
                "insert or replace into answers (key, identity, prompt, text, probabilities, "
                "prompt_tokens, new_tokens) values (?, ?, ?, ?, ?, ?, ?)",
                row,
            )

    def read(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Answer]]:
        """Yield the keys that have an answer and their answers, in any order."""
        remaining_keys = iter(keys)
        while batch := list(islice(remaining_keys, _KEYS_PER_QUERY)):
            query = (
                "select key, text, probabilities, prompt_tokens, new_tokens from answers "
                f"where key in ({','.join('?' * len(batch))})"
            )
            advice = "Name another file, or remove it to send its requests again."
            causes = (sqlite3.Error, ValueError, AttributeError)
            with one_line(f"{self._path} is damaged", *causes, advice=advice):
                rows = self._connection.execute(query, batch).fetchall()
                answers = [(key, _answer(*columns)) for key, *columns in rows]
            yield from answers


def _answer(
    text: str, probabilities: str | None, prompt_tokens: int | None, new_tokens: int | None
) -> Answer:
    if not isinstance(text, str):
        raise ValueError("an answer is not a text")
    if probabilities is None:
        return Answer(text, None, prompt_tokens, new_tokens)
    by_number = {float(number): share for number, share in json.loads(probabilities).items()}
    return Answer(text, by_number, prompt_tokens, new_tokens)


@dataclass
class Usage:
    """Prompts sent, tokens of prompts and answers, and rows answered without a request.

    Tokens that the model does not report are estimated.
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
    """Client of a language model with a file of stored answers.

    Attributes:
        backend: The language model.
        usage: Requests and tokens over all calls.
    """

    def __init__(
        self,
        backend: Backend,
        stored: Path | str,
        *,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        probabilities: bool = False,
        progress: Progress = lambda done, rows: None,
    ) -> None:
        """Prepare without sending anything; answers are stored in an `AnswerStore`.

        A server's retries do not count as requests. A prompt under way counts with its estimated
        tokens and the longest answer. A stored answer without ``probabilities`` is requested again
        if they are needed.
        """
        self.backend = backend
        self.usage = Usage()
        self._path = Path(stored)
        self._max_requests, self._max_tokens = max_requests, max_tokens
        self._probabilities = probabilities
        self._progress = progress
        self._identity = backend.identity

    def missing(self, prompt_of: PromptOf, rows: int) -> list[int]:
        """Return the first row of each prompt that has no stored answer, in order."""
        waiting = self._rows_of_key(prompt_of, rows)
        for _ in self._take_stored(waiting):
            pass
        return [group[0] for group in waiting.values()]

    def answers(self, prompt_of: PromptOf, rows: int) -> Iterator[tuple[int, Answer]]:
        """Yield each row once with its answer: stored ones first, then others as they arrive.

        If the budget is used up or the model fails for good, this raises BudgetError or
        BackendError; the answers so far are stored.
        """
        waiting = self._rows_of_key(prompt_of, rows)
        yield from self._count_stored(waiting)
        done = rows - sum(map(len, waiting.values()))
        self._progress(done, rows)
        if not waiting:
            return
        self.check_lengths(prompt_of, (group[0] for group in waiting.values()))
        # A link to the file must lead to the same lock.
        path = self._path.resolve()
        lock = Path(f"{path}.{answer_key('', self._identity).hex()[:8]}.lock")
        busy = (
            f"Another process is asking this model with {self._path}. Wait until it is done, or "
            "name another file for the answers."
        )
        with locked(lock, busy=busy), AnswerStore(self._path) as store:
            # Another process may have answered rows before this one had the lock.
            yield from self._count_stored(waiting)
            done = rows - sum(map(len, waiting.values()))
            if waiting:
                self.backend.check()
            while waiting:
                rows_before = done
                for row, answer in self._ask(store, waiting, prompt_of):
                    done += 1
                    self._progress(done, rows)
                    yield row, answer
                # Tokens reserved for longest answers are free again, so another round may follow.
                if done == rows_before:
                    first_prompt = prompt_of(next(iter(waiting.values()))[0])
                    raise self._budget_error(first_prompt, done, rows)

    def check_lengths(self, prompt_of: PromptOf, rows: Iterable[int]) -> None:
        """Raise an InputError if the model cannot take a prompt of this length."""
        longest = self.backend.longest_prompt
        if longest is None:
            return
        for row in rows:
            tokens = self.backend.count_tokens(prompt_of(row))
            if tokens > longest:
                raise InputError(
                    f"Row {row + 1}: the prompt has {tokens:,} tokens; {self.backend.name!r} takes "
                    f"{longest:,} next to an answer of {self.backend.max_new_tokens}. Give fewer "
                    "examples, a shorter instruction or another model."
                )

    def _rows_of_key(self, prompt_of: PromptOf, rows: int) -> RowsOfKey:
        rows_of_key: RowsOfKey = {}
        for row in range(rows):
            rows_of_key.setdefault(answer_key(prompt_of(row), self._identity), []).append(row)
        return rows_of_key

    def _take_stored(self, waiting: RowsOfKey) -> Iterator[tuple[int, Answer]]:
        """Yield the rows that the file answers, and remove their keys."""
        if not self._path.exists():
            return
        with AnswerStore(self._path) as store:
            for key, answer in store.read(list(waiting)):
                if not self._probabilities or answer.probabilities is not None:
                    for row in waiting.pop(key):
                        yield row, answer

    def _count_stored(self, waiting: RowsOfKey) -> Iterator[tuple[int, Answer]]:
        for row, answer in self._take_stored(waiting):
            self.usage.stored += 1
            yield row, answer

    def _ask(
        self, store: AnswerStore, waiting: RowsOfKey, prompt_of: PromptOf
    ) -> Iterator[tuple[int, Answer]]:
        """Send prompts until the budget is reserved; store each answer as it arrives."""
        groups, usage = list(waiting.items()), self.usage
        reserved: dict[int, int] = {}
        prompts = self._within_budget((prompt_of(group[0]) for _, group in groups), reserved)
        answers = self.backend.answers(prompts, probabilities=self._probabilities)
        with closing(answers):
            try:
                for index, answer in answers:
                    key, group = groups[index]
                    prompt = prompt_of(group[0])
                    del reserved[index]
                    sent, received = answer.prompt_tokens, answer.new_tokens
                    usage.prompt_tokens += (
                        self.backend.count_tokens(prompt) if sent is None else sent
                    )
                    usage.new_tokens += (
                        self.backend.max_new_tokens if received is None else received
                    )
                    store.write(key, answer, prompt=prompt, identity=self._identity)
                    del waiting[key]
                    usage.stored += len(group) - 1
                    for row in group:
                        yield row, answer
            except BackendError as error:
                if error.index is None:
                    raise
                row = groups[error.index][1][0]
                raise BackendError(f"Row {row + 1}: {error}", index=row) from error

    def _within_budget(self, prompts: Iterable[str], reserved: dict[int, int]) -> Iterator[str]:
        """Pass prompts on until the budget is used up; the model reads them one by one."""
        usage = self.usage
        for index, prompt in enumerate(prompts):
            if self._max_requests is not None and usage.requests >= self._max_requests:
                return
            tokens = 0
            if self._max_tokens is not None:
                tokens = self._longest_exchange(prompt)
                if usage.tokens + sum(reserved.values()) + tokens > self._max_tokens:
                    return
            reserved[index] = tokens
            usage.requests += 1
            yield prompt

    def _longest_exchange(self, prompt: str) -> int:
        """Count the tokens of a prompt and its longest answer."""
        return self.backend.count_tokens(prompt) + self.backend.max_new_tokens

    def _budget_error(self, next_prompt: str, done: int, rows: int) -> BudgetError:
        usage = self.usage
        if self._max_requests is not None and usage.requests >= self._max_requests:
            spent = f"{usage.requests} of {self._max_requests} requests are used up"
        else:
            spent = (
                f"{usage.tokens} of {self._max_tokens} tokens are used up, and the next prompt "
                f"with its answer may need {self._longest_exchange(next_prompt)}"
            )
        return BudgetError(
            f"The budget is reached: {spent}. {done} of {rows} rows are answered and stored; allow "
            "more and run the same command again for the rest."
        )
