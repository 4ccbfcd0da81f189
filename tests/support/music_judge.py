"""Names what music sounds like: six instruments, drums, or five genres.

It measures audio with NumPy alone, and shares no code with polymux. A small network reads the
measurements. `models/music-mini/training/judge.py` trained it on composed music.
"""

from __future__ import annotations

import itertools
import wave
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

WEIGHTS = Path(__file__).parents[1] / "data" / "music_judge.npz"
#: Classes, and what people may write who want such music.
PROMPTS = {
    "piano": ("piano", "solo piano", "sad piano melody", "happy piano chords"),
    "violin": ("violin", "sad violin", "solo violin", "slow violin melody"),
    "flute": ("flute", "solo flute", "flute melody", "cheerful flute"),
    "nylon": ("classical guitar", "nylon guitar", "spanish guitar", "slow classical guitar"),
    "musicbox": ("music box", "slow music box", "happy music box", "music box melody"),
    "choir": ("choir", "singing choir", "choir chords", "sad choir"),
    "drums": ("drums", "drum loop", "drum beat", "fast drums"),
    "jazz": ("jazz", "swing", "jazz with saxophone", "bebop"),
    "techno": ("techno", "fast techno", "rave", "trance"),
    "metal": ("metal", "heavy metal", "hard rock with distorted guitar", "fast heavy metal"),
    "ambient": ("ambient", "ambient music", "meditation music", "space music"),
    "reggae": ("reggae", "dub", "jamaican reggae", "reggae with organ"),
}
NAMES = tuple(PROMPTS)
RATE_HZ = 44_100
_WINDOW, _TRANSFORM, _HOP = 4096, 16_384, 1024
#: Bands of a semitone from A1 on, up to 10 kHz. Coarse bands are three of them.
_LOWEST_HZ, _BANDS, _COARSE = 55.0, 90, 3
#: Power that counts as silence, relative to the mean of all bands.
_FLOOR = 1e-3
_INTERVALS = 40  # semitones
_RHYTHM_COLUMNS = 64
#: Bands of the speed of changes. Vibrato has 5 to 6 Hz.
_SPEEDS_HZ = (0.4, 1, 2, 4, 5, 6.5, 9, 14)
_GROUPS = 6
#: Features of generated music can be far from those of all composed music.
MOST_DEVIATIONS = 4.0


def _filters() -> Numbers:
    """Triangles that are evenly spaced in pitch, a column for each band."""
    edges = _LOWEST_HZ * 2 ** (numpy.arange(-1, _BANDS + 1) / 12)
    hz = numpy.fft.rfftfreq(_TRANSFORM, 1 / RATE_HZ)[:, None]
    rising = (hz - edges[:-2]) / numpy.diff(edges)[:-1]
    falling = (edges[2:] - hz) / numpy.diff(edges)[1:]
    return numpy.maximum(0, numpy.minimum(rising, falling))


def levels(samples: Numbers) -> Numbers:
    """Return the logarithm of the power, a row per column of time and a column per band."""
    frames = numpy.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::_HOP]
    spectra = numpy.fft.rfft(frames * numpy.hanning(_WINDOW), _TRANSFORM)
    power = abs(spectra) ** 2 @ _filters()
    found: Numbers = numpy.log10(power / (power.mean() + 1e-20) + _FLOOR)
    return found


def features(fine: Numbers) -> Numbers:
    """Return what the network reads about levels. The loudness of the audio does not count."""
    level = fine.reshape(len(fine), -1, _COARSE).mean(2)
    change = numpy.diff(level, axis=0)
    rising, falling = numpy.maximum(0, change), numpy.maximum(0, -change)
    shape = [level.mean(0), *numpy.quantile(level, (0.1, 0.9), axis=0), level.std(0)]
    attacks = [rising.mean(0), falling.mean(0), rising.max(0)]
    return numpy.concatenate(
        [*shape, *attacks, _intervals(fine), _rhythm(rising.sum(1)), _speeds(fine)]
    )


def _intervals(fine: Numbers) -> Numbers:
    """Return how alike the levels are at each interval: overtones at any pitch."""
    even = fine - fine.mean(1, keepdims=True)
    whole = (even**2).mean() + 1e-9
    return numpy.array(
        [(even[:, lag:] * even[:, :-lag]).mean() / whole for lag in range(1, _INTERVALS + 1)]
    )


def rhythm(onsets: Numbers) -> Numbers:
    """Return the autocorrelation of onsets, 1 at lag 0."""
    even = onsets - onsets.mean()
    found = numpy.correlate(even, even, "full")[len(even) - 1 :]
    return found / (found[0] + 1e-9)


def _rhythm(onsets: Numbers) -> Numbers:
    return rhythm(onsets)[1:_RHYTHM_COLUMNS]


def _speeds(fine: Numbers) -> Numbers:
    """Return how much of the changes has each speed, by group of bands."""
    power = abs(numpy.fft.rfft(fine - fine.mean(0), axis=0)) ** 2
    power = power.reshape(len(power), _GROUPS, -1).sum(2)
    hz = numpy.fft.rfftfreq(len(fine), _HOP / RATE_HZ)
    parts = [
        power[(hz >= low) & (hz < high)].sum(0) for low, high in itertools.pairwise(_SPEEDS_HZ)
    ]
    found: Numbers = numpy.log10(numpy.array(parts) / (power.sum(0) + 1e-9) + 1e-3)
    return found.ravel()


class Judge:
    """The network.

    Args:
        path: Its weights. Default: those in this repository.
    """

    def __init__(self, path: Path = WEIGHTS) -> None:
        with numpy.load(path) as archive:
            self._weights = {name: archive[name].astype(float) for name in archive.files}

    def probabilities(self, samples: Numbers) -> dict[str, float]:
        """Return the probability of each class of mono audio at 44.1 kHz."""
        one = self._weights
        hidden = (features(levels(samples)) - one["mean"]) / one["deviation"]
        hidden = numpy.clip(hidden, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        hidden = numpy.maximum(0, one["first"] @ hidden + one["first_bias"])
        scores = one["last"] @ hidden + one["last_bias"]
        shares = numpy.exp(scores - scores.max())
        return dict(zip(NAMES, map(float, shares / shares.sum()), strict=True))

    def __call__(self, samples: Numbers) -> str:
        """Return the most probable class."""
        found = self.probabilities(samples)
        return max(found, key=lambda name: found[name])


def read(path: Path) -> Numbers:
    """Return the samples of a WAV file as music generation writes it."""
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE_HZ)
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2")
    return samples.astype(float) / 32_768
