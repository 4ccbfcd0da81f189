"""Input files of tools: embedded in a text, or on this machine in allowed folders."""

from __future__ import annotations

import base64
import binascii
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from polymux._util.text import display_name
from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux.service.media_store import StoredFile

_DATA = "data:"
_MAX_PATH_CHARACTERS = 4096
_MAX_DATA_URL_HEADER_CHARACTERS = 1024
#: Characters that may break base64 into lines.
_BLANKS = str.maketrans("", "", " \t\r\n")


@dataclass(frozen=True, slots=True)
class Input:
    """An input file of a tool call.

    Attributes:
        file_name: For people.
        content_type: As declared by the client; not verified.
        path: None if `data` contains the file.
        data: The bytes of an embedded file; None for a file on disk.
        kept: Its entry in the media store; None for other files.
    """

    file_name: str
    content_type: str
    size_bytes: int
    path: Path | None = None
    data: bytes | None = None
    kept: StoredFile | None = None


def embedded(field: str, text: str, max_bytes: int | None) -> Input:
    """Decode a ``data:`` URL (RFC 2397) or base64 (RFC 4648, section 4).

    Args:
        field: Field name, for messages.
        max_bytes: Maximum size of the file; None for no limit.
    """
    kind, head, body = "", "", text
    if text[: len(_DATA)].lower() == _DATA:
        head, comma, body = text.partition(",")
        if not comma or len(head) > _MAX_DATA_URL_HEADER_CHARACTERS:
            raise bad_request(f"{field}: invalid data URL (expected data:TYPE;base64,DATA)", field)
    words = head[len(_DATA) :].split(";")
    if head:
        kind = words[0].strip()
    if head and words[-1].strip().lower() != "base64":
        data = unquote_to_bytes(body)
    else:
        data = _decoded(field, unquote(body) if head else body)
    check_length(field, len(data), max_bytes)
    names = [unquote(one.partition("=")[2]) for one in words if one.startswith("name=")]
    return Input(names[0] if names else field, kind, len(data), data=data)


def check_length(field: str, size_bytes: int, max_bytes: int | None) -> None:
    if max_bytes is not None and size_bytes > max_bytes:
        raise bad_request(
            f"{field}: the file is too large (got {size_bytes} bytes, allowed {max_bytes} bytes)",
            field,
        )


def _decoded(field: str, text: str) -> bytes:
    try:
        return base64.b64decode(text.translate(_BLANKS), validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(
            f"{field}: invalid base64. Send the file as base64, or as a data URL "
            "(data:TYPE;base64,DATA)",
            field,
        ) from None


class Folders:
    """The folders on this machine from which files may be read, including subfolders.

    Args:
        named: Folders that the user named. Default: `current`, for clients without roots.
        current: The current folder, for relative paths. It does not count as readable if it is the
            root of the file system, where programs often start other programs.
    """

    def __init__(self, named: Sequence[Path], current: Path) -> None:
        self._named = tuple(named)
        self._current = current
        counts = not named and current.parent != current
        self._default = (current,) if counts else ()

    def input(self, field: str, text: str, roots: Sequence[Path] | None) -> Input:
        """Open the file of a path, a ``file:`` URL or a ``data:`` URL.

        Args:
            field: Field name, for messages.
            roots: Folders that the client announced; None if it does not support roots.
        """
        if text[: len(_DATA)].lower() == _DATA:
            return embedded(field, text, None)
        folders = [*self._named, *(self._default if roots is None else roots)]
        if not 0 < len(text) <= 3 * _MAX_PATH_CHARACTERS or "\0" in text:
            raise bad_request(
                f"{field}: invalid path (empty, too long, or contains a null byte)", field
            )
        path = _path_of(field, text)
        if not path.is_absolute():
            # If several folders contain the path, the first one counts.
            places = [folder / path for folder in (*folders, self._current)]
            # os.path.exists returns False where Path.exists raises.
            there = filter(os.path.exists, places)
            path = next(there, places[0])
        return _opened(field, path, [Path(os.path.realpath(one)) for one in folders])


def _path_of(field: str, text: str) -> Path:
    scheme, separator, _ = text.partition("://")
    if text[:5].lower() == "file:":
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise bad_request(
                f"{field}: not the URL of a file on this machine (expected file:///PATH)", field
            )
        return Path(unquote(parts.path))
    if separator and scheme.isalnum():
        raise bad_request(f"{field}: URLs are not supported. Use a file on this machine", field)
    # os.path.expanduser does not raise for unknown users as Path.expanduser does.
    return Path(os.path.expanduser(text))  # noqa: PTH111


def _opened(field: str, path: Path, folders: Sequence[Path]) -> Input:
    try:
        # The target of a link counts, not the location of the link.
        real = Path(os.path.realpath(path))
        inside = any(real.is_relative_to(one) for one in folders)
        status = real.stat() if inside else None
    except (OSError, ValueError):
        status = None
        inside = True
    name = display_name(os.fspath(path))
    if not inside:
        raise bad_request(
            f"{field}: permission denied: {name} is outside of the readable directories. "
            "Move it into a root of the client, or allow its directory with `polymux mcp "
            "--allow-dir`",
            field,
        )
    if status is None or not stat.S_ISREG(status.st_mode):
        raise bad_request(f"{field}: not found, or not a regular file: {name}", field)
    return Input(real.name, "", status.st_size, path=real)
