"""One writer and several readers, each in a separate process."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support import generated_songs, programs

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[2]
MAX_S = 60.0


def started(*words: object, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = [*before, sys.executable, "-m", "support.song_processes", *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def more(tmp_path: Path) -> Path:
    folder = tmp_path / "more"
    folder.mkdir()
    for seed in range(200, 204):
        generated_songs.write(folder / f"{seed}.wav", generated_songs.sound(seed, 6))
    return folder


def test_one_writes_others_ask_and_a_second_writer_is_refused(
    filled: Path, more: Path, snippets: list[Path]
) -> None:
    asking = [started("ask", filled, snippets[number], f"Title {number}") for number in (0, 1)]
    writer = started("write", filled, more)
    try:
        assert [line_of(one) for one in (*asking, writer)] == ["asking", "asking", "writing"]
        with polymux.SongIndex(filled) as second:
            with pytest.raises(polymux.SongIndexError) as caught:
                second.add(more)
            assert caught.value.code == "song_index_busy"
            assert str(writer.pid) in str(caught.value)
            with pytest.raises(polymux.SongIndexError):
                second.remove(1)
            # A writer does not block readers.
            match = second.identify(snippets[2])
            assert match is not None
            assert match.song.title == "Title 2"
            assert writer.communicate("go on\n", timeout=MAX_S)[0] == "added 4\n"
            assert second.count() == 8
            assert second.add(more).unchanged == 4
        for one in asking:
            assert one.communicate(timeout=MAX_S)[0] == "right True wrong 0\n"
    finally:
        for one in (*asking, writer):
            one.kill()
            one.wait()


def test_a_signal_while_segments_are_written_gives_the_lock_back_afterwards(
    tmp_path: Path, more: Path
) -> None:
    folder = tmp_path / "index"
    with polymux.SongIndex(folder):
        pass
    part = folder / "segments" / "000000000001.segment.part"
    part.parent.mkdir()
    # A slow disk: the fsync takes longer than the wait for abandoned work.
    before = (
        programs.find("strace"), "-qq", "-f", "-o", str(tmp_path / "trace"), "-P", str(part),
        "-e", "trace=fsync", "-e", "inject=fsync:delay_exit=6000000",
    )  # fmt: skip
    process = started("add", folder, more, before=before)
    try:
        await_that(part.exists, process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        os.kill(int(children.read_text().split()[0]), signal.SIGINT)
        with (folder / "lock").open() as lock:
            await_that(lambda: is_free(lock), process)
            names = {one.name for one in part.parent.iterdir()}
        assert names == {"000000000001.segment", "manifest"}
        process.communicate(timeout=MAX_S)
    finally:
        process.kill()
        process.wait()
    with polymux.SongIndex(folder) as index:
        assert index.stats().songs == index.stats().index["songs"] == 4
        assert index.check().is_whole


def await_that(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    for _ in range(round(MAX_S / 0.01)):
        if holds():
            return
        threading.Event().wait(0.01)
    process.kill()
    pytest.fail(f"it never came to that: {process.communicate()}")


def is_free(lock: Any) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def test_want_of_open_files_is_no_damage(filled: Path, snippets: list[Path]) -> None:
    script = f"""
import os, resource, polymux
with polymux.SongIndex({str(filled)!r}) as index:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    from polymux._native import media  # Loading its libraries opens files, too.
    query = media.song_query(("path", {str(snippets[0])!r}.encode(), "a"), media.Limits())["query"]
    free = os.dup(0)
    os.close(free)
    # One file may be open: the manifest. Segments are closed after they are mapped.
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        index.identify_query(query)
        print("named")
    except polymux.SongIndexError as error:
        print(error.errno, "oo many " in str(error))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(index.identify_query(query) is not None, index.stats().index["memory_bytes"])
    print(index._index.damaged)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"{errno.EMFILE} True", "True 0", "[]"], done.stderr
