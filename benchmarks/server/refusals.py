"""Rejected requests: large bodies with wrong keys, floods of these, and full queues."""

from __future__ import annotations

import itertools
import select
import time
from typing import TYPE_CHECKING, Any

from benchmarks.server.conversation import CONVERT, HOLD, body, form_parts, head, request
from benchmarks.server.overhead import WARM_UP
from benchmarks.server.processes import cpu_s, reset_peak, rss_bytes
from benchmarks.server.sides import expect, load, loading, result, running
from benchmarks.server.wire import asked, connect, lines_of, read_until, until

if TYPE_CHECKING:
    from benchmarks.server.sides import Running

FILE_BYTES = 100_000_000
WRONG = "pmx_" + "0" * 43
_PIECE = bytes(1 << 16)
_FLOODS, _GOOD_RATE = 8, 50


def _push(server: Running) -> tuple[float, bytes]:
    """Send a form with a large file until an answer arrives; returns the seconds and the answer."""
    before, behind, kind = form_parts("a.wav")
    length = len(before) + FILE_BYTES + len(behind)
    with connect(server) as connection:
        began = time.monotonic()
        connection.sendall(head(WRONG, length, path=CONVERT, kind=kind) + before)
        connection.settimeout(0)
        left = FILE_BYTES
        while left:
            readable, writable, _ = select.select([connection], [connection], [], 10)
            if readable:
                break
            if writable:
                left -= connection.send(_PIECE[:left])
        connection.settimeout(30)
        if not left:
            connection.sendall(behind)
        answer = read_until(connection, b"}")
        return time.monotonic() - began, answer


def large_bodies(side: str, count: int) -> dict[str, Any]:
    """Measure how soon each is rejected, and how much the server reads before and after that.

    Raises:
        SystemExit: A request was not rejected.
    """
    with running(side, count=True, keys=True) as server:
        load(server, "closed", WARM_UP, 1, request(server.key, body()))
        reset_peak(server.pid)
        before = rss_bytes(server.pid)
        taken = []
        for _ in range(count):
            seconds, answer = _push(server)
            if not answer.startswith(b"HTTP/1.1 401 "):
                raise SystemExit(f"request was not rejected: {answer[:100]!r}")
            taken.append(seconds)
        read = server.folder / "counted"
        until(lambda: len(lines_of(read)) >= count + 1)
        pairs = lines_of(read)[-count:]
        return {
            "count": count,
            "cpu_s": cpu_s(server.pid),
            "answered_max_s": max(taken),
            "read_bytes": max(one for one, _ in pairs),
            "dropped_bytes": max(one for _, one in pairs),
            "rss_bytes": max(0, rss_bytes(server.pid, "VmHWM") - before),
        }


def flood(side: str, count: int) -> dict[str, Any]:
    """Flood the server with wrong keys, and meanwhile send requests with a valid key."""
    with running(side, keys=True) as server:
        good = request(server.key, body())
        expect(load(server, "closed", WARM_UP, 8, good), 200, WARM_UP)
        alone = load(server, "paced", 2 * _GOOD_RATE, 8, _GOOD_RATE, good)
        before_s = cpu_s(server.pid)
        with loading(server, "closed", count, _FLOODS, request(WRONG, body())) as process:
            meanwhile = []
            while process.poll() is None:
                found = load(server, "paced", _GOOD_RATE, 8, _GOOD_RATE, good)
                expect(found, 200, _GOOD_RATE)
                meanwhile.append(found)
            refused = result(process)
        expect(refused, 401, count)
        return {
            "count": count,
            "cpu_s": cpu_s(server.pid) - before_s,
            "wall_s": refused["wall_s"],
            "refused_p50_s": refused["latency_p50_s"],
            "refused_p99_s": refused["latency_p99_s"],
            "alone_p50_s": alone["latency_p50_s"],
            "good_p50_s": max(one["latency_p50_s"] for one in meanwhile),
            "good_max_s": max(one["latency_max_s"] for one in meanwhile),
        }


def queue_full(side: str, count: int) -> dict[str, Any]:
    """One request runs, one waits, and the others are rejected; uvicorn runs both of the first
    two."""
    with running(side, max_concurrency=1, limits={"queue": 1}) as server:
        load(server, "closed", WARM_UP, 1, request(server.key, body()))
        held = body(HOLD, stream=True)
        with asked(server, held) as at_work, asked(server, held):
            read_until(at_work, b"data: ")
            # The third request is rejected only after the second has arrived, so retry until then.
            tries = itertools.count(1)
            until(lambda: next(tries) > 1 and _is_full(server))
            found = load(server, "closed", count, 1, request(server.key, body()))
            expect(found, 503, count)
        return {**found, "cpu_s": cpu_s(server.pid)}


def _is_full(server: Running) -> bool:
    with connect(server) as connection:
        connection.sendall(request(server.key, body()))
        connection.settimeout(0.5)
        try:
            return read_until(connection, b"\r\n").startswith(b"HTTP/1.1 503")
        except TimeoutError:
            return False
