"""The server as a FastAPI application, and as a router for another application."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.routing import Route

from polymux import contract
from polymux.server.compat import mcp, openai, replicate
from polymux.server.compat.openai.errors import OpenAiNotFound
from polymux.server.observability.tracing import tracing
from polymux.server.routes.admin import PATH as ADMINISTRATION
from polymux.server.routes.admin import Administration, EngineUnload
from polymux.server.routes.api_keys import KEYS, KeyItem, KeyList, KeyRotation
from polymux.server.routes.endpoint import Endpoint, NotFound, Preflight
from polymux.server.routes.files import MediaEndpoint
from polymux.server.routes.health import (
    Availability,
    Docs,
    Liveness,
    MetricsEndpoint,
    OpenApi,
    Operations,
    Readiness,
)
from polymux.server.routes.operations import OperationEndpoint
from polymux.server.routes.predictions import (
    PATH,
    PredictionCancel,
    PredictionEvents,
    PredictionItem,
    PredictionList,
)
from polymux.server.routes.songs import SONGS, SongAudio, SongCover, SongList, SongPage
from polymux.server.routes.webui import PageEndpoint, PageRedirect
from polymux.server.settings.settings import ServerSettings, read_settings
from polymux.server.state import ServerState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from fastapi import APIRouter, FastAPI

    from polymux.server.http.responses import Receive, Scope, Send
    from polymux.service.backend import Backend

Config = ServerSettings | str | os.PathLike[str] | None


def create_app(config: Config = None, *, backends: Sequence[Backend] | None = None) -> FastAPI:
    """Create the server as a FastAPI application.

    Args:
        config: Settings, or the path of a settings file. Default: default settings.
        backends: Backends that replace those of the settings. Default: those of the settings.

    Returns:
        The application; its lifespan starts and stops the server.

    Raises:
        InvalidRequestError: The settings file is missing or invalid.

    Example:
        >>> from polymux.server import create_app
        >>> from polymux.server.settings import ServerSettings
        >>> app = create_app(ServerSettings(public_url="https://tools.example"))
        >>> app.state.polymux.settings.base_url
        'https://tools.example'
    """
    from fastapi import FastAPI

    state = _state(config, backends)
    app = FastAPI(
        title="polymux",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lambda _: lifespan(state),
        telemetry={"tracing": False, "metrics": False, "logs": False},  # See `tracing`.
    )
    app.state.polymux = state
    routes = _all_routes(state)
    app.router.routes.extend(routes)
    app.add_middleware(Front, state=state, routes=routes)
    return app


def front_of(state: ServerState) -> Front:
    """Create the application for ``polymux serve``, without FastAPI, whose import takes 0.5 s.

    Requests to paths without parameters skip the framework's layers, which they do not need.
    """
    app = Starlette()
    app.router.redirect_slashes = False
    routes = _all_routes(state)
    app.router.routes.extend(routes)
    return Front(app, state, routes)


def router(config: Config = None, *, backends: Sequence[Backend] | None = None) -> APIRouter:
    """Create a router with all endpoints of the server, for your own application.

    The endpoints still check the API key before they read the body. Enter `lifespan` with the
    router in the lifespan of your application. Your application must handle connection timeouts and
    the other tasks listed in docs/integrations/fastapi.md. If it has a ``BaseHTTPMiddleware``, work
    continues after its client disconnects.

    Args:
        config: As for `create_app`.
        backends: As for `create_app`.

    Returns:
        The router, for ``app.include_router``.

    Raises:
        InvalidRequestError: The settings file is missing or invalid.

    Example:
        >>> from fastapi import FastAPI
        >>> from polymux.server import lifespan, router
        >>> mine = router()
        >>> app = FastAPI(lifespan=lambda app: lifespan(mine))
        >>> app.include_router(mine)
    """
    from fastapi import APIRouter

    state = _state(config, backends)
    made = APIRouter(redirect_slashes=False)
    made.polymux_state = state  # type: ignore[attr-defined]
    made.routes.extend(_routes(state))
    return made


@asynccontextmanager
async def lifespan(of: APIRouter | ServerState) -> AsyncIterator[None]:
    """Start the service of a router, and stop it at the end.

    Args:
        of: Result of `router`.

    Raises:
        TypeError: `of` is not a router created by `router`.
        StoreError: The store is in use, damaged or not writable.
        InvalidRequestError: The settings do not allow a start, such as missing API keys.
    """
    state: Any = of if isinstance(of, ServerState) else getattr(of, "polymux_state", None)
    if state is None:
        raise TypeError(
            f"lifespan: invalid argument (got {type(of).__name__}, allowed a router created by "
            "polymux.server.router)"
        )
    await state.start()
    try:
        yield
    finally:
        await state.stop()


def _state(config: Config, backends: Sequence[Backend] | None) -> ServerState:
    if isinstance(config, ServerSettings):
        return ServerState(config, backends=backends)
    if config is None:
        return ServerState(ServerSettings(), backends=backends)
    path = Path(config)
    return ServerState(read_settings(path), path, backends)


def _routes(state: ServerState) -> list[Route]:
    endpoints: list[tuple[str, Endpoint]] = [
        (one.path, OperationEndpoint(state, one)) for one in contract.operations()
    ]
    endpoints += [
        (PATH, PredictionList(state)),
        (f"{PATH}/{{id}}", PredictionItem(state)),
        (f"{PATH}/{{id}}/cancel", PredictionCancel(state)),
        (f"{PATH}/{{id}}/events", PredictionEvents(state)),
        ("/api/v1/operations", Operations(state)),
        ("/api/v1/availability", Availability(state)),
        ("/api/v1/readiness", Readiness(state)),
        (ADMINISTRATION, Administration(state)),
        (f"{ADMINISTRATION}/engines/{{name}}/unload", EngineUnload(state)),
        (KEYS, KeyList(state)),
        (f"{KEYS}/{{id}}", KeyItem(state)),
        (f"{KEYS}/{{id}}/rotate", KeyRotation(state)),
        ("/media/{name}", MediaEndpoint(state)),
        ("/songs/{id}", SongPage(state)),
        ("/songs/{id}/cover", SongCover(state)),
        ("/songs/{id}/audio", SongAudio(state)),
        (SONGS, SongList(state)),
        ("/healthz", Liveness(state)),
        ("/readyz", Readiness(state)),
        ("/metrics", MetricsEndpoint(state)),
        ("/openapi.json", OpenApi(state)),
        ("/docs", Docs(state)),
        ("/page", PageRedirect(state)),
        ("/page/", PageEndpoint(state)),
        ("/page/{name}", PageEndpoint(state)),
    ]
    if state.settings.openai_compat:
        endpoints += openai.routes(state)
    if state.settings.mcp_compat:
        endpoints += mcp.routes(state)
    if state.settings.replicate_compat:
        endpoints += replicate.routes(state)
    # Starlette treats an instance with __call__ as an ASGI application: it does not read the body.
    return [Route(path, endpoint, methods=None) for path, endpoint in endpoints]


def _all_routes(state: ServerState) -> list[Route]:
    """Return all routes and `/`, which a mounted router leaves to the application around it."""
    return [*_routes(state), Route("/", PageRedirect(state), methods=None)]


#: Key in the ASGI scope: the request has a span.
_TRACED = "polymux.traced"


class Front:
    """Outermost layer: dispatches paths without parameters directly to their endpoints."""

    def __init__(self, app: Any, state: ServerState, routes: Sequence[Route]) -> None:
        self._app = app
        self._state = state
        self._plain = {one.path: one.endpoint for one in routes if "{" not in one.path}
        self._routes = routes
        self._preflight = Preflight(state)
        self._not_found = NotFound(state)
        self._not_found_at: dict[str, Endpoint] = {}
        if state.settings.openai_compat:
            self._not_found_at[openai.PREFIX] = OpenAiNotFound(state)
        if state.settings.replicate_compat:
            self._not_found_at[replicate.PREFIX] = replicate.ReplicateNotFound(state)
        self._tracing = tracing(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._tracing is not None and self._tracing.is_wanted and _TRACED not in scope:
            scope[_TRACED] = True
            await self._tracing(self._serve, scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        not_found: Endpoint = self._not_found
        for prefix, of_door in self._not_found_at.items():
            if path.startswith(prefix):
                not_found = of_door
        # An encoded path never matches, except for model names, which may contain an encoded slash.
        plain = scope.get("raw_path", path.encode("utf-8", "replace")).partition(b"?")[0]
        encoded = plain != path.encode("utf-8", "replace")
        if encoded and not plain.startswith(openai.MODELS.encode()):
            await not_found(scope, receive, send)
            return
        if scope["method"] == "OPTIONS" and self._may_ask(scope):
            await self._preflight(scope, receive, send)
            return
        endpoint = self._plain.get(path)
        if endpoint is not None:
            await endpoint(scope, receive, send)
            return
        await self._app(scope, receive, _Replaced(send, not_found, scope, receive))

    @property
    def refusable(self) -> list[tuple[str, Endpoint]]:
        """Paths and endpoints that can be refused without a call of Python.

        Their errors have the format of the polymux API. Empty if responses need CORS fields or
        spans.
        """
        traced = self._tracing is not None and self._tracing.is_wanted
        if traced or self._state.settings.allowed_origins:
            return []
        return [
            (path, one)
            for path, one in self._plain.items()
            if isinstance(one, Endpoint) and type(one).tell is Endpoint.tell
        ]

    def _may_ask(self, scope: Scope) -> bool:
        """Check whether the request comes from a page of an allowed origin."""
        allowed = self._state.settings.allowed_origins
        return any(
            name == b"origin" and value.decode("latin-1") in allowed
            for name, value in scope["headers"]
        )


class _Replaced:
    """Replaces the framework's 404 response by our own."""

    def __init__(self, send: Send, instead: Endpoint, scope: Scope, receive: Receive) -> None:
        self._send = send
        self._instead = instead
        self._scope = scope
        self._receive = receive
        self._replaced = False

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] == 404:
            own = any(name == b"polymux-version" for name, _ in message["headers"])
            if not own and "endpoint" not in self._scope:
                self._replaced = True
                await self._instead(self._scope, self._receive, self._send)
                return
        if not self._replaced:
            await self._send(message)
