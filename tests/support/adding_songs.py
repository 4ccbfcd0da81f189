"""A process that adds songs: ``python -m support.adding_songs CATALOGUE FOLDER [sqlite3]``.

With the third word it goes on as if apsw were not installed.
It prints a line for each song that is written down, and one when all is done.
"""

from __future__ import annotations

import sys

if "sqlite3" in sys.argv[3:]:
    sys.modules["apsw"] = None  # type: ignore[assignment]

import polymux


def main() -> None:
    folder, music = sys.argv[1:3]
    with polymux.Catalogue(folder) as catalogue:
        print("begun", flush=True)
        report = catalogue.add(
            music, workers=2, on_progress=lambda now: print(now.outcome, now.path.name, flush=True)
        )
        print("done", report.added + report.unchanged, flush=True)


if __name__ == "__main__":
    main()
