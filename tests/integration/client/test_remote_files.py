"""Result files of an untrusted server: allowed URLs and size limits."""

from __future__ import annotations

import asyncio
import json
import math
import os
import pickle
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import Timeout, errors
from polymux.client import remote_file
from polymux.fetch.fetcher import FetchPolicy, fetch
from polymux.local.local_file import LocalFile
from servers import steps
from servers.misbehaving import MisbehavingServer
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux.client.remote_file import RemoteFile
    from servers.certificates import Authority

FILE = steps.answer(200, b"a picture", content_type="image/png")
BIG = 100_000
TEXT = b"x" * BIG


def named(client: polymux.Client, server: MisbehavingServer, *urls: str) -> list[RemoteFile]:
    """The result files that the server's response lists at these URLs."""
    job = {"id": "j1", "status": "succeeded", "output": list(urls)}
    server.script(steps.answer(200, json.dumps(job).encode()), path="/api/v1/predictions/j1")
    return [*client.predictions.get("j1").images]  # type: ignore[list-item]


def picture(server: MisbehavingServer, **options: Any) -> RemoteFile:
    with polymux.Client(server.url, KEY, retry=0, **options) as client:
        return named(client, server, f"{server.url}/a.png")[0]


@pytest.mark.parametrize("name", ["localhost", "127.1", "0x7f.1"])
def test_this_machine_by_all_its_names(name: str, server: MisbehavingServer) -> None:
    """The server may be behind a tunnel, so its links may use any name of the loopback host."""
    server.script(FILE, times=None, path="/a.png")
    with polymux.Client(f"http://{name}:{server.port}", KEY, retry=0) as client:
        names = ("127.0.0.1", "localhost", "LOCALHOST", "127.0.0.1.")
        files = named(client, server, *(f"http://{one}:{server.port}/a.png" for one in names))
        assert [one.read() for one in files] == [b"a picture"] * 4
        other = named(client, server, f"http://[::1]:{server.port}/a.png")[0]
        # No server listens on IPv6, which proves that the file was requested there.
        with pytest.raises(errors.ConnectError):
            other.read()


def test_another_port_of_this_machine(server: MisbehavingServer) -> None:
    """A link or redirect must not reach another service on this machine."""
    with MisbehavingServer() as decoy:
        decoy.script(FILE, times=None)
        for number, name in enumerate(("localhost", "127.1", "[::ffff:127.0.0.1]")):
            url = f"http://{name}:{decoy.port}/a.png"
            server.script(steps.redirect(302, url), path=f"/{number}.png")
            with polymux.Client(server.url, KEY, retry=0) as client:
                links = (url, f"{server.url}/{number}.png")
                for file in named(client, server, *links):
                    with pytest.raises(errors.URLRefusedError):
                        file.read()
        assert not decoy.connections


WAYS: dict[str, Callable[..., object]] = {
    "read": lambda file, _, **options: file.read(**options),
    "save": lambda file, path, **options: file.save(path, **options),
    "aread": lambda file, _, **options: asyncio.run(file.aread(**options)),
    "asave": lambda file, path, **options: asyncio.run(file.asave(path, **options)),
}


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_longer_than_is_taken(
    way: str, declared: bool, server: MisbehavingServer, tmp_path: Path
) -> None:
    """No partial file remains, and an existing file stays unchanged."""
    whole = [steps.answer(200, TEXT)]
    chunked = [steps.chunked_head(), steps.chunk(TEXT), steps.last_chunk()]
    server.script(*(whole if declared else chunked), times=None, path="/a.png")
    file, path = picture(server), tmp_path / "a.png"
    for before in ([], [b"old"]):
        for content in before:
            path.write_bytes(content)
        with pytest.raises(errors.AnswerTooLargeError):
            WAYS[way](file, path, limit_bytes=BIG - 1)
        assert [one.read_bytes() for one in tmp_path.iterdir()] == before
    WAYS[way](file, path, limit_bytes=BIG)
    assert path.read_bytes() == (TEXT if "save" in way else b"old")


@pytest.mark.parametrize(("way", "limit"), [("read", "total"), ("asave", "idle")])
def test_deadlines_of_a_file(
    way: str, limit: str, server: MisbehavingServer, tmp_path: Path
) -> None:
    """A slow body and a stalled one raise a timeout in time. No file remains."""
    slowly = [one for _ in range(100) for one in (steps.chunk(TEXT[:2000]), steps.sleep(0.05))]
    play = slowly if limit == "total" else [steps.stall()]
    server.script(steps.chunked_head(), *play, steps.last_chunk(), times=None, path="/a.png")
    file = picture(server)
    timeout = 0.5 if limit == "total" else Timeout(60, idle=0.5)
    begun = time.monotonic()
    with pytest.raises(errors.RequestTimeoutError) as caught:
        WAYS[way](file, tmp_path / "a.png", timeout=timeout)
    assert caught.value.limit == limit
    assert time.monotonic() - begun >= 0.4
    assert not list(tmp_path.iterdir())


