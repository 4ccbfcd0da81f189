"""The n-th system call fails, for every n (N05): of calls, uploads, fetches and saved files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from servers import steps
from support.client_under_faults import BODY, NAMES
from support.hostile_check import PATIENCE
from support.preloads import compiled, preloaded
from support.supervised import TESTS

if TYPE_CHECKING:
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer

#: Call, error, and the works that make such calls.
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
    """What became of each work at each call, by the kind of call."""
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
    """An error of polymux's or success; nothing torn, nothing left, and the next time it works."""
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
    """N05: each of the first four."""
    for call, rounds in found(library, server, tmp_path, 4).items():
        check(rounds, call)


@pytest.mark.long
def test_every_call_fails_once(library: Path, server: MisbehavingServer, tmp_path: Path) -> None:
    """N05: each of all that there are."""
    for call, rounds in found(library, server, tmp_path, 1000).items():
        check(rounds, call)
        assert [one["fired"] for one in rounds if one["n"] == 1000] == []
        assert {one["work"] for one in rounds} == set(NAMES)
