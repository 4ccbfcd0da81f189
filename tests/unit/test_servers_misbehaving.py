"""The misbehaving server really does what its steps say, and its records are right."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import socket
import struct
import time
from typing import TYPE_CHECKING

import pytest
from servers import steps
from servers.bombs import zeros_in_gzip
from servers.listeners import full_port, refusing_port, silent_port
from servers.misbehaving import MisbehavingServer
from support import raw_http

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        yield server


def request(
    server: MisbehavingServer, body: bytes = b"{}"
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    with contextlib.closing(connection):
        connection.request("POST", "/a?b=c", body)
        response = connection.getresponse()
        return response, response.read()


def test_a_request_is_recorded_as_it_came(server: MisbehavingServer) -> None:
    server.script(steps.answer(201, b'{"a": 1}', [("X-Name", "value")]))
    before = time.monotonic()
    with raw_http.connect(server) as peer:
        peer.sendall(raw_http.post(b"abc", "/a?b=c", b"x-ODD:  two \r\nX-Odd: three\r\n"))
        answer = raw_http.read_until(peer, b'{"a": 1}')
        port = peer.getsockname()[1]
    assert answer.startswith(b"HTTP/1.1 201 \r\n")
    assert b"\r\nX-Name: value\r\n" in answer
    (seen,) = server.requests
    assert (seen.method, seen.target, seen.path, seen.query) == ("POST", "/a?b=c", "/a", "b=c")
    assert seen.headers == [
        (b"Host", b"h"), (b"x-ODD", b"two"), (b"X-Odd", b"three"), (b"Content-Length", b"3"),
    ]  # fmt: skip
    assert seen.all_of("X-Odd") == ["two", "three"]
    assert seen.header("missing") is None
    assert (seen.body, seen.body_bytes, seen.body_complete) == (b"abc", 3, True)
    assert seen.body_sha256 == hashlib.sha256(b"abc").hexdigest()
    assert seen.connection.peer_port == port
    closed = server.wait_closed(seen.connection)
    assert closed.closed_by == "fin"
    assert closed.closed_at is not None
    assert before <= seen.arrived_at <= closed.closed_at <= time.monotonic()


def test_keep_alive_order_paths_and_times(server: MisbehavingServer) -> None:
    server.script(steps.answer(200, b"first"))
    server.script(steps.answer(200, b"twice"), times=2)
    server.script(steps.answer(200, b"own"), path="/own")
    server.script(steps.answer(200, b"always"), times=None)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    answers = []
    with contextlib.closing(connection):
        for path in ("/x", "/own?a", "/y", "/own", "/z", "/z"):
            connection.request("GET", path)
            answers.append(connection.getresponse().read())
    assert answers == [b"first", b"own", b"twice", b"twice", b"always", b"always"]
    assert len(server.connections) == 1
    assert server.connections[0].requests == server.requests


def test_a_request_without_a_script_says_so(server: MisbehavingServer) -> None:
    response, _ = request(server)
    assert response.status == 500
    assert server.unscripted == server.requests


def test_bodies_in_chunks_and_large_ones(server: MisbehavingServer) -> None:
    server.script(steps.answer(), times=2)
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with raw_http.connect(server) as peer:
        peer.sendall(head + b"3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nX-Sum: 1\r\n\r\n")
        raw_http.read_until(peer, b"{}")
        large = bytes(range(256)) * 20_000
        peer.sendall(raw_http.post(large))
        raw_http.read_until(peer, b"{}")
    first, second = server.requests
    assert (first.body, first.trailers) == (b"abcd", [(b"X-Sum", b"1")])
    assert second.body_bytes == len(large)
    assert second.body_sha256 == hashlib.sha256(large).hexdigest()
    assert second.body == large[: 1 << 20]


def test_expect_continue(server: MisbehavingServer) -> None:
    server.script(steps.answer(200, b"done"))
    with raw_http.connect(server) as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert raw_http.read_until(peer, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(b"ab")
        raw_http.read_until(peer, b"done")


def test_split_sends_small_pieces_with_pauses(server: MisbehavingServer) -> None:
    server.script(steps.split(3, 0.02), steps.answer(200, b"0123456789"), steps.close())
    with raw_http.connect(server) as peer:
        peer.sendall(raw_http.post())
        pieces = []
        while piece := peer.recv(1000):
            pieces.append(piece)
    assert b"".join(pieces).endswith(b"\r\n\r\n0123456789")
    assert len(pieces) > 3  # of 28; a busy machine sees some at once


def test_sleep_and_stall(server: MisbehavingServer) -> None:
    server.script(steps.sleep(0.2), steps.send(b"late"), steps.stall())
    with raw_http.connect(server) as peer:
        started = time.monotonic()
        peer.sendall(raw_http.post())
        assert peer.recv(100) == b"late"
        assert time.monotonic() - started >= 0.19
        peer.settimeout(0.3)
        with pytest.raises(TimeoutError):
            peer.recv(100)
        left = time.monotonic()
    closed = server.wait_closed(server.connections[0])
    assert closed.closed_at is not None
    assert closed.closed_at >= left


def test_reset_close_and_half_close_by_the_server(server: MisbehavingServer) -> None:
    server.script(steps.send(b"x"), steps.sleep(0.1), steps.reset())
    with pytest.raises(ConnectionResetError):
        raw_http.exchange(server)
    server.script(steps.send(b"x"), steps.close())
    assert raw_http.exchange(server) == b"x"
    server.script(steps.send(b"x"), steps.half_close(), steps.stall())
    with raw_http.connect(server) as peer:
        peer.sendall(raw_http.post())
        assert raw_http.read_to_end(peer) == b"x"
        still_open = server.connections[2]
        assert still_open.closed_at is None
    assert server.wait_closed(still_open).closed_by == "fin"
    assert [one.closed_by for one in server.connections] == ["server", "server", "fin"]


def test_reset_by_the_peer_is_told_from_its_close(server: MisbehavingServer) -> None:
    server.script(steps.stall())
    peer = raw_http.connect(server)
    peer.sendall(raw_http.post())
    server.wait_requests(1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    closed = server.wait_closed(server.connections[0])
    assert closed.closed_by == "reset"
    assert closed.reset_at == closed.closed_at


@pytest.mark.parametrize("linger", [False, True])
def test_the_end_is_seen_while_nothing_is_read(server: MisbehavingServer, linger: bool) -> None:
    server.script(steps.read_nothing(), steps.stall())
    peer = raw_http.connect(server)
    peer.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\nabc")
    server.wait_requests(1)
    with pytest.raises(TimeoutError, match="the end of connection 0"):
        server.wait_closed(server.connections[0], timeout_s=0.1)
    if linger:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    assert server.wait_closed(server.connections[0]).closed_by == ("reset" if linger else "fin")
    assert server.requests[0].body_bytes == 0


def test_repeat_forever_ends_with_the_peer(server: MisbehavingServer) -> None:
    server.script(steps.event_stream(), steps.repeat_forever(b": x\n\n"))
    with raw_http.connect(server) as peer:
        peer.sendall(raw_http.post())
        total = 0
        while total < 4 << 20:
            total += len(peer.recv(1 << 16))
    assert server.wait_closed(server.connections[0]).closed_by == "reset"


def test_gzip_bomb(server: MisbehavingServer) -> None:
    size = (5 << 20) + 17
    assert gzip.decompress(zeros_in_gzip(size)) == bytes(size)
    server.script(steps.gzip_bomb(size), steps.gzip_bomb(size, layers=3))
    response, body = request(server)
    assert response.headers["Content-Encoding"] == "gzip"
    assert len(body) < size // 500
    assert len(gzip.decompress(body)) == size
    server.script(steps.gzip_bomb(size, layers=3))
    response, body = request(server)
    assert response.headers["Content-Encoding"] == "gzip, gzip, gzip"
    assert len(gzip.decompress(gzip.decompress(gzip.decompress(body)))) == size


def test_redirect_and_informational(server: MisbehavingServer) -> None:
    server.script(steps.redirect(307, "http://127.0.0.1:9/x"))
    response, _ = request(server)
    assert (response.status, response.headers["Location"]) == (307, "http://127.0.0.1:9/x")
    server.script(steps.informational(100), steps.informational(103, [("Link", "</a>")]),
                  steps.answer(200, b"ok"), steps.close())  # fmt: skip
    assert raw_http.exchange(server).startswith(
        b"HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 \r\nLink: </a>\r\n\r\nHTTP/1.1 200 \r\n"
    )


def test_odd_headers(server: MisbehavingServer) -> None:
    server.script(steps.many_headers(), steps.close())
    assert raw_http.exchange(server).count(b"\r\nX-Filler-") == 10_000
    server.script(steps.huge_header(), steps.close())
    assert b"\r\nX-Filler: " + b"x" * (1 << 20) + b"\r\n" in raw_http.exchange(server)
    server.script(steps.head(200, [(b"\xff\x00", b"\r \n")], reason=b"\x80"), steps.close())
    assert raw_http.exchange(server) == b"HTTP/1.1 200 \x80\r\n\xff\x00: \r \n\r\n\r\n"


def test_chunks_and_wrong_lengths(server: MisbehavingServer) -> None:
    server.script(steps.chunked_head(), steps.chunk(b"abc"), steps.last_chunk([("X-T", "1")]))
    response, body = request(server)
    assert (response.status, body) == (200, b"abc")
    server.script(steps.chunked_head(), steps.send(b"zz\r\nabc\r\n"), steps.close())
    with pytest.raises(http.client.IncompleteRead):
        request(server)
    server.script(steps.wrong_content_length(1000, b"x" * 500), steps.close())
    with pytest.raises(http.client.IncompleteRead, match="500 bytes read, 500 more expected"):
        request(server)


def test_a_body_that_is_not_read_fills_the_window() -> None:
    with MisbehavingServer(receive_buffer_bytes=1 << 14) as server:
        server.script(steps.read_nothing(), steps.sleep(1), steps.answer(413, b"large"))
        with raw_http.connect(server) as peer:
            peer.settimeout(0.3)
            with pytest.raises(TimeoutError):
                peer.sendall(raw_http.post(bytes(32 << 20)))
            peer.settimeout(10)
            assert peer.recv(20).startswith(b"HTTP/1.1 413 ")
        assert server.requests[0].body_bytes == 0
        assert server.wait_closed(server.connections[0]).closed_by == "server"


def test_a_body_is_read_slowly(server: MisbehavingServer) -> None:
    server.script(steps.read_slowly(100_000), steps.answer(200, b"done"))
    started = time.monotonic()
    request(server, bytes(30_000))
    assert time.monotonic() - started >= 0.25
    assert server.requests[0].body_bytes == 30_000


def test_an_early_answer(server: MisbehavingServer) -> None:
    server.script(steps.respond_before_body(), steps.answer(400, b"early"))
    with raw_http.connect(server) as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc")
        assert b"early" in raw_http.read_until(peer, b"early")
        assert not server.requests[0].body_complete
        peer.sendall(b"def")
        assert server.wait_complete(server.requests[0]).body == b"abcdef"


def test_a_script_before_any_request(server: MisbehavingServer) -> None:
    server.on_connect(steps.send(b"220 not HTTP\r\n"), steps.close())
    server.on_connect(steps.reset())
    with raw_http.connect(server) as peer:
        assert raw_http.read_to_end(peer) == b"220 not HTTP\r\n"
    with pytest.raises(ConnectionResetError), raw_http.connect(server) as peer:
        peer.recv(1)
    server.script(steps.answer())
    assert request(server)[0].status == 200


def test_an_idle_connection_is_closed_after_the_answer(server: MisbehavingServer) -> None:
    server.script(steps.answer(200, b"ok"), steps.sleep(0.1), steps.close())
    with raw_http.connect(server) as peer:
        peer.sendall(raw_http.post())
        assert raw_http.read_to_end(peer).endswith(b"ok")


def test_ports_without_a_server() -> None:
    with refusing_port() as port, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)
    with silent_port() as port, socket.create_connection(("127.0.0.1", port), 1) as peer:
        peer.sendall(raw_http.post())
        peer.settimeout(0.2)
        with pytest.raises(TimeoutError):
            peer.recv(1)
    with full_port() as port, pytest.raises(TimeoutError):
        socket.create_connection(("127.0.0.1", port), 0.3)


def test_a_server_comes_back_on_its_port() -> None:
    with MisbehavingServer() as server:
        server.script(steps.answer())
        assert request(server)[0].status == 200
    with pytest.raises(ConnectionRefusedError):
        request(server)
    with MisbehavingServer(port=server.port) as again:
        again.script(steps.answer(201))
        assert request(server)[0].status == 201


def test_an_error_of_a_script_fails_the_test() -> None:
    def use_a_broken_script() -> None:
        with MisbehavingServer() as server:
            server.script(steps.Step(lambda stage: stage.sleep(1 // 0)))
            raw_http.exchange(server)

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        use_a_broken_script()


def test_the_server_leaves_no_connection_behind() -> None:
    with MisbehavingServer() as server:
        server.script(steps.stall(), times=3)
        peers = [raw_http.connect(server) for _ in range(3)]
        for peer in peers:
            peer.sendall(raw_http.post())
        server.wait_requests(3)
        assert len(server.open_connections) == 3
    for peer in peers:
        with peer, contextlib.suppress(ConnectionResetError):
            assert peer.recv(1) == b""
