"""Limits of a fetch against servers that send too much, too little, too slowly or invalid data."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import TYPE_CHECKING

import pytest
from polymux import errors
from polymux.fetch.fetcher import FetchLimits, FetchPolicy, fetch
from support.fetches import OK, answering, failure, got, limit_of, sending
from support.http_server import Server

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange, Script


def compressed(encoding: str, data: bytes) -> bytes:
    return gzip.compress(data) if encoding == "gzip" else zlib.compress(data)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_bodies_are_decoded_and_counted_both_ways(encoding: str) -> None:
    """The body is exactly at the size limit."""
    body = bytes(8 << 20)
    sent = compressed(encoding, body)
    with Server(answering(200, sent, f"Content-Encoding: {encoding}")) as server:
        fetched = got(server, limits=FetchLimits(body_bytes=8 << 20))
    assert fetched.data == body
    assert (fetched.body_bytes, fetched.received_bytes) == (len(body), len(sent))


@pytest.mark.parametrize(("encoding", "layers"), [("gzip", 1), ("gzip", 2), ("deflate", 1)])
def test_decompression_bombs_stop_at_the_cap(encoding: str, layers: int, tmp_path: Path) -> None:
    bomb = bytes(64 << 20)
    for _ in range(layers):
        bomb = compressed(encoding, bomb)
    assert len(bomb) < 100_000
    name = ", ".join([encoding] * layers)
    with (
        Server(answering(200, bomb, f"Content-Encoding: {name}")) as server,
        (tmp_path / "body").open("wb") as file,
    ):
        failure(
            errors.AnswerTooLargeError, server, destination=file,
            limits=FetchLimits(body_bytes=1 << 20),
        )  # fmt: skip
    assert (tmp_path / "body").stat().st_size <= 1 << 20


@pytest.mark.parametrize("name", ["gzip", "deflate", "rot13"])
def test_broken_compression_is_no_success(name: str) -> None:
    with Server(answering(200, b"this is not compressed", f"Content-Encoding: {name}")) as server:
        failure(errors.ConnectionLostError, server)


async def endless(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await exchange.send(b"x" * 65536)


async def endless_chunks(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await exchange.send(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")


@pytest.mark.parametrize("script", [endless, endless_chunks])
def test_an_endless_body_ends_at_the_cap(script: Script, tmp_path: Path) -> None:
    with Server(script) as server:
        path = tmp_path / "body"
        failure(
            errors.AnswerTooLargeError, server, destination=path,
            limits=FetchLimits(body_bytes=3_000_000),
        )  # fmt: skip
        assert server.gone.wait(10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [10 << 30, 257 << 20, 10**30])
def test_a_declared_length_over_the_cap_is_refused_before_the_body(length: int) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()
    with Server(sending(head, then="stall")) as server:
        failure(errors.AnswerTooLargeError, server)
        assert server.gone.wait(10)


def test_exactly_the_cap_is_allowed() -> None:
    with Server(answering(200, b"x" * 1000)) as server:
        assert got(server, limits=FetchLimits(body_bytes=1000)).body_bytes == 1000
        failure(errors.AnswerTooLargeError, server, limits=FetchLimits(body_bytes=999))


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"Content-Length: 100\r\n\r\n", b"x" * 99),
        (OK + b"Content-Length: 100\r\n\r\n",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"64\r\n", b"x" * 50),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\n"),
        (OK + b"Content-Le",),
        (OK + b"Content-Length: 5, 6\r\n\r\nhello",),
        (OK + b"Content-Length: -5\r\n\r\nhello",),
        (OK + b"Content-Length: 10\r\nContent-Length: 5\r\n\r\nhellohello",),
        (OK + b"Content-Length: 5\r\ncontent-length: 10\r\n\r\nhellohello",),
        (b"HTTP/1.1 100 Continue\r\n\r\n",),
        (b"",),
        (b"SSH-2.0-OpenSSH\r\n",),
        (b"hello\n",),
        (b"\x00" * 100,),
        (b"HTTP/9.9 200 OK\r\n\r\n",),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", b"hello"),
        (OK + b"no colon\r\n\r\n",),
        (OK + b"Location: /\x00\r\n\r\n",),
        (OK + b"Content-Length: 5x\r\n\r\nhello",),
    ],
)
def test_a_short_or_strange_answer_is_no_success(pieces: tuple[bytes, ...], tmp_path: Path) -> None:
    with Server(sending(*pieces)) as server:
        failure(errors.ConnectionLostError, server, destination=tmp_path / "body")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sent", [b"", OK, OK + b"Content-Length: 100\r\n\r\n" + b"x" * 50])
def test_a_reset_is_no_success(sent: bytes) -> None:
    with Server(sending(sent, then="reset")) as server:
        failure(errors.ConnectionLostError, server)


def test_more_than_was_declared_is_left() -> None:
    """Two equal Content-Length headers are accepted."""
    twice = b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n"
    with Server(sending(OK + twice + b"hello, world")) as server:
        assert got(server).data == b"hello"


async def byte_by_byte(exchange: Exchange) -> None:
    await exchange.send(OK + b"Content-Length: 1000\r\n\r\n")
    while True:
        await exchange.send(b"x")
        await asyncio.sleep(0.05)


def test_one_byte_at_a_time_is_too_slow() -> None:
    with Server(byte_by_byte) as server:
        limits = FetchLimits(rate_bytes_per_s=1000, rate_window_ms=300)
        assert limit_of(failure(errors.RequestTimeoutError, server, limits=limits)) == "rate"
        assert server.gone.wait(10)
        limits = FetchLimits(rate_bytes_per_s=0, total_ms=400)
        assert limit_of(failure(errors.RequestTimeoutError, server, limits=limits)) == "total"


@pytest.mark.parametrize(
    "sent", [b"", OK, OK + b"\r\n", OK + b"Content-Length: 100\r\n\r\n" + b"x" * 50]
)
def test_silence_ends_at_the_idle_limit(sent: bytes) -> None:
    with Server(sending(sent, then="stall")) as server:
        limits = FetchLimits(idle_ms=200)
        assert limit_of(failure(errors.RequestTimeoutError, server, limits=limits)) == "idle"
        assert server.gone.wait(10)


def test_redirects_share_the_total() -> None:
    async def slow_hop(exchange: Exchange) -> None:
        await asyncio.sleep(0.1)
        await exchange.answer(302, b"", "Location: /")

    with Server(slow_hop) as server:
        limits = FetchLimits(total_ms=250)
        assert limit_of(failure(errors.RequestTimeoutError, server, limits=limits)) == "total"
    assert server.connections <= 4


def test_a_handshake_that_never_ends() -> None:
    async def never(exchange: Exchange) -> None:
        await exchange.closed()

    with Server(never) as server:
        policy = FetchPolicy(allowed_hosts=(server.authority,))
        with pytest.raises(errors.RequestTimeoutError) as caught:
            fetch(f"https://{server.authority}/", policy=policy, limits=FetchLimits(connect_ms=300))
    assert caught.value.limit == "connect"


async def endless_header(exchange: Exchange) -> None:
    await exchange.send(OK + b"X: ")
    while True:
        await exchange.send(b"x" * 65536)


async def endless_continue(exchange: Exchange) -> None:
    while True:
        await exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


async def endless_trailers(exchange: Exchange) -> None:
    await exchange.send(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n")
    while True:
        await exchange.send(b"X: y\r\n" * 100)


@pytest.mark.parametrize(
    "script",
    [
        answering(200, b"", *["X: y"] * 200),
        answering(200, b"", *["X: " + "y" * 4000] * 20),
        answering(200, b"", "X: " + "y" * 70_000),
        endless_header, endless_continue, endless_trailers,
    ],
)  # fmt: skip
def test_too_many_or_too_long_headers(script: Script) -> None:
    with Server(script) as server:
        failure(errors.AnswerTooLargeError, server)
        assert server.gone.wait(10)


def test_headers_up_to_the_limit_pass() -> None:
    with Server(answering(200, b"", *["X: y"] * 199)) as server:
        assert len(got(server).headers) == 200


def test_odd_headers_are_safe_to_read() -> None:
    script = answering(200, b"", "Folded: a\r\n b", "Bytes: \udcff", "Empty:")
    with Server(script) as server:
        fetched = got(server)
    assert fetched.header("folded") == "a b"
    assert fetched.header("bytes") == "\\xff"
    assert fetched.header("empty") == ""
