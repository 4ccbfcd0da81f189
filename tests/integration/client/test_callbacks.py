"""Callbacks that raise, call the client again, or close it (K06, K07)."""

from __future__ import annotations

import asyncio
import io
import traceback
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

TEXT = steps.answer(200, b'{"text":"fine"}')
FILE = b"x" * (8 << 20)


class Mine(BaseException):
    """Of the caller; not even an Exception."""


def raising(*_: object) -> None:
    raise Mine("from a callback")


@pytest.mark.parametrize("kind", [Mine, KeyError, KeyboardInterrupt, SystemExit, StopIteration])
def test_a_progress_callback_that_raises(
    kind: type[BaseException], server: MisbehavingServer, client: polymux.Client
) -> None:
    """K06: comes out unchanged with its traceback; the transfer is stopped, the client usable."""

    def on_upload(sent: int, total: int | None) -> None:
        raise kind("from a callback")

    server.script(steps.read_slowly(8 << 20), steps.stall())
    with pytest.raises(kind, match="from a callback") as caught:
        client.read_text(("a.png", FILE), on_upload=on_upload)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "on_upload"
    server.wait_closed(server.connections[0], 10)
    assert not server.requests[0].body_complete
    server.script(TEXT)
    assert client.read_text(("a.png", b"x")).text == "fine"


def test_the_same_in_a_loop(server: MisbehavingServer) -> None:
    """K06: for asyncio."""

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            server.script(steps.read_slowly(8 << 20), steps.stall())
            with pytest.raises(Mine):
                await client.read_text(("a.png", FILE), on_upload=raising)
            await asyncio.to_thread(server.wait_closed, server.connections[0], 10)
            server.script(TEXT)
            assert (await client.read_text(("a.png", b"x"))).text == "fine"

    asyncio.run(main())


class Raising(io.RawIOBase):
    """A file that raises after some reads."""

    def __init__(self) -> None:
        self._reads = 0

    def seekable(self) -> bool:
        return False

    def read(self, size: int = -1) -> bytes:
        self._reads += 1
        if self._reads > 3:
            raise Mine("from a callback")
        return b"x" * min(size, 100_000)


def iterating() -> Iterator[bytes]:
    yield b"x" * 100_000
    raise Mine("from a callback")


@pytest.mark.parametrize("source", [Raising, iterating])
def test_a_source_that_raises(
    source: Callable[[], Any], server: MisbehavingServer, client: polymux.Client
) -> None:
    """K06, K16: what a file or a generator raises comes out unchanged; half a body is no body."""
    server.script(steps.read_slowly(64 << 20), TEXT)
    with pytest.raises(Mine) as caught:
        client.read_text(("a.png", source()))
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "iterating" in names or "read" in names
    server.log.wait_for(lambda: server.connections, 5, "the connection")
    server.wait_closed(server.connections[0])
    assert not server.requests[0].body_complete

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as other:
            server.script(steps.read_slowly(64 << 20), TEXT)
            with pytest.raises(Mine):
                await other.read_text(("a.png", source()))
            await asyncio.to_thread(server.wait_closed, server.connections[-1])
            assert not server.requests[-1].body_complete

    asyncio.run(main())


def test_an_async_generator_that_raises(server: MisbehavingServer) -> None:
    """K06, K16: at once, after some pieces, and with something that is no bytes."""

    async def raising_after(count: int) -> Any:
        for _ in range(count):
            yield b"x" * 1000
            await asyncio.sleep(0)
        raise Mine("from a callback")

    async def wrong() -> Any:
        yield b"x"
        yield "text"

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            for source, kind in (
                (raising_after(0), Mine), (raising_after(50), Mine), (wrong(), TypeError),
            ):  # fmt: skip
                server.script(steps.read_slowly(64 << 20), TEXT)
                with pytest.raises(kind):
                    await client.read_text(("a.png", source))
            server.script(TEXT)
            assert (await client.read_text(("a.png", b"x"))).text == "fine"

    asyncio.run(main())
    assert [one.body_complete for one in server.requests] == [False] * (
        len(server.requests) - 1
    ) + [True]


