"""What all endpoints share: the gate before them, one way to fail, one line in the log."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux._util.text import printable, shortened
from polymux.server.auth.gate import Access, check_body, request_id_of
from polymux.server.http.body import ClientGoneError, whole_object
from polymux.server.http.responses import CLOSE, send_json, send_told, send_whole
from polymux.server.observability.logs import ACCESS_LOGGER
from polymux.service.errors import StoreError, described, draining, status_error
from polymux.service.model import Caller

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.server.http.responses import Fields, Message, Receive, Scope, Send
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job

_log = logging.getLogger("polymux.server")
_access = logging.getLogger(ACCESS_LOGGER)
#: What a page may send beside what browsers send by themselves; some are of OpenAI's package, and
#: the last of the Model Context Protocol.
_ALLOWED_FIELDS = (
    b"authorization, content-type, prefer, cancel-after, idempotency-key, x-request-id, "
    b"x-stainless-arch, x-stainless-lang, x-stainless-os, x-stainless-package-version, "
    b"x-stainless-retry-count, x-stainless-runtime, x-stainless-runtime-version, "
    b"x-stainless-timeout, "
    b"mcp-protocol-version, mcp-session-id, mcp-method, mcp-name"
)
#: What it may read of an answer's.
_READ_FIELDS = (
    b"x-request-id, polymux-version, polymux-metrics, polymux-warnings, retry-after, mcp-session-id"
)
_VARY = (b"vary", b"origin")
#: What the part of an address is called that may come encoded, with slashes in it.
_MODEL = "model"


class RequestContext(NamedTuple):
    """A request of somebody who may come in; the last three are ASGI's."""

    access: Access
    scope: Scope
    receive: Receive
    send: Send

    async def send_json(self, status: int, value: Any, fields: Fields = ()) -> None:
        await send_json(self.send, status, value, fields, request_id=self.access.request_id)

    async def send_body(self, status: int, body: bytes, fields: Fields = ()) -> None:
        await send_whole(self.send, status, body, fields, request_id=self.access.request_id)


class Endpoint:
    """An address of the server, as an ASGI application.

    Attributes:
        name: In logs, counters, and the scopes of keys.
        methods: Those that it takes.
        public: Whether it needs no key.
        loopback_public: Whether it needs none from this machine, where nobody else can ask.
        every_key: Whether any key will do, whatever its scopes.
        begins_work: Whether a ``POST`` of it begins work, for which a key must have a place beside
            its jobs that go on without a request. To look at those needs none.
    """

    name: str
    methods: tuple[str, ...] = ("GET",)
    public: bool = False
    loopback_public: bool = False
    every_key: bool = False
    begins_work: bool = False

    def __init__(self, state: ServerState) -> None:
        self.state = state

    async def handle(self, asked: RequestContext) -> Any:
        """Answers somebody who may come in: by what it returns, as JSON, or, where that is None,
        by what it has sent."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        request_id = request_id_of(scope)
        watched = _StatusRecorder(send, self.state.settings.allowed_origins, scope)
        key = None
        try:
            access = self._admit(scope, request_id)
            key = None if access.key is None else access.key.id
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
            # The grace is over: told in the interface's form, not by the framework's traceback.
            await self._fail(draining(), watched, request_id)
        except Exception as error:
            await self._fail(error, watched, request_id)
        finally:
            self._note(scope, watched, time.perf_counter() - began, key, request_id)

    def _admit(self, scope: Scope, request_id: str) -> Access:
        gate = self.state.gate
        now = time.time()
        headers = gate.headers_of(scope)
        if is_encoded(scope):
            raise nothing_here()
        if scope["method"] not in self.methods:
            raise status_error(
                errors.APIStatusError,
                "this address does not take that method",
                code="wrong_method",
                status=405,
            )
        if self.public or (self.loopback_public and gate.is_loopback(scope, headers)):
            gate.check_origin(headers)
            return Access(Caller("", ""), None, request_id, headers)
        return gate.admit(headers, None if self.every_key else self.name, request_id, now)

    def _jobs_of(self, access: Access, scope: Scope) -> int:
        """How many jobs of a key have a place of it beside its requests."""
        key = access.key
        if key is None or key.concurrent is None:
            return 0
        if not (self.begins_work and scope["method"] == "POST"):
            return 0
        jobs = self.state.service.jobs.unattended(key.id)
        again = access.headers.get(b"idempotency-key", b"").decode("latin-1")
        if again and any(self.is_found(one, again) for one in jobs):
            return 0  # It asks once more for one that it has, and begins none.
        return len(jobs)

    def is_found(self, job: Job, idempotency_key: str) -> bool:
        """Whether a ``POST`` under that key begins nothing beside a job that goes on.

        Of an address at which each begins a job, of any operation: it finds the one that came under
        the key, or is refused. Others say more.
        """
        return job.idempotency is not None and job.idempotency[0] == idempotency_key

    async def read_object(self, asked: RequestContext, max_bytes: int) -> dict[str, Any]:
        """The JSON object of a body.

        Raises:
            APIStatusError: It is none, too long, or came too slowly.
        """
        if check_body(asked.access, self.name, max_bytes, max_bytes) != "json":
            raise errors.UnsupportedEncodingError("this address takes json, not multipart")
        return await whole_object(asked.receive, max_bytes, self.state.settings.limits, self.name)

    async def tell(
        self, send: Send, told: Mapping[str, Any], request_id: str, fields: Fields = ()
    ) -> None:
        """Sends what `errors.described` gave, in the form of this address's answers."""
        await send_told(send, told, request_id, fields)

    async def _fail(self, error: Exception, watched: _StatusRecorder, request_id: str) -> None:
        told = described(error)
        if told["code"] == "internal":
            of = {"request_id": request_id}
            _log.error("request %s failed unexpectedly", request_id, exc_info=error, extra=of)
        elif isinstance(error, StoreError):
            _log.error("request %s: %s", request_id, error, extra={"request_id": request_id})
        if watched.status:
            return  # The answer has begun; what reads it sees that it is cut.
        fields = []
        if told["status"] == 405:
            fields.append((b"allow", ", ".join(self.methods).encode()))
        if watched.has_body:
            fields.append(CLOSE)
        await self.tell(watched, told, request_id, fields)

    def _note(
        self,
        scope: Scope,
        watched: _StatusRecorder,
        seconds: float,
        key: str | None,
        request_id: str,
    ) -> None:
        self.state.metrics.note(self.name, watched.status, seconds, key)
        if _access.isEnabledFor(logging.INFO):
            _access.info(
                "%s %s %d %.1f ms key=%s id=%s",
                printable(scope["method"])[:20],
                shortened(printable(scope["path"])),
                watched.status,
                seconds * 1e3,
                key or "-",
                request_id,
            )


