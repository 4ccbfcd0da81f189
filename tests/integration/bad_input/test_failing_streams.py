"""File objects and callbacks that raise at any of their calls.

The exception must reach the caller unchanged with its traceback, no files may remain, and the next
conversion must succeed. To the core, a failing disk looks the same: reads, writes and seeks that
fail at the n-th call, for every n that a conversion reaches.
"""

from __future__ import annotations

import io
import traceback
from typing import TYPE_CHECKING, Any

import polymux
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.hostile import Clips


class BrokenStreamError(Exception):
    pass


class Failing(io.BytesIO):
    """A file that counts the calls of its methods and raises at the n-th call."""

    def __init__(
        self, data: bytes = b"", fail_at: int | None = None, error: BaseException | None = None
    ) -> None:
        super().__init__(data)
        self.calls = 0
        self._fail_at = fail_at
        self._error = error or BrokenStreamError("the n-th call")

    def count(self) -> None:
        self.calls += 1
        if self.calls == self._fail_at:
            raise self._error

    def read(self, size: int | None = -1, /) -> bytes:
        self.count()
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        self.count()
        return super().readinto(buffer)

    def write(self, data: Any, /) -> int:
        self.count()
        return super().write(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self.count()
        return super().seek(offset, whence)

    def tell(self) -> int:
        self.count()
        return super().tell()


def points(calls: int, most: int = 24) -> Iterator[int]:
    """Every call number from first to last. If there are many, some in the middle are skipped."""
    if calls <= most:
        yield from range(1, calls + 1)
        return
    edge = most // 4
    yield from range(1, edge + 1)
    step = max(1, (calls - 2 * edge) // (most // 2))
    yield from range(edge + 1, calls - edge, step)
    yield from range(calls - edge, calls + 1)


@pytest.mark.parametrize("name", ["wav", "m4a", "ogg", "flac"])
def test_a_source_that_fails_at_any_call(name: str, clips: Clips) -> None:
    data = clips.data(name)
    expected = polymux.convert_to_mp3(data).read()
    whole = Failing(data)
    assert polymux.convert_to_mp3(whole).read() == expected
    assert whole.calls > 2
    for point in points(whole.calls):
        with pytest.raises(BrokenStreamError) as caught:
            polymux.convert_to_mp3(Failing(data, point))
        assert "count" in [frame.name for frame in traceback.extract_tb(caught.tb)]
    assert polymux.convert_to_mp3(data).read() == expected


def test_a_sink_that_fails_at_any_call(clips: Clips) -> None:
    data = clips.data("wav")
    whole = Failing()
    polymux.convert_to_mp3(data, whole)
    assert whole.calls > 1
    for point in points(whole.calls):
        with pytest.raises(BrokenStreamError):
            polymux.convert_to_mp3(data, Failing(b"", point))


@pytest.mark.parametrize(
    "error", [ValueError("own"), KeyboardInterrupt(), SystemExit(3), MemoryError()], ids=repr
)
def test_any_exception_of_a_callback_comes_out_unchanged(
    error: BaseException, clips: Clips, long_wave: Path, tmp_path: Path
) -> None:
    def on_progress(progress: polymux.Progress) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        polymux.convert_to_mp3(long_wave, tmp_path / "out.mp3", on_progress=on_progress)
    assert caught.value is error
    assert "on_progress" in [frame.name for frame in traceback.extract_tb(caught.tb)]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(type(error)) as caught:
        polymux.convert_to_mp3(Failing(clips.data("wav"), 3, error))
    assert caught.value is error


def test_a_callback_may_convert(clips: Clips) -> None:
    source = clips.path("flac")
    inner: list[bytes] = []

    def on_progress(progress: polymux.Progress) -> None:
        if not inner:
            inner.append(polymux.convert_to_mp3(source).read())

    outer = polymux.convert_to_mp3(source, on_progress=on_progress).read()
    assert inner == [outer]
