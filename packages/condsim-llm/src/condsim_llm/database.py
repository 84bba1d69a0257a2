"""SQLite files of answers and annotations."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from condsim.errors import one_line


def open_database(
    path: Path, schema: str, *, version: int, subject: str, autocommit: bool = False
) -> sqlite3.Connection:
    """Open or create a SQLite file; refuse one of another kind or version."""
    with one_line(f"{path} cannot be used as {subject}", sqlite3.Error, OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            path, timeout=60, isolation_level=None if autocommit else "DEFERRED"
        )
        (stored,) = connection.execute("pragma user_version").fetchone()
        (tables,) = connection.execute("select count(*) from sqlite_schema").fetchone()
        if stored != version and (stored or tables):
            raise sqlite3.DatabaseError("it is another database, or of another version of condsim")
        connection.executescript(f"{schema}; pragma user_version = {version}")
        return connection
