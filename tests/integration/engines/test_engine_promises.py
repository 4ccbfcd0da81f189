"""What engines promise beside their answers: progress, ends between steps, shut sockets."""

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
from polymux.runtime.settings import EngineSettings
from polymux.service.model import OperationRequest, ProgressSink, Upload
from polymux.service.store import Store
from support.chat_model import model_path
from support.supervised import TESTS
from support.weights import upscaler, whisper

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from polymux.service.temporary_files import TempFile

    Drafts = Callable[[int], TempFile]

#: No process is ended by force here: what ends early has looked whether it should.
PATIENT = Supervision(threads=1, cancel_timeout_s=200)
CHAPTERS = (
    "The weather is fine today, and the children are playing in the garden.",
    "Tomorrow morning we will travel to London by train, and visit an old museum.",
    "Please bring two bottles of water, some bread and cheese, and a good book.",
    "In the evening there will be music in the park, and everybody is welcome.",
)


def go(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 250))


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """All that processes say of work, also when nobody listens any more."""
    heard: list[Any] = []
    handle = EngineProcess._handle

    def listen(self: EngineProcess, frame: Any) -> None:
        heard.append(frame)
        handle(self, frame)

    monkeypatch.setattr(EngineProcess, "_handle", listen)
    return heard


def steps(frames: list[Any]) -> list[float]:
    return [one.header["progress"] for one in frames if one.kind == "progress"]


async def left_at_the_first_step(
    backend: EngineBackend, work: OperationRequest, frames: list[Any], drafts: Drafts
) -> None:
    """Begins, and leaves when progress is told; the process must end the work by itself."""
    process = await backend._ready()
    frames.clear()
    begun = asyncio.Event()

    class Leaving(ProgressSink):
        def report(self, progress: float) -> None:
            super().report(progress)
            begun.set()

    task = asyncio.create_task(backend.run(work, Leaving(lambda: None, drafts)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one.kind for one in frames if one.kind in ("done", "failed", "cancelled")] == [
        "cancelled"
    ]
    assert backend.process is process
    assert process.busy == 0


async def to_the_end(
    backend: EngineBackend, work: OperationRequest, frames: list[Any], drafts: Drafts
) -> Any:
    frames.clear()
    return await backend.run(work, ProgressSink(lambda: None, drafts))


def picture(path: Path, height: int, width: int, channels: int) -> OperationRequest:
    """A picture to enlarge, as the media engine hands it on."""
    shape = (height, width, channels)
    numpy.random.default_rng(1).integers(0, 255, shape, numpy.uint8).tofile(path)
    facts = {"width": width, "height": height, "channels": channels, "bits": 8}
    pixels = Upload(path, "pixels", "", path.stat().st_size)
    values = {"pictures": [facts], "pixels_0": pixels, "scale": 2}
    return OperationRequest("upscale_image", "B", "", values, frozenset(("scale",)))


def test_every_tile_is_told_of_and_may_be_the_last(tmp_path: Path, frames: list[Any]) -> None:
    async def body() -> None:
        options = {"model": str(upscaler()), "factor": 2, "tile": 32}
        backend = EngineBackend("up", "upscale", ["upscale_image"], options, supervision=PATIENT)
        store = Store(tmp_path / "s", cap_bytes=1 << 26)
        # 6 columns and 8 rows of tiles.
        work = picture(tmp_path / "pixels", 256, 192, 3)
        try:
            await left_at_the_first_step(backend, work, frames, store.media.draft)
            assert 1 <= len(steps(frames)) < 24
            await to_the_end(backend, work, frames, store.media.draft)
            assert steps(frames) == pytest.approx([number / 48 for number in range(1, 49)])
            # Transparency goes through the network a second time.
            await to_the_end(
                backend, picture(tmp_path / "more", 64, 33, 4), frames, store.media.draft
            )
            assert steps(frames) == pytest.approx([number / 8 for number in range(1, 9)])
        finally:
            await backend.close()
            store.close()

    go(body())


def test_every_segment_is_told_of_and_may_be_the_last(
    tmp_path: Path, spoken: Callable[..., Path], frames: list[Any]
) -> None:
    # Longer than Whisper takes at once, which is half a minute.
    talk = spoken(" ".join(CHAPTERS + CHAPTERS[:2]), "-s", "110")

    async def body() -> None:
        options = {"model": str(whisper(tmp_path)), "compute": "int8", "beam": 1}
        backend = EngineBackend("speech", "speech", ["transcribe"], options, supervision=PATIENT)
        store = Store(tmp_path / "s", cap_bytes=1 << 26)
        path = tmp_path / "samples"
        path.write_bytes(polymux.decode_audio(talk).samples.cast("B"))
        given = Upload(path, "samples", "", path.stat().st_size)
        values = {"samples": given, "batch_size": 1, "language": "en", "timestamp": "chunk"}
        work = OperationRequest("transcribe", "", "", values, frozenset(values))
        try:
            await left_at_the_first_step(backend, work, frames, store.media.draft)
            early = steps(frames)
            product = await to_the_end(backend, work, frames, store.media.draft)
            told = steps(frames)
            ends = [one["timestamp"][1] for one in product.output["chunks"]]
            duration_s = product.metrics["audio_seconds"]
            assert duration_s > 35
            assert len(told) == len(ends) > 3
            assert told == sorted(told)
            assert told == pytest.approx([min(1.0, end / duration_s) for end in ends], abs=1e-3)
            assert told[0] < 0.5 < 0.9 < told[-1]
            assert 1 <= len(early) < len(told)
            assert early[-1] < 0.9
        finally:
            await backend.close()
            store.close()

    go(body())


#: A package that notes what it is asked for.
NOTING = """
from pathlib import Path

HERE = Path(__file__).parent
(HERE / "imported").touch()


def __getattr__(name):
    if not name.startswith("__"):
        with (HERE / "asked").open("a") as notes:
            notes.write(name + " ")
    raise AttributeError(name)
"""


def test_samples_come_from_the_core_and_not_from_pyav(
    tmp_path: Path, spoken: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library of the model imports PyAV, and nothing asks it for anything."""
    package = tmp_path / "packages" / "av"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(NOTING)
    monkeypatch.setenv("PYTHONPATH", f"{package.parent}{os.pathsep}{TESTS}")
    options = {"model": str(whisper(tmp_path)), "compute": "int8", "beam": 1}
    engines = {"speech": EngineSettings("speech", options, threads=1)}
    with polymux.Local(engines=engines) as local:
        mp3 = local.convert_to_mp3(spoken(CHAPTERS[0])).read()
        assert "children are playing" in local.transcribe(("spoken.mp3", mp3)).text
    assert (package / "imported").exists()
    assert not (package / "asked").exists(), (package / "asked").read_text()


#: Looks at the socket while it is open, and asks it without the key; then for any that listens.
LOOKING = """
import contextlib, json, os, socket, sys, time

import xllamacpp
from polymux.engines.chat.engine import ChatEngine

made, told = xllamacpp.Server, {}


def connected():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(told["names"][0])
    return connection


def listening():
    found = 0
    for one in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(one))) as opened:
            found += opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return found


