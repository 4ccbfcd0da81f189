"""Asks a catalogue that cannot be written: ``python -m support.read_only_songs apsw FOLDER FILE``.

The first word is ``apsw`` or ``sqlite3``. It prints one line for each thing that it has done.
"""

from __future__ import annotations

import sys

if sys.argv[1] == "sqlite3":
    sys.modules["apsw"] = None  # type: ignore[assignment]

import polymux


def main() -> None:
    _, library, folder, snippet = sys.argv
    with polymux.Catalogue(folder) as catalogue:
        assert catalogue.stats().library.startswith(library)
        match = catalogue.identify(snippet)
        print("named", match and match.song.title)
        print("found", catalogue.search("titel 2")[0].title)
        print("whole", catalogue.check().is_whole, catalogue.count())
        for change in (lambda: catalogue.add(snippet), lambda: catalogue.remove(1)):
            try:
                change()
            except polymux.CatalogueError as error:
                print("refused", "cannot be written" in str(error), error.code)
        print("memory", catalogue.stats().index["memory_bytes"] > 0)
    with polymux.Local(engines={}, catalogue=folder) as here:
        print("local", here.identify_song(snippet).name)


if __name__ == "__main__":
    main()
