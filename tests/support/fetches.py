"""Fetches from scripted local servers, and the requirements for all their errors."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any

import brotli
import pytest
from polymux import errors
from polymux.fetch.fetcher import Fetched, FetchPolicy, fetch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.http_server import Exchange, Script, Server

ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|\[?[0-9a-f]*:[0-9a-f]*:")
#: The first line of an answer.
OK = b"HTTP/1.1 200 OK\r\n"


def got(server: Server, path: str = "/", **options: Any) -> Fetched:
    policy = FetchPolicy(allowed_hosts=(server.authority,))
    return fetch(server.url(path), policy=policy, **options)


def failure(
    kind: type[errors.PolymuxError], server: Server, path: str = "/", **options: Any
) -> errors.PolymuxError:
    """The error of a fetch, which must name no address and arrive within the time limit."""
    began = time.monotonic()
    with pytest.raises(kind) as caught:
        got(server, path, **options)
    assert time.monotonic() - began < 20
    text = f"{caught.value!s} {caught.value!r} {caught.value.to_dict()}"
    assert not ADDRESS.search(text), text
    assert type(caught.value) is kind
    return caught.value


def answering(status: int = 200, body: bytes = b"", *headers: str) -> Script:
    async def script(exchange: Exchange) -> None:
        await exchange.answer(status, body, *headers)

    return script


def showing(files: Mapping[str, tuple[str, str | bytes]]) -> Script:
    """Serve a map of paths to content type and content; other paths return 404."""

    async def script(exchange: Exchange) -> None:
        path = exchange.target.partition("?")[0]
        kind, content = files.get(path, ("text/html", b"<html>nothing</html>"))
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        await exchange.answer(200 if path in files else 404, data, f"Content-Type: {kind}")

    return script


def sending(*pieces: bytes, then: str = "close") -> Script:
    """Send the pieces one by one; then close, wait forever, or reset."""

    async def script(exchange: Exchange) -> None:
        for piece in pieces:
            await exchange.send(piece)
        if then == "stall":
            await exchange.closed()
        elif then == "reset":
            await asyncio.sleep(0.1)
            exchange.reset()

    return script


def limit_of(error: errors.PolymuxError) -> str:
    assert isinstance(error, errors.RequestTimeoutError)
    return error.limit


def wait_until(condition: Any) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("the condition was not met within 20 s")


def brotli_bomb() -> bytes:
    """A page of 1 GiB, compressed to less than 1 KB."""
    packer = brotli.Compressor(quality=1)
    pieces = [packer.process(b"<html>")]
    pieces += [packer.process(bytes(1 << 20)) for _ in range(1 << 10)]
    return b"".join([*pieces, packer.finish()])
