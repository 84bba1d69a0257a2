"""Answers of language models in a SQLite file."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from condsim.errors import InputError
from condsim.io import Closing
from condsim.prompting.backend import Answer

# ``key`` is the SHA-256 hash of identity and prompt; ``identity`` and ``probabilities`` are JSON.
_SCHEMA = """
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


def answer_key(prompt: str, identity: Mapping[str, str]) -> bytes:
    """Hash everything that decides an answer into 32 bytes."""
    content = json.dumps([sorted(identity.items()), prompt], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


class AnswerStore(Closing):
    """A SQLite file of answers, opened or created; use it as a context manager.

    Each answer survives the process as soon as it is written. Several processes may share a file.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = path
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=60)
            (version,) = self._connection.execute("pragma user_version").fetchone()
            (tables,) = self._connection.execute("select count(*) from sqlite_schema").fetchone()
            if version != _SCHEMA_VERSION and (version or tables):
                raise sqlite3.DatabaseError("it is another kind of database")
            # One sync for many answers; a crash of the machine may lose the last few.
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = normal")
            self._connection.execute(_SCHEMA)
            self._connection.execute(f"pragma user_version = {_SCHEMA_VERSION}")
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{path} cannot be used to store answers: {error}.") from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

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
        try:
            self._connection.execute(
                "insert or replace into answers (key, identity, prompt, text, probabilities, "
                "prompt_tokens, new_tokens) values (?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        except (sqlite3.Error, OverflowError) as error:
            raise InputError(
                f"{self._path}: an answer cannot be stored: {error}. Make room and run the same "
                "command again; earlier answers are stored."
            ) from error

    def read(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, Answer]]:
        """Yield the keys that have an answer and their answers, in any order."""
        remaining_keys = iter(keys)
        while batch := list(islice(remaining_keys, _KEYS_PER_QUERY)):
            query = (
                "select key, text, probabilities, prompt_tokens, new_tokens from answers "
                f"where key in ({','.join('?' * len(batch))})"
            )
            try:
                rows = self._connection.execute(query, batch).fetchall()
                answers = [(key, _answer(*columns)) for key, *columns in rows]
            except (sqlite3.Error, ValueError, AttributeError) as error:
                raise InputError(
                    f"{self._path} is a damaged store of answers: {error}. Name another file, or "
                    "remove it to send its requests again."
                ) from error
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
