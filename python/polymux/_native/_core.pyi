"""The native core module. Private: use the functions of `polymux`."""

import sys
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Never, Self, final

from _typeshed import ReadableBuffer
from typing_extensions import disjoint_base

__version__: str

def describe(operation: str | None = None) -> str:
    """The contract as JSON text: all operations, or the one named."""

def read_json(
    operation: str, model: str | None, body: ReadableBuffer, server: bool, max_bytes: int
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Parses and checks a JSON body: (variant, model, values, warnings)."""

def read_form(
    operation: str, model: str | None, fields: Sequence[tuple[str, Any]], server: bool
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Checks a form of (name, text or file object): (variant, model, values, warnings)."""

def check_json(
    operation: str, model: str | None, body: ReadableBuffer, server: bool, max_bytes: int
) -> tuple[str, str, list[str]]:
    """The same as `read_json` without making values of the body: (variant, model, warnings)."""

def encoding_of(content_type: str | None) -> str:
    """The encoding that a received Content-Type names: json or multipart."""

def choose_variant(
    operation: str, model: str | None, values: dict[str, Any]
) -> tuple[str, str, str, str, str]:
    """Which variant a client means: (operation's name, path, variant, its model, encoding)."""

def present(values: dict[str, Any]) -> dict[str, Any]:
    """The values that are not None, as a new dict."""

def check(operation: str, variant: str, values: dict[str, Any]) -> None:
    """Checks what a client is about to send, by wire names.

    A field that takes a file is given as a path, bytes, a file object, a tuple or an iterator.

    Raises:
        InvalidRequestError: The values do not keep the contract; `problems` says all that is wrong.
        TypeError: A value is of a type that JSON does not have; the message has its path.
    """

def write_json(value: object, /) -> bytes:
    """The value as JSON text in UTF-8, without spaces.

    str, int of any size, float as Python prints it, bool, None, dict and other mappings, list,
    tuple, dataclasses (their fields) and enums (their values). No str gets a UTF-8 copy of itself.

    Raises:
        InvalidRequestError: A NaN or an infinity, half of a surrogate pair, a key that is no str or
            is there twice, more than 200 levels, or a value inside itself; the message and
            `problems[0].field` have the path, such as ``messages[3].content``.
        TypeError: Any other type; the message has the path.
    """

@final
class JsonBuffer:
    """JSON text in memory that is used again and again; readable as bytes.

    Example:
        >>> from polymux._native import _core
        >>> buffer = _core.JsonBuffer()
        >>> buffer.write({"prompt": "waves"})
        >>> bytes(buffer)
        b'{"prompt":"waves"}'
    """

    def __new__(cls) -> JsonBuffer: ...
    def write(self, value: object, /) -> None:
        """Replaces the content by the value's text.

        Raises:
            BufferError: A view of the content exists, or another call is writing.
            InvalidRequestError: As for `write_json`; the buffer is empty then.
            TypeError: As for `write_json`; the buffer is empty then.
        """

    def clear(self) -> None:
        """Forgets the content and keeps its memory, at most 4 MiB.

        Raises:
            BufferError: A view of the content exists, or another call is writing.
        """

    def __len__(self) -> int:
        """Bytes of the content."""

    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

def parse_json(body: ReadableBuffer) -> Any:
    """A JSON document (RFC 8259) as None, bool, int, float, str, list and dict.

    Of members that come twice the last counts; integers may have any size, numbers too large for
    a float become infinite, a byte order mark is skipped.

    Raises:
        polymux.errors.DecodeError: Empty, not JSON, not UTF-8, half a surrogate pair, NaN, or
            nested deeper than 200 levels.
    """

def fits(value: object, shape: tuple[Any, ...]) -> bool:
    """Whether a parsed answer is as `polymux.client.responses._base.Shape` says.

    False only means that it needs a second look, which tells what is wrong.
    """

@final
class CancelToken:
    """One flag, shared by whoever asks and whoever works; any thread may set it."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Asks the work to end; it does within milliseconds."""
    @property
    def cancelled(self) -> bool:
        """Whether it was asked to end."""

@final
class FetchPolicy:
    """polymux::transport::FetchPolicy, checked."""

    def __init__(
        self,
        allowed_hosts: Sequence[str],
        allowed_networks: Sequence[str],
        allowed_ports: Sequence[int],
        certificate_bundle: str | bytes,
        verify_allowed_hosts: bool = True,
    ) -> None:
        """Raises InvalidRequestError for a host or network that is none."""

@final
class FetchLimits:
    """polymux::transport::FetchLimits, checked; the same fields and defaults."""

    def __init__(
        self,
        *,
        body_bytes: int = ...,
        header_bytes: int = ...,
        header_count: int = ...,
        connect_ms: int = ...,
        idle_ms: int = ...,
        total_ms: int = ...,
        rate_bytes_per_s: int = ...,
        rate_window_ms: int = ...,
        redirects: int = ...,
    ) -> None:
        """Raises InvalidRequestError for a limit out of its range."""
    @property
    def body_bytes(self) -> int: ...
    @property
    def header_bytes(self) -> int: ...
    @property
    def header_count(self) -> int: ...
    @property
    def connect_ms(self) -> int: ...
    @property
    def idle_ms(self) -> int: ...
    @property
    def total_ms(self) -> int: ...
    @property
    def rate_bytes_per_s(self) -> int: ...
    @property
    def rate_window_ms(self) -> int: ...
    @property
    def redirects(self) -> int: ...

def fetch(
    url: bytes,
    policy: FetchPolicy,
    limits: FetchLimits,
    destination: tuple[str, object] | None,
    on_progress: Callable[[int, int | None], object] | None,
    cancel: CancelToken,
    resume: tuple[int, str, int | None] | None = None,
    on_start: Callable[[int, int, int | None, str, bool], object] | None = None,
) -> dict[str, Any]:
    """Fetches what a stranger named, on the calling thread and without the GIL.

    A destination is None for memory (member `data` then), `("descriptor", int)` or
    `("file", object)`. Signal handlers run every 20 ms or so. `resume` is what is there already:
    its bytes, their entity tag, and the length of all. `on_start` takes the status, the offset and
    the length of all, the entity tag, and whether the body is encoded, before its first byte.
    """

def resolve_destination(
    url: bytes, policy: FetchPolicy, limits: FetchLimits, cancel: CancelToken
) -> tuple[str, int, list[str]]:
    """Host, port and addresses that a URL leads to, judged as `fetch` judges them."""

def reserved_networks() -> list[tuple[str, str, str]]:
    """The networks that are refused: (network, purpose, source)."""

def content_type_of(file_name: str) -> str:
    """The content type of a file name's extension."""

@final
class MultipartBody:
    """A multipart/form-data body that is made while it is read."""

    on_progress: Callable[[int, int | None], object] | None
    def __init__(
        self,
        fields: Sequence[tuple[str, str]],
        files: Sequence[tuple[str, str, Any, str, str, str, int | None]],
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> None: ...
    @property
    def content_type(self) -> str:
        """For the header, with the boundary."""
    @property
    def length_bytes(self) -> int | None:
        """Of the whole body; None where a part does not know its own."""
    @property
    def sent_bytes(self) -> int:
        """Given out since the start."""
    @property
    def finished(self) -> bool:
        """Whether all of it was given out."""
    @property
    def can_rewind(self) -> bool:
        """Whether it can be sent again."""
    @property
    def may_block(self) -> bool:
        """Whether reading may wait: for a disk, or in code of the caller."""
    def read(self, size: int = ...) -> bytes:
        """Up to `size` bytes; empty at the end, and only there."""
    async def aread(self, size: int = ...) -> bytes:
        """The same for asyncio; the only way where a part is an async iterable."""
    def rewind(self) -> None:
        """Back to the start."""
    def __iter__(self) -> MultipartBody: ...
    def __next__(self) -> bytes: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    def _read_or_none(self, size: int) -> bytes | None: ...
    def _awaited(self) -> AsyncIterator[Any]: ...
    def _feed(self, piece: ReadableBuffer | None) -> None: ...
    def _fail(self, exception: BaseException) -> None: ...

@final
class ChatChunk:
    """One piece of a streamed chat answer.

    Immutable; equal to chunks of the same JSON. Made by streams; from a chunk's JSON by hand.

    Args:
        raw: The JSON of one chunk.

    Raises:
        DecodeError: It is not the JSON of an object.

    Example:
        >>> import polymux
        >>> polymux.ChatChunk(b'{"choices":[{"index":0,"delta":{"content":"Hi"}}]}').content
        'Hi'
    """

    def __new__(cls, raw: ReadableBuffer) -> ChatChunk: ...
    @property
    def content(self) -> str:
        """Text of this chunk; '' without."""

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended: 'stop', 'length', 'tool_calls', ...; None before its end."""

    @property
    def role(self) -> str | None:
        """'assistant', where the chunk says it; else None."""

    @property
    def raw(self) -> bytes:
        """The chunk's JSON as it was received."""

    @property
    def index(self) -> int | None:
        """Number of the choice, from 0; None without choices."""

    @property
    def reasoning(self) -> str:
        """Reasoning text of this chunk; '' without."""

    @property
    def id(self) -> str | None:
        """The answer's id; None without."""

    @property
    def model(self) -> str | None:
        """The model's name as the server tells it; None without."""

    @property
    def created(self) -> int | None:
        """Unix time in seconds; None without."""

    @property
    def tool_calls(self) -> tuple[Any, ...]:
        """Pieces of tool calls; members are attributes."""

    @property
    def logprobs(self) -> Any:
        """Log probabilities of the first choice; None without."""

    @property
    def usage(self) -> Any:
        """Token counts, in the last chunk where the server sends them; None without."""

    @property
    def choices(self) -> tuple[Any, ...]:
        """All choices, as openai-python shows them: ``choices[0].delta.content``."""

    def json(self) -> dict[str, Any]:
        """The chunk as a new dict."""

class _Stream:
    @property
    def text(self) -> str:
        """The text of the chunks read so far, of the first choice."""

    @property
    def finish_reason(self) -> str | None:
        """The last finish reason read; None before."""

    @property
    def usage(self) -> Any:
        """Token counts, once a chunk brought them; else None."""

    @property
    def finished(self) -> bool:
        """True once the whole answer was read to its good end."""

    @property
    def chunks(self) -> int:
        """How many chunks were read."""

    @property
    def _source(self) -> Any: ...
    def _detach(self) -> Any: ...

@disjoint_base
class ChatStream(_Stream):
    """An iterator over the chunks of one answer."""

    def __new__(
        cls,
        source: Iterable[ReadableBuffer | ChatChunk] | Exchange,
        max_event_bytes: int,
        templates: bool = True,
        /,
    ) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> ChatChunk: ...

@disjoint_base
class AsyncChatStream(_Stream):
    """The asynchronous twin."""

    def __new__(
        cls,
        source: AsyncIterable[ReadableBuffer | ChatChunk] | Exchange,
        max_event_bytes: int,
        templates: bool = True,
        /,
    ) -> Self: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[ChatChunk]: ...
    def _pop(self) -> ChatChunk | None: ...
    def _feed(self, piece: ReadableBuffer | ChatChunk, /) -> None: ...
    def _finish(self) -> None: ...
    def _hold(self, hold: bool, /) -> None: ...

@final
class CallOptions:
    """Deadlines, retries and limits of a call; None is no limit."""

    def __init__(
        self,
        *,
        connect_ms: int | None,
        write_ms: int | None,
        first_byte_ms: int | None,
        idle_ms: int | None,
        event_ms: int | None,
        total_ms: int | None,
        max_retries: int,
        first_backoff_ms: int,
        max_backoff_ms: int,
        max_retry_after_ms: int,
        repeatable: bool,
        max_answer_bytes: int,
        max_event_bytes: int,
    ) -> None: ...

@final
class Exchange:
    """A request on its way, and what comes of it."""

    def __init__(self, *args: Never, **kwargs: Never) -> None:
        """Raises TypeError: a session makes them."""

    def wait_for_news(self) -> None: ...
    def close(self) -> None: ...
    def outcome(self) -> tuple[int, bytes, bytes, int, float]: ...
    def take_bytes(self) -> bytes: ...
    def set_waiter(self, future: Any) -> None: ...
    def report_progress(self) -> None: ...
    def belongs_to(self, notifier: LoopNotifier) -> bool: ...
    def resume_sending(self) -> None: ...
    @property
    def head(self) -> Any: ...
    @property
    def ended(self) -> bool: ...
    @property
    def has_news(self) -> bool: ...
    @property
    def starved(self) -> bool: ...
    @property
    def sent_bytes(self) -> int: ...

@final
class LoopNotifier:
    """Where an event loop learns of news."""

    def __init__(self, loop: AbstractEventLoop) -> None: ...
    def dispatch(self) -> None: ...
    def close(self) -> None: ...
    @property
    def descriptor(self) -> int: ...

@final
class Session:
    """Connections to one server, and who works on them."""

    def __init__(
        self,
        *,
        headers: list[str],
        proxy: str,
        no_proxy: str,
        certificates: str,
        verify: bool,
        http2: bool,
        client_certificate: str = "",
        reuse: bool = True,
    ) -> None: ...
    def perform(
        self,
        method: str,
        url: str,
        headers: list[str],
        body: bytes | MultipartBody | None,
        options: CallOptions,
    ) -> tuple[int, bytes, bytes, int, float]: ...
    def open(
        self,
        method: str,
        url: str,
        headers: list[str],
        body: bytes | MultipartBody | None,
        options: CallOptions,
        response_mode: str,
    ) -> Exchange: ...
    def start(
        self,
        notifier: LoopNotifier,
        method: str,
        url: str,
        headers: list[str],
        body: bytes | MultipartBody | None,
        options: CallOptions,
        response_mode: str,
    ) -> Exchange: ...
    def close(self) -> None: ...
    @property
    def repeatable(self) -> bool: ...

@final
class EventSplitter:
    """Server-sent events out of bytes that arrive in pieces."""

    def __init__(self, max_event_bytes: int) -> None: ...
    def feed(self, piece: ReadableBuffer) -> list[tuple[str, bytes]]: ...
