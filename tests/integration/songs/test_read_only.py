"""Song indexes on read-only disks and in read-only folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.songs.reader import ReadOnlySongIndex
from support import generated_songs, programs

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[2]
ALL = [
    "named Title 1", "found Title 2", "whole True 4", "refused song_index_failed",
    "refused song_index_failed", "memory False", "local Title 1 - Artist 1",
]  # fmt: skip


def mounted(folder: Path) -> tuple[str, ...]:
    """The command prefix for a folder on a read-only mount."""
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    place = quote(str(folder))
    script = (
        f"mount --make-rprivate / && mount --bind {place} {place} && "
        f'mount -o remount,bind,ro {place} && exec "$@"'
    )
    return (programs.find("unshare"), *user, "--mount", "/bin/sh", "-c", script, "sh")


def powerless(folder: Path) -> tuple[str, ...]:
    """A command prefix: the folder's owner, without write permission or root's capabilities."""
    folder.chmod(0o555)
    return (programs.find("unshare"), "--user")


def asked(
    before: tuple[str, ...], library: str, folder: Path, snippet: Path
) -> subprocess.CompletedProcess[str]:
    words = ["support.song_processes", "look", folder, snippet, library]
    command = [*before, sys.executable, "-m", *words]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, check=False
    )


def written(folder: Path) -> dict[Path, int]:
    """The modification time of every file except the lock, which every writer updates."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {path: path.stat().st_mtime_ns for path in files}


@pytest.mark.parametrize(
    ("made_by", "library", "place"),
    [
        ("sqlite3", "apsw", mounted),
        ("apsw", "sqlite3", powerless),
    ],
)
def test_it_is_asked_and_not_changed(
    tmp_path: Path,
    music: Path,
    snippets: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    made_by: str,
    library: str,
    place: Callable[[Path], tuple[str, ...]],
) -> None:
    folder = tmp_path / "index"
    if made_by == "sqlite3":
        monkeypatch.setattr("polymux._util.sqlite.apsw", None)
    with polymux.SongIndex(folder) as index:
        index.add(music, workers=1)
    before = written(folder)
    done = asked(place(folder), library, folder, snippets[1])
    folder.chmod(0o755)
    assert done.stdout.splitlines() == ALL, done.stderr
    assert written(folder) == before


def test_without_segments_the_index_is_in_memory(filled: Path, snippets: list[Path]) -> None:
    shutil.rmtree(filled / "segments")
    done = asked(mounted(filled), "apsw", filled, snippets[1])
    assert done.stdout.splitlines() == [*ALL[:-2], "memory True", ALL[-1]], done.stderr


@pytest.mark.parametrize("library", ["apsw", "sqlite3"])
def test_what_a_killed_writer_left_is_read_or_reported(
    filled: Path, tmp_path: Path, snippets: list[Path], library: str
) -> None:
    """Committed songs are in the write-ahead log, useless without its shared memory file."""
    copy = tmp_path / "copy"
    with polymux.SongIndex(filled) as index:
        with index._database.transaction():
            index._database.writer.rows("UPDATE songs SET title = 'In the log' WHERE id = 2")
        shutil.copytree(filled, copy)
    assert (copy / "songs.sqlite3-wal").stat().st_size > 0
    expected = [line.replace("Title 1", "In the log") for line in ALL]
    done = asked(mounted(copy), library, copy, snippets[1])
    assert done.stdout.splitlines() == expected, done.stderr
    (copy / "songs.sqlite3-shm").unlink()
    done = asked(mounted(copy), library, copy, snippets[1])
    assert done.returncode != 0
    assert "SongIndexError" in done.stderr


@pytest.mark.parametrize("library", ["apsw", "sqlite3"])
def test_somebody_else_may_change_it(
    filled: Path,
    tmp_path: Path,
    snippets: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    library: str,
) -> None:
    """Changes while the index is open and afterwards, also if it is read without locks."""
    added = generated_songs.song(tmp_path / "added.flac", 77, title="Added")
    with monkeypatch.context() as patched:
        patched.setattr("polymux._util.sqlite._is_fixed", lambda _: True)
        if library == "sqlite3":
            patched.setattr("polymux._util.sqlite.apsw", None)
        reader = ReadOnlySongIndex(filled)
        assert reader.identify(snippets[4]) is None
    monkeypatch.setattr("polymux.songs.write_lock.WritingLock.try_acquire", lambda _: False)
    with reader:
        with polymux.SongIndex(filled) as owner:
            owner.add(added)
            for _ in range(2):
                match = reader.identify(snippets[4])
                assert match is not None
                assert match.song.title == "Added"
                assert reader.count() == 5
        assert reader.search("added")[0].title == "Added"
        with polymux.SongIndex(filled) as owner:
            owner.remove(added)
        assert reader.identify(snippets[4]) is None
        assert reader.search("added") == []
        assert reader.count() == 4
