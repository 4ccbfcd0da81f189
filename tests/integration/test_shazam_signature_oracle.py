"""The core's signatures are byte for byte those of the package shazamio-core."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import wave
from pathlib import Path
from typing import TYPE_CHECKING

import numpy
import polymux
from polymux._native import media
from polymux.engines.media.engine import native_source
from polymux.media.options import native_limits
from support import generated_songs, signature_oracle
from support.cache import digest
from support.generated_songs import sound
from support.song_recognitions import RATE_HZ, recording

if TYPE_CHECKING:
    from support.corpus import Corpus

CLIPS = 20
#: For longer inputs, both implementations use this many samples from the middle.
SEGMENT = 10 * RATE_HZ


def clip(seed: int) -> numpy.ndarray:
    """1 to 30 s of 16 bits: a melody, swelling noise, bursts or a mix. Some of them clip."""
    chance = numpy.random.default_rng([9, seed])
    count = int(chance.uniform(1, 30) * RATE_HZ)
    noise = chance.normal(0, 0.3, count)
    swell = numpy.sin(numpy.arange(count) / RATE_HZ * chance.uniform(1, 9))
    melody = sound(seed, 30)[:count] if seed % 4 in {0, 3} else noise
    kinds = melody, noise * swell, noise * (swell > 0.99), melody + chance.uniform(0, 1) * noise
    level = (0.02, 0.2, 0.5, 0.95, 2.5)[chance.integers(5)]
    samples = kinds[seed % len(kinds)] * level
    return numpy.clip(numpy.rint(samples * 32767), -32768, 32767).astype("<i2")


def ours(path: Path) -> tuple[str, int, int]:
    made = media.shazam_signature(native_source(path), native_limits(polymux.Limits()))
    return made["uri"], made["sample_count"], made["peak_count"]


def theirs(paths: list[Path]) -> list[str]:
    command = [sys.executable, signature_oracle.__file__, *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=300)
    return json.loads(done.stdout)


def difference(uri: str, expected: str) -> str:
    found, wanted = (base64.b64decode(one.partition(",")[2]) for one in (uri, expected))
    if (uri, found) == (expected, wanted):
        return ""
    places = (at for at, pair in enumerate(zip(found[8:], wanted[8:], strict=False), 8)
              if pair[0] != pair[1])  # fmt: skip
    return f"{len(found)} and {len(wanted)} bytes, first apart at {next(places, 'the end')}"


def written(corpus: Corpus, seed: int) -> Path:
    """The file of a clip, created once."""
    makers = [digest(Path(one)) for one in (__file__, generated_songs.__file__)]
    return corpus.cache.make(
        "clip", ".wav", f"{seed} {makers}", lambda path: write(path, recording(clip(seed)))
    )


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def test_bytes_of_many_clips(corpus: Corpus) -> None:
    paths = [written(corpus, seed) for seed in range(CLIPS)]
    counts = []
    for path in paths:
        with wave.open(str(path), "rb") as file:
            counts.append(file.getnframes())
    apart = {}
    peaks = []
    for path, count, expected in zip(paths, counts, theirs(paths), strict=True):
        uri, sample_count, peak_count = ours(path)
        assert sample_count == min(count, SEGMENT)
        peaks.append(peak_count)
        if mismatch := difference(uri, expected):
            apart[path.name] = mismatch
    assert apart == {}
    # Guards against an empty comparison.
    assert sum(peaks) > 8_000
    assert numpy.median(peaks) > 200


def test_a_difference_is_seen(tmp_path: Path) -> None:
    samples = clip(0)
    path, other = tmp_path / "a.wav", tmp_path / "b.wav"
    path.write_bytes(recording(samples))
    other.write_bytes(recording(numpy.where(samples > 0, samples - 1, samples)))
    (expected,) = theirs([path])
    assert difference(ours(path)[0], expected) == ""
    assert difference(ours(other)[0], expected) != ""
