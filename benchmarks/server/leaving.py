"""Clients that disconnect: how soon their place is free for another client."""

from __future__ import annotations

import io
import json
import random
import statistics
import time
import wave
from typing import TYPE_CHECKING, Any

from benchmarks.server import leaving_peers
from benchmarks.server.conversation import DEAF, HOLD, body, request, upload
from benchmarks.server.leaving_peers import INTO_WORK_S
from benchmarks.server.models import LLAMA, chat_settings, long_prompt
from benchmarks.server.processes import cpu_s
from benchmarks.server.program import serving
from benchmarks.server.sides import OURS, expect, load, running
from benchmarks.server.wire import asked, connect, get, leave, places, read_until, until

if TYPE_CHECKING:
    from benchmarks.server.sides import Running

ENGINE = "noop"
_INTO_LOAD_S = 0.1
_RATE_HZ, _MINUTES = 44_100, 10


def _queued(server: Running) -> float:
    with asked(server, body(HOLD, stream=True)) as at_work:
        read_until(at_work, b"data: ")
        waiting = asked(server, body())
        until(lambda: places(server, ENGINE) == (1, 1))
        leave(waiting)
        taken = until(lambda: places(server, ENGINE) == (1, 0))
    until(lambda: places(server, ENGINE) == (0, 0))
    return taken


def _at_work(server: Running, *, streamed: bool) -> float:
    connection = asked(server, body(HOLD, stream=streamed))
    if streamed:
        read_until(connection, b"data: ")
    until(lambda: places(server, ENGINE) == (1, 0))
    leave(connection)
    return until(lambda: places(server, ENGINE) == (0, 0))


def _deaf(server: Running) -> float:
    """Measure a request to an engine that ignores cancellation.

    The server ends the engine's process.
    """
    connection = asked(server, body(f"{DEAF} 60"))
    until(lambda: places(server, ENGINE) == (1, 0))
    leave(connection)
    return until(lambda: places(server, ENGINE) == (0, 0))


def leaving(side: str, count: int) -> dict[str, Any]:
    """Measure each kind `count` times in sequence, with one engine and one place."""
    if side != OURS:
        return leaving_peers.leaving(side, count)
    with running(side, max_concurrency=1, limits={"queue": 4}) as server:
        queued = [_queued(server) for _ in range(count)]
        streaming = [_at_work(server, streamed=True) for _ in range(count)]
        whole = [_at_work(server, streamed=False) for _ in range(count)]
        deaf = _deaf(server)
        return {
            "count": 3 * count + 1,
            "cpu_s": cpu_s(server.pid),
            "queued_max_s": max(queued),
            "streaming_max_s": max(streaming),
            "whole_max_s": max(whole),
            "median_s": statistics.median([*queued, *streaming, *whole]),
            "deaf_s": deaf,
            "kept": 0,
        }


def _in_prefill(server: Running, number: int) -> float:
    """Disconnect while the model processes a long prompt that is not cached."""
    connection = asked(server, body(long_prompt(number), stream=True, max_completion_tokens=8))
    until(lambda: places(server, "chat") == (1, 0))
    time.sleep(INTO_WORK_S)
    leave(connection)
    return until(lambda: places(server, "chat") == (0, 0))


def _state(server: Running, name: str) -> str:
    return str(json.loads(get(server, "/readyz"))["backends"][name]["state"])


def _in_load() -> float:
    """Disconnect while the first request of all loads the weights.

    Raises:
        SystemExit: The weights were loaded before the client disconnected.
    """
    with serving(chat_settings()) as (server, _):
        connection = asked(server, body("Hello", stream=True, max_completion_tokens=2))
        until(lambda: places(server, "chat") == (1, 0))
        time.sleep(_INTO_LOAD_S)
        state = _state(server, "chat")
        if state != "loading":
            raise SystemExit(f"the engine is {state} when it should be loading")
        leave(connection)
        return until(lambda: places(server, "chat") == (0, 0))


def _in_upload(server: Running, sent: bytes) -> float:
    """Disconnect in the middle of an upload, and wait until its partial file is deleted."""
    drafts = server.folder / "store" / "drafts"
    with connect(server) as connection:
        connection.sendall(sent[: len(sent) // 2])
        until(lambda: any(one.stat().st_size for one in drafts.iterdir()))
        time.sleep(INTO_WORK_S)
    return until(lambda: not any(drafts.iterdir()))


def _in_conversion(server: Running, sent: bytes) -> float:
    with connect(server) as connection:
        connection.sendall(sent)
        until(lambda: places(server, "media") == (1, 0))
        time.sleep(INTO_WORK_S)
    return until(lambda: places(server, "media") == (0, 0))


def recording() -> bytes:
    """Return a long recording that is not silent."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, _RATE_HZ, 0, "NONE", ""))
        file.writeframes(random.Random(1).randbytes(2 * _RATE_HZ) * (60 * _MINUTES))
    return buffer.getvalue()


def leaving_engines(side: str, count: int) -> dict[str, Any]:
    """Measure the same with real engines: during load, upload, prompt processing and conversion."""
    if side == LLAMA:
        return leaving_peers.in_prefill(count)
    in_load = [_in_load() for _ in range(count)]
    with serving(f"[engines.media]\nthreads = 1\n{chat_settings()}") as (server, _):
        hello = request(server.key, body("Hello", max_completion_tokens=2))
        expect(load(server, "closed", 1, 1, hello), 200, 1)
        prefill = []
        for number in range(count):
            prefill.append(_in_prefill(server, number))
            # If the engine ignored the cancellation, its process was ended. The model is loaded
            # again.
            expect(load(server, "closed", 1, 1, hello), 200, 1)
        sent = upload(server.key, recording())
        in_upload = [_in_upload(server, sent) for _ in range(count)]
        conversion = [_in_conversion(server, sent) for _ in range(count)]
        return {
            "count": 4 * count,
            "cpu_s": cpu_s(server.pid),
            "load_max_s": max(in_load),
            "upload_max_s": max(in_upload),
            "prefill_max_s": max(prefill),
            "conversion_max_s": max(conversion),
        }
