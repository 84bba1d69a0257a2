"""Runs an app with uvicorn at an address that was checked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from condsim.errors import InputError
from condsim.serving.service import Service

if TYPE_CHECKING:
    from fastapi import FastAPI

_CONNECTIONS = 4096  # open at once; more are answered 503
_HEAD_SECONDS = 10.0  # for the head of a request to arrive
_HEAD_BYTES = 32 * 1024
_IDLE_SECONDS = 60  # for which a connection without a request stays open


class _Protocol(H11Protocol):
    """Closes connections on which a head does not arrive in time, however slowly it is sent."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._due is None and self.conn.their_state is h11.IDLE:
            self._wait_for_head()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._due = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _cancel(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def serve(
    app: FastAPI,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Runs an app until SIGTERM or Ctrl-C, and finishes what it has accepted.

    Args:
        app: What `create_app` gives.
        host: Where to listen; `check_address` says whether that is safe.
        port: The port; 0 takes a free one.
        announce: Called with the address, such as ``http://127.0.0.1:8000``, once it is open.

    Raises:
        InputError: If the address cannot be had.
        KeyboardInterrupt: After Ctrl-C.
    """
    service: Service = app.state.service
    _allow_connections()
    with _listening(host, port) as listening:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=round(2 * service.settings.time_limit) + 5,
            h11_max_incomplete_event_size=_HEAD_BYTES,
        )
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{listening.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"Cannot listen at {host}, port {port}: {reason}. Give another --host or --port."
        ) from None


def _allow_connections() -> None:
    """Raises the limit of open files, where the system has one, as far as it lets us."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _CONNECTIONS + 256
        if soft != resource.RLIM_INFINITY and soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
