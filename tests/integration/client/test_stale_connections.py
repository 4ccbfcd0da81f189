"""A reused connection that the server closes as the next request arrives: an unread request is
repeated, a read one is not (K26, C19 and C48 in docs/development/testing.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import threading
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from support.client_calls import END, KINDS, called

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nKeep-Alive: timeout=5, max=100\r\n"
CHUNKED = HEAD % b"text/event-stream" + b"Transfer-Encoding: chunked\r\n\r\n"
STREAMED = CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(END), END)
_ANSWER = json.dumps({"response": "fine"}).encode()
WHOLE = HEAD % b"application/json" + b"Content-Length: %d\r\n\r\n%s" % (len(_ANSWER), _ANSWER)


class ClosingServer:
    """Answers a stream first on each connection, then ends the connection when the next request
    arrives.

    `read` decides whether it reads that request before the end. Until a stream was sent, other
    requests are answered.
    """

    def __init__(self, *, read: bool, end: Callable[[socket.socket], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._read, self._end = read, end
        self.bodies: list[bytes] = []
        self.ended = 0

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            while body := self._request(connection):
                if b'"stream":true' in body.replace(b" ", b""):
                    connection.sendall(STREAMED)
                    self._leave(connection)
                    return
                connection.sendall(WHOLE)

    def _leave(self, connection: socket.socket) -> None:
        if not select.select([connection], [], [], 20)[0]:
            return
        if self._read and not self._request(connection):
            return
        self.ended += 1
        self._end(connection)

    def _request(self, connection: socket.socket) -> bytes:
        got = b""
        while b"\r\n\r\n" not in got:
            piece = connection.recv(65536)
            if not piece:
                return b""
            got += piece
        head, _, body = got.partition(b"\r\n\r\n")
        length = next(
            int(line[15:])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        while len(body) < length:
            body += connection.recv(65536)
        self.bodies.append(body)
        return body


def as_httplib(connection: socket.socket) -> None:
    """Like cpp-httplib (used by llama.cpp): shut down both directions, then close."""
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextlib.contextmanager
def serving(*, read: bool, end: Callable[[socket.socket], None]) -> Iterator[ClosingServer]:
    server = ClosingServer(read=read, end=end)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


async def both(client: Any) -> None:
    """Read a stream, then make a call, with a sync or async client."""
    stream = client.chat("first", stream=True)
    if isinstance(client, polymux.AsyncClient):
        assert "".join([text async for text in (await stream).texts()]) == "x"
        assert (await client.free_chat("second")).text == "fine"
    else:
        assert "".join(stream.texts()) == "x"
        assert client.free_chat("second").text == "fine"


def ask(kind: type, url: str) -> None:
    work = both if kind is polymux.AsyncClient else lambda client: asyncio.run(both(client))
    called(kind, url, work, retry=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_that_was_not_read(kind: type) -> None:
    """The request is repeated silently. On a busy machine the close may arrive too late, but not
    most of the time.
    """
    with serving(read=False, end=as_httplib) as server:
        lost = 0
        for _ in range(10):
            try:
                ask(kind, server.url)
            except errors.ConnectionLostError:
                lost += 1
        assert lost <= 5
        assert server.ended == 10
        assert sum(b"second" in body for body in server.bodies) == 10 - lost


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [as_httplib, socket.socket.close])
def test_a_request_that_was_read(end: Callable[[socket.socket], None], kind: type) -> None:
    """The server may be processing it, so it is not repeated."""
    with serving(read=True, end=end) as server:
        for _ in range(5):
            with pytest.raises(errors.ConnectionLostError):
                ask(kind, server.url)
        assert server.ended == 5
        assert sum(b"second" in body for body in server.bodies) == 5
