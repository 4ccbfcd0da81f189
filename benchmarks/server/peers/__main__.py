"""`peers NAME FOLDER OPTIONS`: an application on uvicorn; prints its port and its API key.

OPTIONS is the JSON of `benchmarks.server.ours`. uvicorn supports ``uvloop``, the ``limits`` of idle
and of concurrent connections, ``shutdown_timeout_s`` and ``count``. With ``keys`` the application
requires the key, otherwise it only answers.
"""

from __future__ import annotations

import importlib
import json
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

BACKLOG = 2048
KEY = "pmx_" + "1" * 43
#: uvicorn's default, in seconds.
_KEEP_ALIVE_S = 5
#: uvicorn's default is to wait without limit for running requests.
_GRACE_S = 1


def settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as uvicorn's settings."""
    limits = options.get("limits", {})
    queue = limits.get("queue")
    return {
        "loop": "uvloop" if options.get("uvloop") else "asyncio",
        "timeout_keep_alive": int(limits.get("keep_alive_s", _KEEP_ALIVE_S)),
        "timeout_graceful_shutdown": int(options.get("shutdown_timeout_s", _GRACE_S)),
        # uvicorn counts connections, including that of the request itself.
        "limit_concurrency": None if queue is None else options["max_concurrency"] + queue + 1,
    }


def main() -> None:
    """Serve with httptools and asyncio's event loop, or uvloop, without a log."""
    name, folder, given = sys.argv[1:]
    options: dict[str, Any] = json.loads(given)
    key = KEY if options.get("keys") else None
    if options.get("count"):
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

        from benchmarks.server.counting import count_bytes

        count_bytes(HttpToolsProtocol, Path(folder) / "counted")
    # asyncio sets TCP_NODELAY only on sockets whose protocol is IPPROTO_TCP. Without it small
    # pieces are delayed.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    application = importlib.import_module(f"benchmarks.server.peers.{name}").application(key)
    config = uvicorn.Config(
        application,
        http="httptools",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        **settings(options),
    )
    print(json.dumps({"port": listener.getsockname()[1], "key": key or "none"}), flush=True)
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
