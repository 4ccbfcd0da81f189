"""``/mcp``: the operations as tools of the Model Context Protocol, over streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux.mcp import REMEDY, is_installed
from polymux.mcp.files import embedded
from polymux.server.auth.gate import check_body
from polymux.server.compat.mcp_message import McpMessage, read_message
from polymux.server.http.responses import JSON_TYPE, VERSION_FIELD
from polymux.server.routes.endpoint import Endpoint
from polymux.server.routes.operations import OperationEndpoint, answer_of
from polymux.service.errors import draining, status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp_types import CallToolRequestParams

    from polymux.contract import Operation
    from polymux.mcp.files import Input
    from polymux.mcp.protocol import Context, Visitor
    from polymux.mcp.tools import Arguments
    from polymux.server.auth.gate import Access
    from polymux.server.auth.rate_limit import Quotas
    from polymux.server.http.responses import Message, Receive, Scope, Send
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.media_store import StoredFile

PATH = "/mcp"
_log = logging.getLogger("polymux.server")
_IDLE_S = 600.0
#: `McpEndpoint` checks the size of bodies before the SDK sees them.
_NO_LIMIT = 1 << 62
#: Keys in the ASGI scope: the access of the client, the event of its disconnection, and the
#: arguments of a tool call that are not in the body.
_ACCESS, _LEFT, _ARGUMENTS = "polymux.access", "polymux.left", "polymux.arguments"
_SESSION = b"mcp-session-id"


def routes(state: ServerState) -> list[tuple[str, Endpoint]]:
    """Return the MCP route; empty if the SDK is not installed."""
    if is_installed():
        return [(PATH, McpEndpoint(state))]
    if state.settings.compat.mcp:
        _log.warning(
            "compat.mcp: %s is not available, because the MCP SDK is not installed. Run %s",
            PATH,
            REMEDY,
        )
    return []


class McpEndpoint(Endpoint):
    """``POST`` and ``DELETE /mcp``. Each tool checks the scopes of the API key.

    The server sends no unsolicited messages, so it does not support ``GET``, which waits for them.
    """

    name = "mcp"
    kind = "api"
    methods = ("POST", "DELETE")
    every_key = True

    def __init__(self, state: ServerState) -> None:
        super().__init__(state)
        self._opening = asyncio.Lock()
        # The first request loads the SDK.
        self._sessions: _Sessions | None = None

    async def handle(self, asked: RequestContext) -> None:
        """Read the body and pass the request to the SDK."""
        if self.state.stopping.is_set():
            raise draining()
        _check_tools(asked.access)
        message = McpMessage()
        if asked.scope["method"] == "POST":
            longest = self.state.settings.limits.chat_bytes
            check_body(asked.access, self.name, longest, longest, ("json",))
            message = await read_message(asked.receive, longest, self.state.settings.limits)
        sessions = await self._opened()
        await sessions.handle(asked, message)

    async def _opened(self) -> _Sessions:
        async with self._opening:
            if self._sessions is None:
                # Importing the SDK takes long: do it on a thread.
                make = await asyncio.to_thread(_loaded)
                sessions = _Sessions(make(self.state), self.state.gate.quotas)
                await sessions.start()
                self.state.at_stop(self._close)
                self._sessions = sessions
            return self._sessions

    async def _close(self) -> None:
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            await sessions.close()


def _check_tools(access: Access) -> None:
    key = access.key
    assert key is not None  # noqa: S101 - this endpoint requires a key
    if not any(key.allows(one.name) for one in contract.operations()):
        raise status_error(
            errors.PermissionDeniedError,
            "permission denied: this API key allows no operation, so it has no tools",
            code="forbidden",
        )


def _loaded() -> Callable[[ServerState], StreamableHTTPSessionManager]:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from polymux.mcp.executor import LocalExecutor
    from polymux.mcp.protocol import make_server

    def make(state: ServerState) -> StreamableHTTPSessionManager:
        executor = LocalExecutor(lambda: state.service, lambda job: answer_of(state, job), _uri)
        return StreamableHTTPSessionManager(
            make_server(executor, _HttpFrontend(state)),
            session_idle_timeout=_IDLE_S,
            max_request_body_size=_NO_LIMIT,
            max_sessions=None,  # `OpenSessions` counts them, for each key.
        )

    return make


def _gone() -> Exception:
    return status_error(
        errors.APIStatusError, "the client disconnected", code="client_gone", status=499
    )


def _uri(file: StoredFile) -> str:
    return f"polymux://media/{file.name}"


class _Sessions:
    """The sessions of the SDK, in a task that lives as long as any of them."""

    def __init__(self, manager: StreamableHTTPSessionManager, quotas: Quotas) -> None:
        self._manager = manager
        self._quotas = quotas
        self._open = OpenSessions()
        self._closing = asyncio.Event()
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="polymux mcp sessions")
        ready = asyncio.ensure_future(self._ready.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            ready.cancel()
            self._task.result()

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._closing.wait()

    async def close(self) -> None:
        self._closing.set()
        if self._task is not None:
            await self._task

    async def handle(self, asked: RequestContext, message: McpMessage) -> None:
        from polymux.mcp.batches import is_batch, requested_version

        owner = asked.access.caller.id
        name = _field_of(asked.scope, _SESSION)
        if is_batch(message.body) and (name is None or self._open.has(name, owner)):
            with self._open.used(name or "", owner) as session:
                await self._answer_batch(asked, message.body, session.version)
            return
        if name is not None:
            with self._open.used(name, owner):
                answered = await self._answer(asked, message)
            ended = asked.scope["method"] == "DELETE" and answered.status < 400
            if ended or answered.status == 404:
                self._open.remove(name, owner)
            return
        if _begins(asked.scope):
            self._open.check(owner)
        version = requested_version(message.body)
        replaced: list[OpenSession] = []

        def add(session: str) -> None:
            # Before the client gets the response, after which it may use the session.
            replaced.extend(self._open.add(session, owner, version))

        try:
            await self._answer(asked, message, add)
        finally:
            for one in replaced:
                await self._end(one)

    async def _answer_batch(self, asked: RequestContext, body: bytes, version: str | None) -> None:
        """Answer the messages of a batch one after another, as events of one response."""
        from mcp_types import JSONRPCError

        from polymux.mcp.batches import checked, read_batch

        batch = read_batch(body, version)
        if isinstance(batch, JSONRPCError):
            await asked.send_json(400, batch.model_dump(exclude_unset=True))
            return
        messages, failed = checked(batch)
        if asked.access.key is not None:
            # The request itself was counted on arrival.
            self._quotas.count(asked.access.key, len(messages) - 1)
        joined = _JoinedEvents(asked)
        for one in messages:
            data = one.model_dump_json(by_alias=True, exclude_unset=True).encode()
            part = asked._replace(receive=joined.receive, send=joined.send)
            await self._answer(part, McpMessage(data))
            if joined.is_over:
                return
        for error in failed:
            await joined.add(error.model_dump_json(exclude_unset=True).encode())
        await joined.end()

    async def _answer(
        self,
        asked: RequestContext,
        message: McpMessage,
        on_session: Callable[[str], object] | None = None,
    ) -> _Stamped:
        import anyio

        left = asyncio.Event()
        user = _user(asked.access.caller.id)
        scope = {**asked.scope, "user": user, _ACCESS: asked.access, _LEFT: left,
                 _ARGUMENTS: message.arguments}  # fmt: skip
        stamped = _Stamped(asked.send, asked.access, on_session)
        send = _OneEvent(stamped) if _reads(message.body) else stamped
        try:
            await self._manager.handle_request(scope, _replayed(message.body, asked.receive), send)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            if not stamped.complete:
                raise
        finally:
            left.set()
        return stamped

    async def _end(self, session: OpenSession) -> None:
        """End a session as its client would."""
        fields = [(_SESSION, session.name.encode()), (b"accept", b"application/json")]
        scope: Scope = {"type": "http", "method": "DELETE", "path": PATH, "query_string": b"",
                        "headers": fields, "user": _user(session.owner)}  # fmt: skip
        await self._manager.handle_request(scope, _replayed(b"", _nothing), _unread)


def _user(owner: str) -> AuthenticatedUser:
    """Identify the API key, so the SDK rejects other keys in its sessions."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))


