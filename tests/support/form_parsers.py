"""Independent parsers for multipart/form-data."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


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
    """Starlette with python-multipart, which FastAPI uses."""
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
