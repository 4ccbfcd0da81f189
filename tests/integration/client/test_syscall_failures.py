"""Failing system calls and resource limits during calls, uploads, fetches and saves (N05)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from servers import steps
from support.client_calls import FINE
from support.client_children import run, run_json
from support.client_under_faults import BODY, NAMES
from support.hostile_check import PATIENCE, SANITIZED
from support.preloads import compiled, preloaded
from support.supervised_engine import TESTS

if TYPE_CHECKING:
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer

#: System call -> (error, tasks that use the system call).
OF_FILES = ("fetch", "save", "save_anew", "save_bytes")
OF_NETWORK = ("call", "stream", "upload", "fetch", "save", "save_anew", "asynchronous")
FAULTS = {
    "socket": ("EMFILE", OF_NETWORK),
    "connect": ("ENETUNREACH", OF_NETWORK),
    "send": ("ECONNRESET", OF_NETWORK),
    "recv": ("ECONNRESET", OF_NETWORK),
    "getsockopt": ("ENOBUFS", OF_NETWORK),
    "setsockopt": ("ENOBUFS", OF_NETWORK),
    "open": ("EMFILE", (*OF_FILES, "upload")),
    "read": ("EIO", ("upload", "asynchronous")),
    "write": ("ENOSPC", OF_FILES),
    "fsync": ("EIO", OF_FILES),
    "rename": ("EACCES", ("fetch", "save", "save_bytes")),
    "link": ("EIO", ("save_anew",)),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = TESTS / "support" / "failing_calls.c"
    return compiled(source, tmp_path_factory.mktemp("library"), source.stem)


def found(
    library: Path, server: MisbehavingServer, folder: Path, most: int
) -> dict[str, list[dict[str, Any]]]:
    """The outcome of every task for each failed system call, by the kind of system call."""
    whole = steps.answer(200, b'{"response":"fine","text":"fine"}')
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"fine"}}]}\n\ndata: [DONE]\n\n'
    stream = steps.answer(200, chunk, content_type="text/event-stream")
    for path, play in {
        "/api/v1/freellm": whole,
        "/api/v1/image2text": whole,
        "/api/v1/fastllm/chatcompletion": stream,
        "/file.bin": steps.answer(200, BODY),
        "/moved": steps.redirect(302, "/file.bin"),
    }.items():
        server.script(play, path=path, times=None)
    (folder / "saved").mkdir()
    (folder / "a.png").write_bytes(b"x" * 300_000)
    faults = [f"{call}:{error}" for call, (error, _) in FAULTS.items()]
    done = subprocess.run(
        [sys.executable, "-m", "support.client_under_faults", server.url, str(folder), str(most),
         *faults],
        env={**os.environ, "PYTHONPATH": str(TESTS), **preloaded(library)},
        capture_output=True, text=True, check=False, timeout=600 * PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-3000:]
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    return {call: [one for one in rounds if one["call"] == call] for call in FAULTS}


def check(rounds: list[dict[str, Any]], call: str) -> None:
    """Each task succeeds or raises a polymux error, leaves no partial file, and can be repeated."""
    fired = {one["work"] for one in rounds if one["fired"]}
    works = set(FAULTS[call][1])
    assert fired >= works, f"{call} was never reached in {works - fired}"
    for one in rounds:
        assert one["left"] == [], one
        assert one["file"] != "torn", one
        assert one["again"] == "fine", one
        assert one["fired"] or one["outcome"] == "fine", one
        assert " " not in one["outcome"], one
    for work in {"save", "save_bytes"} & fired:
        for one in (one for one in rounds if one["work"] == work):
            assert one["file"] == ("new" if one["outcome"] == "fine" else "before"), one


def test_the_first_calls_fail(library: Path, server: MisbehavingServer, tmp_path: Path) -> None:
    """Fails only the first two system calls of each kind (N05)."""
    for call, rounds in found(library, server, tmp_path, 2).items():
        check(rounds, call)


@pytest.mark.long
def test_every_call_fails_once(library: Path, server: MisbehavingServer, tmp_path: Path) -> None:
    """Fails each system call in turn (N05)."""
    for call, rounds in found(library, server, tmp_path, 1000).items():
        check(rounds, call)
        assert [one["fired"] for one in rounds if one["n"] == 1000] == []
        assert {one["work"] for one in rounds} == set(NAMES)


@pytest.mark.skipif(SANITIZED, reason="without a pipe UBSan takes every object for a broken one")
@pytest.mark.parametrize("limit", [3, 15])
def test_few_descriptors(limit: int, server: MisbehavingServer) -> None:
    """Any file descriptor may be the one that fails. The client then works again (N05)."""
    code = """
import resource
import polymux._native._core, polymux.client.event_loop, polymux.errors
loop = asyncio.new_event_loop()
client, other = polymux.Client(url, key, retry=0), polymux.AsyncClient(url, key, retry=0)
warmed = polymux.Client(url, key, retry=0)
warmed.free_chat("x")
warmed.close()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), hard))
def outcome(call):
    try:
        return call().text
    except (polymux.PolymuxError, OSError) as error:
        return type(error).__name__
found = [outcome(lambda: client.free_chat("x")) for _ in range(3)]
async def main():
    return [type(one).__name__ for one in await asyncio.gather(
        *(other.free_chat("x") for _ in range(10)), return_exceptions=True)]
found += loop.run_until_complete(main())
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
assert client.free_chat("x").text == "fine"
assert set(loop.run_until_complete(main())) == {"TextResponse"}
loop.close()
say(json.dumps(found))
"""
    server.script(FINE, times=None)
    found = run_json(code, server.url, limit, options=())
    assert len(found) == 13


def test_little_memory(server: MisbehavingServer) -> None:
    """With a full address space, the result is MemoryError or success, never a crash (N05)."""
    code = """
import resource
client = polymux.Client(url, key, retry=0)
client.free_chat("x")
for room in (1, 8, 64):
    used = status("VmSize") * 1024
    resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20), -1))
    for number in range(3):
        try:
            client.free_chat("x" * (3 << 20))
        except (MemoryError, polymux.PolymuxError):
            pass
        try:
            client.read_text(("a.png", (b"x" * 100_000 for _ in range(50))))
        except (MemoryError, polymux.PolymuxError):
            pass
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    assert client.free_chat("x").text == "fine"
"""
    server.script(steps.answer(200, b'{"response":"fine","text":"fine"}'), times=None)
    if "LD_PRELOAD" not in os.environ:  # Sanitizers reserve terabytes of address space.
        run(code, server.url, options=())
