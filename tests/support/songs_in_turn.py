"""A process that writes or asks, a step for each line of its standard input.

``python -m support.songs_in_turn write CATALOGUE FOLDER`` adds songs; before it looks at the second
file it says ``writing`` and waits for a line. ``ask CATALOGUE SNIPPET TITLE`` names the song of a
snippet again and again, says ``asking`` after the first time, and how often it was right once its
input ends.
"""

from __future__ import annotations

import sys
import threading

import polymux


def write(folder: str, music: str) -> None:
    waited = threading.Event()

    def wait(_: object) -> None:
        if not waited.is_set():
            waited.set()
            print("writing", flush=True)
            sys.stdin.readline()

    with polymux.Catalogue(folder) as catalogue:
        report = catalogue.add(music, workers=1, on_progress=wait)
        print("added", report.added, flush=True)


def ask(folder: str, snippet: str, title: str) -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    right = wrong = 0
    with polymux.Catalogue(folder) as catalogue:
        while not (over.is_set() and right):
            match = catalogue.identify(snippet)
            found = catalogue.search(title, 1)
            if match and found and match.song.title == found[0].title == title:
                right += 1
            else:
                wrong += 1
            if right + wrong == 1:
                print("asking", flush=True)
    print("right", right > 0, "wrong", wrong, flush=True)


if __name__ == "__main__":
    {"write": write, "ask": ask}[sys.argv[1]](*sys.argv[2:])
