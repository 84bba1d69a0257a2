"""What Prometheus reads, and the middleware that counts."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """Counters of one server, all 0, in a registry of their own."""

    def __init__(self) -> None:
        own = self.registry = CollectorRegistry()
        ProcessCollector(registry=own)
        route, both = ("route",), ("route", "status")
        self.requests = Counter("condsim_requests", "Requests answered.", both, registry=own)
        self.seconds = Histogram(
            "condsim_request_seconds",
            "From the head of a request to the end of its answer.",
            route,
            buckets=_SECONDS,
            registry=own,
        )
        self.rows = Histogram(
            "condsim_batch_rows", "Rows that the model read at once.", buckets=_ROWS, registry=own
        )
        self.took = Histogram(
            "condsim_batch_seconds", "The model's time for a batch.", buckets=_SECONDS, registry=own
        )
        self.queue = Gauge("condsim_queue_rows", "Rows that wait.", registry=own)


class Measured:
    """Counts the requests of an app by route and status."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the app."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

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
