"""`waiting CALL URL`: wait until Ctrl-C, then print the clock time."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

FLOOR = "time.sleep"
NAME_SERVER = ("127.0.0.53", 53)
FETCH, NAME, FETCHED_NAME = "a fetch", "looking up a name", "a fetch, looking up a name"
#: These query a name server that never answers, in a separate network namespace.
NAMES = (NAME, FETCHED_NAME)
BETWEEN_TRIES, JOB = "between two tries", "a job between two looks"
#: Each waiting call, and the path of its server's chat endpoint.
CALLS: dict[str, tuple[Callable[[Any], object], str]] = {
    "a call": (lambda client: client.chat("x"), "/silent"),
    "a stream before its head": (lambda client: client.chat("x", stream=True), "/silent"),
    "a stream between two chunks": (
        lambda client: list(client.chat("x", stream=True)),
        "/stream?tokens=100&rate=1",
    ),
    "an upload": (lambda client: client.read_text(("a.png", bytes(64 << 20))), "/silent"),
    "connecting": (lambda client: client.chat("x"), "/silent"),
    NAME: (lambda client: client.chat("x"), "/silent"),
    BETWEEN_TRIES: (lambda client: client.with_options(retry=3).chat("x"), "/busy"),
    JOB: (lambda client: client.predictions.wait("a1"), "/silent"),
}


def waiting(name: str, url: str) -> Callable[[], object]:
    """Return a function that waits until it is interrupted."""
    if name == FLOOR:
        return lambda: time.sleep(60)
    if name in (FETCH, FETCHED_NAME):
        from polymux.fetch.fetcher import FetchPolicy, fetch

        policy = FetchPolicy(allowed_hosts=(urlsplit(url).netloc,))
        return lambda: fetch(url, policy=policy)
    import polymux

    call, path = CALLS[name]
    client = polymux.Client(url, "floor-token", chat_model="m", retry=0, timeout=60)
    at = client.with_options(paths={"chat": path})
    return lambda: call(at)


def main() -> None:
    wait = waiting(*sys.argv[1:])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as names:
        if sys.argv[1] in NAMES:
            names.bind(NAME_SERVER)  # See `benchmarks.interrupts.measure`.
        print("waits", flush=True)
        interrupted(wait)


def interrupted(wait: Callable[[], object]) -> None:
    """Wait, and print the time of the interrupt."""
    try:
        wait()
    except KeyboardInterrupt:
        ended_ns = time.monotonic_ns()
        print(json.dumps({"ended_ns": ended_ns}), flush=True)
        if sys.argv[1] in NAMES:
            os._exit(0)  # A normal exit would wait for the thread that resolves the name.


if __name__ == "__main__":
    main()
