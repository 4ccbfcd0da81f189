"""Which catalogue of songs is used, and from which confidence a song is named."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from polymux._util.deprecation import renamed_arguments
from polymux._util.settings import Rule, TableReader, check, read_toml
from polymux._util.text import display_name
from polymux.config import config_path
from polymux.errors import CatalogueError, InvalidRequestError
from polymux.media.options import number

_log = logging.getLogger("polymux.songs")

#: Of a catalogue's folder.
DATABASE = "songs.sqlite3"
#: What makes a catalogue, for whoever has none.
REMEDY = "'polymux songs add FOLDER' puts your own music into the catalogue that is asked"

#: The confidence from which a song is named. Below this range the first result would be a guess,
#: above it hardly any song would be named.
CONFIDENCE = {"rule": Rule("float", min=0.5, max=0.99)}


@renamed_arguments(least_confidence="min_confidence")
@dataclass(frozen=True, slots=True)
class SongSettings:
    """The music library of a server.

    Attributes:
        catalogue: Folder of the song index. It may be created later. Default: the index of
            ``polymux songs``, if it has songs when the server starts.
        empty_when_unknown: Return three empty texts (200) instead of an error (404) if no song
            matches. Default: False.
        min_confidence: Minimum confidence of a match, 0.5 to 0.99. Default: as for
            `polymux.Catalogue`.

    Raises:
        InvalidRequestError: The confidence is out of its range.

    Example:
        >>> from polymux.songs.settings import SongSettings
        >>> SongSettings().empty_when_unknown
        False
    """

    catalogue: Path | None = None
    empty_when_unknown: bool = False
    min_confidence: float | None = field(default=None, metadata=CONFIDENCE)

    def __post_init__(self) -> None:
        check(self)


def catalogue_folder(path: str | os.PathLike[str] | None = None) -> Path:
    """The catalogue's folder: the one given, else ``POLYMUX_CATALOGUE``, else the configuration.

    The configuration file has it as ``catalogue`` in ``[songs]``. Without any of them it is
    ``polymux/songs`` in the XDG folder for data.

    Raises:
        InvalidRequestError: The configuration file cannot be read, or is wrong.

    Example:
        >>> from polymux.songs.settings import catalogue_folder
        >>> catalogue_folder("music/catalogue").parts[-2:]
        ('music', 'catalogue')
    """
    named = path or os.environ.get("POLYMUX_CATALOGUE") or _configured()
    if named:
        return Path(named).expanduser().absolute()
    folder = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(folder):  # noqa: PTH117 - the specification has relative ones ignored
        folder = os.path.expanduser("~/.local/share")  # noqa: PTH111
    return Path(folder).absolute() / "polymux" / "songs"


def made_folder(folder: Path) -> Path:
    """The same, made where there is none.

    Raises:
        CatalogueError: It cannot be made, or has a name that is no text.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        # SQLite takes names as UTF-8 alone.
        raise CatalogueError(
            f"the catalogue {display_name(os.fsencode(folder))} has a path that is no UTF-8"
        ) from None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CatalogueError(
            f"the catalogue {display_name(folder.as_posix())} cannot be made: {error.strerror}",
            errno=error.errno,
        ) from error
    return folder


def checked_confidence(value: float | None) -> float | None:
    """The least confidence of a song that is named; None for what the core was measured with."""
    if value is None:
        return None
    least = number("min_confidence", value)
    CONFIDENCE["rule"].accept("min_confidence", least)
    return least


def _configured() -> str | None:
    path = config_path()
    found = read_toml(path, "the configuration file", optional=True).get("songs", {})
    reader = TableReader()
    values = reader.values({"catalogue": Rule("str")}, found, "songs.")
    reader.end(f"the configuration file {display_name(path.as_posix())}: ")
    folder: str | None = values.get("catalogue")
    return folder


def served_folder(wanted: str | os.PathLike[str] | None) -> Path | None:
    """The folder of the catalogue that is asked; None where none is named and there is none.

    Args:
        wanted: The one that is named; None for the default one.

    Example:
        >>> from polymux.songs.settings import served_folder
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
        >>> from polymux.songs.settings import told
        >>> told(1), told(2500)
        ('1 song', '2,500 songs')
    """
    return f"{count:,} song{'' if count == 1 else 's'}"
