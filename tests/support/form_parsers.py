"""multipart/form-data as three other projects read it."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Field(NamedTuple):
    name: str
    value: str


class File(NamedTuple):
    name: str
    file_name: str
    content_type: str
    content: bytes


Part = Field | File


def starlette(content: bytes, content_type: str) -> list[Part]:
    """Starlette over python-multipart, which FastAPI uses."""
    from starlette.datastructures import Headers, UploadFile
    from starlette.formparsers import MultiPartParser

    async def stream() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 1000):
            yield content[start : start + 1000]

    async def parse() -> list[Part]:
        headers = Headers({"content-type": content_type})
        form = await MultiPartParser(headers, stream(), max_part_size=1 << 30).parse()
        parts: list[Part] = []
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                parts.append(
                    File(name, value.filename or "", value.content_type or "", await value.read())
                )
            else:
                parts.append(Field(name, value))
        await form.close()
        return parts

    return asyncio.run(parse())


def aiohttp(content: bytes, content_type: str) -> list[Part]:
    """aiohttp's own reader."""
    from aiohttp import BodyPartReader, MultipartReader, StreamReader
    from aiohttp.base_protocol import BaseProtocol

    async def parse() -> list[Part]:
        loop = asyncio.get_running_loop()
        reader = StreamReader(BaseProtocol(loop), 2**16, loop=loop)
        reader.feed_data(content)
        reader.feed_eof()
        parts: list[Part] = []
        async for part in MultipartReader({"Content-Type": content_type}, reader):
            assert isinstance(part, BodyPartReader)
            data = bytes(await part.read())
            assert part.name is not None
            if part.filename is None:
                parts.append(Field(part.name, data.decode()))
            else:
                kind = part.headers["Content-Type"]
                parts.append(File(part.name, part.filename, kind, data))
        return parts

    return asyncio.run(parse())


def werkzeug(content: bytes, content_type: str) -> list[Part]:
    """Werkzeug's, which Flask uses, event by event, so that the order is kept."""
    from werkzeug.sansio import multipart

    boundary = content_type.partition("boundary=")[2].encode()
    decoder = multipart.MultipartDecoder(boundary, max_form_memory_size=None, max_parts=None)
    stream = io.BytesIO(content)
    parts: list[Part] = []
    head: multipart.Field | multipart.File | None = None
    data = b""
    while True:
        event = decoder.next_event()
        if isinstance(event, multipart.NeedData):
            # At once: of an empty file whose first byte behind the head is the last of a piece, it
            # takes the line end for a content (3.1.9).
            decoder.receive_data(stream.read() or None)
        elif isinstance(event, (multipart.Field, multipart.File)):
            head, data = event, b""
        elif isinstance(event, multipart.Data):
            data += event.data
            if not event.more_data:
                if isinstance(head, multipart.File):
                    kind = head.headers["content-type"]
                    parts.append(File(head.name, head.filename, kind, data))
                else:
                    assert head is not None
                    parts.append(Field(head.name, data.decode()))
        elif isinstance(event, multipart.Epilogue):
            return parts


ALL: list[Callable[[bytes, str], list[Part]]] = [starlette, aiohttp, werkzeug]
