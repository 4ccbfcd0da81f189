"""Streams of chat answers, decoded: chunks out of the bytes that a server sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from polymux._native import core
from polymux._util.deprecation import renamed_arguments
from polymux._util.html_repr import markdown
from polymux.client.options import MAX_EVENT_BYTES, as_max_event_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from _typeshed import ReadableBuffer

    from polymux.client.answer import Answer

__all__ = ["AsyncChatStream", "ChatChunk", "ChatStream", "decode_chat_stream"]

ChatChunk = core.ChatChunk
StreamT = TypeVar("StreamT", "ChatStream", "AsyncChatStream")


class ChatStream(core.ChatStream):
    """An iterator over the chunks of one answer; a client or `decode_chat_stream` makes it.

    It is read by one thread at a time; any thread may close it. As a context manager it closes
    itself at the end.

    Attributes:
        text: The text of the chunks read so far, of the first choice.
        finish_reason: The last finish reason read, such as ``"stop"``; None before.
        usage: Token counts with their names as attributes, once a chunk brought them; else None.
        finished: True once the whole answer was read to its good end.
        chunks: How many chunks were read.
        response: Status, `headers` and `request_id` of the server's answer, there before the first
            chunk; None for streams that come from elsewhere.
    """

    __slots__ = ("response",)
    response: Answer | None

    def close(self) -> None:
        """Gives up the source, and closes it where it can be closed. What came before stays.

        Reading on gives the chunks that are decoded already, then `StreamInterruptedError` unless
        the answer was complete. Who waits for a chunk of a client's stream in another thread gets
        `OperationCancelledError`.
        """
        close = getattr(self._detach(), "close", None)
        if close is not None:
            close()

    def texts(self) -> Iterator[str]:
        r"""The texts of the chunks, without those that have none.

        Example:
            >>> import polymux
            >>> body = [b'data: {"choices":[{"delta":{"content":"Hi"}}]}', b"\n\ndata: [DONE]"]
            >>> list(polymux.decode_chat_stream(body).texts())
            ['Hi']
        """
        return (chunk.content for chunk in self if chunk.content)

    def _repr_markdown_(self) -> str:
        """The text so far as Markdown for notebooks; nothing in it is a tag or a link."""
        return markdown(self.text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncChatStream(core.AsyncChatStream):
    """The asynchronous twin of `ChatStream`; `polymux.aio.decode_chat_stream` makes it.

    It is read by one task at a time; its attributes are those of `ChatStream`.
    """

    __slots__ = ("response",)
    response: Answer | None

    async def aclose(self) -> None:
        """Gives up the source, and closes it where it can be closed. What came before stays."""
        source = self._detach()
        if isinstance(source, core.Exchange):
            source.close()
            return
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()

    async def texts(self) -> AsyncIterator[str]:
        """The texts of the chunks, without those that have none."""
        async for chunk in self:
            if chunk.content:
                yield chunk.content

    def _repr_markdown_(self) -> str:
        """The text so far as Markdown for notebooks; nothing in it is a tag or a link."""
        return markdown(self.text)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@renamed_arguments(longest_event_bytes="max_event_bytes")
def decode_chat_stream(
    chunks: Iterable[ReadableBuffer], *, max_event_bytes: int = MAX_EVENT_BYTES
) -> ChatStream:
    r"""Decodes a streamed chat answer from the bytes of its HTTP response, wherever they come from.

    Server-sent events as OpenAI, Groq, vLLM, llama.cpp, Ollama, Mistral and others send them, and
    freellm's ``{"response": "..."}``. The pieces may be of any size and end anywhere. Every chunk
    is validated in full. A server's plain JSON answer to a request for a stream is read as one
    chunk.

    Args:
        chunks: The response's body in pieces: bytes, bytearray, memoryview. It is read as the
            chunks are asked for, and no further than ``[DONE]``.
        max_event_bytes: Longest event taken, in bytes. Default: 16 MiB; at most 1 GiB.

    Returns:
        An iterator of `ChatChunk` that also gives the text so far, the finish reason and the token
        counts.

    Raises:
        InvalidRequestError: `max_event_bytes` is out of its range.
        TypeError: `chunks` is no iterable; while iterating: a piece is not bytes-like.
        StreamInterruptedError: While iterating: the bytes ended with neither a finish reason, one
            for each answer, nor ``[DONE]``. The error has the text so far, as the two below.
        DecodeError: While iterating: not a stream of chat chunks; wrong JSON; an event over the
            limit.
        APIError: While iterating: the server reported a failure in the stream.

    What the source itself raises is passed on unchanged.

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
    """The chunks of an exchange whose answer has begun, or of a source of bytes and chunks.

    Of chunks that are made already, the bytes of ``[DONE]`` are the good end.
    """
    stream = kind(source, as_max_event_bytes(max_event_bytes))
    stream.response = None
    if isinstance(source, core.Exchange):
        from polymux.client.answer import Answer

        status, _, fields = source.head
        stream.response = Answer((status, fields, b"", 1, 0.0))
    return stream


async def advance(stream: AsyncChatStream) -> ChatChunk:
    """The next chunk of a stream that has none decoded, from a source that is no exchange.

    Called natively.

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
