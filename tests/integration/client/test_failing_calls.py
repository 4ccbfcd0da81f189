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


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = TESTS / "support" / "failing_calls.c"
    return compiled(source, tmp_path_factory.mktemp("library"), source.stem)


def found(
    library: Path, server: MisbehavingServer, folder: Path, call: str, error: str, most: int
) -> list[dict[str, Any]]:
    """What became of each work at each call."""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"fine"}}]}\n\ndata: [DONE]\n\n'
    whole = steps.answer(200, b'{"response":"fine","text":"fine"}')
    server.script(whole, path="/api/v1/freellm", times=None)
    server.script(whole, path="/api/v1/image2text", times=None)
    server.script(
        steps.answer(200, chunk, [("Content-Type", "text/event-stream")]),
        path="/api/v1/fastllm/chatcompletion",
        times=None,
    )
    server.script(steps.answer(200, BODY), path="/file.bin", times=None)
    server.script(steps.redirect(302, "/file.bin"), path="/moved", times=None)
    (folder / "saved").mkdir()
    (folder / "a.png").write_bytes(b"x" * 300_000)
    done = subprocess.run(
        [sys.executable, "-m", "support.client_under_faults", server.url, str(folder), call, error,
         str(most)],
        env={**os.environ, "PYTHONPATH": str(TESTS), **preloaded(library)},
        capture_output=True, text=True, check=False, timeout=600 * PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(rounds: list[dict[str, Any]], call: str, works: tuple[str, ...]) -> None:
    """An error of polymux's or success; nothing torn, nothing left, and the next time it works."""
    fired = {one["work"] for one in rounds if one["fired"]}
    assert fired >= set(works), f"{call} was never reached in {set(works) - fired}"
    for one in rounds:
        assert one["left"] == [], one
        assert one["file"] != "torn", one
        assert one["again"] == "fine", one
        assert one["fired"] or one["outcome"] == "fine", one
        assert " " not in one["outcome"], one
    for work in {"save", "save_bytes"} & fired:
        for one in (one for one in rounds if one["work"] == work):
            assert one["file"] == ("new" if one["outcome"] == "fine" else "before"), one


@pytest.mark.parametrize("call", FAULTS)
def test_the_first_calls_fail(
    call: str, library: Path, server: MisbehavingServer, tmp_path: Path
) -> None:
    """N05: each of the first four."""
    error, works = FAULTS[call]
    check(found(library, server, tmp_path, call, error, 4), call, works)


@pytest.mark.long
@pytest.mark.parametrize("call", FAULTS)
def test_every_call_fails_once(
    call: str, library: Path, server: MisbehavingServer, tmp_path: Path
) -> None:
    """N05: each of all that there are."""
    error, works = FAULTS[call]
    rounds = found(library, server, tmp_path, call, error, 1000)
    check(rounds, call, works)
    assert [one["fired"] for one in rounds if one["n"] == 1000] == []
    assert {one["work"] for one in rounds} == set(NAMES)
