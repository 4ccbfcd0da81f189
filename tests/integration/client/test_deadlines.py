"""Deadlines of every kind with a monotonic clock (C07, C08, C14, C27, C38, C39, K24 and K25)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import math
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import Timeout, errors
from servers import steps
from servers.listeners import full_port, silent_port
from support.client_calls import CHUNK, END, FINE, KINDS, called
from support.client_children import KEY, check_flat, run
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

SHORT_S = 0.4


def passed(limit: str, call: Callable[[], Any], length_s: float = SHORT_S) -> None:
    """Check that the deadline named `limit` ends the call in time, but not early.

    Tries up to three times, because another program may occupy the processor.
    """
    taken: list[float] = []
    while len(taken) < 3 and min(taken, default=math.inf) > length_s + 0.5 * PATIENCE:
        begun = time.monotonic()
        with pytest.raises(errors.RequestTimeoutError) as caught:
            call()
        taken.append(time.monotonic() - begun)
        assert caught.value.limit == limit, str(caught.value)
        assert limit in str(caught.value)
        assert isinstance(caught.value, TimeoutError)
    assert length_s - 0.02 <= min(taken) <= length_s + 0.5 * PATIENCE, taken


def ask(server: MisbehavingServer, timeout: float | Timeout) -> Any:
    with polymux.Client(server.url, KEY, retry=0, timeout=timeout) as client:
        return client.free_chat("x")


def test_a_connection_that_is_never_accepted() -> None:
    """The accept queue is full: `connect` applies, also over TLS and with a longer total (C07)."""
    with full_port() as port:
        for scheme in ("http", "https"):
            with polymux.Client(f"{scheme}://127.0.0.1:{port}", KEY, retry=0) as client:
                limits = Timeout(30, connect=SHORT_S)
                passed("connect", lambda: client.free_chat("x", timeout=limits))  # noqa: B023
        with polymux.Client(f"http://127.0.0.1:{port}", KEY, retry=0) as client:
            passed("total", lambda: client.free_chat("x", timeout=SHORT_S))


def test_tls_that_never_begins() -> None:
    """The kernel accepts the connection, but the server never starts the TLS handshake (C07)."""
    with silent_port() as port, polymux.Client(f"https://127.0.0.1:{port}", retry=0) as client:
        passed("connect", lambda: client.free_chat("x", timeout=Timeout(30, connect=SHORT_S)))


def test_a_server_that_never_answers(server: MisbehavingServer) -> None:
    """`total` applies, or `first_byte` if it is set. The connection is closed (C08)."""
    server.script(steps.stall(), times=None)
    passed("total", lambda: ask(server, SHORT_S))
    passed("first_byte", lambda: ask(server, Timeout(30, first_byte=SHORT_S)))
    for request in server.requests:
        server.wait_closed(request.connection)


def test_a_server_that_reads_nothing(server: MisbehavingServer, client: polymux.Client) -> None:
    """The server does not read the upload: `write` applies (C08)."""
    server.script(steps.read_nothing(), steps.stall(), times=None)
    limits = Timeout(30, write=SHORT_S)
    with pytest.raises(errors.RequestTimeoutError) as caught:
        client.read_text(("a.png", b"x" * (32 << 20)), timeout=limits)
    assert caught.value.limit == "write"
    with pytest.raises(errors.RequestTimeoutError) as caught:
        client.free_chat("x" * (16 << 20), timeout=limits)
    assert caught.value.limit == "write"


def test_silence_in_an_answer(server: MisbehavingServer) -> None:
    """`idle` counts from the last byte (C27)."""
    server.script(steps.head(200, [("Content-Length", 9)]), steps.stall(), times=None)
    passed("idle", lambda: ask(server, Timeout(30, idle=SHORT_S)))
    passed("total", lambda: ask(server, Timeout(SHORT_S, idle=30)))


def test_a_byte_now_and_then(server: MisbehavingServer) -> None:
    """One byte every 0.1 s: `idle` never expires, `total` does (C14)."""
    server.script(steps.split(1, 0.1), steps.answer(200, b" " * 1000), times=3)
    passed("total", lambda: ask(server, Timeout(1, idle=5)), 1)
    server.forget(None)
    server.script(steps.split(1, 0.002), FINE)
    assert ask(server, Timeout(30, idle=5, first_byte=5)).text == "fine"


def test_the_deadline_of_the_call_goes_first(server: MisbehavingServer) -> None:
    """The call's deadline precedes the client's, which precedes the default."""
    server.script(steps.stall(), times=None)
    with polymux.Client(server.url, KEY, retry=0, timeout=30) as client:
        passed("total", lambda: client.free_chat("x", timeout=SHORT_S))
        passed("total", lambda: client.with_options(timeout=SHORT_S).free_chat("x"))
        limits = Timeout(SHORT_S)
        passed("total", lambda: client.request("freellm", {"messages": "x"}, timeout=limits))


@pytest.mark.parametrize("wrong", [0, -1, math.nan, "5", True])
def test_what_is_no_deadline(wrong: Any, server: MisbehavingServer) -> None:
    """Invalid deadlines raise an error in every place before anything is sent (C38)."""
    kinds = (errors.InvalidRequestError, TypeError)
    with pytest.raises(kinds):
        polymux.Client(server.url, KEY, timeout=wrong)
    for name in ("total", "connect", "write", "first_byte", "idle", "event"):
        with pytest.raises(kinds):
            Timeout(**{name: wrong})
    with polymux.Client(server.url, KEY) as client, pytest.raises(kinds):
        client.free_chat("x", timeout=wrong)
    assert server.connections == []


@pytest.mark.parametrize("long", [math.inf, 10**400, 2**63 / 1000])
def test_deadlines_that_never_come(long: float, server: MisbehavingServer) -> None:
    """Very long deadlines do not overflow (C38)."""
    server.script(FINE, times=None)
    limits = Timeout(long, connect=long, write=long, first_byte=long, idle=long, event=long)
    assert ask(server, limits).text == "fine"
    assert ask(server, long).text == "fine"


def test_the_server_s_own_deadline(server: MisbehavingServer) -> None:
    """A 504 response is the server's error, not a client timeout (C39)."""
    server.script(steps.answer(504, b'{"error":"the model took over 1 s"}'))
    with pytest.raises(errors.InternalServerError, match="took over"):
        ask(server, 30)


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_goes_on(kind: type, reference: ReferenceServer, ours: polymux.Client) -> None:
    """`total` includes waiting for a job, in every method that waits."""
    reference.predictions.job_s = 60
    job = ours.upscale_image(("a.png", b"x"), wait=False)
    for work in (
        lambda client: client.predictions.wait(job.id, timeout=SHORT_S),
        lambda client: client.upscale_image(("a.png", b"x"), timeout=SHORT_S),
    ):
        passed("total", lambda: called(kind, reference.url, work))  # noqa: B023
    assert ours.predictions.cancel(job).status == "canceled"


