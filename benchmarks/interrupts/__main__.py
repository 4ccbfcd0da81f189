"""`scripts/bench interrupts`: time from Ctrl-C to the end of a call."""

from __future__ import annotations

import json
import socket
import sys
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from benchmarks.contest import Case, Variant, arguments, compete
from benchmarks.floors.programs import floor_server
from benchmarks.interrupts.waiting import (
    BETWEEN_TRIES,
    CALLS,
    FETCH,
    FETCHED_NAME,
    FLOOR,
    JOB,
    NAMES,
)
from benchmarks.verdicts import Figure, Goal, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

MEDIAN = Figure("p50, ms", plain("median_s", 1e3), 2)
WORST = Figure("worst of the round, ms", plain("worst_s", 1e3), 2)
COUNT, QUICK_COUNT = 10, 1
MAX_MS = 20
_ALL = (*CALLS, FETCH, FETCHED_NAME)


class _Busy(BaseHTTPRequestHandler):
    """A server that answers chats with "retry much later", and has a job that never ends."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(503, {"error": "busy"}, ("Retry-After", "30"))

    def do_GET(self) -> None:
        self._answer(200, {"id": "a1", "status": "processing"})

    def _answer(self, status: int, value: object, *fields: tuple[str, str]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        length = ("Content-Length", str(len(data)))
        for name, text in (("Content-Type", "application/json"), length, *fields):
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def busy() -> Iterator[str]:
    """Run a server that answers every chat with "retry later"; yields its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def listener(*, backlog: int) -> Iterator[tuple[str, int]]:
    """Open a listening socket that never accepts a connection."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(backlog)
        yield listening.getsockname()


@contextmanager
def silent() -> Iterator[str]:
    """Run a server that accepts connections but reads and sends nothing; yields its URL."""
    with listener(backlog=1_000) as (host, port):
        yield f"http://{host}:{port}"


@contextmanager
def full() -> Iterator[str]:
    """Run a server whose queue of connections is full; yields its URL."""
    with listener(backlog=0) as (host, port), ExitStack() as stack:
        for _ in range(4):
            one = stack.enter_context(socket.socket())
            one.settimeout(0)
            one.connect_ex((host, port))
        yield f"http://{host}:{port}"


def main() -> None:
    options = arguments("interrupts", __doc__)
    count = QUICK_COUNT if options.quick else COUNT
    with floor_server() as streams, silent() as nothing, full() as nobody, busy() as later:
        urls = {
            "a stream between two chunks": streams.url,
            "connecting": nobody,
            **dict.fromkeys(NAMES, "http://slow.example"),
            BETWEEN_TRIES: later,
            JOB: later,
        }

        def contender(name: str) -> Variant:
            url = urls.get(name, nothing)
            command = (sys.executable, "-m", "benchmarks.interrupts.measure", name, url, str(count))
            return Variant(name, command, ours=True)

        names = [*_ALL, FLOOR]
        case = Case(
            "Ctrl-C in what waits",
            tuple(contender(name) for name in names),
            (WORST, MEDIAN),
            tuple(
                Goal(f"{name}, worst, ms", MAX_MS, figure=WORST, at_most=True, ours=name)
                for name in _ALL
            ),
            reference=FLOOR,
            who="what waits",
        )
        compete("interrupts", [case], options, {})


if __name__ == "__main__":
    main()
