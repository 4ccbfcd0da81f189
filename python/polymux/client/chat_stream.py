"""Streams of chat answers, decoded: chunks out of the bytes that a server sends."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from polymux._native.core import core
from polymux.client.options import LONGEST_EVENT_BYTES
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable
    from types import TracebackType

    from _typeshed import ReadableBuffer

    from polymux.client.answer import Answer

__all__ = ["AsyncChatStream", "ChatChunk", "ChatStream", "decode_chat_stream"]


ChatChunk = core.ChatChunk

_LARGEST_LIMIT_BYTES = 1 << 30


def checked_limit(longest_event_bytes: int) -> int:
    """The limit, when it is one."""
    if not 1 <= longest_event_bytes <= _LARGEST_LIMIT_BYTES:
        raise InvalidRequestError(
            f"longest_event_bytes={longest_event_bytes}: must be from 1 to {_LARGEST_LIMIT_BYTES}"
        )
    return longest_event_bytes


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
        from polymux.notebook.markup import markdown

        return markdown(self.text)

    def __enter__(self) -> Self:
        """The stream itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the source."""
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
        from polymux.notebook.markup import markdown

        return markdown(self.text)

    async def __aenter__(self) -> Self:
        """The stream itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the source."""
        await self.aclose()


def decode_chat_stream(
    chunks: Iterable[ReadableBuffer], *, longest_event_bytes: int = LONGEST_EVENT_BYTES
) -> ChatStream:
    r"""Decodes a streamed chat answer from the bytes of its HTTP response, wherever they come from.

    Server-sent events as OpenAI, Groq, vLLM, llama.cpp, Ollama, Mistral and others send them, and
    freellm's ``{"response": "..."}``. The pieces may be of any size and end anywhere. Every chunk
    is validated in full. A server's plain JSON answer to a request for a stream is read as one
    chunk.

    Args:
        chunks: The response's body in pieces: bytes, bytearray, memoryview. It is read as the
            chunks are asked for, and no further than ``[DONE]``.
        longest_event_bytes: Longest event taken, in bytes. Default: 16 MiB; at most 1 GiB.

    Returns:
        An iterator of `ChatChunk` that also gives the text so far, the finish reason and the token
        counts.

    Raises:
        InvalidRequestError: `longest_event_bytes` is out of its range.
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
    stream = ChatStream(chunks, checked_limit(longest_event_bytes))
    stream.response = None
    return stream


def opened_stream(exchange: core.Exchange) -> ChatStream:
    """The chunks of an exchange whose answer has begun."""
    stream = ChatStream(exchange, LONGEST_EVENT_BYTES)
    stream.response = _response(exchange)
    return stream


def opened_async_stream(exchange: core.Exchange) -> AsyncChatStream:
    """The same for asyncio."""
    stream = AsyncChatStream(exchange, LONGEST_EVENT_BYTES)
    stream.response = _response(exchange)
    return stream


def _response(exchange: core.Exchange) -> Answer:
    from polymux.client.answer import Answer

    status, _, fields = exchange.head
    return Answer((status, fields, b"", 1, 0.0))


def decode_async(
    chunks: AsyncIterable[ReadableBuffer], longest_event_bytes: int
) -> AsyncChatStream:
    """What `polymux.aio.decode_chat_stream` does."""
    stream = AsyncChatStream(chunks, checked_limit(longest_event_bytes))
    stream.response = None
    return stream


#: Members that clients of this interface declare: None where a server leaves them out.
_DECLARED = frozenset(
    {
        "annotations", "audio", "code", "content", "created", "delta", "executed_tools",
        "finish_reason", "function", "function_call", "id", "index", "logprobs", "message", "model",
        "name", "object", "reasoning", "reasoning_content", "refusal", "role", "service_tier",
        "system_fingerprint", "tool_calls", "type", "usage", "x_groq",
    }
)  # fmt: skip


class Fields(Mapping[str, Any]):
    """A JSON object whose members are attributes, too.

    Objects inside are `Fields` again, lists are tuples. Members of the interface are None
    where they are missing; any other missing name is an `AttributeError`.

    Example:
        >>> counts = Fields({"total_tokens": 7})
        >>> counts.total_tokens, counts["total_tokens"], counts
        (7, 7, Fields({'total_tokens': 7}))
    """

    __slots__ = ("_members",)
    _members: Mapping[str, Any]

    def __init__(self, members: Mapping[str, Any]) -> None:
        """Shows `members`, which must not change any more."""
        object.__setattr__(self, "_members", members)

    def __getattr__(self, name: str) -> Any:
        """The member of that name."""
        members = object.__getattribute__(self, "_members")
        if name in members:
            return view(members[name])
        if name in _DECLARED:
            return None
        raise AttributeError(f"there is no {name!r} here, only: {', '.join(members) or 'nothing'}")

    def __setattr__(self, name: str, value: object) -> None:
        """Refuses: what was received does not change."""
        raise AttributeError(f"cannot set {name!r}: what was received does not change")

    def __getitem__(self, name: str) -> Any:
        """The member of that name."""
        return view(self._members[name])

    def __iter__(self) -> Iterator[str]:
        """Names of the members."""
        return iter(self._members)

    def __len__(self) -> int:
        """How many members there are."""
        return len(self._members)

    def __repr__(self) -> str:
        """The members as they were received."""
        return f"Fields({self._members!r})"

    def __reduce__(self) -> tuple[type[Fields], tuple[dict[str, Any]]]:
        """Pickles as its members."""
        return Fields, (dict(self._members),)


def view(value: Any) -> Any:
    """A JSON value with attributes for members and tuples for lists."""
    if isinstance(value, dict):
        return Fields(value)
    if isinstance(value, list):
        return tuple(map(view, value))
    return value


def document(raw: bytes) -> dict[str, Any]:
    """The chunk as a dict."""
    parsed: dict[str, Any] = json.loads(raw)
    return parsed


def id(raw: bytes) -> Any:  # noqa: A001 - named as the member is
    """The answer's id."""
    return document(raw).get("id")


def model(raw: bytes) -> Any:
    """The model's name."""
    return document(raw).get("model")


def created(raw: bytes) -> Any:
    """Unix time in seconds."""
    return document(raw).get("created")


def choices(raw: bytes) -> tuple[Any, ...]:
    """All choices."""
    found = document(raw).get("choices")
    return view(found) if isinstance(found, list) else ()


def _first_choice(raw: bytes) -> Mapping[str, Any]:
    found = choices(raw)
    return found[0] if found and isinstance(found[0], Fields) else {}


def tool_calls(raw: bytes) -> tuple[Any, ...]:
    """Pieces of tool calls of the first choice."""
    choice = _first_choice(raw)
    delta = choice.get("delta") or choice.get("message")
    return (delta.get("tool_calls") or ()) if isinstance(delta, Fields) else ()


def logprobs(raw: bytes) -> Any:
    """Log probabilities of the first choice."""
    return _first_choice(raw).get("logprobs")


def usage(raw: bytes) -> Any:
    """Token counts; Groq sends them in a member of its own."""
    members = document(raw)
    groq = members.get("x_groq")
    return view(members.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None))
