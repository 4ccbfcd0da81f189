"""Sources and destinations as callers give them, and as the native core takes them."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from polymux._util.text import display_name, path_in, printable, shortened, shown
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from polymux.media.media_file import MediaFile


class ReadableFile(Protocol):
    """A binary file object to read from; `seek` and `tell` are used where it has them."""

    def read(self, size: int, /) -> bytes | None:
        """Returns up to `size` bytes, and empty bytes at the end."""


class WritableFile(Protocol):
    """A binary file object to write to; it need not be able to seek."""

    def write(self, data: bytes, /) -> object:
        """Takes the bytes and returns how many it took, or None for all."""


Source: TypeAlias = (
    "str | os.PathLike[str] | os.PathLike[bytes] | ReadableBuffer | ReadableFile | MediaFile"
)
Destination: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes] | WritableFile | None"


def is_path(value: object) -> bool:
    """Whether a source names a file rather than being its content."""
    return isinstance(value, (str, os.PathLike))


def path_bytes(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """The path as the operating system takes it, byte for byte; nothing in it is interpreted.

    Raises:
        InvalidRequestError: It holds a zero byte, or characters that no file name can.
    """
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            f"the path {shown(path)} holds characters that a file name on this system cannot"
        ) from error
    if b"\0" in encoded:
        raise InvalidRequestError(f"the path {shown(path)} holds a zero byte, which no path can")
    return encoded


def native_source(source: Any) -> tuple[str, object, str]:
    """The triple of kind, object and display name that the native module reads.

    Raises:
        TypeError: Not a path, bytes or binary file object.
        InvalidRequestError: A path that cannot exist, or a buffer with gaps.
    """
    given = file_given(source)
    if given is not None:
        if given[1] is source:
            raise TypeError("a file on a server is no source here: give what its .read() gives")
        source = given[1]
    if is_path(source):
        path = path_bytes(source)
        return ("path", path, display_name(path))
    if isinstance(source, io.TextIOBase):
        raise TypeError("the source is a text file object: open it in binary mode, with 'rb'")
    if callable(getattr(source, "read", None)):
        return ("file", source, _name_of_file(source))
    try:
        view = memoryview(source)
    except TypeError:
        raise TypeError(
            "a source is a path, a bytes-like object or a binary file object, "
            f"not {type(source).__name__}"
        ) from None
    if not view.c_contiguous:
        raise InvalidRequestError("a bytes-like source must be contiguous: pass bytes(source)")
    # A view without format or shape; casting one that is empty is not allowed.
    return ("bytes", view.cast("B") if view.nbytes else b"", "<bytes>")


def file_given(source: object) -> tuple[str, object] | None:
    """Name and content of a `MediaFile` that is given as source; None for all else.

    Its path, or its bytes; of a file on a server the file itself, whose pieces are fetched as they
    are asked for, through its own guard and without any key.
    """
    # Nobody has one where its module is not there.
    module = sys.modules.get("polymux.media.media_file")
    if module is None or not isinstance(source, module.MediaFile):
        return None
    if source.path is not None:
        return source.path.name, source.path
    if source.url is None:
        return "converted.mp3", source.read()

    return path_in(source.url).rpartition("/")[2], source


def _name_of_file(file: object) -> str:
    name = getattr(file, "name", None)
    if isinstance(name, (str, bytes)) and name:
        return display_name(name)
    if isinstance(name, int):  # opened by its number
        return "<stdin>" if name == 0 else f"<file descriptor {name}>"
    return f"<{shortened(printable(type(file).__name__))}>"


def native_destination(destination: Any) -> tuple[str, object] | None:
    """The pair of kind and object that the native module writes to; None for memory.

    Raises:
        TypeError: Not a path or binary file object.
        InvalidRequestError: A path that cannot exist.
    """
    if destination is None:
        return None
    if isinstance(destination, (str, bytes, os.PathLike)):
        return ("path", path_bytes(destination))
    if isinstance(destination, io.TextIOBase):
        raise TypeError("the destination is a text file object: open it in binary mode, with 'wb'")
    if callable(getattr(destination, "write", None)):
        return ("file", destination)
    raise TypeError(
        f"a destination is None, a path or a binary file object, not {type(destination).__name__}"
    )


def destination_path(destination: object) -> Path | None:
    """The destination as a `pathlib.Path`, when it is a path."""
    if isinstance(destination, (str, bytes, os.PathLike)):
        return Path(os.fsdecode(destination))
    return None
