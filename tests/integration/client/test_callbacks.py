"""Callbacks that raise, call the client or close it (K06 and K07)."""

from __future__ import annotations

import asyncio
import io
import traceback
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import FINE, KINDS, called
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

FILE = b"x" * (8 << 20)


class Mine(BaseException):
    """An exception class of the caller that does not derive from Exception."""


def raising(*_: object) -> None:
    raise Mine("from a callback")


@pytest.mark.parametrize(
    ("kind", "raised"),
    [*((polymux.Client, one) for one in (Mine, KeyError, KeyboardInterrupt, StopIteration)),
     (polymux.AsyncClient, Mine)],
)  # fmt: skip
def test_a_progress_callback_that_raises(
    kind: type, raised: type[BaseException], server: MisbehavingServer
) -> None:
    """The exception reaches the caller unchanged with its traceback. The transfer stops (K06)."""

    def on_upload(sent: int, total: int | None) -> None:
        raise raised("from a callback")

    server.script(steps.read_slowly(8 << 20), steps.stall())
    with pytest.raises(raised, match="from a callback") as caught:
        called(kind, server.url, lambda one: one.read_text(FILE, on_upload=on_upload))
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "on_upload"
    for connection in server.wait_connections(1, 10):
        server.wait_closed(connection, 10)
    assert not any(one.body_complete for one in server.requests)


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


async def awaiting() -> Any:
    for _ in range(50):
        yield b"x" * 1000
        await asyncio.sleep(0)
    raise Mine("from a callback")


async def wrong() -> Any:
    yield b"x"
    yield "text"


@pytest.mark.parametrize(
    ("kind", "source", "raised"),
    [(kind, source, Mine) for kind in KINDS for source in (Raising, iterating)]
    + [(polymux.AsyncClient, awaiting, Mine), (polymux.AsyncClient, wrong, TypeError)],
)
def test_a_source_that_raises(
    kind: type, source: Callable[[], Any], raised: type, server: MisbehavingServer
) -> None:
    """The caller gets the exception unchanged, the server no complete body (K06 and K16)."""
    server.script(steps.read_slowly(64 << 20), FINE)
    with pytest.raises(raised) as caught:
        called(kind, server.url, lambda one: one.read_text(("a.png", source())))
    if kind is polymux.Client:
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert {"iterating", "read"} & {*names}
        server.wait_connections(1, 10)
    for connection in server.connections:
        server.wait_closed(connection, 10)
    assert not any(one.body_complete for one in server.requests)


def test_a_job_s_callback_that_raises(reference: ReferenceServer, ours: polymux.Client) -> None:
    """The job continues and the wait ends (K06)."""
    reference.predictions.job_s = 30
    job = ours.upscale_image(("a.png", b"x"), wait=False)
    for kind in KINDS:
        with pytest.raises(Mine):
            called(kind, reference.url, lambda one: one.predictions.wait(job, on_progress=raising))
        assert not ours.predictions.get(job).finished
    assert ours.predictions.cancel(job).status == "canceled"


def test_a_callback_that_calls(server: MisbehavingServer, client: polymux.Client) -> None:
    """A progress callback and a file's `read` may call the client (K07)."""
    server.script(steps.read_slowly(32 << 20), FINE, path="/api/v1/image2text", times=None)
    server.script(FINE, path="/api/v1/freellm", times=None)
    seen = []

    def on_upload(sent: int, total: int | None) -> None:
        seen.append(client.free_chat("x").text)

    assert client.read_text(("a.png", FILE), on_upload=on_upload).text == "fine"
    assert set(seen) == {"fine"}

    class Calling(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            seen.append(client.free_chat("x").text)
            return super().read(size)

    before = len(seen)
    assert client.read_text(("a.png", Calling(FILE))).text == "fine"
    assert len(seen) > before


def test_a_callback_that_closes(server: MisbehavingServer, client: polymux.Client) -> None:
    """Closing the client ends the call with a clear error and without a deadlock (K07)."""

    class Closing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            client.close()
            return super().read(size)

    server.script(steps.read_slowly(16 << 20), steps.stall(), times=None)
    other = polymux.Client(server.url, KEY, retry=0, timeout=30)
    with pytest.raises(errors.OperationCancelledError):
        client.read_text(("a.png", Closing(FILE)))
    with pytest.raises(errors.OperationCancelledError):
        other.read_text(("a.png", FILE), on_upload=lambda *_: other.close())
    for one in (client, other):
        with pytest.raises(errors.InvalidRequestError, match=r"(?i)closed"):
            one.free_chat("x")
