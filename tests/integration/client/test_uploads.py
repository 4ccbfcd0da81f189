"""Files that change, vanish or are none; bodies of all sizes (K16, K17, M-side of the client)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import os
import re
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_children import KEY, MIB, eventually, run_json, start, wait_for
from support.hostile_check import PATIENCE, SANITIZED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def vanishes_and_shrinks(path: Path) -> None:
    with path.open("r+b") as opened:
        path.unlink()
        opened.truncate(1000)


def grows(path: Path) -> None:
    with path.open("ab") as opened:
        opened.write(b"more")


def is_rewritten(path: Path) -> None:
    path.write_bytes(b"y" * BIG)


@pytest.mark.parametrize("change", [shrinks, vanishes_and_shrinks, grows, is_rewritten])
@pytest.mark.parametrize("kind", ["path", "file object", "path, from a loop"])
def test_a_file_that_changes_while_it_is_sent(
    kind: str, change: Callable[[Path], None], file: Path, server: MisbehavingServer
) -> None:
    """K16: a typed error that names it; the server never gets a whole body of it."""
    server.script(steps.read_slowly(16 << 20), TEXT, times=None)
    changed = threading.Event()

    def on_upload(sent: int, total: int | None) -> None:
        if not changed.is_set():
            changed.set()
            change(file)

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as other:
            await other.read_text(file, on_upload=on_upload)

    with polymux.Client(server.url, KEY, retry=0) as client, file.open("rb") as opened:
        calls: dict[str, Callable[[], object]] = {
            "path": lambda: send(client, file, on_upload=on_upload),
            "file object": lambda: send(client, opened, on_upload=on_upload),
            "path, from a loop": lambda: asyncio.run(main()),
        }
        if kind == "file object" and change is is_rewritten:
            return  # Of the same size again: nobody can tell who only reads.
        with pytest.raises(errors.InputChangedError) as caught:
            calls[kind]()
    assert "a.png" in str(caught.value)
    assert changed.is_set()
    server.wait_closed(server.connections[0], 10)
    assert not server.requests[0].body_complete


def test_a_file_that_vanishes(file: Path, server: MisbehavingServer) -> None:
    """K16: once it is open it can be sent; before, it is an error."""
    server.script(steps.read_slowly(64 << 20), TEXT, times=None)
    with polymux.Client(server.url, KEY, retry=0) as client:

        def on_upload(sent: int, total: int | None) -> None:
            file.unlink(missing_ok=True)

        assert send(client, file, on_upload=on_upload) == "fine"
        assert server.requests[0].body_complete
        with pytest.raises(errors.InputNotFoundError, match=r"a\.png"):
            send(client, file)
    assert len(server.requests) == 1


def test_what_is_no_file(tmp_path: Path, server: MisbehavingServer) -> None:
    """K16: folders, FIFOs, devices, names that cannot be; nothing is sent or waited for."""
    os.mkfifo(tmp_path / "fifo")
    with polymux.Client(server.url, KEY, retry=0, timeout=5) as client:
        for path in (tmp_path, tmp_path / "fifo", Path("/dev/zero"), Path("/dev/null")):
            with pytest.raises(errors.InputUnreadableError):
                send(client, path)
        for name in (str(tmp_path / "missing"), "a\0b", "", "x" * 5000):
            with pytest.raises((errors.InputError, errors.InvalidRequestError)):
                send(client, name)
        for wrong in (5, None, object(), 1.5, {"a": 1}, ("a", b"x", "b", "c"), ("a",), ()):
            with pytest.raises((TypeError, errors.InvalidRequestError)):
                send(client, wrong)
    assert server.connections == []


def test_a_file_that_may_not_be_read(file: Path, server: MisbehavingServer) -> None:
    """K16: as another user than the one whom everything is permitted to."""
    code = """
client = polymux.Client(url, key)
client.read_text(("a.png", b"x"))  # What is loaded late is loaded now.
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    client.read_text(sys.argv[2])
except polymux.InputUnreadableError as error:
    say(json.dumps(str(error)))
