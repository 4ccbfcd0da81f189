"""Engines' progress reports, cancellation between steps, and closed sockets."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from polymux.engines.process.process import EngineProcess
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.service.model import OperationRequest, ProgressSink, Upload
from polymux.service.store import Store
from support.chat_model import model_path
from support.weights import upscaler, whisper

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

#: With this timeout no process is killed: work that ends early has checked its cancellation.
PATIENT = Supervision(threads=1, cancel_timeout_s=200)
CHAPTERS = (
    "The weather is fine today, and the children are playing in the garden.",
    "Tomorrow morning we will travel to London by train, and visit an old museum.",
    "Please bring two bottles of water, some bread and cheese, and a good book.",
    "In the evening there will be music in the park, and everybody is welcome.",
)


class Heard:
    """An engine and all messages of its process, including those after the request has ended."""

    def __init__(self, backend: EngineBackend, store: Store, frames: list[Any]) -> None:
        self.backend, self._draft, self._frames = backend, store.media.draft, frames

    @property
    def steps(self) -> list[float]:
        return [one.header["progress"] for one in self._frames if one.kind == "progress"]

    async def leave_at_the_first_step(self, work: OperationRequest) -> None:
        """Cancel at the first progress report. The process must end the work itself."""
        self._frames.clear()
        begun = asyncio.Event()

        class Leaving(ProgressSink):
            def report(self, progress: float) -> None:
                super().report(progress)
                begun.set()

        task = asyncio.create_task(self.backend.run(work, Leaving(lambda: None, self._draft)))
        await begun.wait()
        process = self.backend.process
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ends = [one.kind for one in self._frames if one.kind in ("done", "failed", "cancelled")]
        assert ends == ["cancelled"]
        assert process is not None
        assert self.backend.process is process
        assert process.busy == 0

    async def end(self, work: OperationRequest) -> Any:
        self._frames.clear()
        return await self.backend.run(work, ProgressSink(lambda: None, self._draft))


@pytest.fixture
def heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str, Any, Callable[[Heard], Coroutine[Any, Any, None]]], None]:
    """Run a test with an engine of the given family, operation and options."""
    frames: list[Any] = []
    handle = EngineProcess._handle

    def listen(self: EngineProcess, frame: Any) -> None:
        frames.append(frame)
        handle(self, frame)

    monkeypatch.setattr(EngineProcess, "_handle", listen)

    def run(family: str, operation: str, options: Any, body: Any) -> None:
        async def whole() -> None:
            backend = EngineBackend(family, family, [operation], options, supervision=PATIENT)
            store = Store(tmp_path / "s", max_bytes=1 << 26)
            try:
                await body(Heard(backend, store, frames))
            finally:
                await backend.close()
                store.close()

        asyncio.run(asyncio.wait_for(whole(), 250))

    return run


def picture(path: Path, height: int, width: int, channels: int, scale: int = 2) -> OperationRequest:
    """An image for the upscaler, in the form in which the media engine passes it on."""
    shape = (height, width, channels)
    numpy.random.default_rng(1).integers(0, 255, shape, numpy.uint8).tofile(path)
    facts = {"width": width, "height": height, "channels": channels, "bits": 8}
    pixels = Upload(path, "pixels", "", path.stat().st_size)
    values = {"pictures": [facts], "pixels_0": pixels, "scale": scale}
    return OperationRequest("upscale_image", "B", "", values, frozenset(("scale",)))


def test_every_tile_is_reported_and_may_be_the_last(tmp_path: Path, heard: Any) -> None:
    async def body(engine: Heard) -> None:
        # 6 columns and 8 rows of tiles.
        work = picture(tmp_path / "pixels", 256, 192, 3)
        await engine.leave_at_the_first_step(work)
        assert 1 <= len(engine.steps) < 24
        await engine.end(work)
        assert engine.steps == pytest.approx([number / 48 for number in range(1, 49)])
        # The network processes the alpha channel separately.
        await engine.end(picture(tmp_path / "more", 64, 33, 4))
        assert engine.steps == pytest.approx([number / 8 for number in range(1, 9)])
        # 4 tiles in the first pass, and 16 in the second.
        again = picture(tmp_path / "again", 64, 64, 3, scale=4)
        await engine.leave_at_the_first_step(again)
        await engine.end(again)
        assert engine.steps == pytest.approx([number / 20 for number in range(1, 21)])

    heard("upscale", "upscale_image", {"model": str(upscaler()), "factor": 2, "tile": 32}, body)


def test_every_segment_is_reported_and_may_be_the_last(
    tmp_path: Path, spoken: Callable[..., Path], heard: Any
) -> None:
    # Longer than Whisper's window of half a minute.
    talk = spoken(" ".join(CHAPTERS + CHAPTERS[:2]), "-s", "110")
    path = tmp_path / "samples"
    path.write_bytes(polymux.decode_audio(talk).samples.cast("B"))
    given = Upload(path, "samples", "", path.stat().st_size)
    values = {"samples": given, "batch_size": 1, "language": "en", "timestamp": "chunk"}
    work = OperationRequest("transcribe", "", "", values, frozenset(values))

    async def body(engine: Heard) -> None:
        await engine.leave_at_the_first_step(work)
        early = engine.steps
        product = await engine.end(work)
        ends = [one["timestamp"][1] for one in product.output["chunks"]]
        duration_s = product.metrics["audio_seconds"]
        assert duration_s > 32
        assert len(engine.steps) == len(ends) > 3
        assert engine.steps == sorted(engine.steps)
        shares = [min(1.0, end / duration_s) for end in ends]
        assert engine.steps == pytest.approx(shares, abs=1e-3)
        assert engine.steps[0] < 0.5 < 0.9 < engine.steps[-1]
        assert 1 <= len(early) < len(engine.steps)
        assert early[-1] < 0.9

    options = {"model": str(whisper(tmp_path)), "compute": "int8", "beam": 1}
    heard("speech", "transcribe", options, body)


#: Checks that the socket rejects requests without the key, then looks for listening sockets.
LOOKING = """
import contextlib, json, os, socket, sys, time

