"""Deadlines before a response's body: while connecting and within the headers (C07 and C27)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import Timeout, errors
from servers import steps
from support.client_calls import FINE
from support.client_children import KEY
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.misbehaving import MisbehavingServer
    from servers.steps import Step

SHORT_S = 0.4


FIRST_HALF = [steps.send(b"HTTP/1.1 2")]
LINES = [steps.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")]
EARLY = [steps.informational(103, [("Link", "</a>")])]
#: Requests whose body libcurl sends in pieces: an upload and a long chat.
IN_PIECES: dict[str, Callable[[polymux.Client], object]] = {
    "upload": lambda client: client.read_text(b"x").text,
    "long chat": lambda client: client.free_chat("x" * 1_000_000).text,
}
CALLS: dict[str, Callable[[polymux.Client], object]] = {
    "call": lambda client: client.chat("x"),
    "stream": lambda client: list(client.chat("x", stream=True)),
    **IN_PIECES,
}


@pytest.mark.parametrize(
    ("call", "play", "limits", "limit"),
    [
        *(("call", play, Timeout(30, idle=SHORT_S), "idle") for play in (FIRST_HALF, EARLY)),
        ("call", LINES, Timeout(SHORT_S, first_byte=0.1, idle=30), "total"),
        ("stream", LINES, Timeout(first_byte=SHORT_S, idle=30), "first_byte"),
        ("upload", EARLY, Timeout(30, first_byte=20, idle=SHORT_S), "idle"),
        ("long chat", FIRST_HALF, Timeout(30, first_byte=20, idle=SHORT_S), "idle"),
    ],
)  # fmt: skip
def test_a_head_that_stalls(
    call: str, play: list[Step], limits: Timeout, limit: str, server: MisbehavingServer
) -> None:
    """After the first header byte, `idle` applies instead of `first_byte`. For streams,
    `first_byte` also applies until the first chunk (C27).
    """
    server.script(*play, steps.stall())
    begun = time.monotonic()
    with (
        polymux.Client(server.url, KEY, retry=0, timeout=limits) as client,
        pytest.raises(errors.RequestTimeoutError) as caught,
    ):
        CALLS[call](client)
    assert SHORT_S - 0.02 <= time.monotonic() - begun <= SHORT_S + 15 * PATIENCE
    assert caught.value.limit == limit


@pytest.mark.parametrize("ask", IN_PIECES.values(), ids=IN_PIECES)
def test_a_server_that_thinks_about_an_upload(
    ask: Callable[[polymux.Client], object], server: MisbehavingServer
) -> None:
    """`first_byte` applies until the first byte of the response and `idle` from then on. Sending
    body pieces does not count as a response, on a new or reused connection.
    """
    server.script(steps.sleep(1.8 * SHORT_S), FINE, times=3)
    limits = Timeout(30, idle=SHORT_S, write=SHORT_S)
    with polymux.Client(server.url, KEY, retry=0, timeout=limits) as client:
        assert [ask(client) for _ in range(2)] == ["fine"] * 2
        impatient = client.with_options(timeout=Timeout(30, first_byte=SHORT_S))
        with pytest.raises(errors.RequestTimeoutError) as caught:
            ask(impatient)
    assert caught.value.limit == "first_byte"
