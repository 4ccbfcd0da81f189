"""waiting CALL URL: waits until Ctrl-C, and prints the time of the clock when it had ended."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: What waits, and the path that its server answers a chat on.
CALLS: dict[str, tuple[Callable[[Any], object], str]] = {
    "a call": (lambda client: client.chat("x"), "/silent"),
    "a stream before its head": (lambda client: client.chat("x", stream=True), "/silent"),
    "a stream between two chunks": (
        lambda client: list(client.chat("x", stream=True)),
        "/stream?tokens=100&rate=1",
    ),
    "an upload": (lambda client: client.read_text(("a.png", bytes(64 << 20))), "/silent"),
    "connecting": (lambda client: client.chat("x"), "/silent"),
}


def main() -> None:
    """Says that it waits, and when it does no more."""
    name, url = sys.argv[1:]
    if name == "time.sleep":
        wait: Callable[[], object] = lambda: time.sleep(60)  # noqa: E731 - as the others
    else:
        import polymux

        call, path = CALLS[name]
        client = polymux.Client(url, "floor-token", chat_model="m", retry=0, timeout=60)
        at = client.with_options(paths={"chat": path})
        wait = lambda: call(at)  # noqa: E731
    print("waits", flush=True)
    try:
        wait()
    except KeyboardInterrupt:
        ended_ns = time.monotonic_ns()
        print(json.dumps({"ended_ns": ended_ns}), flush=True)


if __name__ == "__main__":
    main()
