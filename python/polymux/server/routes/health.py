"""Health, readiness, metrics, operations and API documentation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux._native.version import __version__
from polymux.server.openapi import openapi, reference_page
from polymux.server.routes.endpoint import Endpoint
from polymux.service.model import OperationRequest, Upload

if TYPE_CHECKING:
    from polymux.contract import Field, Variant
    from polymux.server.routes.endpoint import RequestContext

#: Chat model of clients that select none.
_FIRST_MODEL = "default"
#: Stands for a file of a request that is never sent.
_FILE = Upload(Path("example"), "example", "application/octet-stream", 0)
_PROMETHEUS = b"text/plain; version=0.0.4; charset=utf-8"


class Liveness(Endpoint):
    """``GET /healthz``: the process responds."""

    name = "health"
    kind = "monitoring"
    methods = ("GET", "HEAD")
    public = True
    any_address = True

    async def handle(self, asked: RequestContext) -> Any:  # noqa: ARG002
        return {"status": "ok"}


class Readiness(Endpoint):
    """``GET /readyz`` and ``/api/v1/readiness``: whether the server accepts work."""

    name = "ready"
    kind = "monitoring"
    methods = ("GET", "HEAD")
    public = True
    any_address = True

    async def handle(self, asked: RequestContext) -> None:
        """Return the state of each engine; 503 while the server starts or stops."""
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
        await asked.send_json(200 if ready else 503, body)


class MetricsEndpoint(Endpoint):
    """``GET /metrics``, for Prometheus."""

    name = "metrics"
    kind = "monitoring"
    loopback_public = True

    async def handle(self, asked: RequestContext) -> None:
        text = self.state.metrics.text(self.state.service if self.state.ready else None)
        fields = ((b"content-type", _PROMETHEUS),)
        await asked.send_body(200, text, fields)


class Operations(Endpoint):
    """``GET /api/v1/operations``: the contract."""

    name = "operations"
    kind = "monitoring"
    every_key = True

    async def handle(self, asked: RequestContext) -> Any:  # noqa: ARG002
        """Return the same as ``polymux operations --json``."""
        return contract.describe()


class Availability(Endpoint):
    """``GET /api/v1/availability``: which operations and models can run."""

    name = "availability"
    kind = "monitoring"
    every_key = True

    async def handle(self, asked: RequestContext) -> Any:  # noqa: ARG002
        """Return a list of operations and variants, each as `_availability` describes it."""
        return [
            self._availability(operation.name, variant)
            for operation in contract.operations()
            for variant in operation.variants
        ]

    def _availability(self, operation: str, variant: Variant) -> dict[str, Any]:
        """Return ``available``, ``small_model``, and in ``reason`` how to make it available.

        ``small_model`` is true if a small model that comes with polymux would run it.
        """
        alternatives = {one.fields[0] for one in variant.rules if one.rule == "exactly_one"}
        values = {
            one.name: value
            for one in variant.fields
            if (value := _example(one, is_sent=one.required or one.name in alternatives))
            is not None
        }
        model = variant.model or ""
        work = OperationRequest(operation, variant.id, model, values, frozenset())
        found = {"operation": operation, "variant": variant.id, "model": model}
        is_small = False
        try:
            is_small = all(one.is_fallback(work) for one in self.state.service.backends_of(work))
        except errors.OverloadedError:
            pass  # Available, but busy.
        except (errors.NoBackendError, errors.BadRequestError) as error:
            return found | {"available": False, "small_model": False, "reason": error.message}
        return found | {"available": True, "small_model": is_small, "reason": ""}


def _example(field: Field, *, is_sent: bool) -> Any:
    """Return a valid value for a field that the request has, or the default."""
    if is_sent and field.type == "file":
        return _FILE
    if field.default is None and field.required and field.type == "string":
        return _FIRST_MODEL if field.name == "model" else "a"
    return field.default


class OpenApi(Endpoint):
    """``GET /openapi.json``."""

    name = "openapi"
    kind = "monitoring"
    loopback_public = True

    async def handle(self, asked: RequestContext) -> Any:  # noqa: ARG002
        return openapi(self.state.settings.base_url, self.state.service.routes)


class Docs(Endpoint):
    """``GET /docs``: the API documentation as a page without external scripts."""

    name = "docs"
    kind = "web_ui"
    loopback_public = True

    async def handle(self, asked: RequestContext) -> None:
        fields = (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
            (b"x-content-type-options", b"nosniff"),
        )
        await asked.send_body(200, reference_page(), fields)
