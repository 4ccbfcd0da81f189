"""The native core module. Private: use the functions of `polymux`."""

import sys
from asyncio import AbstractEventLoop
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from typing import Any, Never, Self, final

from _typeshed import ReadableBuffer
from typing_extensions import disjoint_base

__version__: str

def describe(operation: str | None = None) -> str:
    """Return the contract of all operations, or of one, as JSON text."""

def read_json(
    operation: str, model: str | None, body: ReadableBuffer, server: bool, max_bytes: int
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Parse and validate a JSON body. Return (variant, model, values, warnings)."""

def read_form(
    operation: str, model: str | None, fields: Sequence[tuple[str, Any]], server: bool
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Validate a form of (name, text or file object). Return (variant, model, values, warnings)."""

def check_json(
    operation: str, model: str | None, body: ReadableBuffer, server: bool, max_bytes: int
) -> tuple[str, str, list[str]]:
    """Validate a JSON body without converting it. Return (variant, model, warnings)."""

def encoding_of(content_type: str | None, json: bool, multipart: bool) -> str:
    """Return the encoding of a received Content-Type, if accepted: json or multipart."""

def choose_variant(
    operation: str, model: str | None, values: dict[str, Any]
) -> tuple[str, str, str, str, str]:
    """Select a client's variant. Return (operation, path, variant, its model, encoding)."""

def present(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are not None, as a new dict."""

def check(operation: str, variant: str, values: dict[str, Any]) -> dict[str, Any]:
    """Validate the fields that a client is about to send, by wire name.

    A file field is a path, bytes, a file object, a tuple or an iterator.

    Returns:
        The values to send: without absent fields, with whole numbers of integer fields as int.

    Raises:
        InvalidRequestError: The values are invalid; `problems` lists all problems.
        TypeError: A value has a type that JSON does not support; the message has its path.
    """

def write_json(value: object, /) -> bytes:
    """Return the value as JSON in UTF-8, without spaces.

    Supports str, int of any size, float as Python prints it, bool, None, dict and other mappings,
    list, tuple, dataclasses (their fields) and enums (their values). Does not create UTF-8 copies
    of str objects.

    Raises:
        InvalidRequestError: A NaN or infinity, a lone surrogate, a key that is not a str or occurs
            twice, more than 200 levels, or a value inside itself. The message and
            `problems[0].field` have the path, such as ``messages[3].content``.
        TypeError: Another type; the message has the path.
    """

@final
class JsonBuffer:
    """A reusable buffer for JSON text, readable as bytes.

    Example:
        >>> from polymux._native import _core
        >>> buffer = _core.JsonBuffer()
        >>> buffer.write({"prompt": "waves"})
        >>> bytes(buffer)
        b'{"prompt":"waves"}'
    """

    def __new__(cls) -> JsonBuffer: ...
    def write(self, value: object, /) -> None:
        """Replace the content with the value as JSON.

        Raises:
            BufferError: A view of the content exists, or another call is writing.
            InvalidRequestError: See `write_json`; the buffer is then empty.
            TypeError: See `write_json`; the buffer is then empty.
        """

    def clear(self) -> None:
        """Clear the content but keep up to 4 MiB of its memory.

        Raises:
            BufferError: A view of the content exists, or another call is writing.
        """

    def __len__(self) -> int:
        """Return the size of the content in bytes."""

    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class JsonScan:
    """Measures JSON text while it arrives, before anything parses it."""

    def __init__(self, member: str) -> None:
        """Look for the text of `member` in the root object."""

    def add(self, piece: ReadableBuffer) -> None: ...
    @property
    def depth(self) -> int:
        """Maximum number of open arrays and objects."""

    @property
    def values(self) -> int:
        """Upper bound for the number of values."""

    @property
    def found(self) -> str | None:
        """Text of the last `member` so far; None if it is missing or may be hidden by escapes."""

def parse_json(body: ReadableBuffer) -> Any:
    """Parse a JSON document (RFC 8259) to None, bool, int, float, str, list and dict.

    If an object has duplicate members, the last one wins. Integers may have any size. Numbers too
    large for a float become infinite. A byte order mark is skipped.

    Raises:
        polymux.errors.DecodeError: Empty, not JSON, not UTF-8, a lone surrogate, NaN, or nested
            deeper than 200 levels.
    """

def fits(value: object, shape: tuple[Any, ...]) -> bool:
    """Return whether a parsed response matches a `polymux.client.responses._base.Shape`.

    False means that it must be validated in detail to find the problem.
    """

@final
class CancelToken:
    """A cancellation flag. Any thread may set it."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Request cancellation. The work ends within milliseconds."""
    @property
    def cancelled(self) -> bool:
        """Whether cancellation was requested."""

@final
class FetchPolicy:
    """A validated polymux::transport::FetchPolicy."""

    def __init__(
        self,
        allowed_hosts: Sequence[str],
        allowed_networks: Sequence[str],
        allowed_ports: Sequence[int],
        certificate_bundle: str | bytes,
        verify_allowed_hosts: bool = True,
    ) -> None:
        """Raises InvalidRequestError for an invalid host or network."""

@final
class FetchLimits:
    """A validated polymux::transport::FetchLimits with the same fields and defaults."""

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
        """Raises InvalidRequestError for a limit that is out of range."""
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
    """Fetch a URL from untrusted input, on the calling thread without the GIL.

    A destination is None for memory (the result has `data`), `("descriptor", int)` or
    `("file", object)`. Signal handlers run about every 20 ms. `resume` describes existing data: its
    length, its entity tag, and the total length. `on_start` is called before the first byte with
    status, offset, total length, entity tag, and whether the body has a content encoding.
    """

def resolve_destination(
    url: bytes, policy: FetchPolicy, limits: FetchLimits, cancel: CancelToken
) -> tuple[str, int, list[str]]:
    """Return host, port and IP addresses of a URL, validated like in `fetch`."""

def reserved_networks() -> list[tuple[str, str, str]]:
    """Return the blocked networks: (network, purpose, source)."""

def content_type_of(file_name: str) -> str:
    """Return the content type for a file name's extension."""

@final
class MultipartBody:
    """A multipart/form-data body that is generated while it is read."""

    on_progress: Callable[[int, int | None], object] | None
    def __init__(
        self,
        fields: Sequence[tuple[str, str]],
        files: Sequence[tuple[str, str, Any, str, str, str, int | None]],
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> None: ...
    @property
    def content_type(self) -> str:
        """Value of the Content-Type header, with the boundary."""
    @property
    def length_bytes(self) -> int | None:
        """Length of the whole body; None if a part has an unknown length."""
    @property
    def sent_bytes(self) -> int:
        """Number of bytes read since the start."""
    @property
    def finished(self) -> bool:
        """Whether the whole body was read."""
    @property
    def can_rewind(self) -> bool:
        """Whether the body can be sent again."""
    @property
    def may_block(self) -> bool:
        """Whether reading may block, on a disk or in code of the caller."""
    def read(self, size: int = ...) -> bytes:
        """Return up to `size` bytes; empty only at the end."""
    async def aread(self, size: int = ...) -> bytes:
        """Read in asyncio; required if a part is an async iterable."""
    def rewind(self) -> None:
        """Go back to the start."""
    def __iter__(self) -> MultipartBody: ...
    def __next__(self) -> bytes: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    def _read_or_none(self, size: int) -> bytes | None: ...
    def _awaited(self) -> AsyncIterator[Any]: ...
    def _feed(self, piece: ReadableBuffer | None) -> None: ...
    def _fail(self, exception: BaseException) -> None: ...

@final
class ChatChunk:
    """A chunk of a streamed chat answer.

    Immutable; chunks with the same JSON are equal. Streams create chunks; you can also create one
    from its JSON.

    Args:
        raw: The JSON of one chunk.

    Raises:
        DecodeError: It is not a JSON object.

    Example:
        >>> import polymux
        >>> polymux.ChatChunk(b'{"choices":[{"index":0,"delta":{"content":"Hi"}}]}').content
        'Hi'
    """

    def __new__(cls, raw: ReadableBuffer) -> ChatChunk: ...
    @property
    def content(self) -> str:
        """Text of this chunk; may be empty."""

    @property
    def finish_reason(self) -> str | None:
        """Why generation stopped: 'stop', 'length', 'tool_calls', ...; None before the end."""

    @property
    def role(self) -> str | None:
        """Role of the author, usually 'assistant'; None if missing."""

    @property
    def raw(self) -> bytes:
        """The chunk's JSON as it was received."""

    @property
    def index(self) -> int | None:
        """Index of the choice, from 0; None without choices."""

    @property
    def reasoning(self) -> str:
        """Reasoning text of this chunk; may be empty."""

    @property
    def id(self) -> str | None:
        """ID of the answer; None if missing."""

    @property
    def model(self) -> str | None:
        """Name of the model as the server reports it; None if missing."""

    @property
    def engine_model(self) -> str | None:
        """Name of the model that does the work; None in chunks without this name."""

    @property
    def created(self) -> int | None:
        """Unix time in seconds; None if missing."""

    @property
    def tool_calls(self) -> tuple[Any, ...]:
        """Partial tool calls of the first choice; their members are attributes."""

    @property
    def logprobs(self) -> Any:
        """Log probabilities of the first choice; None if missing."""

    @property
    def usage(self) -> Any:
        """Token counts, in the last chunk if the server sends them; None if missing."""

    @property
    def choices(self) -> tuple[Any, ...]:
        """All choices in the form of openai-python: ``choices[0].delta.content``."""

    def json(self) -> dict[str, Any]:
        """Return the chunk as a new dict."""

class _Stream:
    @property
    def text(self) -> str:
        """Text of the first choice in the chunks read so far."""

    @property
    def finish_reason(self) -> str | None:
        """Last finish reason read; None before."""

    @property
    def usage(self) -> Any:
        """Token counts; None until a chunk contains them."""

    @property
    def finished(self) -> bool:
        """True after the complete answer has been read."""

    @property
    def chunks(self) -> int:
        """Number of chunks read."""

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
    """The asynchronous variant of `ChatStream`."""

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
    """Timeouts, retries and size limits of a call. A timeout of None never expires."""

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
    """A running request and its response."""

    def __init__(self, *args: Never, **kwargs: Never) -> None:
        """Raises TypeError: only sessions create exchanges."""

    def wait_for_news(self) -> None: ...
    def close(self) -> None: ...
    def outcome(self) -> tuple[int, bytes, bytes, int, float, tuple[str, ...]]: ...
    def take_bytes(self) -> bytes: ...
    def set_waiter(self, future: Any) -> None: ...
    def report_progress(self) -> None: ...
    def belongs_to(self, notifier: LoopNotifier) -> bool: ...
    def resume_sending(self) -> None: ...
    @property
    def retry_reasons(self) -> tuple[str, ...]: ...
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
    """Wakes an event loop when its requests have new data or have ended."""

    def __init__(self, loop: AbstractEventLoop) -> None: ...
    def dispatch(self) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...
    @property
    def descriptor(self) -> int: ...

@final
class Session:
    """Connections to one server, and the thread that processes them."""

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
    ) -> tuple[int, bytes, bytes, int, float, tuple[str, ...]]: ...
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
    """Splits received bytes into server-sent events."""

    def __init__(self, max_event_bytes: int) -> None: ...
    def feed(self, piece: ReadableBuffer) -> list[tuple[str, bytes]]: ...

@final
class ServerExchange:
    """A request that the server has received, and its response. One thread at a time may use it."""

    def scope(self) -> dict[str, Any]:
        """The connection scope of ASGI 3.0."""
    def take_body(self) -> tuple[bytes, bool, bool]:
        """Return new bytes of the body, whether it is complete, and whether the client left."""
    def start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Start the response; its head is sent with the first part of the body."""
    def write(self, data: ReadableBuffer, is_last: bool) -> bool:
        """Send a part of the body. False if its length is not that of Content-Length."""
    def flush(self) -> None:
        """Send the head without a body."""
    def has_room(self) -> bool:
        """Whether little is waiting to be sent. If not, an event follows."""
    def disconnect(self) -> None:
        """Close the connection."""
    @property
    def is_started(self) -> bool: ...
    @property
    def is_ended(self) -> bool: ...
    def __init__(self, *args: Never) -> None: ...

@final
class ServerFront:
    """Threads that receive requests on a listening socket."""

    def __init__(
        self,
        listener: int,
        *,
        io_threads: int,
        header_timeout_s: float,
        keep_alive_timeout_s: float,
        write_timeout_s: float,
        max_connections: int,
        max_connections_per_network: int | None,
        tls_certificate: str,
        tls_key: str,
    ) -> None:
        """Start the threads. The paths are empty without TLS."""
    def fileno(self) -> int:
        """A descriptor that is readable while `take` returns events."""
    def take(self) -> list[tuple[int, Any]]:
        """Return kinds and exchanges of new events; the exchange of some is None."""
    def publish(
        self,
        gate: GateRules,
        keys: KeyTable,
        endpoints: Sequence[tuple[str, EndpointRules]],
    ) -> None:
        """Refuse further requests to these paths by these rules."""
    def take_refused(
        self,
    ) -> tuple[list[tuple[int, float, str, str, str]], list[tuple[str, int, int]]]:
        """Return the refused requests since the last call.

        Returns:
            Status, seconds, method, path and id of each; then path, status and number of further
            ones.
        """
    def drain(self) -> None:
        """Close each connection after its current response."""
    def close_all(self) -> None:
        """Close all connections now."""
    def close(self) -> None:
        """Close all connections and end the threads."""
    @property
    def connections(self) -> int: ...
    @property
    def received_bytes(self) -> int:
        """Bytes of requests, without `dropped_bytes`."""
    @property
    def dropped_bytes(self) -> int:
        """Bytes that came after a response that ended their connection."""

@final
class KeyTable:
    """The API keys of a file; does not change."""

    def __init__(
        self,
        path: str,
        stamp: tuple[int, int, int, int] | None,
        keys: Sequence[tuple[bytes, Sequence[str] | None, float | None]],
    ) -> None:
        """Create the table from the file's state, and the hash, scopes and expiry of each key."""
    def find(self, text: bytes, now_s: float) -> int | None:
        """Return the index of the key with this text; None if it is unknown or has expired."""
    def is_current(self) -> bool:
        """Whether the file is as it was when it was read."""

@final
class EndpointRules:
    """Requirements of an endpoint."""

    def __init__(
        self,
        scope: str,
        methods: Sequence[str],
        *,
        is_public: bool,
        is_loopback_public: bool,
        accepts_any_address: bool,
        accepts_token: bool,
    ) -> None: ...

@final
class GateRules:
    """Requirements of a server."""

    def __init__(
        self,
        *,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str],
        is_loopback_only: bool,
    ) -> None: ...
    def admit(
        self,
        endpoint: EndpointRules,
        keys: KeyTable | None,
        scope: Mapping[str, Any],
        now_s: float,
    ) -> tuple[dict[bytes, bytes], int | None, int | None] | tuple[int, str, str, str | None, int]:
        """Check a request from its ASGI scope.

        Args:
            endpoint: Requirements of the endpoint.
            keys: All keys; None if they cannot be read.
            scope: Connection scope of ASGI.
            now_s: Seconds since 1970.

        Returns:
            Header fields, the key's index and Content-Length; or status, code, message,
            parameter and ``Retry-After`` of an error.
        """
