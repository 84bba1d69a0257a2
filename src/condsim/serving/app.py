"""The app: routes, life cycle and errors put together; and how it runs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import generate_latest
from uvicorn.protocols.http.h11_impl import H11Protocol

from condsim import __version__
from condsim.errors import InputError
from condsim.model.base import PairScorer
from condsim.serving import playground, routes
from condsim.serving.errors import RESPONSES, RequestError, answer_in_one_form
from condsim.serving.metrics import Measured
from condsim.serving.schemas import Status
from condsim.serving.service import Service, service_of
from condsim.serving.settings import ServingSettings

if TYPE_CHECKING:
    from condsim.search.index import Index

_CONNECTIONS = 4096  # open at once; more are answered 503
_HEAD_SECONDS = 10.0  # for the head of a request to arrive
_HEAD_BYTES = 32 * 1024
_IDLE_SECONDS = 60  # for which a connection without a request stays open
_ABOUT = (
    "How similar are two texts, with respect to X? Every error has the form "
    '`{"error": {"message": "…", "type": "…"}}`.'
)

router = APIRouter()


def create_app(
    scorer: PairScorer,
    *,
    settings: ServingSettings | None = None,
    keys: Sequence[str] = (),
    index: Index | None = None,
) -> FastAPI:
    """Makes the app that ``condsim serve`` runs, for any ASGI server.

    Run one process of it for each model; requests are batched within the process.

    Args:
        scorer: A loaded model, such as ``condsim.load()`` gives.
        settings: The limits.
        keys: API keys, any of which callers must give; everybody may ask if there is none.
        index: What `/v1/search` searches, opened with the same model.

    Returns:
        The app. Its life cycle (ASGI lifespan) starts and stops the thread of the model.

    Raises:
        InputError: If there is an index, and the model gives no embeddings.

    Example:
        >>> import condsim
        >>> create_app(condsim.load()).title
        'condsim'
    """
    service = Service(
        scorer,
        settings=settings or ServingSettings(),
        keys=keys,
        index=index,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        await service.batcher.stop()

    # No page that loads a script from elsewhere.
    app = FastAPI(
        title="condsim",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    answer_in_one_form(app)
    app.add_middleware(Measured, metrics=service.metrics)
    for one in (router, routes.router, playground.router):
        app.include_router(one)
    return app


@router.get("/health")
async def health(request: Request) -> Status:
    """Says that the process lives."""
    return Status(model=service_of(request).name, version=__version__)


@router.get("/ready", responses={503: RESPONSES[503]})
async def ready(request: Request) -> Status:
    """Says whether requests are taken."""
    service = service_of(request)
    if not service.batcher.running:
        raise RequestError(503, "The server is starting or stopping.", retry_after=1)
    return Status(model=service.name, version=__version__)


@router.get("/metrics", response_class=PlainTextResponse, responses={401: RESPONSES[401]})
async def metrics(request: Request) -> Response:
    """Counters in the form of Prometheus."""
    service = service_of(request)
    service.authorise(request)
    return PlainTextResponse(
        generate_latest(service.metrics.registry), media_type="text/plain; version=0.0.4"
    )


@router.get("/v1/models", responses={401: RESPONSES[401]})
async def models(request: Request) -> dict[str, Any]:
    """Lists the model, and the columns and prepared conditions of the index, if there is one."""
    service = service_of(request)
    service.authorise(request)
    card: dict[str, Any] = {"id": service.name, "object": "model", "created": 0}
    card["owned_by"] = "condsim"
    if service.index is not None:
        about = service.index.about
        card["index"] = {"columns": list(about.columns), "prepared": list(about.prepared)}
    return {"object": "list", "data": [card]}


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


class _Server(uvicorn.Server):
    """Says when it is open: from then on SIGTERM and Ctrl-C end it in good order."""

    def __init__(self, config: uvicorn.Config, opened: Callable[[], None]) -> None:
        super().__init__(config)
        self._opened = opened

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._opened()


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
        address = f"http://{shown}:{listening.getsockname()[1]}"
        _Server(config, lambda: announce(address)).run(sockets=[listening])


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
