"""The misbehaving server really does what its steps say, and its records are right."""

from __future__ import annotations

import gzip
import hashlib
import socket
import ssl
import struct
import time
from typing import TYPE_CHECKING, Any

import pytest
from servers import steps
from servers.bombs import zeros_in_gzip
from servers.certificates import Authority
from servers.misbehaving import MisbehavingServer
from support import raw_http

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        yield server


def test_requests_are_recorded_as_they_came(server: MisbehavingServer) -> None:
    server.script(steps.answer(201, b'{"a": 1}', [("X-Name", "value")]))
    server.script(steps.answer(200, b"own"), path="/own")
    before = time.monotonic()
    with raw_http.connect(server) as peer:
        peer.sendall(raw_http.post(b"abc", "/a?b=c", b"x-ODD:  two \r\nX-Odd: three\r\n"))
        answer = raw_http.read_until(peer, b'{"a": 1}')
        peer.sendall(b"POST /own HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nX-Sum: 1\r\n\r\n")  # fmt: skip
        raw_http.read_until(peer, b"own")
        peer.sendall(raw_http.post())
        raw_http.read_until(peer, b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 201 \r\n")
    assert b"\r\nX-Name: value\r\n" in answer
    seen, chunked, unscripted = server.requests
    assert (seen.method, seen.target, seen.path, seen.query) == ("POST", "/a?b=c", "/a", "b=c")
    assert seen.all_of("X-Odd") == ["two", "three"]
    assert (seen.body, seen.body_bytes, seen.body_complete) == (b"abc", 3, True)
    assert seen.body_sha256 == hashlib.sha256(b"abc").hexdigest()
    assert (chunked.body, chunked.trailers) == (b"abcd", [(b"X-Sum", b"1")])
    assert server.unscripted == [unscripted]
    closed = server.wait_closed(seen.connection)
    assert closed.closed_by == "fin"
    assert closed.closed_at is not None
    assert before <= seen.arrived_at <= closed.closed_at <= time.monotonic()


def test_ends_by_the_server(server: MisbehavingServer) -> None:
    server.script(steps.send(b"x"), steps.reset())
    with pytest.raises(ConnectionResetError):
        raw_http.exchange(server)
    server.script(steps.send(b"x"), steps.close())
    assert raw_http.exchange(server) == b"x"
    server.script(steps.send(b"x"), steps.half_close(), steps.stall())
    with raw_http.connect(server) as peer:
        peer.sendall(raw_http.post())
        assert raw_http.read_to_end(peer) == b"x"
        assert server.connections[2].closed_at is None
    server.wait_closed(server.connections[2])
    assert [one.closed_by for one in server.connections] == ["server", "server", "fin"]


@pytest.mark.parametrize("step", [steps.stall, steps.read_nothing])
@pytest.mark.parametrize("linger", [False, True])
def test_ends_by_the_peer(server: MisbehavingServer, step: type[steps.Step], linger: bool) -> None:
    server.script(step(), steps.stall())
    peer = raw_http.connect(server)
    peer.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\nabc")
    server.wait_requests(1)
    if linger:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    assert server.wait_closed(server.connections[0]).closed_by == ("reset" if linger else "fin")


def test_odd_answers(server: MisbehavingServer) -> None:
    size = (5 << 20) + 17
    assert gzip.decompress(zeros_in_gzip(size)) == bytes(size)
    server.script(steps.gzip_bomb(size, layers=2), steps.close())
    head, _, body = raw_http.exchange(server).partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip, gzip" in head
    assert len(gzip.decompress(gzip.decompress(body))) == size
    server.script(steps.many_headers(), steps.close())
    assert raw_http.exchange(server).count(b"\r\nX-Filler-") == 10_000
    server.script(steps.huge_header(), steps.close())
    assert b"\r\nX-Filler: " + b"x" * (1 << 20) + b"\r\n" in raw_http.exchange(server)
    server.script(steps.wrong_content_length(1000, b"x" * 500), steps.close())
    assert raw_http.exchange(server).endswith(b"Content-Length: 1000\r\n\r\n" + b"x" * 500)


def test_an_error_of_a_script_fails_the_test() -> None:
    def use_a_broken_script() -> None:
        with MisbehavingServer() as server:
            server.script(steps.Step(lambda stage: stage.sleep(1 // 0)))
            raw_http.exchange(server)

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        use_a_broken_script()


def test_certificates_are_wrong_in_one_thing_only(tmp_path: Path) -> None:
    """A client that looks refuses them; one that looks away gets its answer."""
    authority = Authority(tmp_path)
    looking = ssl.create_default_context(cafile=authority.ca)
    away = ssl._create_unverified_context()
    away.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    away.set_ciphers("ALL:eNULL:@SECLEVEL=0")
    errors: dict[Any, str | None] = {
        "expired": "expired", "wrong_name": "IP address mismatch", "self_signed": "self-signed",
        "tls_1_0": None, "bad_cipher": None,
    }  # fmt: skip

    def ask(server: MisbehavingServer, context: ssl.SSLContext) -> bytes:
        with (
            raw_http.connect(server) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as peer,
        ):
            peer.sendall(raw_http.post())
            return raw_http.read_until(peer, b"served")

    for flavour, error in errors.items():
        with MisbehavingServer(tls=authority.certificate(flavour).context()) as server:
            server.script(steps.answer(200, b"served"), times=None)
            with pytest.raises(ssl.SSLError, match=error):
                ask(server, looking)
            assert ask(server, away).endswith(b"served")
    with MisbehavingServer(tls=authority.certificate().context()) as server:
        server.script(steps.answer(200, b"served"))
        assert ask(server, looking).endswith(b"served")
