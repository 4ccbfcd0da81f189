"""The folder of the music library, and the confidence from which a song is named."""

from __future__ import annotations

import os
from pathlib import Path

from polymux._util.settings import Rule, TableReader, read_toml
from polymux._util.text import display_name
from polymux.config import config_path
from polymux.errors import CatalogueError
from polymux.media.options import number

#: The confidence from which a song is named. Below this range the first result would be a guess,
#: above it hardly any song would be named.
CONFIDENCE = {"rule": Rule("float", min=0.5, max=0.99)}


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
    """The least confidence of a song that is named; None for what the core was measured with.

    Raises:
        TypeError: It is no number.
        InvalidRequestError: It is not from 0.5 to 0.99.

    Example:
        >>> from polymux.songs.settings import checked_confidence
        >>> checked_confidence(0.9), checked_confidence(None)
        (0.9, None)
    """
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