def test_a_slow_consumer_is_no_slow_server(server: MisbehavingServer) -> None:
    """Only `total` counts the reader's own time (C27)."""
    chunk = steps.send(CHUNK), steps.sleep(0.05)
    server.script(steps.event_stream(), *chunk, *chunk, steps.send(END))
    limits = Timeout(first_byte=5, idle=0.5, event=0.5)
    with polymux.Client(server.url, KEY, retry=0, timeout=limits) as client:
        for number, _ in enumerate(client.chat("x", stream=True)):
            time.sleep(0.8 if number < 2 else 0)


def test_a_generator_that_takes_its_time(server: MisbehavingServer) -> None:
    """The same for uploads from sync and async generators that yield slowly (C27)."""
    server.script(FINE, times=None)
    limits = Timeout(30, write=0.5, first_byte=0.5)

    def pieces() -> Any:
        for _ in range(2):
            yield b"x" * 1000
            time.sleep(0.7)

    async def awaited() -> Any:
        for _ in range(2):
            yield b"x" * 1000
            await asyncio.sleep(0.7)

    def sent(kind: type, source: Callable[[], Any]) -> Any:
        given = ("a.png", source())
        return called(kind, server.url, lambda one: one.read_text(given, timeout=limits)).text

    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = pool.map(sent, [*KINDS, polymux.AsyncClient], [pieces, pieces, awaited])
        assert list(found) == ["fine"] * 3


TEN_MILLISECONDS = """
client = polymux.Client(url, key, retry=0, timeout=0.01)
def call(number):
    try:
        if number % 4 == 3:
            list(client.chat("x", stream=True))
        elif number % 4 == 2:
            client.read_text(("a.png", b"x" * 100_000))
        else:
            client.free_chat("x")
    except polymux.RequestTimeoutError:
        return 1
    return 0
async def async_calls(count):
    async with polymux.AsyncClient(url, key, retry=0, timeout=0.01) as other:
        return [type(one).__name__ for one in await asyncio.gather(
            *(other.free_chat("x") for _ in range(count)), return_exceptions=True)]
count = int(sys.argv[2])
timeouts, seen = 0, []
for number in range(count):
    timeouts += call(number)
    if number % 50 == 49:
        seen += set(asyncio.run(async_calls(20)))
    if number + 1 in (count // 4, count):
        say(json.dumps(settled()))
say(json.dumps([timeouts, sorted(set(seen))]))
"""


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.long)])
def test_ten_milliseconds_on_everything(count: int, server: MisbehavingServer) -> None:
    """Calls of every kind end in time and leave nothing open (K25)."""
    server.script(steps.stall(), times=None)
    lines = run(TEN_MILLISECONDS, server.url, count, timeout_s=240 + count / 20).splitlines()
    first, last, (timeouts, seen) = (json.loads(line) for line in lines)
    check_flat(first, last, growth_mib=3)
    assert timeouts == count
    assert seen == ["RequestTimeoutError"]