def _field_of(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for one, value in scope["headers"] if one == name), None)


def _begins(scope: Scope) -> bool:
    """Check whether a request can start a session: newer protocol versions have no sessions."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    version = _field_of(scope, b"mcp-protocol-version")
    return scope["method"] == "POST" and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _unread(message: Message) -> None:
    """Ignore the response."""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first yields a body that was already read."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _reads(body: bytes) -> bool:
    if b"resources/read" not in body:
        return False
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(asked, dict) and asked.get("method") == "resources/read"


class _OneEvent:
    """Sends a response of one event as JSON: clients often limit the size of events only.

    MCP clients must accept both formats.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream"):
                self._start = message
                return
        elif self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._end(self._start)
            return
        await self._send(message)

    async def _end(self, start: Message) -> None:
        lines = bytes(self._body).splitlines()
        data = b"".join(one[6:] for one in lines if one.startswith(b"data: "))
        kept = [one for one in start["headers"] if one[0] != JSON_TYPE[0]]
        length = (b"content-length", str(len(data)).encode())
        await self._send({**start, "headers": [*kept, JSON_TYPE, length]})
        await self._send({"type": "http.response.body", "body": data})


_EVENTS = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform"))


def _stamps(access: Access) -> list[tuple[bytes, bytes]]:
    return [VERSION_FIELD, (b"x-request-id", access.request_id.encode())]


