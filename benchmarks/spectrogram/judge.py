"""How close played sound comes: `python -m benchmarks.spectrogram.judge PICTURE SAMPLES SOUND`.

Spectral convergence is |M(y) - M(x)| / |M(x)| in the Frobenius norm, where M are magnitudes of the
short-time Fourier transform: once in mel bands, against what the picture stands for, once in all
frequencies, against the sound that the picture was drawn of.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.spectrogram.contenders import librosa_parts, mel_of

#: The two at each end are made of reflected sound, which each reflects at another place.
EDGE = 2


def convergence(found: Any, wanted: Any) -> float:
    """How far one is from the other."""
    import numpy

    columns = slice(EDGE, min(found.shape[1], wanted.shape[1]) - EDGE)
    norm = numpy.linalg.norm
    return float(norm(found[:, columns] - wanted[:, columns]) / norm(wanted[:, columns]))


def main() -> None:
    """Prints both."""
    import numpy

    picture, samples, sound = (Path(one) for one in sys.argv[1:])
    librosa, bands, shape = librosa_parts()
    found, wanted = (
        abs(librosa.stft(numpy.fromfile(one, numpy.float32), **shape)) for one in (samples, sound)
    )
    judged = {
        "mel_convergence": convergence(bands @ found, mel_of(picture)),
        "convergence": convergence(found, wanted),
    }
    print(json.dumps(judged))


if __name__ == "__main__":
    main()
