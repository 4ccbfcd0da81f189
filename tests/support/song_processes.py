"""Processes that use a song index: ``python -m support.song_processes WHAT INDEX ...``.

A final argument ``sqlite3`` makes them run as if apsw were not installed. Each prints a line for
every finished step.

- ``add FOLDER`` adds songs.
- ``write FOLDER`` adds songs, but prints ``writing`` before the second file and waits for a line.
- ``ask SNIPPET TITLE`` identifies a snippet repeatedly. It prints ``asking`` after the first time,
  and the number of correct results when its input ends.
- ``look SNIPPET`` does everything that works with a read-only index.
"""

from __future__ import annotations

import sys
import threading

if sys.argv[-1] == "sqlite3":
    sys.modules["apsw"] = None  # type: ignore[assignment]

import polymux


def add(folder: str, music: str) -> None:
    with polymux.SongIndex(folder) as index:
        print("begun", flush=True)
        report = index.add(
            music, workers=2, on_progress=lambda now: print(now.outcome, now.path.name, flush=True)
        )
        print("done", report.added + report.unchanged, flush=True)


def write(folder: str, music: str) -> None:
    waited = threading.Event()

    def wait(_: object) -> None:
        if not waited.is_set():
            waited.set()
            print("writing", flush=True)
            sys.stdin.readline()

    with polymux.SongIndex(folder) as index:
        report = index.add(music, workers=1, on_progress=wait)
        print("added", report.added, flush=True)


def ask(folder: str, snippet: str, title: str) -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    right = wrong = 0
    with polymux.SongIndex(folder) as index:
        while not (over.is_set() and right):
            match = index.identify(snippet)
            found = index.search(title, 1)
            if match and found and match.song.title == found[0].title == title:
                right += 1
            else:
                wrong += 1
            if right + wrong == 1:
                print("asking", flush=True)
    print("right", right > 0, "wrong", wrong, flush=True)


def look(folder: str, snippet: str) -> None:
    with polymux.SongIndex(folder) as index:
        assert index.stats().library.startswith(sys.argv[-1])
        match = index.identify(snippet)
        print("named", match and match.song.title)
        print("found", index.search("titel 2")[0].title)
        print("whole", index.check().is_whole, index.count())
        for change in (lambda: index.add(snippet), lambda: index.remove(1)):
            try:
                change()
            except polymux.SongIndexError as error:
                print("refused", error.code)
        print("memory", index.stats().index["memory_bytes"] > 0)
    with polymux.Local(engines={}, song_index=folder) as here:
        print("local", here.identify_song(snippet).name)


if __name__ == "__main__":
    words = [one for one in sys.argv[2:] if one not in ("apsw", "sqlite3")]
    {"add": add, "write": write, "ask": ask, "look": look}[sys.argv[1]](*words)
