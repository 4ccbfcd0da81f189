"""Base of all endpoints: authentication, error responses and the access log."""

from __future__ import annotations

import asyncio
import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote_plus

from polymux import errors
from polymux._native import core
from polymux._util.text import printable, shortened
from polymux.server.auth.gate import Access, check_body, request_id_of
from polymux.server.http.body import ClientGoneError, whole_object
from polymux.server.http.responses import CLOSE, send_error, send_json, send_whole, with_warnings
from polymux.server.observability.logs import ACCESS_LOGGER
from polymux.service.errors import StoreError, bad_request, described, draining, status_error

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from polymux.server.http.responses import Fields, Message, Receive, Scope, Send
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job

_log = logging.getLogger("polymux.server")
_access = logging.getLogger(ACCESS_LOGGER)
#: Allowed CORS request fields. Those with x-stainless are from OpenAI's package, the last ones from
#: the Model Context Protocol.
_ALLOWED_FIELDS = (
    b"authorization, content-type, prefer, cancel-after, idempotency-key, x-request-id, "
    b"x-stainless-arch, x-stainless-lang, x-stainless-os, x-stainless-package-version, "
    b"x-stainless-retry-count, x-stainless-runtime, x-stainless-runtime-version, "
    b"x-stainless-timeout, "
    b"mcp-protocol-version, mcp-session-id, mcp-method, mcp-name"
)
#: Response fields that web pages may read (CORS).
_READ_FIELDS = (
    b"x-request-id, polymux-version, polymux-job-id, polymux-metrics, polymux-warnings, "
    b"retry-after, mcp-session-id"
)
_VARY = (b"vary", b"origin")
#: Name of the path parameter that may contain encoded slashes.
_MODEL = "model"


class RequestContext(NamedTuple):
    """An authenticated request; the last three members are ASGI's."""

    access: Access
    scope: Scope
    receive: Receive
    send: Send

    async def send_json(self, status: int, value: Any, fields: Fields = ()) -> None:
        await send_json(self.send, status, value, fields, request_id=self.access.request_id)

    async def send_body(self, status: int, body: bytes, fields: Fields = ()) -> None:
        await send_whole(self.send, status, body, fields, request_id=self.access.request_id)


