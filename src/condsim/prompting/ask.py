"""Asks each prompt once: stored answers first, then the model, within a budget."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from condsim.cache import locked
from condsim.errors import BackendError, BudgetError, InputError
from condsim.io import Closing
from condsim.prompting.backend import Answer, Backend

_SCHEMA = """
create table if not exists answers (
    key blob primary key,            -- SHA-256 of identity and prompt
    identity text not null,          -- JSON: model, back end and settings
    prompt text not null,
    text text not null,
    probabilities text,              -- JSON: number -> probability; null: not asked for
    prompt_tokens integer,
    new_tokens integer,
    created text not null default current_timestamp
) without rowid
"""
_VERSION = 1
_ASKED_AT_ONCE = 500  # keys in one query; SQLite allows more


def answer_key(prompt: str, identity: Mapping[str, str]) -> bytes:
    """Hashes what decides an answer.

    Returns:
        32 bytes.
    """
    content = json.dumps([sorted(identity.items()), prompt], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


class AnswerStore(Closing):
    """A SQLite file of answers; use it as a context manager.

    Each answer survives the process as soon as it is written. Several processes may share a file.
    """

    def __init__(self, path: Path | str) -> None:
        """Opens a file, or makes it.

        Args:
            path: The file. Missing folders are made.

        Raises:
            InputError: If the file cannot be opened or is no store of this version.
        """
        self._path = path
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=60)
            (version,) = self._connection.execute("pragma user_version").fetchone()
            known = {row[0] for row in self._connection.execute("select name from sqlite_schema")}
            if version not in (0, _VERSION) or (version == 0 and known):
                raise InputError(
                    f"{path} is no store of answers that this condsim reads (version {version}). "
                    "Name another file; it is made if it does not exist."
                )
            self._connection.execute("pragma journal_mode = wal")  # one sync for many answers
            self._connection.execute("pragma synchronous = normal")
            self._connection.execute(_SCHEMA)
            self._connection.execute(f"pragma user_version = {_VERSION}")
        except (sqlite3.Error, OSError) as error:
            raise InputError(
                f"{path} cannot be used to store answers: {error}. Name a file that can be "
                "written, or one that 'condsim prompt' made."
            ) from error

    def __len__(self) -> int:
        (count,) = self._connection.execute("select count(*) from answers").fetchone()
        return int(count)

    def close(self) -> None:
        """Closes the file; what is written stays."""
        self._connection.close()

    def write(
        self, key: bytes, answer: Answer, *, prompt: str, identity: Mapping[str, str]
    ) -> None:
        """Writes an answer; one to the same `answer_key` is replaced.

        Args:
            key: What `answer_key` gives for the prompt and the identity.

        Raises:
            InputError: If the file cannot be written, on a full disk for example.
        """
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
        try:
            self._connection.execute(
                "insert or replace into answers (key, identity, prompt, text, probabilities, "
                "prompt_tokens, new_tokens) values (?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        except sqlite3.Error as error:
            raise InputError(
                f"{self._path}: an answer cannot be stored: {error}. Those before it are kept; "
                "make room and run the same command again."
            ) from error

    def read(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Answer]]:
        """Reads the answers that there are, in any order.

        Yields:
            Key and answer of those in the file.
        """
        rest = iter(keys)
        while some := list(islice(rest, _ASKED_AT_ONCE)):
            query = (
                "select key, text, probabilities, prompt_tokens, new_tokens from answers "
                f"where key in ({','.join('?' * len(some))})"
            )
            try:
                with closing(self._connection.execute(query, some)) as found:
                    answers = [(key, _stored(*row)) for key, *row in found.fetchall()]
            except (sqlite3.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
                raise InputError(
                    f"{self._path} is a damaged store of answers: {error}. Name another file, or "
                    "remove it: its requests are sent again."
                ) from error
            yield from answers


def _stored(text: object, shares: str | None, *tokens: int | None) -> Answer:
    if not isinstance(text, str) or not all(isinstance(one, int | None) for one in tokens):
        raise TypeError("an answer must be a text, its tokens numbers")
    if shares is None:
        return Answer(text, None, *tokens)
    probabilities = {float(value): share for value, share in json.loads(shares).items()}
    return Answer(text, probabilities, *tokens)


PromptOf = Callable[[int], str]
"""Gives the prompt of a row; called anew when it is needed, so that only keys are held."""


@dataclass(frozen=True)
class Budget:
    """What a run may ask for; the rest is left for a later one. None is no limit."""

    requests: int | None = None  # prompts to send at most; a server's retries do not count
    # Tokens of prompts and answers together at most; a prompt that is under way counts with its
    # estimate and the longest answer.
    tokens: int | None = None


@dataclass
class Usage:
    """What was asked so far."""

    stored: int = 0  # rows answered from the store, or by the answer to an equal row
    requests: int = 0  # prompts sent
    prompt_tokens: int = 0  # of those; estimated where the back end does not tell
    new_tokens: int = 0  # of the answers

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers."""
        return self.prompt_tokens + self.new_tokens


