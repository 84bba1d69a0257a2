"""The limits of a server, its API keys, and the middleware for both and for Prometheus."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from pydantic import Field
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from condsim.config import Settings
from condsim.errors import InputError
from condsim.io import read_text
from condsim.serving.errors import RequestError, error_response

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s?#@*A-Z]+")
_OPEN_PATHS = ("/", "/health", "/ready", "/openapi.json")
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


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
        time_limit: Seconds for a request to be answered, and, up to 30, for it to arrive.
    """

    subject: ClassVar[str] = "serving"

    max_bytes: int = Field(default=8 * 2**20, ge=1)
    max_rows: int = Field(default=2048, ge=1)
    max_characters: int = Field(default=50_000, ge=1)
    queue_rows: int = Field(default=8192, ge=1)
    batch_rows: int = Field(default=64, ge=1)
    batch_wait: float = Field(default=0.002, ge=0, le=1)
    # 1,000 texts of 1,000 characters, as LangChain sends them, take most of it on a busy machine.
    time_limit: float = Field(default=120, gt=0, le=3600)

    @property
    def arrival_limit(self) -> float:
        """Seconds for a request to arrive."""
        return min(self.time_limit, 30)


def _is_key(key: object) -> bool:
    """Check that a header can hold a key, and that no request without one matches it."""
    return (
        isinstance(key, str)
        and key.isascii()
        and key.isprintable()
        and " " not in key
        and key != ""
    )


def read_keys(path: Path) -> tuple[str, ...]:
    """Read API keys, one a line; errors do not show them."""
    keys = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not (key := line.strip()):
            continue
        if not _is_key(key):
            raise InputError(
                f"--api-key-file: {path}:{number}: a key must be printable ASCII without spaces."
            )
        keys.append(key)
    if not keys:
        raise InputError(f"--api-key-file: {path} contains no key; write one on a line.")
    return tuple(keys)


def checked_keys(keys: str | Sequence[str]) -> list[str]:
    """List API keys, of which a single one may be given as a text; errors do not show them."""
    listed = [keys] if isinstance(keys, str) else list(keys)
    if not all(map(_is_key, listed)):
        raise InputError("Each of the 'keys' must be a str of printable ASCII without spaces.")
    return listed


def checked_origins(origins: str | Sequence[str]) -> list[str]:
    """List origins as browsers send them, of which a single one may be given as a text."""
    listed = [origins] if isinstance(origins, str) else list(origins)
    for origin in listed:
        if origin != "*" and not (isinstance(origin, str) and _ORIGIN.fullmatch(origin)):
            raise InputError(
                "An allowed origin (--allow-origin) must have the form 'https://host' or "
                f"'https://host:port', without a path, or be '*'; got {origin!r}."
            )
    return listed


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


class Guard:
    """Guard against callers without a key, and bodies that are too large, too slow or not JSON.

    The key is checked before anything is read. All may ask if there are no keys.
    """

    def __init__(self, app: ASGIApp, *, settings: ServingSettings, keys: Sequence[str]) -> None:
        self._app, self._settings = app, settings
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app, with limits on what it receives."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._may_ask(scope):
            await self._app(scope, self._limited(scope, receive), send)
        else:
            error = RequestError(401, "Give a key of this server: 'Authorization: Bearer KEY'.")
            await error_response(error)(scope, receive, send)

    def _may_ask(self, scope: Scope) -> bool:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        is_open = path in _OPEN_PATHS or path.startswith("/page/")
        # A POST to / embeds texts. A browser asks with OPTIONS first, and cannot send a key there.
        open_methods = ("GET", "OPTIONS") if is_open else ("OPTIONS",)
        if not self._keys or scope["method"] in open_methods:
            return True
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        # Every key is compared, in the same time for every wrong one.
        matches = [hmac.compare_digest(key.strip().encode(), own_key) for own_key in self._keys]
        return scheme.lower() == "bearer" and any(matches)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Wrap a receive function so that it raises a RequestError at the first broken limit."""
        settings = self._settings
        headers = Headers(scope=scope)
        length = headers.get("content-length", "")
        # Python does not convert numbers of thousands of digits.
        announced = int(length[:19]) if length.isdecimal() else 0
        received = 0
        deadline = asyncio.get_running_loop().time() + settings.arrival_limit

        async def limited() -> Message:
            nonlocal received
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RequestError(415, "The 'Content-Type' must be application/json.")
            encoding = headers.get("content-encoding", "").strip().lower()
            if encoding not in ("", "identity"):
                raise RequestError(
                    415,
                    f"The body must not be compressed; got 'Content-Encoding: {encoding[:40]}'.",
                )
            message: Message = {}
            if announced <= settings.max_bytes:
                try:
                    async with asyncio.timeout_at(deadline):
                        message = await receive()
                except TimeoutError:
                    limit = f"{settings.arrival_limit:g} s"
                    raise RequestError(408, f"The body took longer than {limit}.") from None
                received += len(message.get("body", b""))
            if max(announced, received) > settings.max_bytes:
                raise RequestError(
                    413,
                    f"The body may have {settings.max_bytes} bytes (--max-bytes); send several "
                    "requests.",
                )
            return message

        return limited


class PlainRequests:
    """Middleware that answers HEAD as GET, without the body, and drops a slash at a path's end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        own_path = scope["path"].removeprefix(scope.get("root_path", ""))
        if len(own_path) > 1 and own_path.endswith("/"):
            scope["path"] = scope["path"].rstrip("/") or "/"
        if scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        scope["method"] = "GET"

        async def send_head(message: Message) -> None:
            if "body" in message:
                message["body"] = b""
            await send(message)

        await self._app(scope, receive, send_head)


class ServerMetrics:
    """Counters of one server, in a separate registry."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "condsim_requests", "Requests answered.", ("route", "status"), registry=registry
        )
        self.request_seconds = Histogram(
            "condsim_request_seconds",
            "From the head of a request to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.batch_rows = Histogram(
            "condsim_batch_rows", "Rows in a batch.", buckets=_ROWS, registry=registry
        )
        self.queue_rows = Gauge("condsim_queue_rows", "Rows that wait.", registry=registry)


class RequestCounter:
    """Counter of the requests of an app by route and status."""

    def __init__(self, app: ASGIApp, *, metrics: ServerMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            # Only known routes, so that strange paths cannot make the table grow.
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.request_seconds.labels(route).observe(time.perf_counter() - start)