def server(parameters):
    found = made(parameters)
    told["open"] = listening()
    told["names"] = list(parameters.hostnames)
    told["left"] = os.listdir(os.environ["TMPDIR"])
    with connected() as connection:
        body = b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}'
        head = f"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: {len(body)}"
        connection.sendall(head.encode() + b"\\r\\nConnection: close\\r\\n\\r\\n" + body)
        told["answer"] = connection.recv(100).decode("latin-1").split()[1]
    return found


xllamacpp.Server = server
ChatEngine().load({"model": sys.argv[1], "context": 256})
try:
    connected()
except ConnectionRefusedError:
    told["shut"] = True
until = time.monotonic() + 20
while listening() and time.monotonic() < until:
    time.sleep(0.05)
told["listening"] = listening()
sys.__stdout__.write(json.dumps(told))
sys.__stdout__.flush()
os._exit(0)
"""


def test_the_socket_of_a_chat_s_library_is_no_file_and_is_shut_at_once(tmp_path: Path) -> None:
    """A load that is killed leaves nothing behind, and who comes in time would need a key."""
    command = [sys.executable, "-c", LOOKING, str(model_path())]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120, env=environment
    )
    told = json.loads(said.stdout.strip().splitlines()[-1])
    (name,) = told.pop("names")
    assert name.startswith("\0polymux-chat-")
    assert told.pop("open") > 0
    assert told == {"left": [], "answer": "401", "shut": True, "listening": 0}
