"""Files that tools are given: inside a text, or on this machine where the user allows it."""

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
#: What lines of base64 are broken by.
_BLANKS = str.maketrans("", "", " \t\r\n")


@dataclass(frozen=True, slots=True)
class Input:
    """A file that a tool was given.

    Attributes:
        file_name: What it is called; for people.
        content_type: What it is said to be; judged by nobody.
        size_bytes: Its size.
        path: Where it lies; None where `data` is the file.
        data: The file itself; None where it lies on disk.
        kept: What the store knows of it, where it is one of its files; None for others.
    """

    file_name: str
    content_type: str
    size_bytes: int
    path: Path | None = None
    data: bytes | None = None
    kept: StoredFile | None = None


def embedded(field: str, text: str, max_bytes: int | None) -> Input:
    """The file in a ``data:`` URL (RFC 2397), or in base64 (RFC 4648, section 4).

    Args:
        field: Its name, for messages.
        text: What was given.
        max_bytes: Longest file that is taken; None for no limit.
    """
    kind, head, body = "", "", text
    if text[: len(_DATA)].lower() == _DATA:
        head, comma, body = text.partition(",")
        if not comma or len(head) > _MAX_DATA_URL_HEADER_CHARACTERS:
            raise bad_request(f"{field}: is no data: URL, which is data:TYPE;base64,DATA", field)
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
        raise bad_request(f"{field}: the file is over the {max_bytes} bytes that are taken", field)


def _decoded(field: str, text: str) -> bytes:
    try:
        return base64.b64decode(text.translate(_BLANKS), validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(
            f"{field}: is no file: give it in base64, or as a URL data:TYPE;base64,DATA", field
        ) from None


class Folders:
    """The folders of this machine that files may be read from, with all that lies below them.

    Args:
        named: Those that the user has named. Where there are none, the current folder counts, for
            clients that announce no roots.
        current: The current folder, by which relative paths may be meant. It does not count where
            it is the root of the file system: nobody has chosen that, and programs that others
            start often have it.
    """

    def __init__(self, named: Sequence[Path], current: Path) -> None:
        self._named = tuple(named)
        self._current = current
        counts = not named and current.parent != current
        self._default = (current,) if counts else ()

    def input(self, field: str, text: str, roots: Sequence[Path] | None) -> Input:
        """The file that a text names: a path, a ``file:`` URL, or a ``data:`` URL that holds it.

        Args:
            field: Its name, for messages.
            text: What was given.
            roots: What the client has announced; None where it announces nothing.
        """
        if text[: len(_DATA)].lower() == _DATA:
            return embedded(field, text, None)
        folders = [*self._named, *(self._default if roots is None else roots)]
        if not 0 < len(text) <= 3 * _MAX_PATH_CHARACTERS or "\0" in text:
            raise bad_request(f"{field}: is no path", field)
        path = _path_of(field, text)
        if not path.is_absolute():
            # Of several folders, the first that has it.
            places = [folder / path for folder in (*folders, self._current)]
            there = filter(os.path.exists, places)  # Which says no where Path raises.
            path = next(there, places[0])
        return _opened(field, path, [Path(os.path.realpath(one)) for one in folders])


def _path_of(field: str, text: str) -> Path:
    scheme, separator, _ = text.partition("://")
    if text[:5].lower() == "file:":
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise bad_request(f"{field}: names no file of this machine", field)
        return Path(unquote(parts.path))
    if separator and scheme.isalnum():
        raise bad_request(f"{field}: takes a file, not an address", field)
    return Path(os.path.expanduser(text))  # noqa: PTH111 - leaves alone what Path raises for


def _opened(field: str, path: Path, folders: Sequence[Path]) -> Input:
    try:
        # What a link leads to counts, not where the link lies.
        real = Path(os.path.realpath(path))
        inside = any(real.is_relative_to(one) for one in folders)
        status = real.stat() if inside else None
    except (OSError, ValueError):
        status = None
        inside = True
    name = display_name(os.fspath(path))
    if not inside:
        raise bad_request(
            f"{field}: {name} lies outside of the folders that may be read: those that the client "
            "announces as roots, and those of `polymux mcp --folder`",
            field,
        )
    if status is None or not stat.S_ISREG(status.st_mode):
        raise bad_request(f"{field}: there is no file {name}", field)
    return Input(real.name, "", status.st_size, path=real)
