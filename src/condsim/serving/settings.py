"""The limits of a server, its API keys, and the addresses it may listen at."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from condsim.config import Settings
from condsim.errors import InputError


class ServingSettings(Settings):
    """What a server takes and how it batches.

    In a batch and in the queue, a row counts once for every 512 characters.
    """

    what: ClassVar[str] = "serving"

    max_bytes: int = Field(default=8 * 2**20, ge=1)
    """Longest body of a request."""
    max_rows: int = Field(default=2048, ge=1)
    """Most texts, documents or pairs times conditions of a request."""
    max_characters: int = Field(default=50_000, ge=1)
    """Longest text."""
    queue_rows: int = Field(default=8192, ge=1)
    """Most rows that wait; beyond that the answer is 429."""
    batch_rows: int = Field(default=64, ge=1)
    """Most rows that the model reads at once, from all callers together."""
    batch_wait: float = Field(default=0.002, ge=0, le=1)
    """Seconds for which an idle model waits for more callers."""
    time_limit: float = Field(default=30, gt=0, le=3600)
    """Seconds for a request to arrive, and again for it to be answered."""


def read_keys(path: Path) -> tuple[str, ...]:
    """Reads API keys, one a line; any of them opens the server.

    Args:
        path: The file.

    Returns:
        The keys, without empty lines.

    Raises:
        InputError: If the file cannot be read, has no key, or one that no HTTP header can hold. The
            message does not show it.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"--api-key-file: {path} cannot be read: {reason}.") from None
    keys = {number: line.strip() for number, line in enumerate(lines, start=1) if line.strip()}
    if not keys:
        raise InputError(f"--api-key-file: {path} holds no key; write one on a line.")
    for number, key in keys.items():
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise InputError(
                f"--api-key-file: {path}:{number}: a key must be of printable ASCII characters "
                "without spaces; write another."
            )
    return tuple(keys.values())


def check_address(host: str, *, has_key: bool) -> None:
    """Refuses to listen at an address that other machines can reach without an API key.

    Args:
        host: A name or an IP address.
        has_key: Whether callers need a key.

    Raises:
        InputError: If there is no key and the address is not the loopback of this machine.
    """
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local and not has_key:
        raise InputError(
            f"--host: other machines can reach {host!r}, so callers must need a key: give "
            "--api-key-file, or listen at 127.0.0.1."
        )
