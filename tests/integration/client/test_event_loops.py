"""Multiple and short-lived event loops, and canceled tasks (K05 and K08)."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import CHUNK, END, FINE, SILENT_STREAM
from support.client_children import KEY, check_flat, descriptors, eventually, run, run_json
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

CLOSED = (errors.OperationCancelledError, errors.StreamInterruptedError)


async def answered(client: polymux.AsyncClient, text: str) -> None:
    assert (await client.chat(text)).text == f"You said: {text}"
    stream = await client.chat(text, stream=True)
    assert "".join([one async for one in stream.texts()]) == f"You said: {text}"


def test_two_runs_in_a_row(reference: ReferenceServer) -> None:
    client = polymux.AsyncClient(reference.url, KEY)
    for number in range(3):
        asyncio.run(answered(client, f"run {number}"))
    asyncio.run(client.aclose())
    assert eventually(lambda: not reference.open_connections)
    # The thread and its connections belong to the client, not to an event loop.
    assert len(reference.connections) <= 2


def test_a_hundred_loops_leave_nothing(reference: ReferenceServer) -> None:
    """Each closed loop releases the object that connects it to the client's thread (N17)."""
    code = """
client = polymux.AsyncClient(url, key)
async def main():
    await client.chat("x")
    async for _ in await client.chat("x", stream=True):
        pass
measured = []
for number in range(200):
    if number % 2:
        asyncio.run(main())
    else:  # Without the cleanup of `asyncio.run`.
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        loop.close()
        del loop
    if number in (49, 199):
        asyncio.run(main())
        import gc; gc.collect()
        measured.append(settled())
say(json.dumps(measured))
"""
    check_flat(*run_json(code, reference.url), growth_mib=3)


def test_a_stream_in_another_loop(server: MisbehavingServer) -> None:
    """Reading in another loop raises, even if the original loop has ended. Never blocks."""
    server.script(*SILENT_STREAM, times=None)
    client = polymux.AsyncClient(server.url, KEY, retry=0, timeout=polymux.Timeout(event=5))

    async def begin() -> polymux.AsyncChatStream:
        stream = await client.chat("x", stream=True)
        await anext(stream)
        return stream

    async def read(stream: polymux.AsyncChatStream) -> None:
        await asyncio.wait_for(anext(stream), 8 * PATIENCE)

    with pytest.raises((RuntimeError, *CLOSED)):
        asyncio.run(read(asyncio.run(begin())))
    with asyncio.Runner() as runner:
        stream = runner.run(begin())
        with pytest.raises(RuntimeError, match="event loop"):
            asyncio.run(read(stream))
        runner.run(client.aclose())


@pytest.mark.parametrize("held", [True, False])
def test_a_loop_that_is_closed_with_streams_open(held: bool, server: MisbehavingServer) -> None:
    """Streams end with their loop, even if the program still references them."""
    server.script(*SILENT_STREAM, times=None)
    client = polymux.AsyncClient(server.url, KEY, retry=0)
    kept: list[Any] = []

    async def begin() -> None:
        for _ in range(3):
            stream = await client.chat("x", stream=True)
            await anext(stream)
            kept.append(stream)

    asyncio.run(begin())
    if not held:
        kept.clear()
    gc.collect()
    assert eventually(lambda: not server.open_connections)
    asyncio.run(client.aclose())


async def upload_slowly(client: polymux.AsyncClient) -> None:
    async def pieces() -> Any:
        while True:
            yield b"x" * 1000
            await asyncio.sleep(0.01)

    await client.read_text(("a.png", pieces()))


async def read_on(stream: polymux.AsyncChatStream) -> None:
    async for _ in stream:
        pass


async def read_stream(client: polymux.AsyncClient) -> None:
    await read_on(await client.chat("stream", stream=True))


CALLS: dict[str, Callable[[polymux.AsyncClient], Coroutine[Any, Any, Any]]] = {
    "before the head": lambda client: client.free_chat("x"),
    "a stream, before its head": lambda client: client.chat("x", stream=True),
    "in the middle of a stream": read_stream,
    "an upload": upload_slowly,
    "a job": lambda client: client.predictions.wait("a"),
}


@pytest.mark.parametrize(
    ("call", "how"), [*((call, "cancel") for call in CALLS), ("before the head", "timeout")]
)
def test_a_task_that_is_cancelled(call: str, how: str, server: MisbehavingServer) -> None:
    """The connection closes and the client remains usable (K05, C32, C33 and C34)."""
    if call == "in the middle of a stream":
        server.script(*SILENT_STREAM)
    else:
        server.script(*([steps.read_slowly(1 << 20)] * (call == "an upload")), steps.stall())

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            task = asyncio.ensure_future(CALLS[call](client))
            await asyncio.to_thread(server.wait_requests, 1, 10)
            await asyncio.sleep(0.1)
            if how == "cancel":
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(task, 0.05)
            await asyncio.to_thread(server.wait_closed, server.connections[0], 20 * PATIENCE)
            server.script(FINE)
            assert (await client.free_chat("x")).text == "fine"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main(), debug=True)
        gc.collect()


async def read_text(client: polymux.AsyncClient, waits: asyncio.Event) -> str:
    waits.set()
    return (await client.free_chat("x")).text


