"""Server answers for tests of the client, and calls that work with both kinds of client."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import polymux
from servers import steps

from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import Callable

FINE = steps.answer(200, b'{"response":"fine"}')
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
#: The last chunk of a stream, and its end.
END = CHUNK.replace(b"}}]", b'},"finish_reason":"stop"}]') + b"data: [DONE]\n\n"
#: A stream that sends one chunk and then nothing.
SILENT_STREAM = steps.event_stream(), steps.send(CHUNK), steps.stall()
KINDS: list[type] = [polymux.Client, polymux.AsyncClient]


def called(
    kind: type, url: str, call: Callable[[Any], Any], *, api_key: str = KEY, **options: Any
) -> Any:
    """The result of a call by a client of either kind; for a stream, a list of its chunks.

    Requests are sent once unless `retry` is given.
    """
    options = {"retry": 0, **options}

    async def awaited() -> Any:
        async with polymux.AsyncClient(url, api_key, **options) as client:
            given = call(client)
            given = await given if inspect.isawaitable(given) else given
            return [one async for one in given] if isinstance(given, AsyncIterator) else given

    if kind is polymux.AsyncClient:
        return asyncio.run(awaited())
    with polymux.Client(url, api_key, **options) as client:
        given = call(client)
        return list(given) if isinstance(given, Iterator) else given
