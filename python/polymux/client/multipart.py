"""Bodies of uploads: what callers give as files, as the native encoder takes it."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from polymux._native import core
from polymux._util.text import shown
from polymux.errors import InvalidRequestError
from polymux.media.inputs import file_given, is_path, native_source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from polymux._native._core import MultipartBody
    from polymux.media.inputs import Source

    #: What is sent as a file: a path (`str` too), bytes, a binary file object, or pieces of bytes.
    Content: TypeAlias = "Source | Iterable[bytes] | AsyncIterable[bytes]"
    #: The same, or with a file name of its own, and with a content type.
    Upload: TypeAlias = "Content | tuple[str, Content] | tuple[str, Content, str | None]"

PIECE_BYTES = 256 * 1024


def multipart_body(
    fields: Iterable[tuple[str, str | int | float | bool]] = (),
    files: Iterable[tuple[str, Upload]] = (),
    *,
    on_progress: Callable[[int, int | None], object] | None = None,
    awaited: bool = False,
) -> MultipartBody:
    """A body of type multipart/form-data (RFC 7578) that is made while it is read.

    Paths are opened here and read in the native core without the GIL. File objects are read from
    where they stand, iterables piece by piece, both on the thread that reads the body; what they
    raise comes out of that read unchanged. The length is known unless a part is an iterator, an
    async iterable, or a file object that cannot seek. A file that shrinks, grows or is written to
    before it is sent whole is an error, and the body never comes to its end then.

    Args:
        fields: Name and value. Numbers are written as Python prints them, booleans as ``true`` and
            ``false``; texts go out byte for byte as UTF-8.
        files: Name and file. Its file name is the path's or file object's, else the field's; its
            content type goes by the file name's extension. A tuple of ``(file name, content)`` or
            ``(file name, content, content type)`` says them instead.
        on_progress: Called on the thread that reads with bytes sent and bytes in all (None when
            not known), at most every 50 ms and at the end. What it raises ends the sending.
        awaited: Whether an event loop sends it, whose thread must not wait for files: file objects
            and iterables are read on other threads then. Default: False.

    Raises:
        InvalidRequestError: A number that is not finite, a text with half a surrogate pair, a path
            that cannot exist, or a content type that is none.
        InputNotFoundError: A path does not exist.
        InputUnreadableError: A path is a folder, pipe, socket or device, or is not permitted.
        TypeError: Something that cannot be sent.

    Example:
        >>> from polymux.client.multipart import multipart_body
        >>> body = multipart_body([("task", "translate")], [("audio", ("a.mp3", b"ID3"))])
        >>> sum(len(piece) for piece in body) == body.length_bytes
        True
    """
    texts = [(_text(name, "name"), field_text(name, value)) for name, value in fields]
    uploads = [_native_file(name, value) for name, value in files]
    if awaited:
        uploads = [_awaited_file(one) for one in uploads]
    return core.MultipartBody(texts, uploads, on_progress)


def _awaited_file(
    upload: tuple[str, str, Any, str, str, str, int | None],
) -> tuple[str, str, Any, str, str, str, int | None]:
    """The same file, read piece by piece on another thread where it is a Python object."""
    field, kind, source, name, wire_name, content_type, size = upload
    if kind == "file":
        return (field, "async", _read_elsewhere(source), name, wire_name, content_type, None)
    if kind == "iterable":
        pieces = _iterate_elsewhere(iter(source))
        return (field, "async", pieces, name, wire_name, content_type, size)
    return upload


async def _read_elsewhere(file: Any) -> AsyncIterator[bytes]:
    from asyncio import to_thread

    while piece := await to_thread(file.read, PIECE_BYTES):
        yield piece


async def _iterate_elsewhere(iterator: Iterator[bytes]) -> AsyncIterator[bytes]:
    from asyncio import to_thread

    end = object()
    while (piece := await to_thread(next, iterator, end)) is not end:
        yield piece  # type: ignore[misc]  # not the end


def _text(text: object, what: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a {what} of a form is a str, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(
            f"the {what} {shown(text)} holds half a surrogate pair, which UTF-8 cannot say"
        ) from None
    return text


def field_text(name: str, value: object) -> str:
    """A field's value as forms carry it.

    Raises:
        InvalidRequestError: A number that is not finite, or a text with half a surrogate pair.
        TypeError: Anything but a text, a number or a boolean.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRequestError(f"{name}={value}: must be a finite number")
        return repr(float(value))
    return _text(value, f"value of {name!r}")