class _StatusRecorder:
    """Sends, and knows whether the answer has begun; adds what a web page needs to read it."""

    def __init__(self, send: Send, origins: tuple[str, ...], scope: Scope) -> None:
        self._send = send
        self._origins = origins
        self._scope = scope
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self._origins:
                message["headers"] = [*message["headers"], *cors_fields(self._scope, self._origins)]
        await self._send(message)

    @property
    def has_body(self) -> bool:
        """Whether some of the request may be left on the connection."""
        headers = dict(self._scope["headers"])
        return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def cors_fields(scope: Scope, origins: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    """What lets a page of an allowed origin read an answer (Fetch, 3.2.3).

    All others say that there are such answers: one that a cache keeps is not for those pages.
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
    """Whether an address came in another spelling than the one that it was found by.

    A host of the router decodes it before it looks for it. What it has put before our addresses is
    its own affair, and the name of a model, behind them, decides nothing.
    """
    raw = scope.get("raw_path")
    if raw is None:  # Which ASGI lets servers leave out.
        return False
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    name = scope.get("path_params", {}).get(_MODEL)
    plain = raw.partition(b"?")[0]
    if name:
        return path.removesuffix(name).encode("utf-8", "replace") not in plain
    return not plain.endswith(path.encode("utf-8", "replace"))


def nothing_here() -> errors.NotFoundError:
    """What every address is told that is none."""
    return status_error(errors.NotFoundError, "there is nothing at this address")


class NotFound(Endpoint):
    name = "unknown"
    methods = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    public = True

    async def handle(self, asked: RequestContext) -> None:
        told = described(nothing_here())
        fields = [] if asked.scope["method"] in ("GET", "HEAD") else [CLOSE]
        await self.tell(asked.send, told, asked.access.request_id, fields)


class Preflight(Endpoint):
    """What a browser asks before a page of another site may ask."""

    name = "preflight"
    methods = ("OPTIONS",)
    public = True

    async def handle(self, asked: RequestContext) -> None:
        """Yes, to pages of the allowed origins; others were refused already."""
        fields = [
            (b"access-control-allow-methods", b"GET, POST, PATCH, DELETE"),
            (b"access-control-allow-headers", _ALLOWED_FIELDS),
            (b"access-control-max-age", b"600"),
        ]
        await asked.send_json(200, {}, fields)
