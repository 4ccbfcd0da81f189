"""Seed images for music: spectrogram images of the model, and generated replacements.

Riffusion's repository (MIT license) has eleven of them:
https://github.com/riffusion/riffusion-hobby. If the model's directory has them, they are used.
Otherwise images with the same names are generated, always with the same result: masks according to
their names, the others from synthesized sound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._native import media
from polymux.service.errors import bad_request, status_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Sound = NDArray[np.float32]

#: Subdirectory of the model's directory.
FOLDER = "seed_images"
#: Rows of every spectrogram image, and columns of generated ones.
SIDE_PX = 512
_GRID_PX = 8
_MAX_COLUMNS = 4096
_RATE_HZ = 44_100
_COLUMN_S = 0.01


def seed_image(name: str, folder: Path) -> tuple[Image, bool]:
    """Return a seed image.

    Args:
        name: Name of the seed image.
        folder: Directory of the model.

    Returns:
        The image (RGB, 512 rows), and whether it was generated.

    Raises:
        BadRequestError: The name is unknown.
        NoBackendError: The model's file is not a valid spectrogram image.
    """
    from PIL import Image

    draw = _DRAWN.get(name)
    if draw is None:
        raise bad_request(
            f"seed_image_id={name!r}: must be one of {', '.join(_DRAWN)}",
            param="seed_image_id",
        )
    file = folder / FOLDER / f"{name}.png"
    if not file.is_file():
        return Image.fromarray(draw()).convert("RGB"), True
    try:
        with Image.open(file, formats=["PNG"]) as opened:
            picture = opened.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise status_error(errors.NoBackendError, f"{file.name}: invalid image: {error}") from error
    fits = picture.height == SIDE_PX and picture.width % _GRID_PX == 0
    if not fits or picture.width > _MAX_COLUMNS:
        raise status_error(
            errors.NoBackendError,
            f"{file.name}: invalid size (got {picture.width} x {picture.height} pixels, allowed a "
            f"height of {SIDE_PX} and a width that is a multiple of {_GRID_PX}, at most "
            f"{_MAX_COLUMNS})",
        )
    return picture, False


def _flat(grey: Any) -> NDArray[np.uint8]:
    """Return an image from one gray value per row or column; 0 is the loudest."""
    import numpy as np

    return np.broadcast_to(np.rint(grey), (SIDE_PX, SIDE_PX)).astype(np.uint8)


def _beat_lines(beats_per_minute: float) -> NDArray[np.uint8]:
    """Return an image with a line at each beat that fades within a tenth of a second."""
    import numpy as np

    since_s = np.arange(SIDE_PX) * _COLUMN_S % (60.0 / beats_per_minute)
    return _flat(255 - 200 * np.exp(-since_s / 0.05))


def _rows(*stops: tuple[int, float]) -> NDArray[np.uint8]:
    """Return an image whose rows are interpolated between given rows and shares of white."""
    import numpy as np

    places, whites = zip(*stops, strict=True)
    return _flat(255 * np.interp(np.arange(SIDE_PX), places, whites)[:, None])


def _top(count: int, white: float) -> NDArray[np.uint8]:
    """Return an image with the top rows in one gray and the others in the middle gray."""
    return _rows((count - 1, white), (count, 128 / 255))


def _drawn(make: Callable[[], Sound]) -> NDArray[np.uint8]:
    import numpy as np

    sound = make()
    drawn = media.draw_sound((sound / abs(sound).max()).astype(np.float32).tobytes(), 1, None)
    pixels = np.frombuffer(drawn["pixels"], np.uint8)
    return pixels.reshape(drawn["height"], drawn["width"])


def _silence() -> Sound:
    import numpy as np

    return np.zeros(round(SIDE_PX * _COLUMN_S * _RATE_HZ), np.float32)


def _hz(note: float) -> float:
    """Return the frequency of a MIDI note number; 69 is 440 Hz."""
    return float(440.0 * 2.0 ** ((note - 69) / 12))


def _strike(
    sound: Sound, at_s: float, hz: float, partials: dict[float, float], fading_s: float
) -> None:
    """Add a decaying note, whose higher partials decay faster.

    Args:
        sound: Samples to which the note is added.
        at_s: Start in seconds.
        hz: Frequency of the lowest partial.
        partials: Multiple of the lowest frequency to amplitude.
        fading_s: Time until the lowest partial has decayed to 37 %.
    """
    import numpy as np

    begin = round(at_s * _RATE_HZ)
    time_s = np.arange(min(len(sound) - begin, round(6 * fading_s * _RATE_HZ))) / _RATE_HZ
    for times, strength in partials.items():
        fading = np.exp(-time_s * np.sqrt(times) / fading_s) * np.minimum(1, time_s / 0.002)
        tone = strength * fading * np.sin(2 * np.pi * hz * times * time_s)
        sound[begin : begin + len(time_s)] += tone.astype(np.float32)


def _burst(sound: Sound, at_s: float, strength: float, fading_s: float, seed: int) -> None:
    import numpy as np

    begin = round(at_s * _RATE_HZ)
    time_s = np.arange(min(len(sound) - begin, round(6 * fading_s * _RATE_HZ))) / _RATE_HZ
    noise = np.random.Generator(np.random.PCG64(seed)).standard_normal(len(time_s))
    faded = strength * noise * np.exp(-time_s / fading_s)
    sound[begin : begin + len(time_s)] += faded.astype(np.float32)


def _og_beat() -> Sound:
    """A drum kit at 120 beats a minute."""
    sound = _silence()
    for eighth in range(20):
        _burst(sound, eighth * 0.25, 0.06, 0.02, eighth)
        if eighth % 4 == 0 or eighth % 8 == 3:
            _strike(sound, eighth * 0.25, 55, {1: 1.0, 1.5: 0.4, 3: 0.1}, 0.12)
        if eighth % 4 == 2:
            _burst(sound, eighth * 0.25, 0.25, 0.07, 100 + eighth)
            _strike(sound, eighth * 0.25, 190, {1: 0.4, 1.7: 0.2}, 0.06)
    return sound


def _marim() -> Sound:
    """A marimba pattern. Bars have partials at 1, 4 and 9.2 times their pitch."""
    sound = _silence()
    for step, note in enumerate([57, 64, 69, 60, 67, 72, 62, 69, 74, 64, 67, 76] * 3):
        if step * 0.15 < 5:
            _strike(sound, step * 0.15, _hz(note), {1: 0.6, 4: 0.2, 9.2: 0.06}, 0.22)
    return sound


def _vibes() -> Sound:
    """Vibraphone chords with the tremolo of its motor."""
    import numpy as np

    sound = _silence()
    for bar, chord in enumerate([(57, 64, 67, 72), (62, 65, 69, 76), (55, 62, 65, 71)]):
        for voice, note in enumerate(chord):
            for again in (0.0, 0.85):
                at_s = bar * 1.7 + again + 0.06 * voice
                _strike(sound, at_s, _hz(note), {1: 0.3, 4: 0.12, 10: 0.04}, 0.9)
    time_s = np.arange(len(sound)) / _RATE_HZ
    return (sound * (1 + 0.4 * np.sin(2 * np.pi * 5.5 * time_s))).astype(np.float32)


def _agile() -> Sound:
    """Fast plucked notes over a bass."""
    sound = _silence()
    strings = {float(number): 0.5 / number for number in range(1, 13)}
    for step in range(51):
        note = (52, 59, 64, 67, 71, 76, 71, 67)[step % 8] + (0, 3, -2)[step // 17]
        _strike(sound, step * 0.1, _hz(note), strings, 0.12)
        if step % 8 == 0:
            _strike(sound, step * 0.1, _hz(40), {1: 0.9, 2: 0.4, 3: 0.2}, 0.5)
    return sound


def _motorway() -> Sound:
    """A drone with a pulse, and passing noise."""
    import numpy as np

    sound = _silence()
    time_s = np.arange(len(sound)) / _RATE_HZ
    for number in range(1, 16):
        swell = 1 + np.sin(2 * np.pi * (0.2 * time_s + number / 7))
        sound += (0.12 / number * swell * np.sin(2 * np.pi * 65.4 * number * time_s)).astype("f4")
    for beat in range(12):
        _strike(sound, beat * 0.42, 49, {1: 0.8, 2: 0.3}, 0.15)
    for number, at_s in enumerate((0.6, 2.4, 4.0)):
        _burst(sound, at_s, 0.12, 0.35, 200 + number)
    return sound


#: Seed images by name, with the functions that generate them.
_DRAWN: dict[str, Callable[[], NDArray[Any]]] = {
    "agile": lambda: _drawn(_agile),
    "marim": lambda: _drawn(_marim),
    "mask_beat_lines_80": lambda: _beat_lines(80),
    "mask_gradient_dark": lambda: _rows((0, 0.6), (SIDE_PX - 1, 0.05)),
    "mask_gradient_top_70": lambda: _rows((0, 1.0), (round(0.7 * SIDE_PX), 0.5)),
    "mask_gradient_top_fifth_75": lambda: _rows((0, 0.75), (SIDE_PX // 5, 0.5)),
    "mask_top_third_75": lambda: _top(SIDE_PX // 3, 0.75),
    "mask_top_third_95": lambda: _top(SIDE_PX // 3, 0.95),
    "motorway": lambda: _drawn(_motorway),
    "og_beat": lambda: _drawn(_og_beat),
    "vibes": lambda: _drawn(_vibes),
}
