"""Song recognition: recordings, and servers and backends that recognize them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy
import polymux
from polymux.engines.process.in_process import InProcessBackend
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.runtime.build import media_confinement
from polymux.upstreams.song_recognition.backend import SongRecognitionBackend

from support.polymux_server import PolymuxServer
from support.wav_files import wave_file

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.upstreams.song_recognition.settings import SongRecognitionSettings

PATH = "/api/v1/songid"
RATE_HZ = 16_000


def recording(samples: numpy.ndarray) -> bytes:
    return wave_file(samples.astype("<i2").tobytes(), RATE_HZ)


def music(seed: int = 1, duration_s: float = 4.0) -> bytes:
    chance = numpy.random.default_rng(seed)
    times = numpy.arange(int(duration_s * RATE_HZ)) / RATE_HZ
    sound = chance.normal(0, 0.002, len(times))
    for begin in numpy.arange(0, duration_s, 0.2):
        hz = 220 * 2 ** (chance.integers(0, 30) / 12)
        faded = numpy.where(times >= begin, numpy.exp(-(times - begin) * 5), 0)
        sound += faded * numpy.sin(2 * numpy.pi * hz * times)
    return recording(numpy.rint(sound / abs(sound).max() * 25_000))


def served(folder: Path, settings: SongRecognitionSettings) -> PolymuxServer:
    """A server whose sandboxed engine decodes the recordings."""
    server = PolymuxServer(folder / "s", lambda: [confined])
    confinement = media_confinement(server.settings)
    media = EngineBackend(
        "media",
        "media",
        (),
        {"max_concurrency": 1},
        supervision=Supervision(confinement=confinement),
    )
    confined = SongRecognitionBackend(settings, media)
    return server


def backend(
    settings: SongRecognitionSettings,
    kind: type[SongRecognitionBackend] = SongRecognitionBackend,
) -> SongRecognitionBackend:
    """A backend whose engine decodes the recordings in this process."""
    return kind(settings, InProcessBackend("media", "media", []))


def local(settings: SongRecognitionSettings) -> polymux.Local:
    return polymux.Local(backends=[backend(settings)])
