"""A server that keeps the interface's promises, for tests of the client; nothing of polymux in it.

Example:
    with ReferenceServer() as server:
        server.predictions.job_s = 0.5  # jobs take their time
        server.fail(503, headers=[("Retry-After", "0")])  # the next request fails
        ...  # requests to server.url with the token server.token
        assert server.calls[0].body.get("prompt") == "a boat"
        assert server.media.requests[0].header("authorization") is None
"""

from __future__ import annotations

import hmac
import itertools
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from servers import http1, media, predictions
from servers.chats import COMPLETION, FREE, Chats
from servers.forms import Body, reader_of
from servers.loopback import Exchange, LoopbackServer
from servers.operations import JSON, OPERATIONS, Received
from servers.replies import Fields, RefusedError, Reply, error_reply, json_reply

if TYPE_CHECKING:
    from typing import Self

    from servers.predictions import Job
    from servers.records import Request

API = "/api/v1/"
_FAILING_PATH = re.compile(r"/fail/(\d{3})(/.*)")


@dataclass
class Fault:
    """An answer that comes instead of the right one."""

    reply: Reply
    times: int | None
    path: str | None


@dataclass
class Call:
    """A request to an operation that was read and found good."""

    request: Request
    path: str
    model: str
    body: Body
    #: Whether it was the same as an earlier one by its Idempotency-Key.
    replayed: bool = False


@dataclass
class _Kept:
    """What an Idempotency-Key stands for."""

    fingerprint: str
    job: Job | None = None
    reply: Reply | None = None


class ReferenceServer(LoopbackServer):
    """All operations, predictions and result files on loopback.

    Args:
        token: The one that it takes.
        polymux_version: Value of the header Polymux-Version; None leaves it out.
        options: As `LoopbackServer` has them.
    """

    def __init__(
        self,
        *,
        token: str = "reference-token",
        polymux_version: str | None = "0.1.0",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.token = token
        self.polymux_version = polymux_version
        self.predictions = predictions.Predictions()
        self.media = media.Media()
        self.chats = Chats()
        #: Good requests to operations, in order.
        self.calls: list[Call] = []
        self._faults: list[Fault] = []
        self._kept: dict[str, _Kept] = {}
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
        """Answers the next requests with an error, after their body was read.

        A request can ask for one itself: by the header ``Test-Status: 503``, or by a path that
        begins with ``/fail/503``.

        Args:
            status: Any; the rest is as `replies.error_reply` has it.
            text: Member ``error``.
            code: Member ``code``.
            headers: Instead of those that belong to the status.
            body: Instead of the JSON.
            times: So many requests; None is all.
            path: Only requests to this path, without query.
        """
        reply = error_reply(status, text, code=code, headers=headers)
        if body is not None:
            reply.body = body
        self._faults.append(Fault(reply, times, path))

    def forget_faults(self) -> None:
        """Ends what `fail` began."""
        self._faults.clear()

    async def answer(self, exchange: Exchange) -> None:
        try:
            reply = await self._reply(exchange)
        except RefusedError as error:
            reply = error.reply
        request = exchange.request
        if not request.body_complete and not http1.expects_continue(request):
            exchange.read_body_meanwhile()  # so that the connection can go on
        await self._send(exchange, reply)

    async def _reply(self, exchange: Exchange) -> Reply:
        request = exchange.request
        fault = self._fault(request)
        if fault is not None:
            await exchange.read_body()
            return fault
        if request.path.startswith(media.PREFIX):
            return self.media.answer(request)
        if request.path == f"{API}readiness":
            return json_reply({"status": "ready"})
        self._check_token(request)
        if request.path.startswith(predictions.PATH):
            await exchange.read_body()
            return self.predictions.answer(request)
        return await self._operation(exchange)

    def _fault(self, request: Request) -> Reply | None:
        asked = request.header("test-status")
        match = _FAILING_PATH.fullmatch(request.path)
        if match or asked:
            return error_reply(int(match[1] if match else asked or "500"))
        for fault in self._faults:
            if fault.path in (None, request.path):
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times == 0:
                        self._faults.remove(fault)
                return fault.reply
        return None

    def _check_token(self, request: Request) -> None:
        """Exactly one header of the right form; compared in constant time, as a server should."""
        given = request.all_of("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        right = hmac.compare_digest(token.encode("latin-1"), self.token.encode())
        if scheme.lower() != "bearer" or not right:
            raise RefusedError(401, "the token is missing or wrong")

    async def _operation(self, exchange: Exchange) -> Reply:
        request = exchange.request
        path = request.path.removeprefix(API)
        operation = OPERATIONS.get(path)
        if not request.path.startswith(API) or (not operation and path not in (COMPLETION, FREE)):
            raise RefusedError(404, "there is nothing here")
        if request.method != "POST":
            raise RefusedError(405, "operations take POST")
        given = parse_qs(request.query, keep_blank_values=True).get("model", [None])[0]
        encodings = operation.encodings(given) if operation else JSON
        reader = reader_of(request.header("content-type"), encodings)
        exchange.on_piece = reader.take
        await exchange.read_body()
        body = reader.body()
        model = ""
        if operation:
            model = operation.model(given, body.encoding)
            operation.check(body)
        return await self._answer_once(exchange, Call(request, path, model, body))

    async def _answer_once(self, exchange: Exchange, call: Call) -> Reply:
        """The same key and content get the same job or answer; other content is refused."""
        key = call.request.header("idempotency-key")
        fingerprint = f"{call.path} {call.model} {call.body.fingerprint}"
        kept = _Kept(fingerprint)
        if key is not None:
            call.replayed = key in self._kept
            kept = self._kept.setdefault(key, kept)
            if kept.fingerprint != fingerprint:
                raise RefusedError(409, "another request was sent under this Idempotency-Key")
        operation = OPERATIONS.get(call.path)
        if operation is None:
            chat = self.chats.answer(call.path, call.body, exchange.wire)
            self.calls.append(call)
            return chat
        self.calls.append(call)
        if kept.job is None and kept.reply is None:
            received = Received(call.model, call.body, next(self._numbers), self.media.add)
            value = operation.make(received)
            if operation.is_job:
                kept.job = self.predictions.create(call.model, call.body.values, value)
            else:
                kept.reply = json_reply(value)
        if kept.job is not None:
            return await self.predictions.created(kept.job, call.request)
        assert kept.reply is not None
        return kept.reply

    async def _send(self, exchange: Exchange, reply: Reply) -> None:
        request, write = exchange.request, exchange.wire.write
        identity = request.header("x-request-id") or uuid.uuid4().hex
        headers = [*reply.headers, ("X-Request-ID", identity)]
        if self.polymux_version is not None:
            headers.append(("Polymux-Version", self.polymux_version))
        if reply.events is None:
            headers.append(("Content-Length", str(len(reply.body))))
            body = b"" if request.method == "HEAD" else reply.body
            await write(http1.head(reply.status, headers) + body)
            return
        await write(http1.head(reply.status, [*headers, ("Transfer-Encoding", "chunked")]))
        async for event in reply.events:
            await write(http1.chunk(event))
        await write(http1.chunk(b""))
