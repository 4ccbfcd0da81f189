"""Chromaprint (https://acoustid.org/chromaprint) through its C interface, with a brute-force
search."""

from __future__ import annotations

import ctypes
import ctypes.util
import multiprocessing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchmarks.song import media

if TYPE_CHECKING:
    from collections.abc import Mapping

RATE_HZ = 11_025  # Chromaprint resamples every other rate to this one
DEFAULT_ALGORITHM = 1
PROCESSES = 2
Fingerprint = npt.NDArray[np.uint32]


@cache
def library() -> ctypes.CDLL:
    """Load the library.

    Raises:
        OSError: It is not installed.
    """
    name = ctypes.util.find_library("chromaprint")
    if name is None:
        raise OSError("libchromaprint is not installed: apt-get install libchromaprint1")
    found = ctypes.CDLL(name)
    found.chromaprint_new.restype = ctypes.c_void_p
    found.chromaprint_get_version.restype = ctypes.c_char_p
    return found


def version() -> str:
    """Return the library's version."""
    encoded: bytes = library().chromaprint_get_version()
    return encoded.decode()


def decoded(source: Path | bytes) -> bytes:
    """Decode a file or an upload to mono 16-bit samples; empty if it cannot be read."""
    wanted = ("-ar", str(RATE_HZ), "-ac", "1", "-f", "s16le", "pipe:1")
    if isinstance(source, Path):
        return media.ffmpeg("-i", source, *wanted)
    try:
        return media.ffmpeg("-i", "pipe:0", *wanted, given=source)
    except RuntimeError:
        return b""


def fingerprint(samples: bytes) -> Fingerprint:
    """Return 32 bits for each eighth of a second, starting at 2.6 s."""
    known = library()
    context = ctypes.c_void_p(known.chromaprint_new(DEFAULT_ALGORITHM))
    words, size = ctypes.POINTER(ctypes.c_uint32)(), ctypes.c_int(0)
    try:
        known.chromaprint_start(context, RATE_HZ, 1)
        known.chromaprint_feed(context, samples, len(samples) // 2)
        known.chromaprint_finish(context)
        known.chromaprint_get_raw_fingerprint(context, ctypes.byref(words), ctypes.byref(size))
        return np.array(words[: size.value], np.uint32)
    finally:
        known.chromaprint_dealloc(words)
        known.chromaprint_free(context)


def fingerprint_of(path: Path) -> Fingerprint:
    return fingerprint(decoded(path))


class Index:
    """The concatenated fingerprints of files.

    Args:
        files: Names to files.
    """

    def __init__(self, files: Mapping[str, Path]) -> None:
        with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
            made = pool.map(fingerprint_of, list(files.values()))
        self.names = list(files)
        self.words = np.concatenate(made)
        self.owners = np.repeat(np.arange(len(made)), [len(one) for one in made])

    def nearest(self, content: bytes) -> tuple[str | None, float]:
        """Return the file that matches an upload with the fewest bit errors, and the share of
        these errors."""
        asked = fingerprint(decoded(content))
        places = len(self.words) - len(asked) + 1
        if not len(asked) or places < 1:
            return None, 1.0
        errors = np.zeros(places, np.uint32)
        for number, word in enumerate(asked):
            errors += np.bitwise_count(self.words[number : number + places] ^ word)
        across = self.owners[:places] != self.owners[len(asked) - 1 :]
        errors[across] = 32 * len(asked)
        best = int(np.argmin(errors))
        return self.names[self.owners[best]], float(errors[best] / (32.0 * len(asked)))