def _native_file(field: str, upload: Any) -> tuple[str, str, Any, str, str, str, int | None]:
    _text(field, "name")
    file_name = content_type = None
    content = upload
    if isinstance(upload, tuple):
        if len(upload) not in (2, 3) or not isinstance(upload[0], str):
            raise TypeError(
                f"the file of {field!r}, when it is a tuple, is (file name, content) or "
                "(file name, content, content type)"
            )
        file_name, content = upload[:2]
        content_type = upload[2] if len(upload) == 3 else None
        if not isinstance(content_type, (str, type(None))):
            raise TypeError(f"the content type of {field!r} is a str or None")
    given = file_given(content)
    if given is not None:
        content_type = content_type or content.content_type
        file_name, content = file_name or given[0], given[1]
    kind, source, name, size = _content(field, content, is_fetched=given is not None)
    if file_name is None:
        file_name = _own_name(content)
    # A path need not be text, and UTF-8 cannot say what is none.
    wire_name = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in file_name)
    return (field, kind, source, name, wire_name, content_type or "", size)


def _content(
    field: str, content: Any, *, is_fetched: bool = False
) -> tuple[str, Any, str, int | None]:
    """Kind, object, name for messages, and size where it is known.

    `is_fetched`: a file on a server is read by its pieces, which it gives anew to who asks again.
    """
    if is_fetched and not isinstance(content, (bytes, os.PathLike)):
        return "iterable", content, f"<{field}>", None
    try:
        memoryview(content)
        plain = True
    except TypeError:
        plain = is_path(content) or callable(getattr(content, "read", None))
    if plain:
        kind, source, name = native_source(content)
        return kind, source, f"<{field}>" if kind == "bytes" else name, None
    if isinstance(content, AsyncIterable):
        return "async", aiter(content), f"<{field}>", None
    if isinstance(content, Iterable) and not isinstance(content, Mapping):
        known = isinstance(content, list) and all(isinstance(one, bytes) for one in content)
        return "iterable", content, f"<{field}>", sum(map(len, content)) if known else None
    raise TypeError(
        f"the file of {field!r} is a path, bytes, a binary file object, an iterable or async "
        f"iterable of bytes, or a tuple of a file name and one of these, not "
        f"{type(content).__name__}"
    )


def _own_name(content: Any) -> str:
    """The last part of the path; empty where there is none."""
    path = content if is_path(content) else getattr(content, "name", "")
    if not isinstance(path, (str, bytes, os.PathLike)):
        return ""
    return os.path.basename(os.fsdecode(path))  # noqa: PTH119 - bytes and str alike


async def aread(body: MultipartBody, size: int = PIECE_BYTES) -> bytes:
    """`body.read(size)` for asyncio: what may block is read on another thread."""
    while True:
        if body.may_block:
            from asyncio import to_thread

            piece = await to_thread(body._read_or_none, size)  # noqa: SLF001
        else:
            piece = body._read_or_none(size)  # noqa: SLF001
        if piece is not None:
            return piece
        await _feed(body)


async def _feed(body: MultipartBody) -> None:
    """Awaits the next piece of the async iterable whose turn it is."""
    try:
        body._feed(await anext(body._awaited()))  # noqa: SLF001
    except StopAsyncIteration:
        body._feed(None)  # noqa: SLF001
    except BaseException as error:
        # Else the next read would take the failed iterator's end for the end of the file.
        body._fail(error)  # noqa: SLF001
        raise


async def pieces(body: MultipartBody) -> AsyncIterator[bytes]:
    """All of the body that has not been read yet, in pieces."""
    while piece := await aread(body):
        yield piece
