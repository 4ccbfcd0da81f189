"""Multipart bodies: convert files from callers to the form of the native encoder."""

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

    #: Content of a file: a path (also as `str`), bytes, a binary file object, or pieces of bytes.
    Content: TypeAlias = "Source | Iterable[bytes] | AsyncIterable[bytes]"
    #: The same, or a tuple with a file name and, optionally, a content type.
    Upload: TypeAlias = "Content | tuple[str, Content] | tuple[str, Content, str | None]"

PIECE_BYTES = 256 * 1024


def multipart_body(
    fields: Iterable[tuple[str, str | int | float | bool]] = (),
    files: Iterable[tuple[str, Upload]] = (),
    *,
    on_progress: Callable[[int, int | None], object] | None = None,
    awaited: bool = False,
) -> MultipartBody:
    """Create a multipart/form-data body (RFC 7578) that is generated while it is read.

    Paths are opened here and read in the native core without the GIL. File objects are read from
    their current position and iterables item by item, both on the thread that reads the body. Their
    exceptions are raised from that read unchanged. The length is known unless a part is an
    iterator, an async iterable, or a file object that cannot seek. If a file changes before it is
    sent completely, reading raises an error and the body stays incomplete.

    Args:
        fields: Names and values. Numbers are written as Python prints them, booleans as ``true``
            and ``false``, texts as UTF-8 without changes.
        files: Names and files. The file name is that of the path or file object, else the field's
            name. The content type follows from the file name's extension. A tuple
            ``(file name, content)`` or ``(file name, content, content type)`` overrides them.
        on_progress: Called on the reading thread with the number of bytes sent and the total (None
            if unknown), at most every 50 ms and at the end. An exception from it aborts the upload.
        awaited: Whether an event loop sends the body. Its thread must not block, so file objects
            and iterables are read on other threads. Default: False.

    Raises:
        InvalidRequestError: A number is not finite, a text contains a lone surrogate, a path is
            invalid, or a content type is invalid.
        InputNotFoundError: A path does not exist.
        InputUnreadableError: A path is a directory, pipe, socket or device, or access is denied.
        TypeError: A value of an unsupported type.

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
    """Wrap a Python file object or iterable so that another thread reads it."""
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
        yield piece  # type: ignore[misc]  # `end` is excluded above


def _text(text: object, what: str, allowed: str = "str") -> str:
    if not isinstance(text, str):
        raise TypeError(f"form {what}: invalid type (got {type(text).__name__}, allowed {allowed})")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(
            f"form {what}: {shown(text)} contains a lone surrogate, which UTF-8 cannot encode"
        ) from None
    return text


def field_text(name: str, value: object) -> str:
    """Return a field's value as text for a form.

    Raises:
        InvalidRequestError: A number is not finite, or a text contains a lone surrogate.
        TypeError: The value is not a str, number or boolean.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRequestError(f"{name}: must be a finite number (got {value})")
        return repr(float(value))
    return _text(value, f"value of {name!r}", "a str, number or bool")


def _native_file(field: str, upload: Any) -> tuple[str, str, Any, str, str, str, int | None]:
    _text(field, "name")
    file_name = content_type = None
    content = upload
    if isinstance(upload, tuple):
        if len(upload) not in (2, 3) or not isinstance(upload[0], str):
            raise TypeError(
                f"file {field!r}: invalid tuple (allowed (file name, content) or "
                "(file name, content, content type))"
            )
        file_name, content = upload[:2]
        content_type = upload[2] if len(upload) == 3 else None
        if not isinstance(content_type, (str, type(None))):
            raise TypeError(
                f"file {field!r}: invalid type of the content type (got "
                f"{type(content_type).__name__}, allowed str or None)"
            )
    given = file_given(content)
    if given is not None:
        content_type = content_type or content.content_type
        file_name, content = file_name or given[0], given[1]
    kind, source, name, size = _content(field, content, is_fetched=given is not None)
    if file_name is None:
        file_name = _own_name(content)
    # Paths may contain bytes that are not UTF-8; replace them in the file name that is sent.
    wire_name = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in file_name)
    return (field, kind, source, name, wire_name, content_type or "", size)


def _content(
    field: str, content: Any, *, is_fetched: bool = False
) -> tuple[str, Any, str, int | None]:
    """Return kind, object, name for messages, and size if known.

    `is_fetched`: a file on a server is an iterable that can be read several times.
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
        f"file {field!r}: invalid type (got {type(content).__name__}, allowed a path, bytes, a "
        "binary file object, an iterable or async iterable of bytes, or a tuple of a file name and "
        "one of these)"
    )


def _own_name(content: Any) -> str:
    """Return the last component of the path; empty if there is none."""
    path = content if is_path(content) else getattr(content, "name", "")
    if not isinstance(path, (str, bytes, os.PathLike)):
        return ""
    return os.path.basename(os.fsdecode(path))  # noqa: PTH119 - bytes and str alike


async def aread(body: MultipartBody, size: int = PIECE_BYTES) -> bytes:
    """Return `body.read(size)` for asyncio; blocking reads run on another thread."""
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
    """Feed the next piece of the current async iterable."""
    try:
        body._feed(await anext(body._awaited()))  # noqa: SLF001
    except StopAsyncIteration:
        body._feed(None)  # noqa: SLF001
    except BaseException as error:
        # Otherwise the next read would treat the failed iterator's end as the end of the file.
        body._fail(error)  # noqa: SLF001
        raise


async def pieces(body: MultipartBody) -> AsyncIterator[bytes]:
    """Iterate over the unread rest of the body."""
    while piece := await aread(body):
        yield piece
