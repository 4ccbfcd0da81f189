"""One index used by several processes, with kills and full disks."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from shlex import quote

import polymux
import pytest
from support import generated_songs, programs

TESTS = Path(__file__).parents[2]


def adding(folder: Path, music: Path, *before: str, library: str = "apsw") -> subprocess.Popen[str]:
    words = ["support.song_processes", "add", str(folder), str(music), library]
    command = [*before, sys.executable, "-m", *words]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    for seed in range(100, 112):
        samples = generated_songs.sound(seed, 6)
        generated_songs.write(folder / f"Many - Song {seed}.wav", samples)
    return folder


def test_many_ask_while_one_adds(
    tmp_path: Path, music: Path, many: Path, snippets: list[Path]
) -> None:
    with polymux.SongIndex(tmp_path / "index") as index:
        index.add(music)
        over = threading.Event()
        wrong: list[str] = []

        def ask(number: int) -> None:
            while not over.is_set():
                match = index.identify(snippets[number])
                if match is None or match.song.title != f"Title {number}":
                    wrong.append(f"{number}: {match}")
                if not index.search(f"Title {number}"):
                    wrong.append(f"{number} is not found by name")

        threads = [threading.Thread(target=ask, args=(number,)) for number in (0, 1)]
        for one in threads:
            one.start()
        try:
            report = index.add(many)
        finally:
            over.set()
            for one in threads:
                one.join()
        assert (report.added, wrong) == (12, [])


def check_whole(folder: Path, acknowledged: set[str]) -> None:
    with sqlite3.connect(f"file:{folder}/songs.sqlite3?mode=ro", uri=True) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    with polymux.SongIndex(folder) as index:
        assert acknowledged <= {song.path.name for song in index.songs()}
        assert index.check().is_whole
        assert index.stats().index["songs"] == index.stats().recordings


def kill_rounds(folder: Path, music: Path, rounds: int, seed: int) -> None:
    """Kill a process that adds songs at some file or time. No reported song is lost."""
    chance = random.Random(seed)
    for number in range(rounds):
        shutil.rmtree(folder, ignore_errors=True)
        acknowledged: set[str] = set()
        for _ in range(2):
            process = adding(folder, music)
            until, delay_s = chance.randrange(14), chance.uniform(0, 0.05)
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(("added", "unchanged", "duplicate")):
                    acknowledged.add(line.split(" ", 1)[1].strip())
                until -= 1
                if until < 0:
                    break
            threading.Event().wait(delay_s)
            process.send_signal(signal.SIGKILL)
            out = process.communicate(timeout=60)[0]
            acknowledged |= {
                line.split(" ", 1)[1] for line in out.splitlines() if line.startswith("added ")
            }
        check_whole(folder, acknowledged)
        with polymux.SongIndex(folder) as index:
            report = index.add(music)
            assert report.added + report.unchanged == 12, f"seed {seed}, round {number}"
            assert report.unchanged >= len(acknowledged)


def test_killed_while_it_adds(tmp_path: Path, many: Path) -> None:
    kill_rounds(tmp_path / "index", many, 2, 1)


@pytest.mark.long
def test_killed_two_hundred_times(tmp_path: Path, many: Path) -> None:
    kill_rounds(tmp_path / "index", many, 200, random.SystemRandom().randrange(1 << 32))


@pytest.mark.parametrize(
    ("library", "size_kib"),
    [
        *(("apsw", size_kib) for size_kib in (60, 560)),
        # Without a write-ahead log it needs less space.
        *(("sqlite3", size_kib) for size_kib in (60, 240)),
    ],
)
def test_a_full_disk(tmp_path: Path, many: Path, library: str, size_kib: int) -> None:
    """Reported songs remain, and adding continues with new space, at every limit (D02)."""
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    folder = tmp_path / "disk"
    folder.mkdir()
    kept = tmp_path / "kept"
    script = (
        "mount --make-rprivate / && "
        f"mount -t tmpfs -o size={size_kib}k none {quote(str(folder))} && "
        f'"$@"; code=$?; cp -r {quote(str(folder))} {quote(str(kept))}; exit $code'
    )
    before = (programs.find("unshare"), *user, "--mount", "/bin/sh", "-c", script, "sh")
    with adding(folder / "index", many, *before, library=library) as process:
        out, errors = process.communicate(timeout=120)
    acknowledged = {line.split(" ", 1)[1] for line in out.splitlines() if line.startswith("added")}
    if process.returncode != 0:
        assert "storage_full" in errors or "is full" in errors, errors
    else:
        assert len(acknowledged) == 12
    if size_kib == 60:
        assert not acknowledged
    check_whole(kept / "index", acknowledged)
    with polymux.SongIndex(kept / "index") as index:
        assert index.add(many).added == 12 - len(acknowledged)


@pytest.mark.parametrize("damage", ["garbage", "gone", "manifest"])
def test_damaged_segments_are_made_anew(filled: Path, snippets: list[Path], damage: str) -> None:
    segments = filled / "segments"
    files = [one for one in segments.iterdir() if one.stat().st_size > 1000]
    assert files
    for one in files:
        if damage == "garbage":
            one.write_bytes(os.urandom(one.stat().st_size))
        elif damage == "gone":
            one.unlink()
    if damage == "manifest":
        for one in set(segments.iterdir()) - set(files):
            one.write_bytes(b"garbage")
    for _ in range(2):
        with polymux.SongIndex(filled) as index:
            for number in range(4):
                match = index.identify(snippets[number])
                assert match is not None
                assert match.song.title == f"Title {number}"
    with polymux.SongIndex(filled) as index:
        assert index.check().is_whole
        assert index.stats().index["memory_bytes"] == 0


def test_segments_of_another_index_are_not_used(
    filled: Path, tmp_path: Path, music: Path, snippets: list[Path]
) -> None:
    other = tmp_path / "other"
    with polymux.SongIndex(other) as index:
        index.add(music / "song 3.wav")
    shutil.rmtree(other / "segments")
    shutil.copytree(filled / "segments", other / "segments")
    with polymux.SongIndex(other) as index:
        assert index.identify(snippets[0]) is None
        match = index.identify(snippets[3])
        assert match is not None
        assert match.song.title == "Title 3"


@pytest.mark.parametrize("damage", ["garbage", "middle"])
def test_a_damaged_database_is_refused_and_stays(filled: Path, damage: str) -> None:
    path = filled / "songs.sqlite3"
    if damage == "garbage":
        path.write_bytes(os.urandom(50_000))
    else:
        data = bytearray(path.read_bytes())
        for page in range(2, len(data) // 4096):
            data[4096 * page : 4096 * page + 100] = bytes(100)
        path.write_bytes(data)
    left = path.read_bytes()

    def use() -> None:
        with polymux.SongIndex(filled) as index:
            report = index.check()
            if not report.is_whole:
                raise polymux.SongIndexError(report.problems[0], code="song_index_damaged")

    with pytest.raises(polymux.SongIndexError) as caught:
        use()
    assert caught.value.code == "song_index_damaged", caught.value
    assert len(path.read_bytes()) == len(left)


def test_an_empty_database_begins_anew(filled: Path, music: Path, snippets: list[Path]) -> None:
    os.truncate(filled / "songs.sqlite3", 0)
    with polymux.SongIndex(filled) as index:
        assert index.identify(snippets[0]) is None
        assert index.add(music).added == 4
        assert index.identify(snippets[0]) is not None


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("PRAGMA application_id = 7", "index"),
        ("PRAGMA user_version = 99", "99"),
    ],
)
def test_another_program_s_database_and_a_newer_one_are_refused(
    filled: Path, statement: str, expected: str
) -> None:
    with sqlite3.connect(filled / "songs.sqlite3") as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(polymux.SongIndexError, match=expected):
        polymux.SongIndex(filled)
