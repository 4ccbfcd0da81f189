"""A real server in a separate process, with real engines if packages have their models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polymux
from PIL import Image, ImageDraw
from polymux.server.auth.api_keys import KeyFile
from support import generated_songs, programs, weights
from support.chat_model import model_path
from support.commands import environment
from support.supervised_engine import TESTS

from browser.stub_engine import FAMILY, OPERATIONS

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

_READY_WITHIN_S = 180
_CHANGES_WITHIN_S = 60
SPOKEN = (
    "Please bring the report to the meeting. After lunch we will talk about the budget for next "
    "year, and finish at four in the afternoon."
)


class Server:
    """Runs ``polymux serve`` with every operation. The end of the context stops it.

    A second context starts it again, at the same URL.

    Args:
        folder: The folder for all its files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port = 0
        self.samples = Samples(folder / "samples")
        keys = KeyFile(folder / "store" / "keys.json")
        self.key, _ = keys.add("Ada's laptop")
        self.chat_key, _ = keys.add("Website", scopes=("chat", "metrics"), concurrent=4)
        self._config = folder / "polymux.toml"
        self._config.write_text(_settings(folder, self.samples))

    def __enter__(self) -> Self:
        self.log = self.folder / "log"
        words = [sys.executable, "-m", "polymux", "serve", "--config", str(self._config)]
        own = environment(self.folder, POLYMUX_MODELS=str(self.folder / "models"),
                          PYTHONPATH=os.fspath(TESTS))  # fmt: skip
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*words, "--port", str(self._port)],
                cwd=self.folder,
                env=own,
                stdout=log,
                stderr=log,
            )
        self.url = self._address()
        self._port = int(self.url.rpartition(":")[2])
        return self

    def _address(self) -> str:
        until = time.monotonic() + _READY_WITHIN_S
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log.read_text()
            for word in self.log.read_text().replace(";", " ").split():
                if word.startswith("http://127.0.0.1:"):
                    return word.rstrip("/")
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
        log = self.log.read_text()
        assert status == 0, log
        assert "Traceback" not in log
        assert self.key not in log

    def ask(self, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """The server's answer to a request with the first key. `body` is sent as JSON by POST."""
        wanted = urllib.request.Request(
            f"{self.url}/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(wanted, timeout=10 if body is None else 60) as answer:
            return json.load(answer)

    def until_at_work(self, engine: str, count: int) -> None:
        """Wait until an engine runs this number of jobs."""
        until = time.monotonic() + _CHANGES_WITHIN_S
        while self._at_work(engine) != count:
            assert time.monotonic() < until
            time.sleep(0.05)

    def _at_work(self, engine: str) -> int:
        engines = self.ask("api/v1/administration")["engines"]
        return int(next(one["running"] for one in engines if one["name"] == engine))


@dataclass
class Samples:
    """Short media files, made by ffmpeg."""

    folder: Path
    image: Path = field(init=False)
    mask: Path = field(init=False)
    sound: Path = field(init=False)
    snippet: Path = field(init=False)
    speech: Path = field(init=False)
    page: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        lavfi = ("-f", "lavfi", "-i")
        make = programs.ffmpeg
        colours = "n=4:c0=0x1b1d5c:c1=0x4338ca:c2=0xf472b6:c3=0xfbbf24:seed=1:speed=0.00001"
        make(
            *lavfi,
            f"gradients=s=512x384:x0=0:y0=0:x1=512:y1=384:{colours}",
            "-frames:v",
            "1",
            self.folder / "a.png",
        )
        make("-i", self.folder / "a.png", "-vf", "scale=256:192", self.folder / "small.jpg")
        make(*lavfi, "sine=frequency=330:duration=2", self.folder / "a.wav")
        make("-i", self.folder / "a.wav", self.folder / "a.mp3")
        make(*lavfi, "testsrc=s=192x144:d=2:r=10", "-pix_fmt", "yuv420p", self.folder / "a.mp4")
        make(*lavfi, "mandelbrot=s=32x24:r=10", "-frames:v", "1", self.folder / "tiny.png")
        self.image, self.sound = self.folder / "tiny.png", self.folder / "a.wav"
        self.speech = self.folder / "meeting.wav"
        programs.run("espeak-ng", "-v", "en-us", "-s", "150", "-w", self.speech, SPOKEN)
        self.page = self.folder / "page.png"
        with Image.new("L", (400, 100), "white") as page:
            ImageDraw.Draw(page).text((20, 20), "Meeting", fill="black", font_size=48)
            page.save(self.page)
        self.mask = self.folder / "mask.png"
        make("-i", self.image, "-vf", "format=gray,geq=lum='255*gt(X,W/2)'", self.mask)


def _settings(folder: Path, samples: Samples) -> str:
    music = folder / "music"
    generated_songs.song(music / "a.flac", 2, title="Blue Danube", artist="Strauss")
    generated_songs.song(music / "b.flac", 1, title="Known", artist="Somebody")
    with polymux.SongIndex(folder / "songs") as index:
        index.add(music)
    samples.snippet = generated_songs.snippet(samples.folder, 2)
    engines = {
        "media": {"threads": 1},
        "rapidocr": {"threads": 1},
        "assistant": {"family": "chat", "threads": 1, "options": {
            "model": str(model_path()), "aliases": ["smollm2"], "context": 512}},
        "speech": {"threads": 1, "options": {"model": str(weights.whisper(folder / "models"))}},
        "upscale": {"threads": 1, "options": {"model": str(weights.upscaler()), "factor": 2}},
        "stub": {"family": FAMILY, "max_concurrency": 4, "operations": list(OPERATIONS),
                 "options": {"samples": str(samples.folder)}},
    }  # fmt: skip
    lines = [
        f"songs = {{ index_dir = {json.dumps(str(folder / 'songs'))} }}",
        "download = { enabled = false }",
        f"store = {{ folder = {json.dumps(str(folder / 'store'))} }}",
        'routes = { free_chat = ["stub"], chat = [{ backend = "stub", models = ["stub"] }, '
        '"assistant"], upscale_image = ["stub"] }',
    ]
    for name, table in engines.items():
        options = table.pop("options", {})
        lines.append(f"[engines.{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        lines.append(f"[engines.{name}.options]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in options.items()]
    return "\n".join(lines) + "\n"
