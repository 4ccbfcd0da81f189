"""Answers that come in pieces and are kept, each piece told as it comes."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from polymux.service.chunks import counts_of, plain_of, text_of
from polymux.service.errors import engine_failed
from polymux.service.model import Product

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from polymux.service.chunks import Chunk
    from polymux.service.model import Sink

#: In characters; what is only handed on has no such limit.
_LONGEST_ANSWER = 1 << 20


async def told_in_pieces(chunks: AsyncIterator[Chunk], sink: Sink) -> Product:
    """The texts of a chat's chunks, as a list; the sink is told of each.

    Args:
        chunks: The chat, which is closed at the end.
        sink: Of the job.

    Raises:
        InternalServerError: The answer has over 1,048,576 characters (code ``engine_failed``).

    Example:
        >>> import asyncio
        >>> from polymux.service.pieces import told_in_pieces
        >>> from polymux.service.model import Sink
        >>> async def chunks():
        ...     yield {"choices": [{"delta": {"content": "Hel"}}]}
        ...     yield {"choices": [{"delta": {"content": "lo"}}]}
        >>> asyncio.run(told_in_pieces(chunks(), Sink(lambda: None, None))).output
        ['Hel', 'lo']
    """
    counts: dict[str, float] = {}
    length = 0
    async with aclosing(chunks) as pieces:  # type: ignore[type-var]
        async for chunk in pieces:
            plain = plain_of(chunk)
            counts |= counts_of(plain)
            text = text_of(plain)
            length += len(text)
            if length > _LONGEST_ANSWER:
                raise engine_failed(
                    f"the answer is over {_LONGEST_ANSWER} characters: ask for fewer tokens"
                )
            if text:
                sink.say(text)
    return Product(sink.said or [], metrics=counts)
