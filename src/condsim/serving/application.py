"""The app: routes, life cycle and errors put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse, Response

from condsim import __version__
from condsim.scorers import PairScorer
from condsim.serving import routes
from condsim.serving.metrics import Measured
from condsim.serving.problems import RESPONSES, RequestError, answer_in_one_form
from condsim.serving.schemas import ModelCard, ModelsAnswer, Status
from condsim.serving.service import Service, service_of
from condsim.serving.settings import ServingSettings

_ABOUT = (
    "How similar are two texts, with respect to X? Every error has the form "
    '`{"error": {"message": "…", "type": "…"}}`.'
)

router = APIRouter()

ROUTERS = (router, routes.router)
"""All routes of the app; `condsim.serving.service.post` adds one that asks the model."""


def create_app(
    scorer: PairScorer,
    *,
    settings: ServingSettings | None = None,
    keys: Sequence[str] = (),
    name: str | None = None,
) -> FastAPI:
    """Makes the app that ``condsim serve`` runs, for any ASGI server.

    Run one process of it for each model; requests are batched within the process.

    Args:
        scorer: A loaded model, such as ``condsim.load()`` gives.
        settings: The limits.
        keys: API keys, any of which callers must give; everybody may ask if there is none.
        name: What the model is called in answers; its own name by default.

    Returns:
        The app. Its life cycle (ASGI lifespan) starts and stops the thread of the model.

    Example:
        >>> import condsim
        >>> create_app(condsim.load()).title
        'condsim'
    """
    service = Service(
        scorer, settings=settings or ServingSettings(), keys=keys, name=name or scorer.name
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
    for one in ROUTERS:
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
    return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")


@router.get("/v1/models", responses={401: RESPONSES[401]})
async def models(request: Request) -> ModelsAnswer:
    """Lists the model."""
    service = service_of(request)
    service.authorise(request)
    return ModelsAnswer(data=[ModelCard(id=service.name)])
