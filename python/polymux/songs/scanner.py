"""The files of folders that may be music."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, shown
from polymux.errors import InputNotFoundError, InputUnreadableError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: What lies beside music and is none. All else is opened: the content says what a file is.
_NO_MUSIC = frozenset(
    b".accurip .avif .bmp .cfg .conf .css .csv .cue .db .doc .docx .epub .ffp .gif .heic .htm "
    b".html .ico .ini .jpeg .jpg .js .json .lnk .log .lrc .m3u .m3u8 .md .md5 .mid .midi .nfo "
    b".ods .odt .part .pdf .pls .png .py .rtf .sfv .sha256 .sqlite .srt .sub .svg .tif .tiff "
    b".toml .torrent .txt .url .vtt .webp .xlsx .xml .xspf .yaml .yml .zip".split()
)
#: Beginnings of what a catalogue writes into its folder.
_OWN = (b"songs.sqlite3", b"segments", b"lock")


def named_path(source: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """A source's absolute path, byte for byte, without links being followed.

    Raises:
        InvalidRequestError: It is empty.
        InputNotFoundError: There is no such file.
        InputUnreadableError: It cannot be looked at.
    """
    path = absolute_path(source)
    name = display_name(path)
    try:
        os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        raise InputNotFoundError(f"there is no file {name}", input_name=name) from None
    except OSError as error:
        raise InputUnreadableError(
            f"cannot read {name}: {error.strerror}", input_name=name, errno=error.errno
        ) from error
    return path


def absolute_path(source: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """A path from the root, byte for byte, without links being followed.

    Raises:
        InvalidRequestError: It is empty: a variable without a value, and not the current folder.
    """
    from polymux.media.inputs import path_bytes

    path = path_bytes(source)
    if not path:
        raise InvalidRequestError("an empty text is no path of a song or folder")
    return os.path.abspath(path)  # noqa: PTH100


def several(sources: Any) -> list[Any]:
    """The sources, one or several."""
    if isinstance(sources, (str, os.PathLike)):
        return [sources]
    if isinstance(sources, (bytes, bytearray, memoryview)):
        raise TypeError(f"a song of the catalogue is a file: give its path, not {shown(sources)}")
    return list(sources)


def files_of(
    paths: Iterable[bytes], own: str | os.PathLike[str]
) -> tuple[list[bytes], list[tuple[bytes, OSError]]]:
    """The files, and those of the folders, each of them once.

    Args:
        paths: Absolute ones. One that leads to nothing counts as a file.
        own: The catalogue's folder, which may lie in one of them or be it: what the catalogue
            writes there is left out.

    Returns:
        The files, and what could not be looked into, with the reasons.
    """
    files: dict[bytes, None] = {}
    unread: dict[bytes, OSError] = {}
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112
            files.update(dict.fromkeys(_files_below(path, unread.setdefault, own)))
        else:
            files[path] = None
    return list(files), list(unread.items())


def _files_below(
    folder: bytes, on_error: Callable[[bytes, OSError], object], own: str | os.PathLike[str]
) -> Iterator[bytes]:
    """The files of a folder that may be music, at any depth, in the order of their names.

    Left out are those whose names begin with a dot or say that they are something else. Links to
    folders are followed, each folder is entered once: a circle of links ends. `on_error` is told
    of folders that cannot be read, and of links whose ends cannot be looked at.
    """
    entered: set[tuple[int, int]] = set()
    own_folder = _identity(own)
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            identity = _identity(here)
            if identity in entered:
                continue
            entered.add(identity)
            with os.scandir(here) as found:
                entries = sorted(found, key=lambda one: one.name)
        except OSError as error:
            on_error(here, error)
            continue
        folders = []
        for entry in entries:
            is_own = identity == own_folder and entry.name.startswith(_OWN)
            if is_own or entry.name.startswith(b"."):
                continue
            try:
                if entry.is_dir():
                    folders.append(entry.path)
                elif _may_be_music(entry):
                    yield entry.path
            except OSError as error:
                if error.errno != errno.ELOOP:
                    on_error(entry.path, error)
        waiting += reversed(folders)


def _identity(path: str | bytes | os.PathLike[str]) -> tuple[int, int]:
    """What a folder is told from others by, whatever path leads to it."""
    status = os.stat(path)  # noqa: PTH116 - byte for byte
    return status.st_dev, status.st_ino


def _may_be_music(entry: os.DirEntry[bytes]) -> bool:
    if os.path.splitext(entry.name)[1].lower() in _NO_MUSIC:  # noqa: PTH122
        return False
    return entry.is_file()