def test_a_slow_file_that_may_be_slow(server: MisbehavingServer) -> None:
    """A longer timeout allows slow files. The default is half an hour."""
    slowly = [one for _ in range(4) for one in (steps.chunk(b"x"), steps.sleep(0.1))]
    server.script(steps.chunked_head(), *slowly, steps.last_chunk(), times=None, path="/a.png")
    file = picture(server)
    for timeout in (None, 30, math.inf, Timeout(idle=math.inf)):
        assert file.read(timeout=timeout) == b"x" * 4
    assert remote_file._limits(1, None, 1).total_ms >= 1_900_000
    with pytest.raises(errors.InvalidRequestError, match=r"total: .*0"):
        file.read(timeout=0)


def test_the_same_verification_as_the_calls(authority: Authority) -> None:
    """`verify=False` applies only to files of the client's server, by any of its names (K13)."""
    context = authority.certificate().context()
    with MisbehavingServer(tls=context) as server, MisbehavingServer(tls=context) as other:
        server.script(FILE, times=None, path="/a.png")
        for verify in (False, authority.ca):
            file = picture(server, verify=verify)
            assert file.read() == b"a picture"
            assert asyncio.run(pickle.loads(pickle.dumps(file)).aread()) == b"a picture"
        here = f"127.0.0.1:{server.port}"
        with pytest.raises(errors.TLSError):
            remote_file.RemoteFile(file.url, host=here).read()
        there = f"127.0.0.1:{other.port}"
        server.script(steps.redirect(302, f"https://{there}/b.png"), path="/to")
        # If the policy allows a redirect to another host, that host's certificate is verified.
        policy = FetchPolicy(
            allowed_hosts=(here,),
            allowed_networks=("127.0.0.0/8",),
            allowed_ports=(other.port,),
            verify_allowed_hosts=False,
        )
        for url in (f"https://{there}/b.png", f"{server.url}/to"):
            with pytest.raises(errors.TLSError):
                fetch(url, policy=policy)
        assert not other.requests


@pytest.mark.parametrize("way", [*WAYS, "pieces", "pieces of a loop"])
def test_a_refusal_is_the_same_by_every_way(
    way: str, server: MisbehavingServer, tmp_path: Path
) -> None:
    """The server's code, message and body are kept for every way to read the file.

    An unrequested 206 is rejected, because it has only a part of the file (RFC 9110, 15.3.7).
    """
    body = {"error": {"message": "it was removed", "code": "gone", "type": "not_found"}}
    part = steps.answer(206, b"abc", [("Content-Range", "bytes 0-2/1000")])
    server.script(steps.answer(404, json.dumps(body).encode()), path="/a.png")
    server.script(part, times=None, path="/a.png")
    file = picture(server)

    async def pieces() -> None:
        async for _ in file:
            raise AssertionError

    def fetched() -> None:
        if way in WAYS:
            WAYS[way](file, tmp_path / "a.png")
        else:
            list(file) if way == "pieces" else asyncio.run(pieces())

    with pytest.raises(errors.NotFoundError) as caught:
        fetched()
    error = caught.value
    assert (error.code, error.message, error.type) == ("gone", "it was removed", "not_found")
    assert error.body == body
    with pytest.raises(polymux.DecodeError, match="bytes 0-2/1000"):
        fetched()
    assert not list(tmp_path.iterdir())


def test_one_face_for_all_files(server: MisbehavingServer, tmp_path: Path) -> None:
    """Files of a server, of `Local` and of a local conversion have the same interface."""
    server.script(FILE, times=None, path="/a.png")
    remote = picture(server)
    (tmp_path / "b.mp3").write_bytes(b"a picture")
    local = LocalFile(tmp_path / "b.mp3", "audio/mpeg")
    report: Any = SimpleNamespace(bytes=9)
    here = polymux.MediaFile(report=report, data=b"a picture")
    files: list[polymux.MediaFile] = [remote, local, here]

    async def pieces(file: polymux.MediaFile) -> bytes:
        return b"".join([piece async for piece in file])

    for number, file in enumerate(files):
        calls: list[tuple[int, int | None]] = []
        target = tmp_path / f"{number}"
        file.save(target, on_progress=lambda *one, calls=calls: calls.append(one), timeout=60)
        assert target.read_bytes() == b"a picture"
        assert calls[-1][0] == 9
        assert asyncio.run(pieces(file)) == file.read(limit_bytes=9) == b"a picture"
        with pytest.raises(errors.AnswerTooLargeError):
            file.read(limit_bytes=8)
        with pytest.raises(errors.AnswerTooLargeError):
            asyncio.run(file.asave(tmp_path / "none", limit_bytes=8))
        assert file.url == (None if file is here else file.url)
    for made in (remote, local):
        assert not hasattr(made, "report")
        with pytest.raises(AttributeError, match="convert_to_mp3"):
            made.report.frames  # noqa: B018
        assert pickle.loads(pickle.dumps(made)) == made
    assert local.url == (tmp_path / "b.mp3").as_uri()
    assert sorted(os.listdir(tmp_path)) == ["0", "1", "2", "b.mp3"]  # noqa: PTH208
