"""Connection reuse, and connections that the server closes (K26, C19 and K22)."""

from __future__ import annotations

import asyncio
import inspect
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import END, FINE, KINDS, called
from support.client_children import KEY, check_flat, eventually, run, run_json
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.misbehaving import MisbehavingServer
    from servers.records import Connection
    from servers.reference import ReferenceServer
    from servers.steps import Step


def test_one_connection_for_a_hundred_calls_and_streams(
    reference: ReferenceServer, ours: polymux.Client
) -> None:
    for number in range(100):
        assert ours.chat(f"{number}").text == f"You said: {number}"
        assert "".join(ours.chat(f"{number}", stream=True).texts()) == f"You said: {number}"
        if number % 10 == 0:
            reference.fail(400)
            with pytest.raises(errors.BadRequestError):
                ours.chat("x")
    assert len(reference.connections) == 1


@pytest.mark.parametrize("pause_s", [0, 0.003])
def test_the_rest_of_a_stream(pause_s: float, server: MisbehavingServer) -> None:
    """Data after [DONE], in the same packet or slightly later, is drained and the connection is
    reused. A server that never stops loses the connection (C28).
    """
    head = steps.chunked_head(content_type="text/event-stream")
    rest = [steps.sleep(pause_s)] if pause_s else []
    with polymux.Client(server.url, KEY, retry=0) as client:
        for _ in range(10):
            server.script(head, steps.chunk(END), *rest, steps.last_chunk())
            assert "".join(client.chat("x", stream=True).texts()) == "x"
        assert len(server.connections) == 1
        server.script(head, steps.chunk(END), steps.stall())
        assert "".join(client.chat("x", stream=True).texts()) == "x"
        server.script(FINE)
        assert client.free_chat("x").text == "fine"


def has_ended(server: MisbehavingServer, connection: Connection) -> bool:
    """Whether the client's socket has received the end of the connection."""
    established = f":{connection.peer_port:04X} 0100007F:{server.port:04X} 01"
    return established not in Path("/proc/self/net/tcp").read_text()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [steps.close, steps.half_close, steps.reset])
def test_a_server_that_closes_idle_connections(
    end: Callable[[], Step], kind: type, server: MisbehavingServer
) -> None:
    """The next call succeeds without an error and is sent once (K26 and C19)."""
    server.script(FINE, steps.sleep(0.05), end(), times=6)

    async def work(client: Any) -> None:
        for _ in range(6):
            answer = client.free_chat("x")
            answer = await answer if inspect.isawaitable(answer) else answer
            assert answer.text == "fine"
            ended = server.requests[-1].connection
            assert await asyncio.to_thread(eventually, lambda: has_ended(server, ended))  # noqa: B023

    def run(client: Any) -> Any:
        return asyncio.run(work(client)) if kind is polymux.Client else work(client)

    called(kind, server.url, run, retry=0)
    assert len(server.requests) == 6
    assert not server.unscripted


def test_what_comes_unasked_over_an_idle_connection(server: MisbehavingServer) -> None:
    """Bytes between two calls do not become the second response (K26)."""
    smuggled = steps.answer(200, b'{"response":"smuggled"}')
    with polymux.Client(server.url, KEY, retry=0) as client:
        for _ in range(5):
            server.script(FINE, steps.sleep(0.05), smuggled)
            assert client.free_chat("x").text == "fine"
            time.sleep(0.15)
        server.script(FINE)
        assert client.free_chat("x").text == "fine"


def test_threads_of_clients(reference: ReferenceServer) -> None:
    """Blocking clients have no thread. An async client has one until it is closed."""
    code = """
def threads():
    names = [read(f"/proc/self/task/{one}/comm") for one in os.listdir("/proc/self/task")]
    return sorted(name.strip() for name in names)
before = threads()
client = polymux.Client(url, key)
client.chat("x")
assert threads() == before
async def main():
    other = polymux.AsyncClient(url, key)
    await asyncio.gather(*(other.chat("x") for _ in range(50)))
    assert threads() == sorted([*before, "polymux-io"]), threads()
    assert [one.name for one in threading.enumerate()] == ["MainThread"]
    await other.aclose()
asyncio.run(main())
while threads() != before:
    time.sleep(0.05)
"""
    run(code, reference.url, timeout_s=20)


CHURN = """
import gc, itertools
numbers = itertools.count()
whole = given_up = 0

async def one(client, number):
    # Read to its end, closed early, dropped, and canceled during a wait.
    global whole, given_up
    # Texts repeat, because the client caches short ones.
    asked = f"{number % 200} " + "word " * (number % 40)
    stream = await client.chat(asked, stream=True)
    if number % 4 == 0:
        texts = [text async for text in stream.texts()]
        assert "".join(texts) == f"You said: {asked}", texts
        whole += 1
        return
    given_up += 1
    async for _ in stream:
        break
    if number % 4 == 1:
        await stream.aclose()
    if number % 4 == 2:
        reading = asyncio.ensure_future(anext(stream, None))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

async def main(count):
    # The count is fixed, not the time: a busy machine must measure as many streams.
    samples, left, done = [], count, 0

    async def worker():
        nonlocal left, done
        while left > 0:
            left -= 1
            await one(client, next(numbers))
            done += 1
            if done % (count // 60) == 0:
                samples.append((done, status("VmRSS")))

    async with polymux.AsyncClient(url, key, retry=0) as client:
        await asyncio.gather(*(worker() for _ in range(48)))
        gc.collect()
        samples = samples[len(samples) // 4:]
        last = settled()
    middle = [sum(one) / len(samples) for one in zip(*samples)]
    apart = [(count - middle[0], kib - middle[1]) for count, kib in samples]
    slope = sum(x * y for x, y in apart) / sum(x * x for x, _ in apart)
    counts = {"whole": whole, "given_up": given_up, "blocks": sys.getallocatedblocks()}
    return counts | {"kib_a_stream": slope, "last": last}

first = asyncio.run(main(int(sys.argv[2]) // 5))
say(json.dumps([first, asyncio.run(main(int(sys.argv[2])))]))
"""


@pytest.mark.parametrize("count", [1500, pytest.param(36_000, marks=pytest.mark.long)])
def test_streams_that_come_and_go(count: int, reference: ReferenceServer) -> None:
    """Streams that are read fully, closed, dropped or canceled, 48 at a time."""
    first, found = run_json(CHURN, reference.url, count, timeout_s=120 + count / 20)
    assert min(found["whole"], found["given_up"]) >= count // 5, found
    check_flat(first["last"], found["last"], growth_mib=2, connections=48)
    assert found["blocks"] - first["blocks"] < 500, (first, found)
    # Python's arenas have 1 MiB, so short runs are less exact.
    assert SANITIZED or found["kib_a_stream"] < (0.1 if count > 6000 else 1), found
