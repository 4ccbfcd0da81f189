"""Concurrent forms with a file: how fast they are written to disk, and the memory this needs."""

from __future__ import annotations

from typing import Any

from benchmarks.server.conversation import upload
from benchmarks.server.processes import reset_peak, rss_bytes
from benchmarks.server.sides import expect, load, running


def uploads(side: str, count: int, mebibytes: int) -> dict[str, Any]:
    """Upload all at once and measure from the first byte to the last answer."""
    with running(side, max_concurrency=count) as server:
        small = upload(server.key, bytes(1024))
        expect(load(server, "closed", 2 * count, count, small), 200, 2 * count)
        data = bytes(range(256)) * (mebibytes << 12)
        path = server.folder / "upload"
        path.write_bytes(upload(server.key, data))
        reset_peak(server.pid)
        before = rss_bytes(server.pid)
        found = load(server, "closed", count, count, path)
        expect(found, 200, count)
        found["rss_bytes"] = max(0, rss_bytes(server.pid, "VmHWM") - before)
        found["bytes"] = count * len(data)
    return found