"""
    server.script(TEXT)
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        (folder / "b.png").write_bytes(b"x")
        (folder / "b.png").chmod(0)
        assert "b.png" in run_json(code, server.url, folder / "b.png")
    finally:
        (folder / "b.png").unlink()
        folder.rmdir()
    assert len(server.requests) == 1


def test_nothing_and_little(tmp_path: Path, reference: ReferenceServer) -> None:
    """K16: empty files and pieces of every kind arrive as what they are."""
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "one.png").write_bytes(b"1")

    async def pieces(*given: bytes) -> Any:
        for one in given:
            yield one

    with polymux.Client(reference.url, KEY) as client:
        sources: list[tuple[Any, bytes]] = [
            (tmp_path / "empty.png", b""), (tmp_path / "one.png", b"1"), (b"", b""),
            (io.BytesIO(b""), b""), (iter([]), b""), (iter([b"", b"a", b"", b"b"]), b"ab"),
            (bytearray(b"abc"), b"abc"), (memoryview(b"abcdef")[::2].tobytes(), b"ace"),
            (("n\"a\r\nme.png", b"x"), b"x"),
        ]  # fmt: skip
        for source, content in sources:
            client.upscale_image(source)
            sent = reference.calls[-1].body.file("image")
            assert sent is not None
            assert sent.content == content

    async def main() -> None:
        async with polymux.AsyncClient(reference.url, KEY) as client:
            for given in ((), (b"",), (b"", b"a", b"", b"b")):
                await client.upscale_image(("a.png", pieces(*given)))
                sent = reference.calls[-1].body.file("image")
                assert sent is not None
                assert sent.content == b"".join(given)

    asyncio.run(main())


SPARSE = """
path, size = sys.argv[2], int(sys.argv[3])
with open(path, "wb") as file:
    file.truncate(size)
client = polymux.Client(url, key, retry=0)
client.read_text(("a.png", b"x"))
before, told = status("VmHWM") * 1024, []
def on_upload(sent, total):
    told.append((sent, total))
async def main():
    async with polymux.AsyncClient(url, key, retry=0) as other:
        await other.read_text(path, on_upload=on_upload)
if sys.argv[4] == "loop":
    asyncio.run(main())
else:
    client.read_text(path, on_upload=on_upload)
