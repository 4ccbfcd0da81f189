"""How callers use the fetcher: destinations, progress, Ctrl-C, asyncio and invalid arguments."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from polymux import errors
from polymux.fetch.fetcher import FetchLimits, FetchPolicy, afetch
from support.fetches import OK, answering, failure, got, sending, wait_until
from support.hostile_check import PATIENCE
from support.http_server import Server

if TYPE_CHECKING:
    from support.http_server import Exchange

ROOT = Path(__file__).resolve().parents[2]


def test_a_path_gets_the_body_whole(tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(b"before")
    path.chmod(0o640)
    with Server(sending(OK + b"Content-Length: 100\r\n\r\n", b"x" * 50)) as server:
        failure(errors.ConnectionLostError, server, destination=path)
        assert path.read_bytes() == b"before"
        server.script = answering(200, b"after" * 100_000)
        fetched = got(server, destination=path)
    assert (fetched.path, fetched.data) == (path, None)
    assert path.read_bytes() == b"after" * 100_000
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with Server(answering(200, b"x")) as server:
        for place in (tmp_path, tmp_path / "link"):
            failure(errors.OutputRefusedError, server, destination=place)
        failure(errors.OutputFailedError, server, destination=tmp_path / "absent/body")
    assert server.connections == 0
    assert not (tmp_path / "target").exists()


def test_a_full_disk_is_reported() -> None:
    with (
        Server(answering(200, b"x" * 100_000)) as server,
        Path("/dev/full").open("wb", 0) as full,
        pytest.raises(OSError, match="No space left"),
    ):
        got(server, destination=full)


class Failing:
    def __init__(self, exception: BaseException) -> None:
        self.exception = exception

    def write(self, data: bytes) -> int:
        raise self.exception


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, OSError, MemoryError])
def test_exceptions_of_the_caller_come_out_unchanged(kind: type[BaseException]) -> None:
    planted = kind("planted")

    def fail(*_: object) -> None:
        raise planted

    with Server(answering(200, b"x" * 100_000)) as server:
        for options in ({"destination": Failing(planted)}, {"on_progress": fail}):
            with pytest.raises(kind) as caught:
                got(server, **options)
            assert caught.value is planted
        assert got(server).body_bytes == 100_000


def test_progress_counts_the_body() -> None:
    seen: list[tuple[int, int | None]] = []

    async def in_three(exchange: Exchange) -> None:
        await exchange.send(OK + b"Content-Length: 30\r\n\r\n")
        for _ in range(3):
            await exchange.send(b"x" * 10)
            await asyncio.sleep(0.15)

    with Server(in_three) as server:
        got(server, on_progress=lambda body, expected: seen.append((body, expected)))
    assert [body for body, _ in seen] == sorted(body for body, _ in seen)
    assert seen[0][1] == 30
    assert seen[-1][0] == 30
    assert len(seen) >= 3


INTERRUPTED = """
import sys
from polymux.fetch.fetcher import FetchPolicy, fetch
print("ready", flush=True)
try:
    fetch(sys.argv[1], policy=FetchPolicy(allowed_hosts=(sys.argv[2],)))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("sent", [b"", OK + b"Content-Length: 100\r\n\r\n" + b"x" * 50])
def test_control_c_ends_a_fetch(sent: bytes) -> None:
    with Server(sending(sent, then="stall")) as server:
        child = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, server.url(), server.authority],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            wait_until(lambda: bool(server.requests))
            time.sleep(0.1)
            child.send_signal(signal.SIGINT)
            sent_at = time.monotonic()
            assert child.stdout.readline() == "interrupted\n"
            assert time.monotonic() - sent_at <= 5 * PATIENCE
            assert child.wait(20) == 0
        assert server.gone.wait(10)


def test_cancelling_a_task_ends_the_fetch(tmp_path: Path) -> None:
    async def cancelled(server: Server) -> None:
        policy = FetchPolicy(allowed_hosts=(server.authority,))
        task = asyncio.create_task(
            afetch(server.url(), policy=policy, destination=tmp_path / "body")
        )
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list(tmp_path.iterdir()) == []

    with Server(sending(OK + b"\r\n", then="stall")) as server:
        asyncio.run(asyncio.wait_for(cancelled(server), 20))
        assert server.gone.wait(10)


def test_the_twin_fetches_refuses_and_keeps_a_deadline() -> None:
    async def all_three(server: Server) -> None:
        policy = FetchPolicy(allowed_hosts=(server.authority,))
        fetched = await afetch(server.url(), policy=policy)
        assert fetched.data == b"x"
        with pytest.raises(errors.URLRefusedError):
            await afetch(server.url())
        server.script = sending(OK, then="stall")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await afetch(server.url(), policy=policy)

    with Server(answering(200, b"x")) as server:
        asyncio.run(asyncio.wait_for(all_three(server), 20))


def test_many_at_once_and_none_leaves_anything() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    with Server(answering(200, b"x" * 50_000)) as server, ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: got(server), range(32)))
        before = descriptors()
        answers = list(pool.map(lambda _: got(server).data, range(200)))
        assert answers == [b"x" * 50_000] * 200
        server.script = sending(OK + b"Content-Length: 9\r\n\r\nx")
        list(pool.map(lambda _: failure(errors.ConnectionLostError, server), range(100)))
        wait_until(lambda: descriptors() <= before)


@pytest.mark.parametrize(
    ("setting", "name", "value", "kind"),
    [
        (FetchLimits, "body_bytes", -1, errors.InvalidRequestError),
        (FetchLimits, "total_ms", 0, errors.InvalidRequestError),
        (FetchLimits, "idle_ms", 1 << 40, errors.InvalidRequestError),
        (FetchLimits, "redirects", 21, errors.InvalidRequestError),
        (FetchLimits, "header_bytes", 1 << 20, errors.InvalidRequestError),
        (FetchLimits, "connect_ms", 1.5, TypeError),
        (FetchLimits, "header_count", True, TypeError),
        (FetchLimits, "rate_window_ms", "1", TypeError),
        (FetchPolicy, "allowed_hosts", "media.example", TypeError),
        (FetchPolicy, "allowed_hosts", (1,), TypeError),
        (FetchPolicy, "allowed_hosts", ("http://a/",), errors.InvalidRequestError),
        (FetchPolicy, "allowed_networks", ("10.0.0.1/8",), errors.InvalidRequestError),
        (FetchPolicy, "allowed_networks", ("all",), errors.InvalidRequestError),
        (FetchPolicy, "allowed_ports", (0,), errors.InvalidRequestError),
        (FetchPolicy, "allowed_ports", (65536,), errors.InvalidRequestError),
        (FetchPolicy, "allowed_ports", 80, TypeError),
        (FetchPolicy, "certificate_bundle", "\0", errors.InvalidRequestError),
    ],
)
def test_settings_are_checked(setting: Any, name: str, value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=name if setting is FetchLimits else None):
        setting(**{name: value})


def test_the_page_lists_every_network_that_is_refused() -> None:
    from polymux._native import _core

    page = (ROOT / "docs/explanation/ssrf-protection.md").read_text(encoding="utf-8")
    rows = _core.reserved_networks()
    assert len(rows) > 35
    for network, purpose, source in rows:
        assert f"| `{network}` | {purpose} | {source} |" in page
    limits = page.partition("| limit |")[2].partition("\n\n")[0]
    assert limits.count("\n| `") == len(FetchLimits.__dataclass_fields__)
