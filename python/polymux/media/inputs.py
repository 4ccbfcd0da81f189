"""Conversion of Python sources and destinations to those of the native core."""

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
    """A binary file object for reading. `seek` and `tell` are used if it has them."""

    def read(self, size: int, /) -> bytes | None:
        """Return up to `size` bytes, or empty bytes at the end of the file."""


class WritableFile(Protocol):
    """A binary file object for writing. Seeking is not needed."""

    def write(self, data: bytes, /) -> object:
        """Write the bytes and return how many were written, or None for all."""


Source: TypeAlias = (
    "str | os.PathLike[str] | os.PathLike[bytes] | ReadableBuffer | ReadableFile | MediaFile"
)
Destination: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes] | WritableFile | None"


def is_path(value: object) -> bool:
    """Whether a source is a path rather than file content."""
    return isinstance(value, (str, os.PathLike))


def path_bytes(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """Encode a path to the bytes that the operating system uses, without interpreting it.

    Raises:
        InvalidRequestError: The path has a null byte, or characters not allowed in file names.
    """
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            f"invalid path {shown(path)}: contains characters that this system does not allow in "
            "file names"
        ) from error
    if b"\0" in encoded:
        raise InvalidRequestError(f"invalid path {shown(path)}: contains a null byte")
    return encoded


def native_source(source: Any) -> tuple[str, object, str]:
    """Return the kind, object and display name that the native module needs for a source.

    Raises:
        TypeError: The source is not a path, bytes or a binary file object.
        InvalidRequestError: The path is invalid, or the buffer is not contiguous.
    """
    given = file_given(source)
    if given is not None:
        if given[1] is source:
            raise TypeError(
                "source: a file on a server is not supported. Pass the result of its .read()"
            )
        source = given[1]
    if is_path(source):
        path = path_bytes(source)
        return ("path", path, display_name(path))
    if isinstance(source, io.TextIOBase):
        raise TypeError(
            "source: text file objects are not supported. Open the file in binary mode ('rb')"
        )
    if callable(getattr(source, "read", None)):
        return ("file", source, _name_of_file(source))
    try:
        view = memoryview(source)
    except TypeError:
        raise TypeError(
            f"source: invalid type (got {type(source).__name__}, allowed a path, a bytes-like "
            "object or a binary file object)"
        ) from None
    if not view.c_contiguous:
        raise InvalidRequestError("source: the buffer is not contiguous. Pass bytes(source)")
    # cast("B") drops format and shape, and fails on an empty view.
    return ("bytes", view.cast("B") if view.nbytes else b"", "<bytes>")


def file_given(source: object) -> tuple[str, object] | None:
    """Return the name and content of a `MediaFile` used as a source; None for other sources.

    The content is the file's path or its bytes. For a file on a server it is the `MediaFile`
    itself: reading it downloads the file in chunks, through its SSRF protection and without an API
    key.
    """
    # If the module was never imported, no `MediaFile` can exist.
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
    if isinstance(name, int):  # opened by file descriptor
        return "<stdin>" if name == 0 else f"<file descriptor {name}>"
    return f"<{shortened(printable(type(file).__name__))}>"


def native_destination(destination: Any) -> tuple[str, object] | None:
    """Return the kind and object that the native module writes to; None for memory.

    Raises:
        TypeError: The destination is not a path or a binary file object.
        InvalidRequestError: The path is invalid.
    """
    if destination is None:
        return None
    if isinstance(destination, (str, bytes, os.PathLike)):
        return ("path", path_bytes(destination))
    if isinstance(destination, io.TextIOBase):
        raise TypeError(
            "destination: text file objects are not supported. Open the file in binary mode ('wb')"
        )
    if callable(getattr(destination, "write", None)):
        return ("file", destination)
    raise TypeError(
        f"destination: invalid type (got {type(destination).__name__}, allowed None, a path or a "
        "binary file object)"
    )


def destination_path(destination: object) -> Path | None:
    """The destination as a `pathlib.Path` if it is a path, else None."""
    if isinstance(destination, (str, bytes, os.PathLike)):
        return Path(os.fsdecode(destination))
    return None
