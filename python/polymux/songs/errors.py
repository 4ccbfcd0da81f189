"""How a catalogue fails."""

from __future__ import annotations

import errno

from polymux.errors import CatalogueError


def is_full(name: str) -> CatalogueError:
    """No room for what should be written; nothing of it was."""
    return CatalogueError(
        f"the disk of the catalogue {name} is full: make room and do it again; what was written "
        "before is kept",
        code="storage_full",
        errno=errno.ENOSPC,
    )


def is_damaged(name: str, words: str) -> CatalogueError:
    """The database is not whole."""
    return CatalogueError(
        f"the catalogue {name} is damaged ({words}): put a backup of it in its place, or move it "
        "away and add the music again; nothing was removed",
        code="catalogue_damaged",
    )


def is_busy(name: str, holder: str) -> CatalogueError:
    """Another process writes."""
    return CatalogueError(
        f"the catalogue {name} is being written by another process ({holder}): wait for its end; "
        "songs can be searched and identified meanwhile",
        code="catalogue_busy",
    )
