"""Chromaprint (https://acoustid.org/chromaprint) by its C interface; places by brute force."""

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

RATE_HZ = 11_025  # what it makes of any other rate itself
DEFAULT_ALGORITHM = 1
PROCESSES = 2
Fingerprint = npt.NDArray[np.uint32]


@cache
def library() -> ctypes.CDLL:
    """The library.

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
    """Of the library."""
    told: bytes = library().chromaprint_get_version()
    return told.decode()


def decoded(source: Path | bytes) -> bytes:
    """Mono samples of 16 bits of a file, or of an upload; nothing where it cannot be read."""
    wanted = ("-ar", str(RATE_HZ), "-ac", "1", "-f", "s16le", "pipe:1")
    if isinstance(source, Path):
        return media.ffmpeg("-i", source, *wanted)
    try:
        return media.ffmpeg("-i", "pipe:0", *wanted, given=source)
    except RuntimeError:
        return b""


def fingerprint(samples: bytes) -> Fingerprint:
    """32 bits for each eighth of a second, from 2.6 s on."""
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
    """The fingerprint of a file."""
    return fingerprint(decoded(path))


class Index:
    """The fingerprints of files, one after another.

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
        """The name of the file where an upload has the least wrong bits, and the share of these."""
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
