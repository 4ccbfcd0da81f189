"""Which catalogue of songs a service asks: ``[songs]`` in a server's settings."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.deprecation import renamed_arguments
from polymux._util.settings import check
from polymux.errors import InvalidRequestError
from polymux.songs.settings import CONFIDENCE, catalogue_folder

if TYPE_CHECKING:
    import os

_log = logging.getLogger("polymux.songs")

#: Of a catalogue's folder.
DATABASE = "songs.sqlite3"
#: What makes a catalogue, for whoever has none.
REMEDY = "'polymux songs add FOLDER' puts your own music into the catalogue that is asked"


@renamed_arguments(least_confidence="min_confidence")
@dataclass(frozen=True, slots=True)
class SongSettings:
    """The catalogue of one's own songs.

    Attributes:
        catalogue: Its folder; what is not there yet is found as soon as it is. Default: the one
            that ``polymux songs`` uses without an argument, where it has songs at the start.
        empty_when_unknown: Answer by three empty texts (200) where no song is like a recording, as
            other servers of the interface do, in the place of an error (404). Default: False.
        min_confidence: From which confidence on a song is named, 0.5 to 0.99. Default: as for
            `polymux.Catalogue`.

    Raises:
        InvalidRequestError: The confidence is out of its range.

    Example:
        >>> from polymux.songs.selection import SongSettings
        >>> SongSettings().empty_when_unknown
        False
    """

    catalogue: Path | None = None
    empty_when_unknown: bool = False
    min_confidence: float | None = field(default=None, metadata=CONFIDENCE)

    def __post_init__(self) -> None:
        check(self)


def served_folder(wanted: str | os.PathLike[str] | None) -> Path | None:
    """The folder of the catalogue that is asked; None where none is named and there is none.

    Args:
        wanted: The one that is named; None for the default one.

    Example:
        >>> from polymux.songs.selection import served_folder
        >>> served_folder("music/catalogue").name
        'catalogue'
    """
    if wanted is not None:
        return Path(wanted).expanduser().absolute()
    try:
        folder = catalogue_folder()
    except InvalidRequestError as error:
        # Said where the catalogue is asked for by name; all else works without it.
        _log.warning("no catalogue of songs: %s", error)
        return None
    return folder if (folder / DATABASE).is_file() else None


def told(count: int) -> str:
    """How many songs there are, for people.

    Example:
        >>> from polymux.songs.selection import told
        >>> told(1), told(2500)
        ('1 song', '2,500 songs')
    """
    return f"{count:,} song{'' if count == 1 else 's'}"