class Endpoint:
    """An endpoint of the server, as an ASGI application.

    Attributes:
        name: In logs, metrics, and the scopes of API keys.
        kind: ``api``, ``monitoring``, or ``web_ui`` for requests of pages, which are not use of the
            API. Endpoints with the same name have the same kind.
        methods: Allowed HTTP methods.
        public: Requires no API key.
        loopback_public: Requires no API key from this machine, if no proxy can reach it.
        every_key: Accepts any API key, whatever its scopes.
        any_address: Accepts any IP address as Host, whatever the allowed hosts: health checks of
            containers and proxies use the address of the machine.
        token: Accepts ``Authorization: Token KEY`` like ``Bearer``.
        query: Names of query parameters; None if the endpoint ignores the query.
        refuses_unknown: An unknown query parameter of a ``POST`` or ``PATCH`` is an error, as an
            unknown field of the body is. Otherwise ``Polymux-Warnings`` names it.
        begins_work: A ``POST`` starts work, which counts against the key's limit of concurrent
            requests together with its jobs without a request. Reading jobs does not count.
    """

    name: str
    kind: Literal["api", "monitoring", "web_ui"]
    methods: tuple[str, ...] = ("GET",)
    public: bool = False
    loopback_public: bool = False
    every_key: bool = False
    any_address: bool = False
    token: bool = False
    query: Container[str] | None = ()
    refuses_unknown: bool = False
    begins_work: bool = False

    def __init__(self, state: ServerState) -> None:
        self.state = state

    async def handle(self, asked: RequestContext) -> Any:
        """Respond to an authenticated request.

        Returns:
            The value to send as JSON, or None if the response was already sent.
        """
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        request_id = request_id_of(scope)
        watched = _StatusRecorder(send, self.state.settings.allowed_origins, scope)
        key = None
        try:
            access = self._admit(scope, request_id)
            key = None if access.key is None else access.key.id
            watched.warnings = self._unknown_parameters(scope)
            with self.state.gate.quotas.request(access.key, self._jobs_of(access, scope)):
                asked = RequestContext(access, scope, receive, watched)
                answer = await self.handle(asked)
                if answer is not None:
                    await asked.send_json(200, answer)
        except ClientGoneError:
            watched.status = 499
        except asyncio.CancelledError:
            if watched.status or not self.state.stopping.is_set():
                watched.status = watched.status or 499
                raise
            # The shutdown timeout is over: send an API error instead of the framework's traceback.
            await self._fail(draining(), watched, request_id)
        except Exception as error:
            await self._fail(error, watched, request_id)
        finally:
            seconds = time.perf_counter() - began
            self.note(watched.status, seconds, scope["method"], scope["path"], key, request_id)

    def _admit(self, scope: Scope, request_id: str) -> Access:
        if is_encoded(scope):
            raise nothing_here()
        return self.state.gate.admit(self.rules, scope, request_id)

    @cached_property
    def rules(self) -> core.EndpointRules:
        """Requirements that the gate checks."""
        return core.EndpointRules(
            "" if self.every_key else self.name,
            self.methods,
            is_public=self.public,
            is_loopback_public=self.loopback_public,
            accepts_any_address=self.any_address,
            accepts_token=self.token,
        )

    def _unknown_parameters(self, scope: Scope) -> list[str]:
        """Return a warning for each unknown query parameter."""
        query = scope["query_string"]
        if not query or self.query is None:
            return []
        parts = [one.partition("=")[0] for one in query.decode("latin-1").split("&") if one]
        names = [unquote_plus(one) for one in dict.fromkeys(parts)]
        unknown = [shortened(printable(one)) for one in names if one not in self.query]
        if unknown and self.refuses_unknown and scope["method"] in ("POST", "PATCH"):
            words = f"{unknown[0]}: unknown query parameter. Send fields in the body"
            raise bad_request(words, unknown[0])
        return [f"{one}: unknown query parameter" for one in unknown]

    def _jobs_of(self, access: Access, scope: Scope) -> int:
        """Return how many jobs without a request count against the key's limit."""
        key = access.key
        if key is None or key.concurrent is None:
            return 0
        if not (self.begins_work and scope["method"] == "POST"):
            return 0
        jobs = self.state.service.jobs.unattended(key.id)
        again = access.headers.get(b"idempotency-key", b"").decode("latin-1")
        if again and any(self.is_found(one, again) for one in jobs):
            return 0  # A retry of a running job starts no new one.
        return len(jobs)

    def is_found(self, job: Job, idempotency_key: str) -> bool:
        """Check whether a ``POST`` with this key returns a running job instead of starting one.

        The default suits endpoints where every request starts a job of any operation: a known key
        returns the job or an error. Subclasses may override it.
        """
        return job.idempotency is not None and job.idempotency[0] == idempotency_key

    async def read_object(self, asked: RequestContext, max_bytes: int) -> dict[str, Any]:
        """Read the JSON object of a body.

        Raises:
            APIStatusError: The body is not a JSON object, too large, or too slow.
        """
        check_body(asked.access, self.name, max_bytes, max_bytes, ("json",))
        return await whole_object(asked.receive, max_bytes, self.state.settings.limits, self.name)

    async def tell(
        self, send: Send, error: Mapping[str, Any], request_id: str, fields: Fields = ()
    ) -> None:
        """Send the result of `errors.described` in the format of this endpoint's API."""
        await send_error(send, error, request_id, fields)

    async def _fail(self, error: Exception, watched: _StatusRecorder, request_id: str) -> None:
        details = described(error)
        if details["code"] == "internal":
            of = {"request_id": request_id}
            _log.error("request %s failed unexpectedly", request_id, exc_info=error, extra=of)
        elif isinstance(error, StoreError):
            _log.error("request %s: %s", request_id, error, extra={"request_id": request_id})
        if watched.status:
            return  # The response has started; the client sees that it is truncated.
        fields = []
        if details["status"] == 405:
            fields.append((b"allow", ", ".join(self.methods).encode()))
        if watched.has_body:
            fields.append(CLOSE)
        await self.tell(watched, details, request_id, fields)

    def note_many(self, status: int, count: int) -> None:
        """Count requests that were refused too fast to log each of them."""
        self.state.metrics.note(self.name, self.kind, status, 0.0, None, count=count)
        _log.info(
            "%d further requests for %s were refused with status %d", count, self.name, status
        )

    def note(
        self,
        status: int,
        seconds: float,
        method: str,
        path: str,
        key: str | None,
        request_id: str,
    ) -> None:
        """Count and log a request.

        Args:
            status: Status of the response.
            seconds: Duration.
            method: HTTP method.
            path: Path of the request.
            key: The API key's id; None without a key.
            request_id: Id of the request.
        """
        self.state.metrics.note(self.name, self.kind, status, seconds, key)
        if _access.isEnabledFor(logging.INFO):
            _access.info(
                "%s %s %d %.1f ms key=%s id=%s",
                printable(method)[:20],
                shortened(printable(path)),
                status,
                seconds * 1e3,
                key or "-",
                request_id,
            )


