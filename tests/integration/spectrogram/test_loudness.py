"""Loudness of finished audio, as FFmpeg's filters ebur128 and loudnorm measure it; FLAC files.

loudnorm measures at 192 kHz. Above 10 kHz, where played images have nothing, its filter differs.
"""

from __future__ import annotations

import json
import re
import wave
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from polymux import errors
from polymux._native import _media
from support import programs

from . import sounds

if TYPE_CHECKING:
    from pathlib import Path

RATE_HZ = 44_100
TARGET_LUFS, MAX_PEAK_DBTP = -16.0, -1.5


def noise(seconds: float, seed: int = 1) -> Any:
    generator = numpy.random.default_rng(seed)
    return generator.standard_normal(round(seconds * RATE_HZ)).astype("f4")


def tone(seconds: float, hz: float) -> Any:
    time_s = numpy.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return numpy.sin(2 * numpy.pi * hz * time_s + 0.7).astype("f4")


def quiet_and_loud() -> Any:
    """The loudness of the quiet half must not count, and that of pauses even less."""
    parts = noise(3, 1) * 0.02, numpy.zeros(2 * RATE_HZ, "f4"), noise(3, 2)
    return numpy.concatenate(parts)


def beats() -> Any:
    """Peaks that are too high for the loudness."""
    decay = numpy.exp(-numpy.arange(RATE_HZ // 2) / 6000)
    return (noise(6) * numpy.tile(decay, 12)).astype("f4")


def measured(samples: bytes, channels: int, path: Path) -> tuple[float, float]:
    """Integrated loudness in LUFS and true peak in dBTP."""
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, RATE_HZ, 0, "NONE", ""))
        file.writeframes(samples)
    words = ("-nostdin", "-hide_banner", "-i", path, "-af", "loudnorm=print_format=json")
    report = programs.run("ffmpeg", *words, "-f", "null", "-").stderr.decode()
    found = json.loads(report[report.rindex("{") :])
    return float(found["input_i"]), float(found["input_tp"])


def gated_loudness(path: Path) -> float:
    """Integrated loudness in LUFS by the filter ebur128."""
    words = ("-nostdin", "-hide_banner", "-i", path, "-af", "ebur128", "-f", "null", "-")
    report = programs.run("ffmpeg", *words).stderr.decode()
    return float(re.findall(r"I: +(-?[\d.]+) LUFS", report)[-1])


@pytest.mark.parametrize(
    "sound",
    [noise(3), tone(3, 1000), tone(3, 11_025), tone(3, 60), quiet_and_loud(), beats()],
    ids=["noise", "tone", "between the samples", "bass", "quiet and loud", "beats"],
)
@pytest.mark.parametrize("scale", [1.0, 3e7])
def test_loudness_is_that_of_loudnorm(sound: Any, scale: float, tmp_path: Path) -> None:
    finished = _media.finish_sound((sound * scale).astype("f4"), 1, RATE_HZ)
    assert len(finished) == 2 * len(sound)
    loudness, peak = measured(finished, 1, tmp_path / "finished.wav")
    assert gated_loudness(tmp_path / "finished.wav") == pytest.approx(TARGET_LUFS, abs=0.15)
    assert loudness == pytest.approx(TARGET_LUFS, abs=0.4)
    assert peak <= MAX_PEAK_DBTP + 0.2


@pytest.mark.parametrize("kind", sounds.KINDS)
def test_played_images(kind: str, tmp_path: Path) -> None:
    drawn = _media.draw_sound(sounds.made(kind, tmp_path).astype("f4"), 1, None)
    size = drawn["width"], drawn["height"]
    played = _media.play_picture(drawn["pixels"], *size, 1, 1, None, None)
    finished = _media.finish_sound(played["samples"], 1, RATE_HZ)
    loudness, peak = measured(finished, 1, tmp_path / "finished.wav")
    assert loudness == pytest.approx(TARGET_LUFS, abs=0.3)
    assert peak <= MAX_PEAK_DBTP + 0.1


