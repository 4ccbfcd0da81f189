"""HTTP/2: a stream that is not read for a while (C35), and requests that a server refuses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import http2, steps
from servers.http2 import Http2Request, Http2Server
from servers.misbehaving import MisbehavingServer
from servers.proxies import nghttpx, nginx
from support.client_calls import FINE, KINDS, called
from support.client_children import KEY, MIB, run_json
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from servers.certificates import Authority
    from servers.proxies import Proxy

_PADDING = b"p" * (64 << 10)
_CHUNK = b'data: {"padding":"%b","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n' % _PADDING
_LONG, _OTHER = 700, 300  # Chunks: more than 40 MiB and more than 17 MiB.
#: Several streams of one client, one of which is read after the others have ended.
_CODE = """
async def main():
    async with polymux.AsyncClient(url, key, retry=0, verify=sys.argv[2]) as client:
        async def begin(path):
            stream = await client.with_options(paths={"chat": path}).chat("x", stream=True)
            return stream, len((await anext(stream)).content)

        async def rest(stream, count):
            async for chunk in stream:
                count += len(chunk.content)
            return count

        unread = await begin("/long")
        before = status("VmRSS")
        others = [await rest(*await begin("/other")) for _ in range(2)]
        figures = [*others, await rest(*unread)]
        say(json.dumps([*figures, (status("VmHWM") - before) * 1024]))
asyncio.run(main())
"""


def test_a_stream_that_is_not_read_beside_others(authority: Authority, tmp_path: Path) -> None:
    """The other streams complete. The unread one waits on the server and is then complete."""
    with (
        MisbehavingServer() as server,
        nghttpx(server.port, authority.certificate(), tmp_path) as proxy,
    ):
        for path, count in (("/long", _LONG), ("/other", _OTHER)):
            body = steps.send(_CHUNK * count + b"data: [DONE]\n\n")
            server.script(steps.event_stream(), body, path=path, times=None)
        *counts, memory = run_json(_CODE, proxy.url, proxy.ca)
        assert {one.header("via") for one in server.requests} == {"2 nghttpx"}
    assert counts == [_OTHER, _OTHER, _LONG]
    assert SANITIZED or memory <= 16 * MIB


def _refuse(request: Http2Request) -> None:
    request.reset(http2.REFUSED_STREAM)


def _go_away(request: Http2Request) -> None:
    request.go_away(max(request.stream - 2, 0))


def _go_away_and_close(request: Http2Request) -> None:
    request.go_away(max(request.stream - 2, 0))
    request.close()


def _answered_on_other_connections(
    end: Callable[[Http2Request], None], number: int
) -> Callable[[Http2Request], None]:
    """Ends the request `number` of the first connection; answers all others."""
    ended: list[Http2Request] = []

    def react(request: Http2Request) -> None:
        if not ended and request.number == number:
            ended.append(request)
            end(request)
        else:
            request.answer(b'{"response":"fine"}')

    return react


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("end", [_refuse, _go_away, _go_away_and_close])
def test_a_request_that_was_not_processed(
    end: Callable[[Http2Request], None], number: int, kind: type, authority: Authority
) -> None:
    """It is sent again, also on a new connection, because the server proved it."""
    react = _answered_on_other_connections(end, number)
    with Http2Server(authority.certificate(), react) as server:
        texts = called(kind, server.url, two_texts, verify=server.ca, retry=2)
    assert texts == ["fine", "fine"]
    assert [b"second" in one.body for one in server.requests].count(True) == number


def two_texts(client: Any) -> Any:
    if isinstance(client, polymux.Client):
        return [client.free_chat(text).text for text in ("first", "second")]

    async def awaited() -> list[str]:
        return [(await client.free_chat(text)).text for text in ("first", "second")]

    return awaited()


def _fail(request: Http2Request) -> None:
    request.reset(http2.INTERNAL_ERROR)


def _process_and_go_away(request: Http2Request) -> None:
    request.go_away(request.stream)
    request.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [_fail, _process_and_go_away, Http2Request.close])
def test_a_request_that_was_perhaps_processed(
    end: Callable[[Http2Request], None], kind: type, authority: Authority
) -> None:
    """It is sent once."""
    react = _answered_on_other_connections(end, 2)
    with (
        Http2Server(authority.certificate(), react) as server,
        pytest.raises(errors.ConnectionLostError),
    ):
        called(kind, server.url, two_texts, verify=server.ca, retry=2)
    assert [b"second" in one.body for one in server.requests] == [False, True]


@pytest.mark.parametrize("count", [2, 10])
@pytest.mark.parametrize("kind", KINDS)
def test_a_large_head(kind: type, count: int, authority: Authority) -> None:
    """More than 16 KiB of header fields."""
    fields = {f"x-{number}": str(number) * 10_000 for number in range(count)}

    def react(request: Http2Request) -> None:
        request.answer(b'{"response":"fine"}', fields)

    with Http2Server(authority.certificate(), react) as server:
        answer = called(
            kind, server.url, lambda client: client.free_chat("x"), verify=server.ca, timeout=20
        )
    assert (answer.text, answer.headers) == ("fine", fields)


def test_a_server_that_refuses_every_request(authority: Authority) -> None:
    """The number of requests has a limit."""
    with (
        Http2Server(authority.certificate(), _refuse) as server,
        polymux.Client(server.url, KEY, verify=server.ca, retry=1) as client,
        pytest.raises(errors.ConnectionLostError),
    ):
        client.free_chat("x")
    assert 2 <= len(server.requests) <= 12


def test_many_requests_to_a_server_that_limits_its_connections(
    authority: Authority, tmp_path: Path
) -> None:
    """A proxy closes each connection after 100 requests, while others are on their way."""

    async def main(proxy: Proxy) -> list[str]:
        waiting = asyncio.Semaphore(50)

        async def ask(client: polymux.AsyncClient) -> str:
            async with waiting:
                return (await client.free_chat("x")).text

        async with polymux.AsyncClient(proxy.url, KEY, verify=proxy.ca, retry=2) as client:
            return await asyncio.gather(*(ask(client) for _ in range(1000)))

    with (
        MisbehavingServer() as server,
        nginx(server.port, authority.certificate(), tmp_path, requests=100) as proxy,
    ):
        server.script(FINE, times=None)
        assert asyncio.run(main(proxy)) == ["fine"] * 1000
        assert len(server.requests) == 1000
