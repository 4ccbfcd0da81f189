"""Native objects of the media core come and go without a trace (N17)."""

from __future__ import annotations

import gc
import resource
import threading
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from polymux._native import _media
from support.hostile_check import SANITIZED
from support.hostile_wav import Wave

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = 1000
SHORT = Wave(extra=b"").to_bytes()


def options(folder: Path) -> None:
    made = _media.ConvertOptions()
    made.tags = "none"
    _media.Limits().probe_bytes = 1 << 20


def conversion(folder: Path) -> None:
    started = _media.start_conversion(
        ("bytes", SHORT, "x"), None, _media.ConvertOptions(), False, None
    )
    started.wait()


def dropped_conversion(folder: Path) -> None:
    """Until its thread has done with Python: CPython 3.11 does not bear one that begins to use it
    while tracemalloc is stopped (gh-128679).
    """
    ended = threading.Event()
    _media.start_conversion(("bytes", SHORT, "x"), None, _media.ConvertOptions(), False, ended.set)
    assert ended.wait(30)


def index(folder: Path) -> None:
    assert _media.SongIndex(str(folder)).generation >= 0


def video(folder: Path) -> None:
    """Begun and dropped: its file goes as well."""
    path = str(folder / "a.mp4").encode()
    _media.VideoWriter(path, 64, 64, (10, 1), "auto", 50, 1, True)


WORKS = {
    "ConvertOptions, Limits": options,
    "Conversion": conversion,
    "Conversion, dropped": dropped_conversion,
    "SongIndex": index,
    "VideoWriter": video,
}


def use_all_threads() -> None:
    """Each thread of the pool keeps some MB since its first work, however late that is."""
    jobs = [
        _media.start_conversion(("bytes", SHORT, "x"), None, _media.ConvertOptions(), False, None)
        for _ in range(64)
    ]
    for job in jobs:
        job.wait()


def figures() -> dict[str, int]:
    gc.collect()
    status = Path("/proc/self/statm").read_text().split()
    return {
        "memory": int(status[1]) * resource.getpagesize(),
        "traced": tracemalloc.get_traced_memory()[0],
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
    }


@pytest.mark.parametrize("what", WORKS)
def test_a_thousand_times_leave_nothing(what: str, tmp_path: Path) -> None:
    """N17: memory, traced memory and descriptors are as after a fifth of them."""
    work: Callable[[Path], None] = WORKS[what]
    use_all_threads()
    tracemalloc.start()
    try:
        for _ in range(TIMES // 5):
            work(tmp_path)
        first = figures()
        for _ in range(TIMES - TIMES // 5):
            work(tmp_path)
        last = figures()
    finally:
        tracemalloc.stop()
    assert last["descriptors"] - first["descriptors"] <= 1, (first, last)
    assert last["traced"] - first["traced"] <= 64 << 10, (first, last)
    assert SANITIZED or last["memory"] - first["memory"] <= 8 << 20, (first, last)


def test_every_native_class_is_there() -> None:
    """N17: and a class that is added will be missed here."""
    classes = {name for name, value in vars(_media).items() if isinstance(value, type)}
    words = {word for name in WORKS for word in name.replace(",", "").split()}
    assert classes <= words