import xllamacpp
from polymux.engines.chat.engine import ChatEngine

made, report = xllamacpp.Server, {}


def connected():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(report["names"][0])
    return connection


def listening():
    found = 0
    for one in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(one))) as opened:
            found += opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return found


def server(parameters):
    found = made(parameters)
    report["open"] = listening()
    report["names"] = list(parameters.hostnames)
    report["left"] = os.listdir(os.environ["TMPDIR"])
    with connected() as connection:
        body = b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}'
        head = f"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: {len(body)}"
        connection.sendall(head.encode() + b"\\r\\nConnection: close\\r\\n\\r\\n" + body)
        report["answer"] = connection.recv(100).decode("latin-1").split()[1]
    return found


xllamacpp.Server = server
ChatEngine().load({"model": sys.argv[1], "context": 256})
try:
    connected()
except ConnectionRefusedError:
    report["shut"] = True
until = time.monotonic() + 20
while listening() and time.monotonic() < until:
    time.sleep(0.05)
report["listening"] = listening()
sys.__stdout__.write(json.dumps(report))
sys.__stdout__.flush()
os._exit(0)
"""


def test_the_socket_of_a_chat_s_library_is_no_file_and_is_shut_at_once(tmp_path: Path) -> None:
    """A killed load leaves no socket file. Connecting in time would still need a key."""
    command = [sys.executable, "-c", LOOKING, str(model_path())]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    completed = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120, env=environment
    )
    report = json.loads(completed.stdout.strip().splitlines()[-1])
    (name,) = report.pop("names")
    assert name.startswith("\0polymux-chat-")
    assert report.pop("open") > 0
    assert report == {"left": [], "answer": "401", "shut": True, "listening": 0}
