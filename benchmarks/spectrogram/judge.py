"""Accuracy of played sound: `python -m benchmarks.spectrogram.judge PICTURE SAMPLES SOUND`.

Spectral convergence is |M(y) - M(x)| / |M(x)| in the Frobenius norm, where M are magnitudes of the
short-time Fourier transform. It is computed twice: in mel bands against the image, and in all
frequencies against the original sound.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.spectrogram.contenders import librosa_parts, mel_of

#: Two frames at each end contain reflected sound. Each contender reflects at a different position,
#: so they do not count.
EDGE = 2


def convergence(found: Any, wanted: Any) -> float:
    """Return the distance relative to `wanted`."""
    import numpy

    columns = slice(EDGE, min(found.shape[1], wanted.shape[1]) - EDGE)
    norm = numpy.linalg.norm
    return float(norm(found[:, columns] - wanted[:, columns]) / norm(wanted[:, columns]))


def main() -> None:
    """Print both distances."""
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