class Asker:
    """Asks a back end through a file of stored answers.

    Attributes:
        backend: What answers.
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
            stored: File where answers are looked up and kept; see `AnswerStore`.
            budget: Limit over all calls; none by default.
            probabilities: Whether answers need the probabilities of the numbers. A stored answer
                that was asked for without them is asked for again.
            progress: Called with the rows answered and their number.
        """
        self.backend = backend
        self.usage = Usage()
        self._path = Path(stored)
        self._budget = budget or Budget()
        self._probabilities = probabilities
        self._progress = progress or (lambda done, rows: None)
        self._identity = backend.identity
        self._reserved = 0  # tokens of the prompts under way
        self._checked = False

    def missing(self, prompt_of: PromptOf, rows: int) -> list[int]:
        """Finds the rows that are still to be asked; nothing is asked.

        Returns:
            The first row of each prompt that has no stored answer, in order.
        """
        sharing = self._rows_by_key(prompt_of, rows)
        for _ in self._from_store(sharing):
            pass  # its key is taken out
        return [group[0] for group in sharing.values()]

    def count_tokens(self, prompt_of: PromptOf, rows: Iterable[int]) -> int:
        """Counts the tokens of prompts; exact for a local model, an estimate for a server."""
        return sum(self.backend.count_tokens(prompt_of(row)) for row in rows)

    def stored(self, prompt_of: PromptOf, rows: int) -> Iterator[tuple[int, Answer]]:
        """Gives the answers that are stored; nothing is asked.

        Yields:
            Row and answer of those there are, in any order.
        """
        yield from self._from_store(self._rows_by_key(prompt_of, rows))

    def answers(self, prompt_of: PromptOf, rows: int) -> Iterator[tuple[int, Answer]]:
        """Answers rows: first those that are stored, then the others as they arrive.

        Yields:
            Row and answer, each row once.

        Raises:
            InputError: If another process is asking this model with the same file.
            BudgetError: If the budget does not reach for all rows; what was answered is stored.
            BackendError: If the back end fails for good; likewise.
        """
        sharing = self._rows_by_key(prompt_of, rows)
        done = 0
        for row, answer in self._from_store(sharing):
            self.usage.stored += 1
            done += 1
            yield row, answer
        self._progress(done, rows)
        if not sharing:
            return
        self.check_lengths(prompt_of, (group[0] for group in sharing.values()))
        _check_place(self._path)
        if not self._checked:
            self.backend.check()
            self._checked = True
        path = self._path.resolve()  # the same file by another name has the same lock
        lock = Path(f"{path}.{answer_key('', self._identity).hex()[:8]}.lock")
        busy = (
            f"Another process is asking this model with {self._path}. Wait until it is done, or "
            "name another file for the answers."
        )
        with locked(lock, busy=busy), AnswerStore(self._path) as store:
            for row, answer in self._from_store(sharing):  # another process may just have asked
                self.usage.stored += 1
                done += 1
                yield row, answer
            while sharing:
                before = len(sharing)
                for key, answer in self._round(store, list(sharing.items()), prompt_of):
                    group = sharing.pop(key)
                    self.usage.stored += len(group) - 1
                    done += len(group)
                    self._progress(done, rows)
                    yield from ((row, answer) for row in group)
                # What was reserved for answers under way is free again: another round may follow.
                if len(sharing) == before:
                    raise self._used_up(prompt_of(next(iter(sharing.values()))[0]), done, rows)

    def check_lengths(self, prompt_of: PromptOf, rows: Iterable[int]) -> None:
        """Makes sure that the model takes prompts of this length.

        Raises:
            InputError: If one is too long.
        """
        longest = self.backend.longest_prompt
        if longest is None:
            return
        for row in rows:
            tokens = self.backend.count_tokens(prompt_of(row))
            if tokens > longest:
                raise InputError(
                    f"Row {row + 1}: its prompt has {tokens:,} tokens, and {self.backend.name!r} "
                    f"takes {longest:,} beside an answer of {self.backend.max_new_tokens}. Give "
                    "fewer examples, a shorter instruction or another model."
                )

    def _from_store(self, sharing: dict[bytes, list[int]]) -> Iterator[tuple[int, Answer]]:
        """Rows that are answered in the file; their keys are taken out."""
        if not self._path.exists():
            return
        with AnswerStore(self._path) as store:
            for key, answer in store.read(list(sharing)):
                if not self._probabilities or answer.probabilities is not None:
                    yield from ((row, answer) for row in sharing.pop(key))

    def _round(
        self, store: AnswerStore, waiting: Sequence[tuple[bytes, list[int]]], prompt_of: PromptOf
    ) -> Iterator[tuple[bytes, Answer]]:
        """Sends prompts until the budget is reserved; each answer is stored as it comes."""
        sent: list[int] = []  # tokens reserved for each prompt
        self._reserved = 0
        prompts = self._within_budget((prompt_of(group[0]) for _, group in waiting), sent)
        answers = self.backend.answers(prompts, probabilities=self._probabilities)
        with closing(answers):
            try:
                for place, answer in answers:
                    key, group = waiting[place]
                    prompt = prompt_of(group[0])
                    self._reserved -= sent[place]
                    self._count(prompt, answer)
                    store.write(key, answer, prompt=prompt, identity=self._identity)
                    yield key, answer
            except BackendError as error:
                if error.place is None:
                    raise
                row = waiting[error.place][1][0]
                raise BackendError(f"Row {row + 1}: {error}", place=row) from error

    def _rows_by_key(self, prompt_of: PromptOf, rows: int) -> dict[bytes, list[int]]:
        sharing: dict[bytes, list[int]] = {}
        for row in range(rows):
            sharing.setdefault(answer_key(prompt_of(row), self._identity), []).append(row)
        return sharing

    def _within_budget(self, prompts: Iterator[str], sent: list[int]) -> Iterator[str]:
        """Passes prompts on until the budget is used up; the back end reads them one by one."""
        budget = self._budget
        for prompt in prompts:
            if budget.requests is not None and self.usage.requests >= budget.requests:
                return
            needed = 0 if budget.tokens is None else self._needed(prompt)
            if budget.tokens is not None:
                if self.usage.tokens + self._reserved + needed > budget.tokens:
                    return
            self.usage.requests += 1
            self._reserved += needed
            sent.append(needed)
            yield prompt

    def _needed(self, prompt: str) -> int:
        """Tokens of a prompt and the longest answer to it."""
        return self.backend.count_tokens(prompt) + self.backend.max_new_tokens

    def _used_up(self, prompt: str, done: int, rows: int) -> BudgetError:
        budget, usage = self._budget, self.usage
        if budget.requests is not None and usage.requests >= budget.requests:
            spent = f"{usage.requests} of {budget.requests} requests are used up"
        else:
            spent = (
                f"{usage.tokens} of {budget.tokens} tokens are used up, and the next prompt with "
                f"its answer may need {self._needed(prompt)}"
            )
        return BudgetError(
            f"The budget is reached: {spent}. {done} of {rows} rows are answered and kept; allow "
            "more and run the same again for the rest."
        )

    def _count(self, prompt: str, answer: Answer) -> None:
        told, new = answer.prompt_tokens, answer.new_tokens
        self.usage.prompt_tokens += self.backend.count_tokens(prompt) if told is None else told
        self.usage.new_tokens += self.backend.max_new_tokens if new is None else new


def _check_place(path: Path) -> None:
    """Refuses a file that cannot be made or written, before anything is asked."""
    place = next(one for one in (path, *path.absolute().parents) if one.exists())
    if not os.access(place, os.W_OK) or (place != path and not place.is_dir()):
        raise InputError(
            f"{path} cannot be used to store answers: {place} cannot be written. Name another file."
        )
