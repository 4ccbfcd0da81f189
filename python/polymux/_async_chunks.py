"""Where an asynchronous chat stream waits for a source that is no exchange; called natively."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polymux._native._core import AsyncChatStream, ChatChunk


async def advance(stream: AsyncChatStream) -> ChatChunk:
    """The next chunk of a stream that has none decoded.

    Raises:
        StopAsyncIteration: The answer has ended well.
        PolymuxError: It has ended otherwise.
        RuntimeError: Another task waits for the stream's next chunk.
    """
    stream._hold(True)  # noqa: SLF001, FBT003 - two halves of one class
    try:
        while (chunk := stream._pop()) is None:  # noqa: SLF001
            source = stream._source  # noqa: SLF001
            if source is None:
                stream._finish()  # noqa: SLF001
                continue
            try:
                piece = await anext(source)
            except StopAsyncIteration:
                stream._finish()  # noqa: SLF001
            else:
                stream._feed(piece)  # noqa: SLF001
        return chunk
    finally:
        stream._hold(False)  # noqa: SLF001, FBT003
