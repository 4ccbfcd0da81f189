"""Settings of the song index: its directory and the minimum confidence."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from polymux._util.deprecation import notice, renamed_arguments
from polymux._util.settings import Rule, TableReader, check, read_toml
from polymux._util.text import display_name
from polymux.config import config_path
from polymux.errors import InvalidRequestError, SongIndexError
from polymux.media.options import number

_log = logging.getLogger("polymux.songs")

#: File name in the directory of a song index.
DATABASE = "songs.sqlite3"
#: Instruction in messages for users whose music library is empty.
REMEDY = "run 'polymux songs add DIR' to add your music"

#: Allowed range of the minimum confidence. Below it, a match would be a guess; above it, hardly any
#: song would match.
CONFIDENCE = {"rule": Rule("float", min=0.5, max=0.99)}


@renamed_arguments(catalogue="index_dir", least_confidence="min_confidence")
@dataclass(frozen=True, slots=True)
class SongSettings:
    """The music library of a server.

    Attributes:
        index_dir: Folder of the song index. It may be created later. Default: the index of
            ``polymux songs``, if it has songs when the server starts.
        empty_when_unknown: Return three empty texts (200) instead of an error (404) if no song
            matches. Default: False.
        min_confidence: Minimum confidence of a match, 0.5 to 0.99. Default: as for
            `polymux.SongIndex`.

    Raises:
        InvalidRequestError: The confidence is out of range.

    Example:
        >>> from polymux.songs.settings import SongSettings
        >>> SongSettings().empty_when_unknown
        False
    """

    index_dir: Path | None = None
    empty_when_unknown: bool = False
    min_confidence: float | None = field(default=None, metadata=CONFIDENCE)

    def __post_init__(self) -> None:
        check(self)


def index_folder(path: str | os.PathLike[str] | None = None) -> Path:
    """Return the directory of the song index.

    It is the first of these: the argument, ``POLYMUX_SONG_INDEX``, ``index_dir`` in ``[songs]`` of
    the configuration file, and ``polymux/songs`` in the XDG data directory.

    Raises:
        InvalidRequestError: The configuration file is invalid or cannot be read.

    Example:
        >>> from polymux.songs.settings import index_folder
        >>> index_folder("music/index").parts[-2:]
        ('music', 'index')
    """
    named = path or _from_environment() or _configured()
    if named:
        return Path(named).expanduser().absolute()
    folder = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(folder):  # noqa: PTH117 - the XDG specification ignores relative paths
        folder = os.path.expanduser("~/.local/share")  # noqa: PTH111
    return Path(folder).absolute() / "polymux" / "songs"


def made_folder(folder: Path) -> Path:
    """Create the directory unless it exists, and return it.

    Raises:
        SongIndexError: It cannot be created, or its path is not valid UTF-8.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        # SQLite only accepts UTF-8 paths.
        raise SongIndexError(
            f"song index {display_name(os.fsencode(folder))}: the path is not valid UTF-8"
        ) from None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SongIndexError(
            f"cannot create song index {display_name(folder.as_posix())}: {error.strerror}",
            errno=error.errno,
        ) from error
    return folder


def checked_confidence(value: float | None) -> float | None:
    """Return the valid minimum confidence; None selects the default of the native core."""
    if value is None:
        return None
    least = number("min_confidence", value)
    CONFIDENCE["rule"].accept("min_confidence", least)
    return least


def _from_environment() -> str:
    old, new = "POLYMUX_CATALOGUE", "POLYMUX_SONG_INDEX"
    named = os.environ.get(new, "")
    if not named and os.environ.get(old):
        _log.warning("%s", notice(old, new))
        return os.environ[old]
    return named


def _configured() -> str | None:
    path = config_path()
    found = read_toml(path, "the configuration file", optional=True).get("songs", {})
    reader = TableReader(_log.warning)
    values = reader.values({"index_dir": Rule("str")}, found, "songs.", {"catalogue": "index_dir"})
    reader.end(f"the configuration file {display_name(path.as_posix())}: ")
    folder: str | None = values.get("index_dir")
    return folder


def served_folder(wanted: str | os.PathLike[str] | None) -> Path | None:
    """Return the directory of the index to use, or None if the default index does not exist.

    Args:
        wanted: Configured directory; None for the default one.

    Example:
        >>> from polymux.songs.settings import served_folder
        >>> served_folder("music/index").name
        'index'
    """
    if wanted is not None:
        return Path(wanted).expanduser().absolute()
    try:
        folder = index_folder()
    except InvalidRequestError as error:
        # Only an explicit use of the index needs to fail: all other operations work without it.
        _log.warning("song index not available: %s", error)
        return None
    return folder if (folder / DATABASE).is_file() else None


def count_text(count: int) -> str:
    """Return a number of songs as text.

    Example:
        >>> from polymux.songs.settings import count_text
        >>> count_text(1), count_text(2500)
        ('1 song', '2,500 songs')
    """
    return f"{count:,} song{'' if count == 1 else 's'}"