async def read_texts(client: polymux.AsyncClient, waits: asyncio.Event) -> str:
    stream = await client.chat("x", stream=True)
    waits.set()
    return "".join([text async for text in stream.texts()])


@pytest.mark.parametrize("call", [read_text, read_texts])
def test_a_task_without_other_references(
    call: Callable[[polymux.AsyncClient, asyncio.Event], Coroutine[Any, Any, str]],
    server: MisbehavingServer,
) -> None:
    """The garbage collector does not end a task that waits for a response."""
    collected = threading.Event()
    answer = (FINE,) if call is read_text else (steps.event_stream(), steps.send(CHUNK + END))
    server.script(*answer[:-1], steps.wait(collected), answer[-1])

    async def main() -> str:
        texts: asyncio.Queue[str] = asyncio.Queue()
        waits = asyncio.Event()
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:

            async def work() -> None:
                await texts.put(await call(client, waits))

            asyncio.get_running_loop().call_soon(asyncio.ensure_future, work())
            await waits.wait()
            gc.collect()
            collected.set()
            return await asyncio.wait_for(texts.get(), 20)

    assert asyncio.run(main()) == ("fine" if call is read_text else "xx")


def test_cancelled_at_every_moment(reference: ReferenceServer) -> None:
    """At every moment from the first step: no leaks, responses are never mixed up (K05)."""
    before = descriptors()

    async def main() -> None:
        async with polymux.AsyncClient(reference.url, KEY) as client:
            await answered(client, "first")
            for number in range(90):
                task = asyncio.ensure_future(answered(client, f"{number}"))
                for _ in range(number % 15):
                    await asyncio.sleep(0)
                if number % 2:
                    await asyncio.sleep(number / 50_000)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                if number % 10 == 0:
                    await answered(client, f"after {number}")

    asyncio.run(main())
    assert eventually(lambda: not reference.open_connections)
    assert eventually(lambda: descriptors() <= before)


def test_streams_that_are_left(server: MisbehavingServer) -> None:
    """Left by `break`, by the end of `async with`, and by dropping the reference (K08)."""
    server.script(*SILENT_STREAM, times=None)

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:

            def closed() -> bool:
                return not server.open_connections

            async for _ in await client.chat("x", stream=True):
                break
            gc.collect()
            assert await asyncio.to_thread(eventually, closed)
            async with await client.chat("x", stream=True) as stream:
                await anext(stream)
            assert await asyncio.to_thread(eventually, closed)
            texts = (await client.chat("x", stream=True)).texts()
            await anext(texts)
            await texts.aclose()  # type: ignore[attr-defined]
            del texts
            gc.collect()
            assert await asyncio.to_thread(eventually, closed)
            stream = await client.chat("x", stream=True)
            waiting = asyncio.ensure_future(read_on(stream))
            await asyncio.sleep(0.1)
            await stream.aclose()
            await stream.aclose()
            with pytest.raises(CLOSED):
                await asyncio.wait_for(waiting, 5)
            assert stream.text == "x"
            assert await asyncio.to_thread(eventually, closed)

    asyncio.run(main())


def test_streams_that_are_left_in_blocking_code(server: MisbehavingServer) -> None:
    """The same in blocking code, with a half-read generator that is dropped (K08)."""
    server.script(*SILENT_STREAM, times=None)
    with polymux.Client(server.url, KEY, retry=0) as client:
        for _ in client.chat("x", stream=True):
            break
        server.wait_closed(server.connections[-1])
        texts = client.chat("x", stream=True).texts()
        next(texts)
        del texts
        server.wait_closed(server.connections[-1])
        with client.chat("x", stream=True) as stream:
            next(stream)
        server.wait_closed(server.connections[-1])
        client.chat("x", stream=True)
        server.wait_closed(server.connections[-1])


def test_closing_the_client_under_tasks(server: MisbehavingServer) -> None:
    """All tasks end with an error that names the reason (K18)."""
    server.script(*SILENT_STREAM, times=30)
    server.script(steps.stall(), times=None)

    async def main() -> list[Any]:
        client = polymux.AsyncClient(server.url, KEY, retry=0)
        streams = [asyncio.ensure_future(read_stream(client)) for _ in range(30)]
        await asyncio.to_thread(server.wait_requests, 30, 10)
        calls = [asyncio.ensure_future(client.free_chat("x")) for _ in range(30)]
        await asyncio.to_thread(server.wait_requests, 60, 10)
        await client.aclose()
        return await asyncio.wait_for(asyncio.gather(*streams, *calls, return_exceptions=True), 10)

    for error in asyncio.run(main()):
        assert isinstance(error, CLOSED)
    assert eventually(lambda: not server.open_connections)


def test_many_exchanges_at_once(reference: ReferenceServer) -> None:
    """300 streams and 300 calls at once, twice: more than the client keeps for reuse (N17)."""
    code = """
async def one(client, number):
    stream = await client.chat(f"{number}", stream=True)
    assert "".join([text async for text in stream.texts()]) == f"You said: {number}"
    assert (await client.chat(f"{number}")).text == f"You said: {number}"
async def main():
    async with polymux.AsyncClient(url, key) as client:
        for _ in range(2):
            await asyncio.gather(*(one(client, number) for number in range(300)))
asyncio.run(main())
"""
    # Fills freed memory with a pattern, which reveals a use after free.
    run(code, reference.url, environment={"MALLOC_PERTURB_": "165"})
