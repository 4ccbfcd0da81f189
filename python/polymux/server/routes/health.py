"""What a server tells of itself: whether it lives, whether it is ready, what it can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native.version import __version__
from polymux.server.http.responses import send_json, send_whole
from polymux.server.openapi import openapi, reference_page
from polymux.server.routes.endpoint import Endpoint

if TYPE_CHECKING:
    from polymux.server.routes.endpoint import RequestContext

_PROMETHEUS = b"text/plain; version=0.0.4; charset=utf-8"


class Liveness(Endpoint):
    """``GET /healthz``: the process answers."""

    name = "health"
    methods = ("GET", "HEAD")
    public = True

    async def handle(self, asked: RequestContext) -> None:
        """Yes."""
        await send_json(asked.send, 200, {"status": "ok"}, request_id=asked.access.request_id)


class Readiness(Endpoint):
    """``GET /readyz`` and ``/api/v1/readiness``: work is taken; the state of each engine."""

    name = "ready"
    methods = ("GET", "HEAD")
    public = True

    async def handle(self, asked: RequestContext) -> None:
        """The engines' states; 503 while the server starts or stops."""
        ready = self.state.ready
        backends: dict[str, Any] = {}
        if ready:
            for name, backend in self.state.service.backends.items():
                health = backend.health()
                backends[name] = {"state": health.state}
                if health.detail:
                    backends[name]["detail"] = health.detail
        status = "ready" if ready else "stopping"
        body = {"status": status, "version": __version__, "backends": backends}
        await send_json(asked.send, 200 if ready else 503, body, request_id=asked.access.request_id)


class MetricsEndpoint(Endpoint):
    """``GET /metrics``, for Prometheus."""

    name = "metrics"
    loopback_public = True

    async def handle(self, asked: RequestContext) -> None:
        """All counters."""
        text = self.state.metrics.text(self.state.service if self.state.ready else None)
        fields = ((b"content-type", _PROMETHEUS),)
        await send_whole(asked.send, 200, text, fields, request_id=asked.access.request_id)


class Operations(Endpoint):
    """``GET /api/v1/operations``: the contract."""

    name = "operations"
    every_key = True

    async def handle(self, asked: RequestContext) -> None:
        """As ``polymux operations --json`` prints it."""
        await send_json(asked.send, 200, contract.describe(), request_id=asked.access.request_id)


class OpenApi(Endpoint):
    """``GET /openapi.json``."""

    name = "openapi"
    loopback_public = True

    async def handle(self, asked: RequestContext) -> None:
        """The contract as OpenAPI 3.1 has it."""
        body = openapi(self.state.settings.base_url)
        await send_json(asked.send, 200, body, request_id=asked.access.request_id)


class Docs(Endpoint):
    """``GET /docs``: the same for people, without anybody else's scripts."""

    name = "docs"
    loopback_public = True

    async def handle(self, asked: RequestContext) -> None:
        """One page."""
        fields = (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
            (b"x-content-type-options", b"nosniff"),
        )
        await send_whole(
            asked.send, 200, reference_page(), fields, request_id=asked.access.request_id
        )
