"""Streams of chat answers: decode chunks from a server's response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from polymux._native import core
from polymux._util.deprecation import renamed_arguments
from polymux._util.html_repr import markdown
from polymux.client import chunk_fields as _chunk_fields  # noqa: F401 - the core calls it
from polymux.client.options import MAX_EVENT_BYTES, as_max_event_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from _typeshed import ReadableBuffer

    from polymux.client.answer import Answer

__all__ = ["AsyncChatStream", "ChatChunk", "ChatStream", "decode_chat_stream"]

ChatChunk = core.ChatChunk
StreamT = TypeVar("StreamT", "ChatStream", "AsyncChatStream")


class ChatStream(core.ChatStream):
    """An iterator over the chunks of one answer. A client or `decode_chat_stream` creates it.

    Only one thread at a time may read it; any thread may close it. As a context manager, it closes
    itself on exit.

    Attributes:
        text: The text of the first choice in the chunks read so far.
        finish_reason: The last finish reason read, such as ``"stop"``; None before.
        usage: Token counts as attributes; None until a chunk contains them.
        finished: True after the complete answer has been read.
        chunks: Number of chunks read.
        response: Status, `headers` and `request_id` of the server's response, available before the
            first chunk; None for streams from other sources.
    """

    __slots__ = ("response",)
    response: Answer | None

    def close(self) -> None:
        """Close the stream and its source. Chunks that were read remain available.

        Further reading returns the chunks that are already decoded, then raises
        `StreamInterruptedError` unless the answer is complete. A thread that waits for a chunk of a
        client's stream gets `OperationCancelledError`.
        """
        close = getattr(self._detach(), "close", None)
        if close is not None:
            close()

    def texts(self) -> Iterator[str]:
        r"""Iterate over the texts of the chunks and skip chunks without text.

        Example:
            >>> import polymux
            >>> body = [b'data: {"choices":[{"delta":{"content":"Hi"}}]}', b"\n\ndata: [DONE]"]
            >>> list(polymux.decode_chat_stream(body).texts())
            ['Hi']
        """
        return (chunk.content for chunk in self if chunk.content)

    def _repr_markdown_(self) -> str:
        """Return the text so far as Markdown for notebooks, with HTML and links escaped."""
        return markdown(self.text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncChatStream(core.AsyncChatStream):
    """The asynchronous variant of `ChatStream`. `polymux.aio.decode_chat_stream` creates it.

    Only one task at a time may read it. It has the attributes of `ChatStream`.
    """

    __slots__ = ("response",)
    response: Answer | None

    async def aclose(self) -> None:
        """Close the stream and its source. Chunks that were read remain available."""
        source = self._detach()
        if isinstance(source, core.Exchange):
            source.close()
            return
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()

    async def texts(self) -> AsyncIterator[str]:
        """Iterate over the texts of the chunks and skip chunks without text."""
        async for chunk in self:
            if chunk.content:
                yield chunk.content

    def _repr_markdown_(self) -> str:
        """Return the text so far as Markdown for notebooks, with HTML and links escaped."""
        return markdown(self.text)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@renamed_arguments(longest_event_bytes="max_event_bytes")
def decode_chat_stream(
    chunks: Iterable[ReadableBuffer], *, max_event_bytes: int = MAX_EVENT_BYTES
) -> ChatStream:
    r"""Decode a streamed chat answer from the bytes of an HTTP response.

    Supports the server-sent events of OpenAI, Groq, vLLM, llama.cpp, Ollama, Mistral and similar
    servers, and freellm's ``{"response": "..."}``. The pieces may have any size and may end
    anywhere. Every chunk is validated completely. A plain JSON response is returned as one chunk.

    Args:
        chunks: The response's body as an iterable of bytes, bytearray or memoryview. It is read
            only as needed, and not beyond ``[DONE]``.
        max_event_bytes: Maximum size of an event, in bytes. Default: 16 MiB; at most 1 GiB.

    Returns:
        An iterator of `ChatChunk` that also has the text so far, the finish reason and the token
        counts.

    Raises:
        InvalidRequestError: `max_event_bytes` is out of range.
        TypeError: `chunks` is not iterable; while iterating: a piece is not bytes-like.
        StreamInterruptedError: While iterating: the bytes ended without a finish reason for each
            answer and without ``[DONE]``. This error and the next two have the text so far.
        DecodeError: While iterating: not a stream of chat chunks, invalid JSON, or an event that is
            too large.
        APIError: While iterating: the server reported a failure in the stream.

    Exceptions of the source are raised unchanged.

    See https://html.spec.whatwg.org/multipage/server-sent-events.html for the events and
    https://platform.openai.com/docs/api-reference/chat-streaming for the chunks.

    Example:
        >>> import polymux
        >>> body = [b'data: {"choices":[{"index":0,"delta":{"content":"Hel', b'lo"}}]}',
        ...         b'\n\ndata: [DONE]\n\n']
        >>> stream = polymux.decode_chat_stream(body)
        >>> for chunk in stream:
        ...     print(chunk.content)
        Hello
        >>> stream.text, stream.finished
        ('Hello', True)
    """
    if isinstance(chunks, (bytes, bytearray, memoryview)):
        chunks = (chunks,)
    return make_stream(ChatStream, chunks, max_event_bytes)


def make_stream(
    kind: type[StreamT], source: Any, max_event_bytes: int = MAX_EVENT_BYTES
) -> StreamT:
    """Create a stream from a started exchange, or from an iterable of bytes and chunks.

    In an iterable of decoded chunks, the bytes ``[DONE]`` mark the regular end.
    """
    stream = kind(source, as_max_event_bytes(max_event_bytes))
    stream.response = None
    if isinstance(source, core.Exchange):
        from polymux.client.answer import Answer

        status, _, fields = source.head
        stream.response = Answer((status, fields, b"", 1, 0.0, source.retry_reasons))
    return stream


async def advance(stream: AsyncChatStream) -> ChatChunk:
    """Return the next chunk of a stream without decoded chunks whose source is not an exchange.

    The native module calls it.

    Raises:
        StopAsyncIteration: The answer is complete.
        PolymuxError: The answer is incomplete.
        RuntimeError: Another task waits for the stream's next chunk.
    """
    stream._hold(True)  # noqa: SLF001, FBT003 - the native half of this class
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
