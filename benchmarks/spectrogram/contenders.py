"""The contenders: `python -m benchmarks.spectrogram.contenders WHO WHAT FILE`.

Prints the cost without starting and importing, and writes the result next to the file. Both
contenders process a small piece first, so lazy loading is not counted.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

RATE_HZ, HOP, WINDOW, TRANSFORM, BANDS, HIGHEST_HZ = 44_100, 441, 4_410, 17_640, 512, 10_000
ITERATIONS, MOMENTUM = 32, 0.99
#: A new seed each time: the result depends on the initial phases of the search.
SEED = random.SystemRandom().randrange(1 << 32)
WARM_COLUMNS = 16


def librosa_parts() -> tuple[Any, Any, Any]:
    """Return the library, its mel bands, and the settings shared by the transforms."""
    import librosa
    import numpy

    bands = librosa.filters.mel(
        sr=RATE_HZ, n_fft=TRANSFORM, n_mels=BANDS, fmin=0, fmax=HIGHEST_HZ, htk=True, norm=None
    ).astype(numpy.float32)
    shape = {"hop_length": HOP, "win_length": WINDOW, "n_fft": TRANSFORM, "pad_mode": "reflect"}
    return librosa, bands, shape


def mel_of(path: Path) -> Any:
    """Return the magnitudes of an image: a row per mel band."""
    facts = json.loads(path.with_suffix(".json").read_text())
    return mel_of_pixels(path.read_bytes(), facts["largest"] / 32_768)


def mel_of_pixels(data: bytes, largest: float) -> Any:
    """Return the magnitudes of its pixels, given the value of black."""
    import numpy

    pixels = numpy.frombuffer(data, numpy.uint8).reshape(BANDS, -1)
    shown = (255 - pixels[::-1].astype(numpy.float64)) / 255
    return (shown**4 * largest).astype(numpy.float32)


def librosa_play(path: Path) -> Any:
    """`librosa.feature.inverse.mel_to_stft` and `griffinlim`.

    With its defaults the former would need 155 GiB at this size, because L-BFGS-B stores as many
    corrections as there are bins. Its solver is therefore called with ten corrections, SciPy's
    default.
    """
    mel = mel_of(path)
    play = _librosa_player()
    play(mel[:, :WARM_COLUMNS])
    return lambda: play(mel).tobytes()


def _librosa_player() -> Callable[[Any], Any]:
    librosa, bands, shape = librosa_parts()

    def play(columns: Any) -> Any:
        magnitudes = librosa.util.nnls(bands, columns, m=10)
        return librosa.griffinlim(
            magnitudes, n_iter=ITERATIONS, momentum=MOMENTUM, random_state=SEED, **shape
        )

    return play


def librosa_draw(path: Path) -> Any:
    """`librosa.stft`, the mel bands, and the conversion to an image."""
    import numpy

    draw = _librosa_drawer()
    sound = numpy.fromfile(path, numpy.float32)
    draw(sound[: WARM_COLUMNS * HOP])
    return lambda: draw(sound)[0]


def _librosa_drawer() -> Callable[[Any], tuple[bytes, float]]:
    """Return a function that returns the pixels and the value of black."""
    import numpy

    librosa, bands, shape = librosa_parts()

    def draw(samples: Any) -> tuple[bytes, float]:
        mel = bands @ abs(librosa.stft(samples, **shape))
        largest = float(mel.max())
        greys = 255 - numpy.rint(255 * (mel / largest) ** 0.25)
        return greys[::-1].astype(numpy.uint8).tobytes(), largest

    return draw


def librosa_round_trip(path: Path) -> Any:
    """Draw the sound, then play it from the image alone."""
    import numpy

    draw, play = _librosa_drawer(), _librosa_player()
    sound = numpy.fromfile(path, numpy.float32)

    def go(samples: Any) -> bytes:
        data: bytes = play(mel_of_pixels(*draw(samples))).tobytes()
        return data

    go(sound[: WARM_COLUMNS * HOP])
    return lambda: go(sound)


def polymux_play(path: Path) -> Any:
    """Play as the music engine does."""
    from polymux._native import _media

    facts = json.loads(path.with_suffix(".json").read_text())
    pixels = path.read_bytes()

    def play(part: bytes, width: int) -> bytes:
        data: bytes = _media.play_picture(part, width, BANDS, 1, SEED, facts["largest"], None)[
            "samples"
        ]
        return data

    play(pixels[: WARM_COLUMNS * BANDS], WARM_COLUMNS)
    return lambda: play(pixels, facts["width"])


def polymux_draw(path: Path) -> Any:
    """Draw as the music engine draws its seed images."""
    from polymux._native import _media

    sound = path.read_bytes()
    _media.draw_sound(sound[: WARM_COLUMNS * HOP * 4], 1, None)
    return lambda: _media.draw_sound(sound, 1, None)["pixels"]


def polymux_round_trip(path: Path) -> Any:
    """Draw the sound, then play it from the image alone."""
    from polymux._native import _media

    sound = path.read_bytes()

    def go(samples: bytes) -> bytes:
        drawn = _media.draw_sound(samples, 1, None)
        data: bytes = _media.play_picture(
            drawn["pixels"], drawn["width"], BANDS, 1, SEED, drawn["largest"], None
        )["samples"]
        return data

    go(sound[: WARM_COLUMNS * HOP * 4])
    return lambda: go(sound)


WORK = {
    ("polymux", "round-trip"): polymux_round_trip,
    ("librosa", "round-trip"): librosa_round_trip,
    ("polymux", "play"): polymux_play,
    ("polymux", "draw"): polymux_draw,
    ("librosa", "play"): librosa_play,
    ("librosa", "draw"): librosa_draw,
}


def main() -> None:
    """Prepare, measure and save the result."""
    who, what, file = sys.argv[1:]
    path = Path(file)
    work = WORK[who, what](path)
    wall, cpu = time.perf_counter(), time.process_time()
    made = work()
    cost = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    path.with_suffix(f".{who}-{what}").write_bytes(made)
    print(json.dumps(cost))


if __name__ == "__main__":
    main()
