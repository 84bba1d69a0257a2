"""The limits of a server, its API keys, and the addresses to listen at."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from condsim.config import Settings
from condsim.errors import InputError
from condsim.io import read_text


class ServingSettings(Settings):
    """Limits of a server and of its batches.

    In a batch and in the queue, a row counts once for every 512 characters.

    Attributes:
        max_bytes: Longest body of a request.
        max_rows: Maximum texts, documents or pairs times conditions of a request.
        max_characters: Longest text.
        queue_rows: Maximum rows that wait; beyond that the answer is 429.
        batch_rows: Maximum rows in a batch, from all callers together.
        batch_wait: Seconds for which an idle model waits for more callers.
        time_limit: Seconds for a request to arrive, and again for it to be answered.
    """

    subject: ClassVar[str] = "serving"

    max_bytes: int = Field(default=8 * 2**20, ge=1)
    max_rows: int = Field(default=2048, ge=1)
    max_characters: int = Field(default=50_000, ge=1)
    queue_rows: int = Field(default=8192, ge=1)
    batch_rows: int = Field(default=64, ge=1)
    batch_wait: float = Field(default=0.002, ge=0, le=1)
    time_limit: float = Field(default=30, gt=0, le=3600)


def read_keys(path: Path) -> tuple[str, ...]:
    """Read API keys, one a line; errors do not show them."""
    keys = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        key = line.strip()
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise InputError(
                f"--api-key-file: {path}:{number}: a key must be printable ASCII without spaces."
            )
        if key:
            keys.append(key)
    if not keys:
        raise InputError(f"--api-key-file: {path} contains no key; write one on a line.")
    return tuple(keys)


def check_address(host: str, *, has_key: bool) -> None:
    """Refuse to listen at an address that other machines can reach, unless callers need a key."""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local and not has_key:
        raise InputError(
            f"--host: other machines can reach {host!r}, so callers must need a key: give "
            "--api-key-file, or listen at 127.0.0.1."
        )
