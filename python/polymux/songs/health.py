"""What `polymux doctor` says of the catalogue of songs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.errors import CatalogueError
from polymux.songs.selection import REMEDY, served_folder, told

if TYPE_CHECKING:
    from pathlib import Path


def songs(wanted: Path | None = None) -> dict[str, Any]:
    """Whether there is a catalogue, and how many songs it has. None is made.

    Args:
        wanted: The folder that a server's settings name. Default: the one that ``polymux songs``
            uses without an argument.

    Returns:
        ``ok``, ``songs``, ``folder`` (None where there is no catalogue), ``problem`` (why it cannot
        be read, else None) and ``remedy``.

    Example:
        >>> from polymux.songs.health import songs
        >>> sorted(songs())
        ['folder', 'ok', 'problem', 'remedy', 'songs']
    """
    folder = served_folder(wanted)
    count, problem = 0, None
    if folder is not None:
        from polymux.songs.reader import Library

        library = Library(folder)
        try:
            count = library.count()
        except CatalogueError as error:
            problem = str(error)
        finally:
            library.close()
    return {
        "ok": count > 0,
        "songs": count,
        "folder": None if folder is None else folder.as_posix(),
        "problem": problem,
        "remedy": REMEDY,
    }


def lines(found: dict[str, Any]) -> list[str]:
    """The same for people."""
    if found["problem"] is not None:
        return [f"missing  the catalogue of songs: {found['problem']}"]
    if not found["ok"]:
        return [f"absent   songs by their sound and name ({found['remedy']})"]
    return [f"ok       songs by their sound and name: {told(found['songs'])} in the catalogue"]
