from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from polymux._native import _media
from support.hostile_wav import Wave
from support.memory import leaves_nothing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHORT = ("bytes", Wave(extra=b"").to_bytes(), "x")


def options(_: Path) -> None:
    made = _media.ConvertOptions()
    made.tags = "none"
    _media.Limits().probe_bytes = 1 << 20


def started() -> _media.Conversion:
    return _media.start_conversion(SHORT, None, _media.ConvertOptions(), False, None)


def dropped_conversion(_: Path) -> None:
    """Wait until the thread of a dropped conversion has released its Python objects."""
    ended = threading.Event()
    _media.start_conversion(SHORT, None, _media.ConvertOptions(), False, ended.set)
    assert ended.wait(30)


def video(folder: Path) -> None:
    path = str(folder / "a.mp4").encode()
    _media.VideoWriter(path, 64, 64, (10, 1), "auto", 50, 1, True)


WORKS: dict[str, Callable[[Path], object]] = {
    "ConvertOptions, Limits": options,
    "Conversion": lambda _: started().wait(),
    "Conversion, dropped": dropped_conversion,
    "SongIndex": lambda folder: _media.SongIndex(str(folder)).generation,
    "VideoWriter": video,
}


@pytest.mark.parametrize("what", WORKS)
def test_many_times_leave_nothing(what: str, tmp_path: Path) -> None:
    # Each thread of the pool keeps some MB from its first work on, whenever that is.
    for job in [started() for _ in range(64)]:
        job.wait()
    leaves_nothing(lambda: WORKS[what](tmp_path), 100)


def test_every_native_class_is_there() -> None:
    """A new native class must be added to this list."""
    classes = {name for name, value in vars(_media).items() if isinstance(value, type)}
    words = {word for name in WORKS for word in name.replace(",", "").split()}
    assert classes <= words
