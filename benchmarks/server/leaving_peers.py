"""Clients that disconnect from other servers: how soon the server stops working for them, if it
does.

FastAPI and the raw ASGI application have no queue. llama.cpp's server does not report how many
requests are running.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from benchmarks.server.conversation import HOLD, body, request
from benchmarks.server.models import LLAMA, LLAMA_CHAT, conversations, llama, long_prompt
from benchmarks.server.processes import cpu_s
from benchmarks.server.sides import expect, load, running
from benchmarks.server.wire import asked, connect, leave, places, read_until, until, within

if TYPE_CHECKING:
    from benchmarks.server.sides import Running

GIVE_UP_S = 2.0
INTO_WORK_S = 0.3
#: More tokens than llama.cpp's server generates before all clients have disconnected.
_TOKENS = 1_500
_LOOK_S, _QUIET_S = 0.01, 0.3
#: Rounds for llama.cpp's server. They are few because each takes a second.
_LLAMA_TIMES = 3


def _over(server: Running) -> float | None:
    """Return the seconds until the application reports no running requests."""
    return within(lambda: places(server, "noop")[0] == 0, GIVE_UP_S)


def _quiet(server: Running) -> float | None:
    """Return the seconds until the server uses no CPU time.

    Requests would delay llama.cpp's check for disconnects.
    """
    began = last = time.monotonic()
    spent_s = cpu_s(server.pid)
    while last - began < GIVE_UP_S:
        time.sleep(_LOOK_S)
        now, now_s = time.monotonic(), cpu_s(server.pid)
        if now_s > spent_s:
            last, spent_s = now, now_s
        elif now - last > _QUIET_S:
            return last - began
    return None


def _figures(server: Running, taken: dict[str, list[float | None]]) -> dict[str, Any]:
    everything = [one for found in taken.values() for one in found]
    longest = {
        f"{name}_max_s": max(one for one in found if one is not None)
        for name, found in taken.items()
        if None not in found
    }
    kept = everything.count(None)
    return {"count": len(everything), "cpu_s": cpu_s(server.pid), "kept": kept, **longest}


def leaving(side: str, count: int) -> dict[str, Any]:
    """Disconnect during a stream and before a complete answer.

    A place that stays occupied ends the series.
    """
    if side == LLAMA:
        return _leaving_llama(min(count, _LLAMA_TIMES))
    with running(side, max_concurrency=1) as server:
        taken: dict[str, list[float | None]] = {"streaming": [], "whole": []}
        for name, found in taken.items():
            while len(found) < count and None not in found:
                connection = asked(server, body(HOLD, stream=name == "streaming"))
                if name == "streaming":
                    read_until(connection, b"data: ")
                until(lambda: places(server, "noop")[0] == 1)
                leave(connection)
                found.append(_over(server))
        return _figures(server, taken)


def _left_llama(server: Running, value: dict[str, Any], *, begun: bool) -> float | None:
    connection = connect(server)
    connection.sendall(request(server.key, value, path=LLAMA_CHAT))
    if begun:
        read_until(connection, b"data: ")
    time.sleep(INTO_WORK_S)
    leave(connection)
    return _quiet(server)


def _leaving_llama(count: int) -> dict[str, Any]:
    value = conversations(_TOKENS)[0]
    with llama() as server:
        streaming = [_left_llama(server, value, begun=True) for _ in range(count)]
        whole = [_left_llama(server, {**value, "stream": False}, begun=False) for _ in range(count)]
        return _figures(server, {"streaming": streaming, "whole": whole})


def in_prefill(count: int) -> dict[str, Any]:
    """Disconnect while llama.cpp's server processes a long prompt."""
    with llama() as server:
        hello = body("Hello", max_completion_tokens=2)
        expect(load(server, "closed", 1, 1, request("none", hello, path=LLAMA_CHAT)), 200, 1)
        taken = []
        for number in range(count):
            value = body(long_prompt(number), stream=True, max_completion_tokens=8)
            taken.append(_left_llama(server, value, begun=False))
        return _figures(server, {"prefill": taken})