os.unlink(path)
assert [sent for sent, _ in told] == sorted(sent for sent, _ in told)
assert len({total for _, total in told}) == 1
say(json.dumps([status("VmHWM") * 1024 - before, told[-1], len(told)]))
"""


@contextlib.contextmanager
def sink(counts: list[int]) -> Iterator[str]:
    """A server that throws bodies away as fast as it can, and keeps how long they were."""

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                threading.Thread(target=serve, args=(peer,), daemon=True).start()

    def serve(peer: socket.socket) -> None:
        buffer = bytearray(1 << 20)
        with contextlib.suppress(OSError), peer:
            while head := peer.recv(1 << 16, socket.MSG_PEEK):
                peer.recv(head.index(b"\r\n\r\n") + 4)
                match = re.search(rb"(?i)content-length: (\d+)", head)
                assert match
                left = size = int(match[1])
                while left:
                    left -= peer.recv_into(buffer, min(left, len(buffer)))
                counts.append(size)
                peer.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"text":"fine"}')

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept, args=(listener,), daemon=True)
        accepting.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


def upload_sparse(path: Path, size: int, kind: str) -> None:
    counts: list[int] = []
    with sink(counts) as url:
        growth, (sent, total), told = run_json(SPARSE, url, path, size, kind, timeout_s=240)
    assert sent == total == counts[-1]
    assert size < sent < size + 2000
    assert told >= 2
    assert SANITIZED or growth <= 32 * MIB, f"{growth / MIB:.0f} MiB"


@pytest.mark.parametrize("kind", ["blocking", "loop"])
def test_an_upload_of_256_mib(kind: str, tmp_path: Path) -> None:
    """K17: a sparse file, with at most 32 MiB of memory."""
    upload_sparse(tmp_path / "a.png", 256 << 20, kind)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["blocking", "loop"])
def test_an_upload_of_5_gib(kind: str, tmp_path: Path) -> None:
    """K16, K17: the same of one over 4 GiB."""
    upload_sparse(tmp_path / "a.png", 5 << 30, kind)


def test_the_beginning_of_5_gib(tmp_path: Path, server: MisbehavingServer) -> None:
    """K16: lengths over 32 bits are told as they are."""
    path = tmp_path / "a.png"
    path.touch()
    os.truncate(path, 5 << 30)
    server.script(steps.respond_before_body(), steps.answer(413, b'{"error":"too large"}'))
    totals = []
    with (
        polymux.Client(server.url, KEY, retry=0) as client,
        pytest.raises(errors.RequestTooLargeError),
    ):
        send(client, path, on_upload=lambda _, total: totals.append(total))
    length = int(server.requests[0].header("content-length") or 0)
    assert 5 << 30 < length < (5 << 30) + 2000
    assert set(totals) <= {length}


def test_what_arrives_is_what_was_sent(tmp_path: Path, reference: ReferenceServer) -> None:
    """K17: 6 MiB of noise by every way, byte for byte."""
    noise = os.urandom(6 << 20)
    path = tmp_path / "a.png"
    path.write_bytes(noise)

    def pieces() -> Any:
        for at in range(0, len(noise), 100_003):
            yield noise[at : at + 100_003]

    async def awaited() -> Any:
        for piece in pieces():
            yield piece

    with polymux.Client(reference.url, KEY) as client, path.open("rb") as opened:
        for source in (path, noise, opened, ("a.png", pieces())):
            client.upscale_image(source)

    async def main() -> None:
        async with polymux.AsyncClient(reference.url, KEY) as client:
            with path.open("rb") as opened:
                for source in (path, noise, opened, ("a.png", pieces()), ("a.png", awaited())):
                    await client.upscale_image(source)

    asyncio.run(main())
    assert len(reference.calls) == 9
    for call in reference.calls:
        file = call.body.file("image")
        assert file is not None
        assert file.sha256 == hashlib.sha256(noise).hexdigest()


def test_an_answer_before_the_body_is_sent(file: Path, server: MisbehavingServer) -> None:
    """K16: 413 while the file is still going up is what the caller is told."""
    for play in (
        (steps.respond_before_body(), steps.answer(413, b'{"error":"too large"}')),
        (steps.respond_before_body(), steps.answer(413, b'{"error":"too large"}'), steps.sleep(0.3),
         steps.close()),
    ):  # fmt: skip
        server.script(*play)
        with (
            polymux.Client(server.url, KEY, retry=0) as client,
            pytest.raises(errors.RequestTooLargeError, match="too large"),
        ):
            send(client, file)


def test_a_server_that_goes_while_a_body_is_sent(file: Path, server: MisbehavingServer) -> None:
    """K16: lost, and told as that; a file is sent anew where that does no harm."""
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


def test_a_fifo_of_the_callers_own(tmp_path: Path, server: MisbehavingServer) -> None:
    """K16: an open pipe is a file object without an end that is known."""
    server.script(TEXT, times=None)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, polymux.Client(server.url, KEY) as client:
        os.write(writing, b"through a pipe")
        os.close(writing)
        assert send(client, ("a.png", pipe)) == "fine"
    assert b"through a pipe" in server.requests[0].body
    assert server.requests[0].header("transfer-encoding") == "chunked"


def test_a_body_that_two_calls_send(server: MisbehavingServer) -> None:
    """K16: one generator given twice is empty the second time, or refused; never mixed."""
    server.script(TEXT, times=None)
    source = (piece for piece in (b"once", b"only"))
    with polymux.Client(server.url, KEY) as client:
        send(client, ("a.png", source))
        send(client, ("a.png", source))
    first, second = server.requests
    assert b"onceonly" in first.body
    assert b"once" not in second.body


def test_descriptors_of_files(file: Path, server: MisbehavingServer) -> None:
    """K16: closed after good and bad ends alike."""
    code = """
client = polymux.Client(url, key, retry=0, timeout=0.3)
def sent():
    try:
        client.read_text(sys.argv[2])
    except polymux.PolymuxError:
        pass
def of_the_file():
    return [one for one in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{one}") and
            os.path.realpath(f"/proc/self/fd/{one}") == os.path.realpath(sys.argv[2])]
for _ in range(4):
    sent()
    assert not of_the_file()
async def main():
    async with polymux.AsyncClient(url, key, retry=0, timeout=0.3) as other:
        await asyncio.gather(*(other.read_text(sys.argv[2]) for _ in range(4)),
                             return_exceptions=True)
asyncio.run(main())
say("done")
time.sleep(0.2)
assert not of_the_file(), of_the_file()
say("closed")
"""
    server.script(TEXT)
    server.script(steps.reset())
    server.script(steps.stall(), times=None)
    child = start(code, server.url, file)
    wait_for(child, "done")
    wait_for(child, "closed")
    child.communicate()
    assert eventually(lambda: not server.open_connections, 5 * PATIENCE)