class _StatusRecorder:
    """Forwards the response, records its status, and adds CORS fields and warnings."""

    def __init__(self, send: Send, origins: tuple[str, ...], scope: Scope) -> None:
        self._send = send
        self._origins = origins
        self._scope = scope
        self.status = 0
        self.warnings: list[str] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self._origins:
                message["headers"] = [*message["headers"], *cors_fields(self._scope, self._origins)]
            if self.warnings:
                message["headers"] = with_warnings(message["headers"], self.warnings)
        await self._send(message)

    @property
    def has_body(self) -> bool:
        """Whether unread parts of the request body may be left on the connection."""
        headers = dict(self._scope["headers"])
        return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def cors_fields(scope: Scope, origins: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    """Return the header fields that let pages of an allowed origin read a response (Fetch, 3.2.3).

    Other responses get ``Vary``, so caches do not serve them to those pages.
    """
    for name, value in scope["headers"]:
        if name == b"origin" and value.decode("latin-1") in origins:
            return [
                (b"access-control-allow-origin", value),
                (b"access-control-expose-headers", _READ_FIELDS),
                _VARY,
            ]
    return [_VARY]


def is_encoded(scope: Scope) -> bool:
    """Check whether the path was sent in an encoding that routing has decoded.

    The parent application of a mounted router decodes paths before routing. Ignores the mount path
    in front of our paths, and the model name at the end, which needs no exact spelling.
    """
    raw = scope.get("raw_path")
    if raw is None:  # Optional in ASGI.
        return False
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    name = scope.get("path_params", {}).get(_MODEL)
    plain = raw.partition(b"?")[0]
    if name:
        return path.removesuffix(name).encode("utf-8", "replace") not in plain
    return not plain.endswith(path.encode("utf-8", "replace"))


def nothing_here() -> errors.NotFoundError:
    """Create the error for unknown paths."""
    return status_error(errors.NotFoundError, "unknown path")


class NotFound(Endpoint):
    name = "unknown"
    kind = "api"
    methods = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    public = True
    query = None

    async def handle(self, asked: RequestContext) -> None:
        error = described(nothing_here())
        fields = [] if asked.scope["method"] in ("GET", "HEAD") else [CLOSE]
        await self.tell(asked.send, error, asked.access.request_id, fields)


class Preflight(Endpoint):
    """Responds to CORS preflight requests."""

    name = "preflight"
    kind = "monitoring"
    methods = ("OPTIONS",)
    public = True
    query = None

    async def handle(self, asked: RequestContext) -> None:
        """Allow pages of the allowed origins; the gate has rejected others."""
        fields = [
            (b"access-control-allow-methods", b"GET, POST, PATCH, DELETE"),
            (b"access-control-allow-headers", _ALLOWED_FIELDS),
            (b"access-control-max-age", b"600"),
        ]
        await asked.send_json(200, {}, fields)
