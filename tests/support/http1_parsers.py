"""Reads HTTP/1.1 messages with polymux's parser, h11 and httptools, for comparisons."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import h11
import httptools

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Fields = list[tuple[bytes, bytes]]


@dataclass
class Message:
    """A complete message.

    Attributes:
        start: Method and target of a request, or the status of a response.
        version: ``1.1`` or ``1.0``.
    """

    start: tuple[bytes, ...]
    version: bytes
    body: bytes = b""
    fields: Fields = field(default_factory=list)
    trailers: Fields = field(default_factory=list)


@dataclass
class Reading:
    """The complete messages of a connection, and why it ended; empty if nothing was wrong."""

    messages: list[Message]
    refusal: str


def read_natively(program: Path, kind: str, cases: Sequence[bytes]) -> list[Reading]:
    """Read each case with polymux's parser.

    Args:
        program: ``http1_cases``.
        kind: ``request`` or ``response``.
        cases: The bytes of one connection each.
    """
    given = b"".join(f"{kind} {len(case)}\n".encode() + case for case in cases)
    done = subprocess.run([program], input=given, capture_output=True, check=True, timeout=300)
    readings = []
    for line in done.stdout.decode().splitlines():
        *messages, verdict = line.split(" ")
        refusal = "" if verdict == "ok" else verdict
        readings.append(Reading([_message(kind, text) for text in messages], refusal))
    return readings


def _message(kind: str, text: str) -> Message:
    head, trailers = text.split(";")
    first, second, minor, body, *fields = map(bytes.fromhex, head.split(","))
    start = (first, second) if kind == "request" else (first,)
    last = [bytes.fromhex(one) for one in trailers.split(",")[1:]]
    return Message(start, b"1." + minor, body, _pairs(fields), _pairs(last))


def _pairs(texts: list[bytes]) -> Fields:
    return list(zip(texts[::2], texts[1::2], strict=True))


def read_with_h11(kind: str, case: bytes) -> Reading:
    """Read a connection with h11 and answer each request, until h11 refuses or the end."""
    is_request = kind == "request"
    connection = h11.Connection(h11.SERVER if is_request else h11.CLIENT)
    messages: list[Message] = []
    try:
        if not is_request:
            _ask(connection)
        connection.receive_data(case)
        is_closed = False
        message: Message | None = None
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                message = Message((event.method, event.target), event.http_version)
                message.fields = event.headers.raw_items()
            elif isinstance(event, h11.InformationalResponse | h11.Response):
                message = Message((b"%d" % event.status_code,), event.http_version)
                message.fields = event.headers.raw_items()
                if isinstance(event, h11.InformationalResponse):
                    messages.append(message)
            elif isinstance(event, h11.Data):
                message.body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                message.trailers = event.headers.raw_items()
                messages.append(message)
                if is_request:
                    connection.send(
                        h11.Response(status_code=200, headers=[("Content-Length", "0")])
                    )
                    connection.send(h11.EndOfMessage())
                if connection.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                    return Reading(messages, "")
                connection.start_next_cycle()
                if not is_request:
                    _ask(connection)
            elif event is h11.NEED_DATA and not is_closed:
                is_closed = True
                connection.receive_data(b"")
            else:
                return Reading(messages, "")
    except (h11.RemoteProtocolError, h11.LocalProtocolError) as refusal:
        return Reading(messages, str(refusal))


def _ask(connection: h11.Connection) -> None:
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())


class _Collector:
    """Receives the callbacks of httptools."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.parser: httptools.HttpRequestParser | httptools.HttpResponseParser
        self.is_in_message = False

    def on_message_begin(self) -> None:
        self.is_in_message = False
        self._target, self._in_head = b"", True
        self._message = Message((), b"")

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        fields = self._message.fields if self._in_head else self._message.trailers
        fields.append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        self._in_head, self.is_in_message = False, True
        self._message.version = self.parser.get_http_version().encode()
        if isinstance(self.parser, httptools.HttpRequestParser):
            self._message.start = (self.parser.get_method(), self._target)
        else:
            self._message.start = (b"%d" % self.parser.get_status_code(),)

    def on_body(self, body: bytes) -> None:
        self._message.body += body

    def on_message_complete(self) -> None:
        self.is_in_message = False
        self.messages.append(self._message)

    def end(self) -> None:
        """The connection ends, and so does a response without a length."""
        names = {name.lower() for name, _ in self._message.fields} if self.is_in_message else set()
        if self.is_in_message and not names & {b"content-length", b"transfer-encoding"}:
            self.on_message_complete()


def read_with_httptools(kind: str, case: bytes) -> Reading:
    """Read a connection with httptools, until it refuses, or an upgrade, or the end."""
    is_request = kind == "request"
    collector = _Collector()
    made = httptools.HttpRequestParser if is_request else httptools.HttpResponseParser
    collector.parser = made(collector)
    try:
        collector.parser.feed_data(case)
    except httptools.HttpParserUpgrade:
        return Reading(collector.messages, "")
    except httptools.HttpParserError as refusal:
        return Reading(collector.messages, str(refusal) or type(refusal).__name__)
    if not is_request:
        collector.end()
    return Reading(collector.messages, "")
