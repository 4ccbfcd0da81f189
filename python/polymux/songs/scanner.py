"""Search for possible music files in directories."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, shown
from polymux.errors import InputNotFoundError, InputUnreadableError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: Extensions of files that are never music. All other files are opened and checked.
_NO_MUSIC = frozenset(
    b".accurip .avif .bmp .cfg .conf .css .csv .cue .db .doc .docx .epub .ffp .gif .heic .htm "
    b".html .ico .ini .jpeg .jpg .js .json .lnk .log .lrc .m3u .m3u8 .md .md5 .mid .midi .nfo "
    b".ods .odt .part .pdf .pls .png .py .rtf .sfv .sha256 .sqlite .srt .sub .svg .tif .tiff "
    b".toml .torrent .txt .url .vtt .webp .xlsx .xml .xspf .yaml .yml .zip".split()
)
#: Prefixes of the files that a music library writes to its directory.
_OWN = (b"songs.sqlite3", b"segments", b"lock")


def named_path(source: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """Return the absolute path of a source in bytes, without resolving symlinks.

    Raises:
        InvalidRequestError: The path is empty.
        InputNotFoundError: The file does not exist.
        InputUnreadableError: The file cannot be accessed.
    """
    path = absolute_path(source)
    name = display_name(path)
    try:
        os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        raise InputNotFoundError("file not found", input_name=name) from None
    except OSError as error:
        raise InputUnreadableError(
            f"cannot read {name}: {error.strerror}", input_name=name, errno=error.errno
        ) from error
    return path


def absolute_path(source: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """Return an absolute path in bytes, without resolving symlinks.

    Raises:
        InvalidRequestError: The path is empty, for example because a variable is not set.
    """
    from polymux.media.inputs import path_bytes

    path = path_bytes(source)
    if not path:
        raise InvalidRequestError("invalid path: empty string")
    return os.path.abspath(path)  # noqa: PTH100


def several(sources: Any) -> list[Any]:
    if isinstance(sources, (str, os.PathLike)):
        return [sources]
    if isinstance(sources, (bytes, bytearray, memoryview)):
        raise TypeError(f"sources: must be paths (got {shown(sources)})")
    return list(sources)


def files_of(
    paths: Iterable[bytes], own: str | os.PathLike[str]
) -> tuple[list[bytes], list[tuple[bytes, OSError]]]:
    """Return all files, including those in directories, without duplicates.

    Args:
        paths: Absolute paths. A missing path counts as a file.
        own: Directory of the library, which may be inside or equal to one of the paths. The files
            that the library writes there are skipped.

    Returns:
        The files, and the paths that could not be read, with their errors.
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
    """Yield possible music files of a directory at any depth, sorted by name.

    Files are skipped if their names start with a dot or have an extension of another file type.
    Symlinks to directories are followed. Each directory is visited once, which ends cycles.
    Directories and links that cannot be read are passed to `on_error`.
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
    """Return the device and inode of a directory, which are the same for all its paths."""
    status = os.stat(path)  # noqa: PTH116 - byte for byte
    return status.st_dev, status.st_ino


def _may_be_music(entry: os.DirEntry[bytes]) -> bool:
    if os.path.splitext(entry.name)[1].lower() in _NO_MUSIC:  # noqa: PTH122
        return False
    return entry.is_file()
