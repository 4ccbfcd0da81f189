"""A server that implements the polymux API for tests of the client, without code of polymux.

Example:

    with ReferenceServer() as server:
        server.predictions.job_s = 0.5  # jobs take 0.5 s
        server.fail(503, headers=[("Retry-After", "0")])  # the next request fails
        ...  # requests to server.url with the token server.token
        assert server.calls[0].body.get("prompt") == "a boat"
        assert server.media.requests[0].header("authorization") is None
"""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from servers import http1, media, predictions
from servers.chats import COMPLETION, FREE, Chats
from servers.forms import Body, body_of
from servers.loopback import Exchange, LoopbackServer
from servers.operations import OPERATIONS, Received
from servers.replies import Fields, RefusedError, Reply, error_reply, json_reply

if TYPE_CHECKING:
    from typing import Self

    from servers.predictions import Job
    from servers.records import Request
    from servers.tcp_connection import TcpConnection

API = "/api/v1/"


@dataclass
class Fault:
    """An error that replaces the correct answer."""

    reply: Reply
    times: int | None
    path: str | None


@dataclass
class Call:
    """A valid request to an operation."""

    request: Request
    path: str
    model: str
    body: Body


class ReferenceServer(LoopbackServer):
    """All operations, predictions and result files on loopback."""

    kept_body_bytes = 64 << 20

    def __init__(self, *, token: str = "reference-token", **options: Any) -> None:
        super().__init__(**options)
        self.token = token
        self.predictions = predictions.Predictions()
        self.media = media.Media()
        self.chats = Chats()
        #: Valid requests to operations, in order.
        self.calls: list[Call] = []
        self._faults: list[Fault] = []
        #: The job or answer of each Idempotency-Key.
        self._kept: dict[str | None, Job | Reply] = {}
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        super().__enter__()
        self.predictions.base_url = self.media.public_url = self.url
        return self

    def fail(
        self,
        status: int,
        text: str = "",
        *,
        code: str = "",
        headers: Fields | None = None,
        body: bytes | None = None,
        times: int | None = 1,
        path: str | None = None,
    ) -> None:
        """Answer the next requests with an error, after reading their bodies.

        Args:
            status: Any status. Other defaults are those of `replies.error_reply`.
            text: Member ``error``.
            code: Member ``code``.
            headers: Replace the usual headers of the status.
            body: Replaces the JSON.
            times: The number of requests; None is all.
            path: Only requests to this path, without query.
        """
        reply = error_reply(status, text, code=code, headers=headers)
        if body is not None:
            reply.body = body
        self._faults.append(Fault(reply, times, path))

    async def answer(self, exchange: Exchange) -> None:
        await exchange.read_body()
        try:
            reply = await self._reply(exchange.request, exchange.wire)
        except RefusedError as error:
            reply = error.reply
        await self._send(exchange, reply)

    async def _reply(self, request: Request, wire: TcpConnection) -> Reply:
        fault = self._fault(request)
        if fault is not None:
            return fault
        if request.path.startswith(media.PREFIX):
            return self.media.answer(request)
        if request.path == f"{API}readiness":
            return json_reply({"status": "ready"})
        if request.all_of("authorization") != [f"Bearer {self.token}"]:
            raise RefusedError(401, "the token is missing or wrong")
        if request.path.startswith(predictions.PATH):
            return self.predictions.answer(request)
        return await self._operation(request, wire)

    def _fault(self, request: Request) -> Reply | None:
        for fault in self._faults:
            if fault.path in (None, request.path):
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times == 0:
                        self._faults.remove(fault)
                return fault.reply
        return None

    async def _operation(self, request: Request, wire: TcpConnection) -> Reply:
        path = request.path.removeprefix(API)
        operation = OPERATIONS.get(path)
        if not request.path.startswith(API) or (not operation and path not in (COMPLETION, FREE)):
            raise RefusedError(404, "there is nothing here")
        if request.method != "POST":
            raise RefusedError(405, "operations take POST")
        body = body_of(request)
        if operation is None:
            reply = self.chats.answer(path, body, wire)
            self.calls.append(Call(request, path, "", body))
            return reply
        given = parse_qs(request.query, keep_blank_values=True).get("model", [None])[0]
        model = operation.model(given, body.encoding)
        self.calls.append(Call(request, path, model, body))
        # The same key gets the same job or answer.
        key = request.header("idempotency-key")
        kept = self._kept.get(key) if key else None
        if kept is None:
            value = operation.make(Received(model, body, next(self._numbers), self.media.add))
            kept = json_reply(value)
            if operation.is_job:
                kept = self.predictions.create(model, body.values, value)
            self._kept[key] = kept
        return kept if isinstance(kept, Reply) else await self.predictions.created(kept, request)

    async def _send(self, exchange: Exchange, reply: Reply) -> None:
        request, write = exchange.request, exchange.wire.write
        identity = request.header("x-request-id") or uuid.uuid4().hex
        headers = [*reply.headers, ("X-Request-ID", identity), ("Polymux-Version", "0.1.0")]
        if reply.events is None:
            headers.append(("Content-Length", str(len(reply.body))))
            body = b"" if request.method == "HEAD" else reply.body
            await write(http1.head(reply.status, headers) + body)
            return
        await write(http1.head(reply.status, [*headers, ("Transfer-Encoding", "chunked")]))
        async for event in reply.events:
            await write(http1.chunk(event))
        await write(http1.chunk(b""))
