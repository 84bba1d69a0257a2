"""What Prometheus reads, and the middleware that counts."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        """Makes them, all 0."""
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "condsim_requests", "Requests answered.", ("route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "condsim_request_seconds",
            "From the head of a request to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batch_rows = Histogram(
            "condsim_batch_rows",
            "Rows that the model read at once.",
            buckets=_ROWS,
            registry=self.registry,
        )
        self.batch_seconds = Histogram(
            "condsim_batch_seconds",
            "Time the model took for a batch.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._queue = Gauge("condsim_queue_rows", "Rows that wait.", registry=self.registry)

    def watch_queue(self, rows: Callable[[], float]) -> None:
        """Takes the length of the queue from a function."""
        self._queue.set_function(rows)

    def observe_batch(self, rows: int, seconds: float) -> None:
        """Counts a batch."""
        self.batch_rows.observe(rows)
        self.batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """All of them as Prometheus reads them."""
        return generate_latest(self.registry)


class Measured:
    """Counts the requests of an app by route and status."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        """Wraps an app."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the app."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            # Only known routes, so that strange paths cannot make the table grow.
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - began)
