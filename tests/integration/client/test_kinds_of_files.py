"""Files that are given in pieces: which kinds a client reads, and which it cannot."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import polymux
import pytest
from servers import steps
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from servers.misbehaving import MisbehavingServer

GOOD = steps.answer(200, b'{"response":"fine"}')


def test_a_list_of_pieces_is_a_file(server: MisbehavingServer) -> None:
    """Like every other iterable of bytes: the contract has no arrays of files."""
    server.script(GOOD, times=2)
    with polymux.Client(server.url, KEY, retry=0) as client:
        assert client.read_text([b"one ", b"two"]).text == "fine"

    async def ask() -> str:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            return (await client.read_text([b"one ", b"two"])).text

    assert asyncio.run(ask()) == "fine"
    for request in server.requests:
        assert b"one two\r\n--" in request.body
        assert request.header("transfer-encoding") is None, "its length is known"


def test_an_asynchronous_iterable_is_refused_where_no_loop_could_read_it(
    server: MisbehavingServer,
) -> None:
    """At once, and not by the deadline of the whole."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"

    with polymux.Client(server.url, KEY, retry=0, timeout=5) as client:
        for file in (pieces(), ("a.png", pieces())):
            with pytest.raises(TypeError, match="'file' is an asynchronous iterable: AsyncClient"):
                client.read_text(file)  # type: ignore[arg-type]
    assert server.requests == []


def test_a_part_is_not_the_file(server: MisbehavingServer, tmp_path: object) -> None:
    """RFC 9110, 15.3.7: a 206 that nobody has asked for has but a part of it."""
    part = steps.answer(206, b"abc", [("Content-Range", "bytes 0-2/1000")])
    server.script(part, times=None, path="/a.png")
    job = b'{"id":"j1","status":"succeeded","output":["%s/a.png"]}' % server.url.encode()
    server.script(steps.answer(200, job), path="/api/v1/predictions/j1")
    with polymux.Client(server.url, KEY, retry=0) as client:
        (file,) = client.predictions.get("j1").images
    told = r"a part of the file only \(bytes 0-2/1000\)"
    with pytest.raises(polymux.DecodeError, match=told):
        file.read()
    with pytest.raises(polymux.DecodeError, match=told):
        file.save(f"{tmp_path}/a.png")
    with pytest.raises(polymux.DecodeError, match=told):
        list(file)
