"""The downloader's only connection: what its process can reach and what the proxy allows."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from polymux.downloads import proxy as proxy_module
from polymux.downloads.proxy import GuardedProxy
from polymux.fetch.fetcher import FetchPolicy
from support.fetches import answering, sending
from support.http_server import Server
from support.media_url_server import allowing

if TYPE_CHECKING:
    from pathlib import Path

#: Runs in a process without a network and reports what it can reach.
_CONFINED = """
import json, os, socket, sys
from polymux.engines.process.egress import open_outlet
port = open_outlet(sys.argv[1])
found = {"left": port is not None}
def tries(name, kind, address):
    with socket.socket(socket.AF_INET, kind) as one:
        one.settimeout(3)
        try:
            one.connect(address)
            one.send(b"x")
            found[name] = "reached"
        except OSError as error:
            found[name] = type(error).__name__
tries("tcp", socket.SOCK_STREAM, ("127.0.0.1", int(sys.argv[2])))
tries("udp", socket.SOCK_DGRAM, ("192.0.2.1", 53))
with socket.create_connection(("127.0.0.1", port), 5) as out:
    line = "GET http://127.0.0.1:" + sys.argv[2] + "/a HTTP/1.1"
    out.sendall(line.encode() + b"\\r\\nHost: h\\r\\n\\r\\n")
    data = b""
    while piece := out.recv(65536):
        data += piece
