"""OpenTelemetry: a span for each request, as part of the client's trace.

Names and attributes follow its conventions for HTTP servers:
https://opentelemetry.io/docs/specs/semconv/http/http-spans/. The spans of FastAPI and Starlette
contain whole URLs, which here include ids and signed links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TRACE_FIELDS = (b"traceparent", b"tracestate")
_FAILED = 500


class Tracing:
    """Creates a span for each request.

    Args:
        routes: All routes: a span contains the pattern of its path, and never an id or a signed
            link, which only the client may know.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        from opentelemetry import trace

        self._trace = trace
        self._tracer = trace.get_tracer("polymux.server")
        self._routes = routes

    @property
    def is_wanted(self) -> bool:
        """Whether spans are recorded: the API without an SDK records none."""
        return not isinstance(self._trace.get_tracer_provider(), self._trace.ProxyTracerProvider)

    async def __call__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        from opentelemetry import propagate
        from opentelemetry.trace import SpanKind, Status, StatusCode

        route = self._route_of(scope)
        method = scope["method"]
        given = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in _TRACE_FIELDS
        }
        attributes = {"http.request.method": method, "url.scheme": scope.get("scheme", "http")}
        if route:
            attributes["http.route"] = route
        with self._tracer.start_as_current_span(
            f"{method} {route}".rstrip(),
            propagate.extract(given),
            kind=SpanKind.SERVER,
            attributes=attributes,
        ) as span:

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    for name, value in message["headers"]:
                        if name == b"x-request-id":
                            span.set_attribute("polymux.request_id", value.decode("latin-1"))
                    if message["status"] >= _FAILED:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            await app(scope, receive, noted)

    def _route_of(self, scope: Scope) -> str:
        path = scope["path"]
        return next((one.path for one in self._routes if one.path_regex.match(path)), "")


def tracing(routes: Sequence[Route]) -> Tracing | None:
    """Create the tracing; None if OpenTelemetry is not installed."""
    try:
        return Tracing(routes)
    except ImportError:
        return None
