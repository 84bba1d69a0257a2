"""Where a server is, and the key that is sent there and never shown."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from condsim.errors import InputError

_OPENAI = "https://api.openai.com/v1"
_LONGEST = 300
SECRET = 8
"""Characters of a key that is no word of an answer."""


@dataclass(frozen=True)
class Address:
    """A server and its key.

    Attributes:
        url: The base URL, without a slash at its end.
        local: Whether it is on this machine.
        key: The key, or a placeholder for a server on this machine; not in the ``repr``.
    """

    url: str
    local: bool
    key: str = field(default="", repr=False)

    def clean(self, text: str) -> str:
        """A text of the server as one line of at most 300 characters, without the key."""
        line = " ".join(self.masked(text).split())
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."

    def masked(self, text: str) -> str:
        """A text without the key."""
        if self.key:
            # A short key, such as the "x" of a server that wants none, may be part of other words.
            edges = ("", "") if len(self.key) >= SECRET else (r"(?<!\w)", r"(?!\w)")
            forms = {self.key, json.dumps(self.key)[1:-1], quote(self.key, safe="")}
            shown = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
            text = re.sub(f"{edges[0]}(?:{shown}){edges[1]}", "***", text)
        return text


def base_address(base_url: str | None) -> Address:
    """Checks a base URL; None stands for ``OPENAI_BASE_URL``, else OpenAI's own."""
    where = "base_url"
    if base_url is None:
        base_url, where = os.environ.get("OPENAI_BASE_URL") or _OPENAI, "OPENAI_BASE_URL"
    url = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not url.isprintable() or parts.scheme not in ("http", "https"):
        shown = "" if "@" in url else f" Got {url!r}."
        raise InputError(
            f"The {where} must be an http:// or https:// URL such as 'http://localhost:8000/v1'."
            f"{shown}"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise InputError(
            f"The {where} must hold no user name, password or query: the key goes into "
            "OPENAI_API_KEY."
        )
    return Address(url=url, local=_is_local(host))


def environment_key(address: Address) -> Address:
    """Adds the key of the environment to an address."""
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and not address.local:
        raise InputError(
            f"No key for {address.url}: set OPENAI_API_KEY in the environment (any text if the "
            "server wants none)."
        )
    if not all("!" <= letter <= "~" for letter in key):
        raise InputError(
            "OPENAI_API_KEY must be ASCII letters, digits and signs without spaces: what is set "
            "holds something else; copy it again."
        )
    return replace(address, key=key or "none")


def _is_local(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip = ip_address(host)
    except ValueError:
        return False
    return ip.is_loopback or ip.is_unspecified
