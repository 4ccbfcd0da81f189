"""Damage inside the index that searches do not notice: readers verify it in the background."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.songs import reader as songs_reader
from polymux.songs.reader import ReadOnlySongIndex

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_S = 60.0


def flip(folder: Path, *, in_place: bool = False) -> None:
    """Change bytes inside segments, but not at their start and end.

    Args:
        in_place: Change the files that a reader has mapped (default: replace them).
    """
    for one in (folder / "segments").iterdir():
        if one.name != "manifest":
            content = one.read_bytes()
            first, last = len(content) // 2, 9 * len(content) // 10
            if not in_place:
                one.unlink()
                one.write_bytes(content)
            with one.open("r+b") as file:
                file.seek(first)
                file.write(bytes(byte ^ 0xFF for byte in content[first:last]))


def named(index: polymux.SongIndex, snippets: list[Path]) -> list[str]:
    matches = [index.identify(snippet) for snippet in snippets[:4]]
    return [match.song.title for match in matches if match is not None]


def await_verified(index: ReadOnlySongIndex, times: int = 1) -> None:
    for _ in range(round(MAX_S / 0.01)):
        if index._index.verified >= times:
            return
        time.sleep(0.01)
    pytest.fail("the files were not read")


ALL = [f"Title {number}" for number in range(4)]


def test_a_reader_finds_damage_inside_of_a_file(
    filled: Path,
    snippets: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    flip(filled)
    monkeypatch.setattr(songs_reader, "VERIFIED_AFTER_S", MAX_S)
    with ReadOnlySongIndex(filled) as reader:
        # Before the verification, songs are missing.
        assert named(reader, snippets) != ALL
        assert reader.stats().index["memory_bytes"] == 0
    monkeypatch.setattr(songs_reader, "VERIFIED_AFTER_S", 0)
    files = {path: path.stat().st_mtime_ns for path in (filled / "segments").iterdir()}
    with ReadOnlySongIndex(filled) as reader:
        reader.identify(snippets[0])
        await_verified(reader)
        assert named(reader, snippets) == ALL
        assert reader.identify(snippets[4]) is None
        assert reader.stats().index["memory_bytes"] > 0
        assert "polymux songs check" in caplog.text
        # A reader writes nothing. The next writer repairs the index.
        assert {path: path.stat().st_mtime_ns for path in (filled / "segments").iterdir()} == files
        with polymux.SongIndex(filled) as index:
            assert index.check().damaged_segments
            assert index.check().is_whole
        assert named(reader, snippets) == ALL
        assert reader.stats().index["memory_bytes"] == 0


def test_damage_that_comes_later_is_found_by_the_next_look(
    filled: Path,
    snippets: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(songs_reader, "VERIFIED_AFTER_S", 0)
    monkeypatch.setattr(songs_reader, "VERIFIED_EVERY_S", 1.0)
    with ReadOnlySongIndex(filled) as reader:
        assert named(reader, snippets) == ALL
        await_verified(reader)
        assert not caplog.records
        flip(filled, in_place=True)
        # Reads stay within bounds for any bytes.
        named(reader, snippets)
        await_verified(reader, reader._index.verified + 2)
        assert "polymux songs check" in caplog.text
        assert named(reader, snippets) == ALL
        assert reader.identify(snippets[4]) is None
        assert reader.stats().index["memory_bytes"] > 0
    # Without another verification the damage remains.
    monkeypatch.setattr(songs_reader, "VERIFIED_AFTER_S", MAX_S)
    with ReadOnlySongIndex(filled) as reader:
        assert named(reader, snippets) != ALL


class Slow:
    """A native index whose files are verified slowly by a low-priority thread."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.priority = 0

    def verify(self, go_on: Callable[[], object]) -> Any:
        self.priority = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        self.began.set()
        for _ in range(round(MAX_S / 0.01)):
            go_on()
            time.sleep(0.01)
        raise AssertionError


def test_closing_ends_it(
    filled: Path, snippets: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ReadOnlySongIndex(filled) as reader:
        assert named(reader, snippets) == ALL
        assert reader._index.verification is not None
        assert reader._index.verification.is_alive()
    assert not reader._index.verification.is_alive()
    monkeypatch.setattr(songs_reader, "VERIFIED_AFTER_S", 0)
    slow = Slow()
    with ReadOnlySongIndex(filled) as reader:
        native = reader._index.current
        own = threading.get_ident()
        monkeypatch.setattr(
            reader._index, "current", lambda: native() if threading.get_ident() == own else slow
        )
        assert named(reader, snippets) == ALL
        assert slow.began.wait(MAX_S)
        assert named(reader, snippets) == ALL
        assert slow.priority == os.getpriority(os.PRIO_PROCESS, 0) + 10
    thread = reader._index.verification
    assert thread is not None
    assert not thread.is_alive()
