"""The app, the page to try the model, and the server that runs them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import generate_latest
from uvicorn.protocols.http.h11_impl import H11Protocol

from condsim import __version__
from condsim.errors import one_line
from condsim.labeling import Session
from condsim.loading import load_encoder
from condsim.model.base import PairScorer
from condsim.model.criterion import Criterion
from condsim.serving import routes, verdict
from condsim.serving.errors import RESPONSES, RequestError, handle_errors
from condsim.serving.label import LabelDesk, label_router
from condsim.serving.middleware import (
    Guard,
    PlainRequests,
    RequestCounter,
    ServingSettings,
    checked_keys,
    checked_origins,
)
from condsim.serving.schemas import ModelCard, ModelList, ServerInfo, Status
from condsim.serving.service import Service, SharedService

if TYPE_CHECKING:
    from condsim.model.judge import Judge
    from condsim.search.index import Index

# Open connections; further ones are answered 503.
_MAX_CONNECTIONS = 4096
_HEAD_SECONDS = 10.0
_HEAD_BYTES = 32 * 1024
# Time for which a connection without a request stays open.
_IDLE_SECONDS = 60
_DESCRIPTION = (
    "How similar are two texts, with respect to X? Every error has the form "
    '`{"error": {"message": "…", "type": "…"}}`.'
)

router = APIRouter()
# The page to try the model: hand-written files that load nothing from elsewhere.
page_router = APIRouter(include_in_schema=False)

_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_FILES = {
    file.name: file.read_bytes()
    for file in files("condsim.serving").joinpath("page").iterdir()
    if file.name.partition(".")[2] in _MEDIA_TYPES
}


def create_app(
    scorer: PairScorer,
    *,
    settings: ServingSettings | None = None,
    keys: str | Sequence[str] = (),
    index: Index | None = None,
    origins: str | Sequence[str] = (),
    criteria: Mapping[str, Criterion] | None = None,
    session: Session[Any] | None = None,
    judge: Judge | None = None,
) -> FastAPI:
    """Create the app that ``condsim serve`` runs, for any ASGI server.

    Run one process of it for each model; requests are batched within the process.

    Args:
        scorer: A loaded model, such as ``condsim.load()`` returns.
        settings: The limits.
        keys: API keys, one of which callers must give, or the only one; without any, all may ask.
        index: Index for `/v1/search`, opened with the same model.
        origins: Origins whose pages may ask from a browser (CORS), such as
            ``https://app.example``; ``*`` for all. None by default.
        criteria: Learned criteria; a condition of their name stands for each.
        session: Texts to label on the page ``/label``, as `LabelSession.open` gives it.
        judge: Judge of `/v1/verdict`, such as `condsim.load_judge` returns.

    Returns:
        The app. Its life cycle (ASGI lifespan) starts and stops the thread of the model.

    Raises:
        InputError: If there is an index, and the model gives no embeddings; or if a key cannot be
            sent, or an origin has another form.

    Example:
        >>> import condsim
        >>> create_app(condsim.load()).title
        'condsim'
    """
    settings = settings or ServingSettings()
    if criteria:
        scorer = load_encoder(scorer).with_criteria(criteria)
    service = Service(scorer, settings=settings, index=index, criteria=criteria or (), judge=judge)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        await service.batcher.stop()

    # FastAPI's own pages would load scripts from elsewhere.
    app = FastAPI(
        title="condsim",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    handle_errors(app)
    app.add_middleware(Guard, settings=settings, keys=checked_keys(keys))
    app.add_middleware(PlainRequests)
    if allowed := checked_origins(origins):
        app.add_middleware(
            CORSMiddleware,
            allow_origins=allowed,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(RequestCounter, metrics=service.metrics)
    # "default" keeps FastAPI from documenting its own form of errors.
    responses = {**RESPONSES, "default": RESPONSES[400]}
    for part in (routes.router, verdict.router):
        app.include_router(part, responses=responses)
    app.include_router(router)
    app.include_router(page_router)
    if session is not None:
        app.include_router(label_router(LabelDesk(session)))
        app.add_api_route("/label", _label_page, include_in_schema=False)
    return app


@router.get("/health")
async def health(service: SharedService) -> Status:
    """Report that the process lives."""
    return Status(model=service.name, version=__version__)


@router.get("/ready", responses={503: RESPONSES[503]})
async def ready(service: SharedService) -> Status:
    """Report whether requests are accepted."""
    if not service.batcher.running:
        raise RequestError(503, "The server is starting or stopping.", retry_after=1)
    return Status(model=service.name, version=__version__)


@router.get("/metrics", response_class=PlainTextResponse, responses={401: RESPONSES[401]})
async def metrics(service: SharedService) -> Response:
    """Return counters in the form of Prometheus."""
    text = generate_latest(service.metrics.registry)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


@router.get("/info", responses={401: RESPONSES[401]})
async def info(service: SharedService) -> ServerInfo:
    """Describe the server in the form of text-embeddings-inference."""
    limits = service.settings
    return ServerInfo(
        model_id=service.name,
        version=__version__,
        max_client_batch_size=limits.max_rows,
        max_batch_requests=limits.batch_rows,
    )


@router.get("/models", include_in_schema=False, response_model_exclude_none=True)
@router.get("/v1/models", responses={401: RESPONSES[401]}, response_model_exclude_none=True)
async def models(service: SharedService) -> ModelList:
    """List the model, and the columns and prepared conditions of the index, if there is one."""
    return ModelList(data=[_card(service)])


@router.get(
    "/v1/models/{name:path}",
    responses={401: RESPONSES[401], 404: RESPONSES[404], "default": RESPONSES[400]},
    response_model_exclude_none=True,
)
async def model(name: str, service: SharedService) -> ModelCard:
    """Describe the model by its name."""
    service.check_model(name)
    return _card(service)


def _card(service: Service) -> ModelCard:
    index = None
    if service.index is not None:
        about = service.index.about
        index = {"columns": list(about.columns), "prepared": list(about.prepared)}
    return ModelCard(id=service.name, index=index, criteria=list(service.criteria) or None)


class _Protocol(H11Protocol):
    """Closes connections on which a head does not arrive in time, however slowly it is sent."""

    _timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._timeout is None and self.conn.their_state is h11.IDLE:
            self._wait_for_head()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._timeout = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _cancel(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None


class _Server(uvicorn.Server):
    """Announces that it is open: from then on SIGTERM and Ctrl-C end it in good order."""

    on_open: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_open()


def run_server(
    app: FastAPI,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Run an app until SIGTERM or Ctrl-C, and finish the accepted requests.

    Port 0 takes a free one; ``announce`` is called with the address once it is open.
    """
    limits: ServingSettings = app.state.service.settings
    _raise_open_file_limit()
    with _listen(host, port) as listener:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=round(limits.arrival_limit + limits.time_limit) + 5,
            h11_max_incomplete_event_size=_HEAD_BYTES,
        )
        url_host = f"[{host}]" if ":" in host else host
        address = f"http://{url_host}:{listener.getsockname()[1]}"
        server = _Server(config)
        server.on_open = partial(announce, address)
        server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    message, advice = f"Cannot listen at {host}, port {port}", "Give another --host or --port."
    with one_line(message, OSError, OverflowError, UnicodeError, advice=advice):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)


def _raise_open_file_limit() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        required = _MAX_CONNECTIONS + 256
        if soft != resource.RLIM_INFINITY and soft < required:
            limit = required if hard == resource.RLIM_INFINITY else min(required, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


@page_router.get("/")
async def playground() -> Response:
    """Return the page."""
    return await page_file("index.html")


async def _label_page() -> Response:
    return await page_file("label.html")


@page_router.get("/page/{name}")
async def page_file(name: str) -> Response:
    """Return a file of the page; it needs no key, since the page asks for one."""
    if name not in _FILES:
        raise RequestError(404, "The page does not have this file.")
    media_type = _MEDIA_TYPES[name.partition(".")[2]]
    return Response(_FILES[name], media_type=media_type, headers=_HEADERS)