def test_a_job_s_callback_that_raises(reference: ReferenceServer) -> None:
    """K06: the job goes on; the waiting ends."""
    reference.predictions.job_s = 30
    with polymux.Client(reference.url, KEY) as client:
        job = client.upscale_image(("a.png", b"x"), wait=False)
        with pytest.raises(Mine):
            client.predictions.wait(job, on_progress=raising)
        assert not client.predictions.get(job).finished

        async def main() -> None:
            async with polymux.AsyncClient(reference.url, KEY) as other:
                with pytest.raises(Mine):
                    await other.predictions.wait(job, on_progress=raising)

        asyncio.run(main())
        assert client.predictions.cancel(job).status == "canceled"


def test_a_callback_that_calls(server: MisbehavingServer, client: polymux.Client) -> None:
    """K07: the client again, from a progress callback and from a file's `read`."""
    server.script(steps.read_slowly(32 << 20), TEXT, path="/api/v1/image2text", times=None)
    server.script(steps.answer(200, b'{"response":"fine"}'), path="/api/v1/freellm", times=None)
    seen = []

    def on_upload(sent: int, total: int | None) -> None:
        seen.append(client.free_chat("x").text)

    assert client.read_text(("a.png", FILE), on_upload=on_upload).text == "fine"
    assert seen
    assert set(seen) == {"fine"}

    class Calling(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            seen.append(client.free_chat("x").text)
            return super().read(size)

    before = len(seen)
    assert client.read_text(("a.png", Calling(FILE))).text == "fine"
    assert len(seen) > before


def test_a_callback_that_closes(server: MisbehavingServer) -> None:
    """K07: ends the call with a clear error, and no deadlock."""
    for attempt in range(3):
        server.script(steps.read_slowly(16 << 20), steps.stall())
        client = polymux.Client(server.url, KEY, retry=0, timeout=30)

        class Closing(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                client.close()  # noqa: B023
                return super().read(size)

        def on_upload(sent: int, total: int | None) -> None:
            client.close()  # noqa: B023

        source, callback = (FILE, on_upload) if attempt else (Closing(FILE), None)
        with pytest.raises(errors.OperationCancelledError, match="closed"):
            client.read_text(("a.png", source), on_upload=callback)
        with pytest.raises(errors.InvalidRequestError, match="closed"):
            client.free_chat("x")


def test_a_callback_of_a_loop_that_closes(server: MisbehavingServer) -> None:
    """K07: for asyncio, from a progress callback and between two chunks."""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'

    async def main() -> None:
        server.script(steps.read_slowly(8 << 20), steps.stall())
        client = polymux.AsyncClient(server.url, KEY, retry=0, timeout=30)
        closing: list[Any] = []

        def on_upload(sent: int, total: int | None) -> None:
            if not closing:
                closing.append(asyncio.ensure_future(client.aclose()))

        with pytest.raises(errors.OperationCancelledError, match="closed"):
            await client.read_text(("a.png", FILE), on_upload=on_upload)
        await closing[0]
        server.script(steps.event_stream(), steps.send(chunk), steps.stall())
        client = polymux.AsyncClient(server.url, KEY, retry=0, timeout=30)
        stream = await client.chat("x", stream=True)
        await anext(stream)
        await client.aclose()
        with pytest.raises((errors.OperationCancelledError, errors.StreamInterruptedError)):
            await anext(stream)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_job_s_callback_that_closes(reference: ReferenceServer) -> None:
    """K07: the next look says that the client is closed."""
    reference.predictions.job_s = 30
    client = polymux.Client(reference.url, KEY)
    job = client.upscale_image(("a.png", b"x"), wait=False)
    with pytest.raises(errors.InvalidRequestError, match="closed"):
        client.predictions.wait(job, on_progress=lambda _: client.close())
