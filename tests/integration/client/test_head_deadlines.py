"""Deadlines before an answer's body: of the connection, and within the head (C07, C27)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import Timeout, errors
from servers import steps
from servers.listeners import silent_port
from support.client_children import KEY
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers.misbehaving import MisbehavingServer
    from servers.steps import Step

SHORT_S = 0.4
GOOD = steps.answer(200, b'{"response":"fine"}')


@pytest.mark.parametrize(("http2", "stream"), [(True, False), (False, False), (True, True)])
def test_calls_that_wait_for_one_connection(http2: bool, stream: bool) -> None:
    """C07: sixteen at once, while the first one's handshake never ends: each has its deadline."""

    async def main(port: int) -> list[tuple[str, float]]:
        limits = Timeout(30, connect=SHORT_S)
        async with polymux.AsyncClient(
            f"https://127.0.0.1:{port}", KEY, retry=0, http2=http2, timeout=limits
        ) as client:
            begun = time.monotonic()

            async def call() -> tuple[str, float]:
                with pytest.raises(errors.RequestTimeoutError) as caught:
                    await client.chat("x", stream=stream)
                return caught.value.limit, time.monotonic() - begun

            return await asyncio.gather(*(call() for _ in range(16)))

    with silent_port() as port:
        ends = asyncio.run(main(port))
    assert {limit for limit, _ in ends} == {"connect"}
    assert max(seconds for _, seconds in ends) <= SHORT_S + 0.5 * PATIENCE, ends


HALF = [steps.send(b"HTTP/1.1 200 OK\r\nContent-Ty")]
FIRST_HALF = [steps.send(b"HTTP/1.1 2")]
LINES = [steps.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")]
EARLY = [steps.informational(103, [("Link", "</a>")])]


def limit(server: MisbehavingServer, limits: Timeout, *play: Step, **how: Any) -> str:
    """Which one ends a call that is answered so, in its time."""
    server.script(*play, steps.stall())
    begun = time.monotonic()
    with (
        polymux.Client(server.url, KEY, retry=0, timeout=limits) as client,
        pytest.raises(errors.RequestTimeoutError) as caught,
    ):
        list(client.chat("x", **how))  # Of an answer that is whole nothing comes to that.
    assert SHORT_S - 0.02 <= time.monotonic() - begun <= SHORT_S + PATIENCE
    return caught.value.limit


@pytest.mark.parametrize(
    "play",
    [HALF, FIRST_HALF, LINES, EARLY, [*EARLY, *LINES], [*EARLY, *FIRST_HALF]],
    ids=["half a line", "half of the first", "lines", "103", "103 and lines", "103 and half"],
)
def test_a_head_that_stalls(play: list[Step], server: MisbehavingServer) -> None:
    """C27: `idle` counts from its first byte on, and `first_byte` no more."""
    assert limit(server, Timeout(30, idle=SHORT_S), *play) == "idle"
    assert limit(server, Timeout(SHORT_S, first_byte=0.1, idle=30), *play) == "total"


@pytest.mark.parametrize("play", [HALF, FIRST_HALF, LINES], ids=["half", "half first", "lines"])
def test_a_stream_s_head_that_stalls(play: list[Step], server: MisbehavingServer) -> None:
    """C27: the same; until its first chunk `first_byte` counts beside it."""
    assert limit(server, Timeout(idle=SHORT_S), *play, stream=True) == "idle"
    assert limit(server, Timeout(first_byte=SHORT_S, idle=30), *play, stream=True) == "first_byte"


def test_a_stream_may_be_long_in_coming(server: MisbehavingServer) -> None:
    """C27: who says that it thinks, by 103 or by a whole head, has `first_byte` for it."""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\ndata: [DONE]\n\n'
    wait = steps.sleep(2 * SHORT_S)
    server.script(*EARLY, wait, steps.event_stream(), wait, steps.send(chunk))
    limits = Timeout(first_byte=20, idle=SHORT_S)
    with polymux.Client(server.url, KEY, retry=0, timeout=limits) as client:
        assert "".join(client.chat("x", stream=True).texts()) == "x"


def test_a_head_byte_by_byte(server: MisbehavingServer) -> None:
    """C14: of a long line each byte counts, though none is handed over before its end."""
    server.script(steps.split(1, 0.05), steps.head(200, [("X-Long", "x" * 30)]), GOOD)
    with (
        polymux.Client(server.url, KEY, retry=0, timeout=Timeout(1.5, idle=SHORT_S)) as client,
        pytest.raises(errors.RequestTimeoutError) as caught,
    ):
        client.free_chat("x")
    assert caught.value.limit == "total"


#: Bodies that libcurl asks for in pieces: an upload, and a long chat.
IN_PIECES: dict[str, Callable[[polymux.Client], str]] = {
    "upload": lambda client: client.read_text(b"x").text,
    "long chat": lambda client: client.free_chat("x" * 1_000_000).text,
}


@pytest.mark.parametrize("ask", IN_PIECES.values(), ids=IN_PIECES)
def test_a_server_that_thinks_about_an_upload(
    ask: Callable[[polymux.Client], str], server: MisbehavingServer
) -> None:
    """`idle` counts from the answer's first byte on, and `first_byte` to it; a body that goes in
    pieces is no answer, on a new connection and on one that is used again."""
    server.script(GOOD)
    server.script(steps.sleep(2.5 * SHORT_S), GOOD, times=2)
    limits = Timeout(30, idle=SHORT_S, write=SHORT_S)
    with polymux.Client(server.url, KEY, retry=0, timeout=limits) as client:
        assert [ask(client) for _ in range(3)] == ["fine"] * 3
        server.script(steps.sleep(2.5 * SHORT_S), GOOD)
        impatient = client.with_options(timeout=Timeout(30, first_byte=SHORT_S))
        with pytest.raises(errors.RequestTimeoutError) as caught:
            ask(impatient)
    assert caught.value.limit == "first_byte"


@pytest.mark.parametrize("play", [FIRST_HALF, LINES, EARLY], ids=["half first", "lines", "103"])
@pytest.mark.parametrize("ask", IN_PIECES.values(), ids=IN_PIECES)
def test_a_head_that_stalls_after_an_upload(
    ask: Callable[[polymux.Client], str], play: list[Step], server: MisbehavingServer
) -> None:
    """C27, of bodies that go in pieces."""
    server.script(*play, steps.stall())
    limits = Timeout(30, first_byte=20, idle=SHORT_S)
    with (
        polymux.Client(server.url, KEY, retry=0, timeout=limits) as client,
        pytest.raises(errors.RequestTimeoutError) as caught,
    ):
        ask(client)
    assert caught.value.limit == "idle"


def test_the_time_of_a_source_is_none_of_the_server_s(server: MisbehavingServer) -> None:
    """A generator that waits before it ends: only then `first_byte` begins."""

    def pieces() -> Iterator[bytes]:
        yield b"x"
        time.sleep(2.5 * SHORT_S)

    server.script(steps.sleep(SHORT_S / 2), GOOD)
    limits = Timeout(30, first_byte=2 * SHORT_S, idle=SHORT_S, write=SHORT_S)
    with polymux.Client(server.url, KEY, retry=0, timeout=limits) as client:
        assert client.read_text(pieces()).text == "fine"