found["out"] = data.decode("latin-1")
print(json.dumps(found))
"""


def get(url: str) -> bytes:
    return f"GET {url} HTTP/1.1\r\n\r\n".encode()


def through(
    folder: Path,
    policy: FetchPolicy,
    request: bytes,
    *,
    max_bytes: int = 1 << 20,
    key: bool = True,
) -> tuple[bytes, GuardedProxy]:
    async def asked() -> tuple[bytes, GuardedProxy]:
        async with GuardedProxy(policy, max_bytes, idle_s=1.0) as proxy:
            await proxy.start(folder / "out")
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            word = proxy.url.partition("://")[2].partition("@")[0]
            field = b"Proxy-Authorization: Basic " + base64.b64encode(word.encode()) + b"\r\n"
            head, end, rest = request.partition(b"\r\n")
            writer.write(head + end + (field if key else b"") + rest)
            data = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return data, proxy

    return asyncio.run(asked())


def test_a_process_with_one_way_out_reaches_nothing_else(tmp_path: Path) -> None:
    with Server(answering(200, b"through the proxy")) as web:

        async def run() -> bytes:
            async with GuardedProxy(allowing(web), 1 << 20) as proxy:
                await proxy.start(tmp_path / "out")
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", _CONFINED, str(tmp_path / "out"), str(web.port),
                    stdout=subprocess.PIPE,
                )  # fmt: skip
                return (await asyncio.wait_for(process.communicate(), 30))[0]

        found = json.loads(asyncio.run(run()))
        assert found["left"], "this kernel lets no process leave the network"
        assert found["tcp"] == "ConnectionRefusedError"
        assert found["udp"] == "OSError"
        assert found["out"].endswith("through the proxy")
        assert web.connections == 1


def test_it_goes_to_whom_it_may(tmp_path: Path) -> None:
    with Server(answering(200, b"hello")) as web:
        request = (
            f"GET {web.url('/a?b=c')} HTTP/1.1\r\nHost: {web.authority}\r\nProxy-Connection: x\r\n"
            "Connection: keep-alive\r\nX-Own: 1\r\n\r\n"
        )
        data, _ = through(tmp_path, allowing(web), request.encode())
        assert data.endswith(b"hello")
        assert web.requests[0].target == "/a?b=c"
        names = {name.lower(): value for name, value in web.requests[0].headers}
        assert names == {"host": web.authority, "x-own": "1", "connection": "close"}
        tunnel = f"CONNECT {web.authority} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"
        data, _ = through(tmp_path, allowing(web), tunnel.encode())
        assert data.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200")
        assert data.endswith(b"hello")
        # On loopback the proxy requires a password.
        data, _ = through(tmp_path, allowing(web), get(web.url("/")), key=False)
        assert data.startswith(b"HTTP/1.1 407")
        assert web.connections == 2


@pytest.mark.parametrize(
    ("request_line", "status"),
    [("GET /\r\n\r\n", 400), ("nonsense\r\n\r\n", 400), ("GET / SPDY/3\r\n\r\n", 400),
     ("GET http://x/ HTTP/1.1\r\n" + "X: y\r\n" * 20_000 + "\r\n", 431)],
)  # fmt: skip
def test_what_is_no_request(tmp_path: Path, request_line: str, status: int) -> None:
    data, _ = through(tmp_path, FetchPolicy(), request_line.encode())
    assert data.startswith(f"HTTP/1.1 {status}".encode())


def test_too_much_and_too_slow(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    with Server(sending(head, bytes(1_000_000))) as web:
        data, proxy = through(tmp_path, allowing(web), get(web.url("/")), max_bytes=100_000)
        assert len(data) <= 100_000 + 65_536
        assert proxy.received_bytes <= 100_000 + 65_536
    assert answered(tmp_path, head, then="stall") == (
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    )


def test_heads_of_answers_are_counted_too(tmp_path: Path) -> None:
    """The total of all connections, because redirects have only headers."""
    head = b"HTTP/1.1 302 Found\r\nX: " + b"y" * 30_000 + b"\r\n\r\n"
    with Server(sending(head)) as web:

        async def asked() -> list[int]:
            async with GuardedProxy(allowing(web), 100_000) as proxy:
                await proxy.start(tmp_path / "out")
                lengths = []
                for _ in range(5):
                    reader, writer = await asyncio.open_unix_connection(tmp_path / "out")
                    writer.write(get(web.url("/")))
                    lengths.append(len(await asyncio.wait_for(reader.read(), 10)))
                    writer.close()
                return lengths

        lengths = asyncio.run(asked())
        assert [one > 30_000 for one in lengths] == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("trusted", "sent", "again"),
    [
        (True, b"GET http://x/ HTTP/1.1\r\n", b"X: y\r\n" * 1000),
        (False, b"CONNECT x:443 HTTP/1.1\r\nX: ", b"y" * 10_000),
        (True, b"GET http://", b"a" * 10_000),
        (True, b"GET http://x/ HTTP/1.1\r\nX: ", b""),
        (False, b"", b""),
    ],
)
def test_heads_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool, sent: bytes, again: bytes
) -> None:
    """Endless headers end at 64 KiB, slow ones at the timeout."""
    monkeypatch.setattr(proxy_module, "_HEAD_S", 0.5)

    async def asked() -> tuple[bytes, int]:
        async with GuardedProxy(FetchPolicy(), 1 << 20) as proxy:
            await proxy.start(tmp_path / "out")
            reader, writer = await (
                asyncio.open_unix_connection(tmp_path / "out")
                if trusted
                else asyncio.open_connection("127.0.0.1", proxy.port)
            )
            writer.write(sent)
            given = 0
            reading = asyncio.ensure_future(reader.read())
            while not reading.done() and given < 50 << 20:
                with suppress(OSError):
                    # By default one byte at a time: data arrives, but too slowly.
                    writer.write(again or b"y" * bool(sent))
                    await writer.drain()
                given += len(again)
                await asyncio.wait([reading], timeout=0 if again else 0.05)
            writer.close()
            with suppress(OSError):
                return await asyncio.wait_for(reading, 5), given
            return b"", given

    data, given = asyncio.run(asked())
    # A client that keeps writing may get a reset before the response.
    assert data == b"" or (again and data.startswith(b"HTTP/1.1 431")), data
    assert given < 5 << 20


def answered(folder: Path, *pieces: bytes, then: str = "close") -> bytes:
    with Server(sending(*pieces, then=then)) as web:
        return through(folder, allowing(web), get(web.url("/")))[0]


def test_an_answer_is_the_last_of_its_connection(tmp_path: Path) -> None:
    """Otherwise a server that keeps it open could receive a request for another host."""
    fields = (
        b"Content-Length: 5\r\nConnection: keep-alive\r\nKeep-Alive: timeout=99\r\nX-Own: 1\r\n"
    )
    data = answered(tmp_path, b"HTTP/1.1 200 OK\r\n" + fields + b"\r\nhello", then="stall")
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 200 OK", b"Content-Length: 5", b"X-Own: 1", b"Connection: close",
    ]  # fmt: skip
    assert body == b"hello"


def test_what_informs_comes_before_the_answer(tmp_path: Path) -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    data = answered(tmp_path, hint, b"HTTP/1.1 200 OK\nX: y\n\nhello")
    heads = data.split(b"\r\n\r\n")
    assert [one.partition(b"\r\n")[0] for one in heads[:2]] == [
        b"HTTP/1.1 103 Early Hints", b"HTTP/1.1 200 OK",
    ]  # fmt: skip
    assert all(one.count(b"Connection: close") == 1 for one in heads[:2])
    assert heads[2] == b"hello"


@pytest.mark.parametrize(
    "sent",
    [
        b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"hello", b"\r\n\r\n", b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: y\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000, b"HTTP/1.1 103 Early\r\n\r\n" * 5_000,
    ],
)  # fmt: skip
def test_what_is_no_answer(tmp_path: Path, sent: bytes) -> None:
    data = answered(tmp_path, sent)
    if sent.startswith(b"HTTP/1.1 103"):
        assert len(data) < 300_000
        data = data[data.rindex(b"HTTP/1.1 ") :]
    assert data.startswith(b"HTTP/1.1 502")


def test_nobody_is_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    policy = FetchPolicy(allowed_hosts=(f"127.0.0.1:{port}",))
    data, _ = through(tmp_path, policy, get(f"http://127.0.0.1:{port}/"))
    assert data.startswith(b"HTTP/1.1 502 ")