class _JoinedEvents:
    """Joins the responses to the messages of a batch.

    Attributes:
        is_over: Whether the client has disconnected, or the first response was an error.
    """

    def __init__(self, asked: RequestContext) -> None:
        self._asked = asked
        self._has_events = False
        self._started = False
        self._body = bytearray()
        self.is_over = False

    async def receive(self) -> Message:
        message = await self._asked.receive()
        self.is_over |= message["type"] == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = dict(message["headers"]).get(b"content-type", b"")
            self._has_events = kind.startswith(b"text/event-stream")
            if not self._started and message["status"] >= 400:
                # The reason, such as an ended session, applies to all messages.
                self.is_over = self._started = self._has_events = True
                await self._asked.send(message)
            elif self._has_events:
                await self._start(message["headers"])
        elif self._has_events:
            more = message.get("more_body", False) or not self.is_over
            await self._asked.send({**message, "more_body": more})
        else:
            self._body += message.get("body", b"")
            if self._body and not message.get("more_body", False):
                data, self._body = bytes(self._body), bytearray()
                await self.add(data)

    async def _start(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        if not self._started:
            self._started = True
            await self._asked.send(
                {"type": "http.response.start", "status": 200, "headers": list(headers)}
            )

    async def add(self, data: bytes) -> None:
        """Send an event with a JSON-RPC message."""
        await self._start([*_EVENTS, *_stamps(self._asked.access)])
        body = b"event: message\r\ndata: " + data + b"\r\n\r\n"
        await self._asked.send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        if self._started:
            await self._asked.send({"type": "http.response.body", "body": b""})
        else:
            await self._asked.send_body(202, b"")


class _Stamped:
    """Adds the server's header fields to a response, and drops messages after its end.

    Args:
        send: Sends the response.
        access: The client.
        on_session: Called with the id of the session that a successful response starts, before
            the response is sent.

    Attributes:
        complete: Whether the response is complete.
        status: HTTP status; 0 before the response starts.
    """

    def __init__(
        self, send: Send, access: Access, on_session: Callable[[str], object] | None
    ) -> None:
        self._send = send
        self._on_session = on_session
        self._fields = _stamps(access)
        self.complete = False
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if self.complete:
            return  # The SDK responds twice if a session ends during the request.
        if message["type"] == "http.response.start":
            self.status = message["status"]
            session = _field_of(message, _SESSION)
            if session is not None and self._on_session is not None and self.status < 400:
                self._on_session(session)
            message = {**message, "headers": [*message["headers"], *self._fields]}
        else:
            self.complete = not message.get("more_body", False)
        await self._send(message)


class _HttpFrontend:
    """Authenticates each HTTP request by its own API key, independent of its session."""

    file_words = "The file itself, as base64 or as a data URL (data:TYPE;base64,DATA)."

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._limits = {one.name: OperationEndpoint(state, one) for one in contract.operations()}

    def visitor(self, context: Context) -> Visitor:
        from polymux.mcp.protocol import Visitor

        request: Any = context.request
        scope: Scope = request.scope
        access: Access = scope[_ACCESS]
        key = access.key
        assert key is not None  # noqa: S101 - this endpoint requires a key
        ends = {self._state.stopping: draining, scope[_LEFT]: _gone}
        return Visitor(access.caller, access.request_id, key.allows, ends)

    def arguments(
        self, context: Context, params: CallToolRequestParams
    ) -> Mapping[str, Any] | None:
        request: Any = context.request
        large: Mapping[str, Any] | None = request.scope[_ARGUMENTS]
        return params.arguments if large is None else large

    def max_json_bytes(self, operation: Operation) -> int:
        return self._limits[operation.name].max_json_bytes

    def max_file_bytes(self, operation: Operation) -> int:
        return self._limits[operation.name].max_form_bytes

    def check_place(self, context: Context) -> None:
        """Count jobs without a request; the request itself was counted on arrival."""
        request: Any = context.request
        access: Access = request.scope[_ACCESS]
        if access.key is not None and access.key.concurrent is not None:
            jobs = self._state.service.jobs.unattended(access.key.id)
            self._state.gate.quotas.check_jobs(access.key, len(jobs))

    async def files(
        self, context: Context, params: CallToolRequestParams, arguments: Arguments
    ) -> Mapping[str, Input]:
        del context, params

        longest = self.max_file_bytes(arguments.operation)
        return {
            name: await asyncio.to_thread(embedded, name, text, longest)
            for name, text in arguments.files.items()
        }


MAX_SESSIONS = 1000
MAX_SESSIONS_PER_CALLER = 100
_RETRY_S = 5


@dataclass(slots=True, eq=False)
class OpenSession:
    name: str
    owner: str
    #: The protocol version that its client requested.
    version: str | None = None
    #: Number of its requests in progress.
    running: int = 0


class OpenSessions:
    """Limits the number of open sessions. The MCP protocol lets clients replace ended sessions.

    Sessions that the SDK has already ended may still count. They are idle the longest, so they are
    ended first.
    """

    def __init__(
        self, max_sessions: int = MAX_SESSIONS, max_per_caller: int = MAX_SESSIONS_PER_CALLER
    ) -> None:
        self._max_sessions = max_sessions
        self._max_per_caller = max_per_caller
        #: Longest idle first.
        self._open: dict[str, OpenSession] = {}

    def check(self, owner: str) -> None:
        """Check before a new session whether there is space, or an idle session to end."""
        own = self._of(owner)
        if len(own) >= self._max_per_caller and _idle(own) is None:
            raise _full(f"this API key has {len(own)} open sessions")
        everyone = list(self._open.values())
        if len(everyone) >= self._max_sessions and _idle(everyone) is None:
            raise _full(f"the server has {len(everyone)} open sessions")

    def add(self, name: str, owner: str, version: str | None = None) -> list[OpenSession]:
        """Register a new session; returns idle sessions that must be ended for it."""
        leaving: list[OpenSession] = []
        for sessions, max_sessions in (
            (self._of(owner), self._max_per_caller),
            (list(self._open.values()), self._max_sessions),
        ):
            idle = _idle(sessions)
            if not leaving and len(sessions) >= max_sessions and idle is not None:
                leaving.append(self._open.pop(idle.name))
        self._open[name] = OpenSession(name, owner, version)
        return leaving

    def remove(self, name: str, owner: str) -> None:
        if self.has(name, owner):
            del self._open[name]

    @contextmanager
    def used(self, name: str, owner: str) -> Iterator[OpenSession]:
        """Mark a session as busy during a request; ignores sessions of another key."""
        one = self._open[name] if self.has(name, owner) else OpenSession(name, owner)
        one.running += 1
        try:
            yield one
        finally:
            one.running -= 1
            if self._open.get(name) is one:
                self._open[name] = self._open.pop(name)

    def _of(self, owner: str) -> list[OpenSession]:
        return [one for one in self._open.values() if one.owner == owner]

    def has(self, name: str, owner: str) -> bool:
        """Return whether a session is open and belongs to this key."""
        found = self._open.get(name)
        return found is not None and found.owner == owner


def _idle(sessions: list[OpenSession]) -> OpenSession | None:
    return next((one for one in sessions if not one.running), None)


def _full(found: str) -> errors.OverloadedError:
    message = f"too many MCP sessions: {found}, and all of them are busy. Try again later"
    return status_error(errors.OverloadedError, message, retry_after_s=_RETRY_S)
