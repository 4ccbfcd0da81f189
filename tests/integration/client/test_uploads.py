"""Uploads: files that change, vanish or are invalid, and bodies of all sizes (K16 and K17)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import weakref
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import KINDS, called
from support.client_children import KEY, MIB, eventually, run_json
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

TEXT = steps.answer(200, b'{"text":"fine"}')
BIG = 24 << 20


def send(client: polymux.Client, source: Any, **options: Any) -> str:
    return client.read_text(source, **options).text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.png"
    path.write_bytes(b"x" * BIG)
    return path


def shrinks(path: Path) -> None:
    os.truncate(path, 1000)


def grows(path: Path) -> None:
    with path.open("ab") as opened:
        opened.write(b"more")


@pytest.mark.parametrize(
    ("change", "kind", "opens"),
    [
        (grows, polymux.Client, False),
        (shrinks, polymux.Client, True),
        (shrinks, polymux.AsyncClient, False),
    ],
)
def test_a_file_that_changes_while_it_is_sent(
    kind: type, opens: bool, change: Callable[[Path], None], file: Path, server: MisbehavingServer
) -> None:
    """The error names the file. The server never gets a complete body (K16)."""
    server.script(steps.read_slowly(48 << 20), TEXT, times=None)
    changed: list[int] = []

    def on_upload(sent: int, total: int | None) -> None:
        if not changed:
            changed.append(sent)
            change(file)

    with file.open("rb") as opened:
        source = opened if opens else file
        with pytest.raises(errors.InputChangedError, match=r"a\.png"):
            called(kind, server.url, lambda one: one.read_text(source, on_upload=on_upload))
    assert changed
    server.wait_closed(server.connections[0], 10)
    assert not server.requests[0].body_complete


async def awaited(*given: bytes) -> Any:
    for one in given:
        yield one


def test_an_asynchronous_iterable_is_refused_where_no_loop_could_read_it(
    server: MisbehavingServer, client: polymux.Client
) -> None:
    """The error is raised at once, not when the deadline expires."""
    for file in (awaited(b"x"), ("a.png", awaited(b"x"))):
        with pytest.raises(TypeError, match="AsyncClient"):
            client.read_text(file)
    assert server.requests == []


SPARSE = """
path, size = sys.argv[2], int(sys.argv[3])
with open(path, "wb") as file:
    file.truncate(size)
client = polymux.Client(url, key, retry=0)
client.read_text(("a.png", b"x"))
before, reports = status("VmHWM") * 1024, []
def on_upload(sent, total):
    reports.append((sent, total))
async def main():
    async with polymux.AsyncClient(url, key, retry=0) as other:
        await other.read_text(path, on_upload=on_upload)
if sys.argv[4] == "loop":
    asyncio.run(main())
else:
    client.read_text(path, on_upload=on_upload)
os.unlink(path)
assert [sent for sent, _ in reports] == sorted(sent for sent, _ in reports)
assert len({total for _, total in reports}) == 1
say(json.dumps([status("VmHWM") * 1024 - before, reports[-1], len(reports)]))
"""


@pytest.mark.parametrize("way", ["blocking", "loop"])
@pytest.mark.parametrize("size", [128 << 20, pytest.param(5 << 30, marks=pytest.mark.long)])
def test_a_large_upload(size: int, way: str, tmp_path: Path, server: MisbehavingServer) -> None:
    """A sparse file uses at most 32 MiB of memory. Progress reaches the end (K16 and K17)."""
    server.script(TEXT, times=None)
    path = tmp_path / "a.png"
    growth, (sent, total), count = run_json(SPARSE, server.url, path, size, way, timeout_s=240)
    assert sent == total == server.requests[-1].body_bytes
    assert size < sent < size + 2000
    assert count >= 2
    assert SANITIZED or growth <= 32 * MIB, f"{growth / MIB:.0f} MiB"


@pytest.mark.parametrize("kind", KINDS)
def test_what_arrives_is_what_was_sent(
    kind: type, tmp_path: Path, reference: ReferenceServer
) -> None:
    """3 MiB of noise arrive byte for byte in every way to upload (K17)."""
    noise = os.urandom(3 << 20)
    path = tmp_path / "a.png"
    path.write_bytes(noise)
    pieces = [noise[at : at + 100_003] for at in range(0, len(noise), 100_003)]
    with path.open("rb") as opened:
        sources: list[Any] = [path, str(path), noise, opened, ("a.png", iter(pieces)), pieces]
        if kind is polymux.AsyncClient:
            sources.append(awaited(*pieces))
        for source in sources:
            called(kind, reference.url, lambda one: one.upscale_image(source))  # noqa: B023
    assert len(reference.calls) == len(sources)
    for call in reference.calls:
        assert call.body.files[0].sha256 == hashlib.sha256(noise).hexdigest()


def test_an_answer_before_the_body_is_sent(
    file: Path, server: MisbehavingServer, client: polymux.Client
) -> None:
    """A 413 during the upload is the error that the caller gets (K16)."""
    play = steps.respond_before_body(), steps.answer(413, b'{"error":"too large"}')
    for end in ((), (steps.sleep(0.3), steps.close())):
        server.script(*play, *end)
        with pytest.raises(errors.RequestTooLargeError, match="too large"):
            send(client, file)


def test_a_server_that_goes_while_a_body_is_sent(file: Path, server: MisbehavingServer) -> None:
    """The error is a lost connection. A file is sent again only if that is safe (K16)."""
    retry = polymux.Retry(2, first_backoff_s=0.01, repeatable=True)
    for end in (steps.reset(), steps.close()):
        server.script(steps.read_nothing(), steps.sleep(0.2), end)
        with (
            polymux.Client(server.url, KEY, retry=0) as client,
            pytest.raises(errors.ConnectionLostError) as caught,
        ):
            send(client, file)
        assert caught.value.stage in ("send", "receive")
        server.script(steps.read_nothing(), steps.sleep(0.2), end)
        server.script(TEXT)
        with polymux.Client(server.url, KEY, retry=retry) as client:
            assert send(client, file) == "fine"
        assert server.requests[-1].body_complete


def test_a_cancelled_upload_lets_go(file: Path, server: MisbehavingServer) -> None:
    """The file is closed without another request."""
    server.script(steps.read_slowly(1e6), steps.stall())

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            with file.open("rb") as opened:
                sending = asyncio.create_task(client.read_text(opened))
                await asyncio.to_thread(server.wait_requests, 1)
                sending.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await sending
                held = weakref.ref(opened)
            del opened, sending
            assert await asyncio.to_thread(eventually, lambda: held() is None)

    asyncio.run(main())
