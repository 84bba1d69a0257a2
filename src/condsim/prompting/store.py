"""Answers kept on disk as they arrive, so that no prompt is asked, or paid for, twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path

from condsim.errors import InputError
from condsim.files import Closing
from condsim.prompting.backends import Answer

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
        probabilities = None if answer.probabilities is None else _to_json(answer.probabilities)
        row = (
            key,
            json.dumps(dict(identity), ensure_ascii=False),
            prompt,
            answer.text,
            probabilities,
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
            with closing(self._connection.execute(query, some)) as found:
                rows = found.fetchall()
            for key, text, shares, *tokens in rows:
                yield key, Answer(text, None if shares is None else _from_json(shares), *tokens)


def _to_json(probabilities: Mapping[float, float]) -> str:
    return json.dumps({repr(value): share for value, share in probabilities.items()})


def _from_json(text: str) -> dict[float, float]:
    return {float(value): share for value, share in json.loads(text).items()}