def test_channels_count_together(tmp_path: Path) -> None:
    """Both channels get the same gain."""
    both = numpy.stack([noise(3, 1), noise(3, 2) * 0.25], axis=1)
    finished = _media.finish_sound(numpy.ascontiguousarray(both), 2, RATE_HZ)
    loudness, _ = measured(finished, 2, tmp_path / "finished.wav")
    assert loudness == pytest.approx(TARGET_LUFS, abs=0.4)
    left, right = numpy.frombuffer(finished, "<i2").reshape(-1, 2).astype(float).std(axis=0)
    assert right / left == pytest.approx(0.25, rel=0.02)


def test_below_the_limit_the_gain_is_constant() -> None:
    sound = tone(2, 440) * numpy.linspace(0.2, 1, 2 * RATE_HZ, dtype="f4")
    finished = numpy.frombuffer(_media.finish_sound(sound, 1, RATE_HZ), "<i2")
    gain = (finished @ sound) / (sound @ sound)
    assert abs(finished - gain * sound).max() <= 0.6


def test_a_click_over_quiet_audio_stays_quiet(tmp_path: Path) -> None:
    sound = tone(3, 440) * 0.001
    sound[RATE_HZ] = 1
    loudness, peak = measured(_media.finish_sound(sound, 1, RATE_HZ), 1, tmp_path / "click.wav")
    assert loudness < -30
    assert peak <= MAX_PEAK_DBTP + 0.1


def test_almost_silent_audio_stays_quiet(tmp_path: Path) -> None:
    """The gain ends at 54 dB, which is the distance from the standard's gate to the target."""
    for level in (1e-9, 1e-6, 1e-5):
        finished = numpy.frombuffer(_media.finish_sound(tone(2, 440) * level, 1, RATE_HZ), "<i2")
        assert finished.max() == pytest.approx(level * 10 ** (54 / 20) * 32_767, abs=0.6)
    loudness, _ = measured(
        _media.finish_sound(tone(3, 440) * 0.001, 1, RATE_HZ), 1, tmp_path / "quiet.wav"
    )
    assert loudness == pytest.approx(TARGET_LUFS, abs=0.4)


def test_silence_and_little_audio() -> None:
    assert _media.finish_sound(numpy.zeros(1000, "f4"), 1, RATE_HZ) == bytes(2000)
    assert _media.finish_sound(b"", 1, RATE_HZ) == b""
    for count in (1, 2, 100, 5000):
        finished = _media.finish_sound(noise(1)[:count], 1, RATE_HZ)
        assert abs(numpy.frombuffer(finished, "<i2").astype(int)).max() > 1000


@pytest.mark.parametrize(("channels", "rate_hz"), [(0, RATE_HZ), (2, RATE_HZ), (1, 0)])
def test_invalid_audio_is_refused(channels: int, rate_hz: int) -> None:
    with pytest.raises(errors.InvalidRequestError):
        _media.finish_sound(noise(1)[:3], channels, rate_hz)


@pytest.mark.parametrize(("channels", "frames"), [(1, 5000), (2, 20_001), (1, 1), (1, 0)])
def test_flac_is_lossless(channels: int, frames: int, tmp_path: Path) -> None:
    samples = (noise(1)[: channels * frames] * 5000).astype("<i2").tobytes()
    made = _media.encode_flac(samples, channels, RATE_HZ)
    assert _media.encode_flac(samples, channels, RATE_HZ) == made
    (tmp_path / "made.flac").write_bytes(made)
    if frames:
        # With the sizes and the MD5 of the samples in the file, which ffmpeg compares.
        words = ("-xerror", "-i", tmp_path / "made.flac", "-f", "s16le", "-")
        assert programs.ffmpeg(*words).stdout == samples
    assert int.from_bytes(made[21:26]) & 0xFFFFFFFFF == frames


def test_flac_of_invalid_audio_is_refused() -> None:
    for channels, rate_hz in ((0, RATE_HZ), (2, RATE_HZ), (9, RATE_HZ), (1, 0)):
        with pytest.raises(errors.InvalidRequestError):
            _media.encode_flac(bytes(6), channels, rate_hz)
    with pytest.raises(errors.InvalidRequestError):
        _media.encode_flac(bytes(3), 1, RATE_HZ)
