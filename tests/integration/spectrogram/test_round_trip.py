"""Audio is converted to a spectrogram image and back to audio.

Spectral convergence is |M(y) - M(x)| / |M(x)| in the Frobenius norm, where M are magnitudes of the
short-time Fourier transform or the mel bands computed from them. For these sounds, librosa 0.11
with the same parameters comes equally close: `scripts/bench spectrogram` compares both. The bounds
here are 20 % above the measured values.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from array import array
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from polymux import errors
from polymux._native import _media

from . import sounds

if TYPE_CHECKING:
    from pathlib import Path

#: Kind of sound -> maximum convergence (of the mel bands, of all magnitudes).
WORST = {"chords": (0.085, 0.185), "speech": (0.05, 0.075), "drums": (0.06, 0.12)}


@pytest.fixture(scope="module", params=sounds.KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def sound(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return sounds.made(kind, tmp_path_factory.mktemp("sounds"))


@pytest.fixture(scope="module")
def drawn(sound: Any) -> dict[str, Any]:
    return _media.draw_sound(sound, 1, None)


def played(drawn: dict[str, Any], seed: int = 1) -> Any:
    made = _media.play_picture(
        drawn["pixels"], drawn["width"], drawn["height"], 1, seed, drawn["largest"], None
    )
    return numpy.frombuffer(made["samples"], numpy.float32)


@pytest.fixture(scope="module")
def again(drawn: dict[str, Any]) -> Any:
    return played(drawn)


def test_a_picture_shows_the_mel_bands(sound: Any, drawn: dict[str, Any]) -> None:
    """Compared with a transform in numpy, within half a gray level and float precision."""
    assert (drawn["width"], drawn["height"], drawn["channels"]) == (200, 512, 1)
    mel = sounds.magnitudes(sound) @ sounds.triangles().T
    assert drawn["largest"] / 32_768 == pytest.approx(mel.max(), rel=1e-5)
    greys = 255 - 255 * (mel / mel.max()) ** 0.25
    pixels = numpy.frombuffer(drawn["pixels"], numpy.uint8).reshape(512, -1)[::-1].T
    # For very quiet bands, the fourth root amplifies the rounding error of a float.
    loud = mel > 1e-5 * mel.max()
    assert abs(pixels - greys)[loud].max() < 0.51
    assert abs(pixels - greys).max() < 3


def test_played_it_looks_the_same(kind: str, sound: Any, drawn: dict[str, Any], again: Any) -> None:
    assert len(again) == len(sound) == 200 * 441
    wanted, found = sounds.magnitudes(sound), sounds.magnitudes(again)
    triangles = sounds.triangles()
    of_mel = sounds.convergence(found @ triangles.T, sounds.stood_for(drawn))
    of_all = sounds.convergence(found, wanted)
    assert of_mel < WORST[kind][0]
    assert of_all < WORST[kind][1]


def test_a_seed_repeats() -> None:
    pixels = numpy.random.default_rng(5).bytes(40 * 512)
    drawn = {"pixels": pixels, "width": 40, "height": 512, "largest": 1e6}
    first, again, other = played(drawn, 1), played(drawn, 1), played(drawn, 2)
    assert (first == again).all()
    assert (first != other).any()


def test_nothing_above_the_highest_band(again: Any) -> None:
    """The phase search uses every second sample, which must not cause mirrored frequencies."""
    spectrum = abs(numpy.fft.rfft(again * numpy.hanning(len(again)))) ** 2
    hz = numpy.arange(len(spectrum)) * sounds.RATE_HZ / (2 * (len(spectrum) - 1))
    assert spectrum[hz > 10_500].sum() < 1e-6 * spectrum.sum()


def test_stereo_is_two_pictures(tmp_path: Path) -> None:
    left, right = sounds.made("speech", tmp_path), sounds.made("drums", tmp_path)
    both = numpy.stack([left, right], axis=1)
    drawn = _media.draw_sound(numpy.ascontiguousarray(both), 2, None)
    assert drawn["channels"] == 2
    assert len(drawn["pixels"]) == 2 * 200 * 512
    made = _media.play_picture(bytearray(drawn["pixels"]), 200, 512, 2, 1, drawn["largest"], None)
    again = numpy.frombuffer(made["samples"], numpy.float32).reshape(-1, 2)
    for number, one in enumerate((left, right)):
        found = sounds.magnitudes(again[:, number])
        assert sounds.convergence(found, sounds.magnitudes(one)) < 0.4


def test_buffers_of_any_kind() -> None:
    tone = array("f", [0.5, -0.5] * 2000)
    first = _media.draw_sound(tone, 1, None)
    assert _media.draw_sound(tone.tobytes(), 1, None) == first
    assert _media.draw_sound(memoryview(b"x" + tone.tobytes())[1:], 1, None) == first


@pytest.mark.parametrize(
    ("samples", "channels"),
    [(b"", 1), (b"123", 1), (bytes(12), 2), (bytes(8), 3),
     (array("f", [0, float("nan")]), 1), (array("f", [float("inf")]), 1)],
)  # fmt: skip
def test_sound_that_is_none(samples: bytes, channels: int) -> None:
    with pytest.raises(errors.InvalidRequestError):
        _media.draw_sound(samples, channels, None)


@pytest.mark.parametrize(
    ("size", "width", "height", "largest"),
    [(0, 0, 512, None), (512, 1, 511, None), (511, 1, 512, None), (512, -1, 512, None),
     (512, 2**31 - 1, 512, None), (512, 1, 512, float("nan")), (512, 1, 512, -1.0)],
)  # fmt: skip
def test_pictures_that_are_none(size: int, width: int, height: int, largest: float | None) -> None:
    with pytest.raises(errors.InvalidRequestError):
        _media.play_picture(bytes(size), width, height, 1, 1, largest, None)


def test_arguments_of_other_types() -> None:
    with pytest.raises(TypeError):
        _media.draw_sound("text", 1, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _media.play_picture(bytes(512), 1, 512, 1, -1, None, None)


def test_progress_is_reported_and_may_end_the_work() -> None:
    progress: list[float] = []
    _media.play_picture(bytes(512 * 400), 400, 512, 1, 1, None, progress.append)
    assert progress == sorted(progress)
    assert progress[-1] == 1.0

    def stop(done: float) -> None:
        raise KeyError(done)

    began = time.monotonic()
    with pytest.raises(KeyError):
        _media.play_picture(bytes(512 * 20_000), 20_000, 512, 1, 1, None, stop)
    # The full reconstruction would take half a minute.
    assert time.monotonic() - began < 10


def test_others_run_meanwhile() -> None:
    """The GIL is released: another thread counts while an image is converted to audio."""
    arguments = (bytes(512 * 300), 300, 512, 1, 1, None, None)
    thread = threading.Thread(target=_media.play_picture, args=arguments)
    thread.start()
    counted = 0
    while thread.is_alive():
        counted += 1
    assert counted > 1_000


_PLAYS = """
from polymux._native import _media
progress = []
def report(done):
    progress.append(done) or len(progress) > 1 or print("works", flush=True)
try:
    _media.play_picture(bytes(512 * 20_000), 20_000, 512, 1, 1, None, report)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_interrupted() -> None:
    """Ctrl-C stops the work quickly, because it checks its token every few frames."""
    words = [sys.executable, "-c", _PLAYS]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "works\n"
        os.kill(child.pid, signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert child.wait(10) == 0
