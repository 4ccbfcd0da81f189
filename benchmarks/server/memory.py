"""Memory over many requests: valid and invalid ones, streams, uploads, jobs, and disconnects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.server.conversation import (
    CHAT,
    HOLD,
    body,
    head,
    request,
    streamed,
    upload,
)
from benchmarks.server.processes import cpu_s, rss_bytes
from benchmarks.server.refusals import WRONG
from benchmarks.server.sides import load, running
from benchmarks.server.wire import asked, read_until

if TYPE_CHECKING:
    from benchmarks.server.sides import Running

CONNECTIONS = 16
LOOKS = 10
_LEAVERS = 10
_UPLOAD_BYTES = 100_000


def mixture(server: Running) -> list[bytes]:
    """Return the mix of requests.

    Peers have no jobs to list; the raw application does not check values.
    """
    key = server.key
    bad_json = b'{"model": "default", "messages": ['
    return [
        request(key, body()),
        request(key, streamed(5, 1_000)),
        request(key, body("The quick brown fox. " * 400)),
        request(WRONG, body()),
        head(key, len(bad_json)) + bad_json,
        request(key, body(temperature=9)),
        upload(key, bytes(_UPLOAD_BYTES)),
        head(key, 0, path="/api/v1/predictions", method="GET"),
        head(key, 0, path="/nothing/here", method="GET"),
        head(key, 0, path=CHAT, method="GET"),
        head(key, 0, path="/metrics", method="GET"),
    ]


def mixed(side: str, count: int) -> dict[str, Any]:
    """Sample the memory ten times; the value after the first tenth is the baseline."""
    rss = []
    with running(side, keys=True) as server:
        kinds = mixture(server)
        part = count // LOOKS - _LEAVERS
        for _ in range(LOOKS):
            found = load(server, "closed", part, CONNECTIONS, *kinds)
            if found["cut"]:
                raise SystemExit(f"{found['cut']} requests were not answered")
            for _ in range(_LEAVERS):
                with asked(server, body(HOLD, stream=True)) as leaver:
                    read_until(leaver, b"data: ")
            rss.append(rss_bytes(server.pid))
        return {
            "count": LOOKS * (part + _LEAVERS),
            "cpu_s": cpu_s(server.pid),
            "first_bytes": rss[0],
            "last_bytes": rss[-1],
            "growth": max(rss[1:]) / rss[0],
            "rss": rss,
        }
