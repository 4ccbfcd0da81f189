"""The native core module. Private: use the functions of `polymux`."""

from collections.abc import AsyncIterable, Awaitable, Iterable, Sequence
from typing import Any, Self, final

from _typeshed import ReadableBuffer

__version__: str

def describe(operation: str | None = None) -> str:
    """The contract as JSON text: all operations, or the one named."""

def read_json(
    operation: str, model: str | None, body: ReadableBuffer, server: bool, longest_bytes: int
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Parses and checks a JSON body: (variant, model, values, warnings)."""

def read_form(
    operation: str, model: str | None, fields: Sequence[tuple[str, Any]], server: bool
) -> tuple[str, str, dict[str, Any], list[str]]:
    """Checks a form of (name, text or file object): (variant, model, values, warnings)."""

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

class ChatStream(_Stream):
    """An iterator over the chunks of one answer."""

    def __new__(
        cls, source: Iterable[ReadableBuffer], longest_event_bytes: int, templates: bool = True, /
    ) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> ChatChunk: ...

class AsyncChatStream(_Stream):
    """The asynchronous twin."""

    def __new__(
        cls,
        source: AsyncIterable[ReadableBuffer],
        longest_event_bytes: int,
        templates: bool = True,
        /,
    ) -> Self: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[ChatChunk]: ...
    def _pop(self) -> ChatChunk | None: ...
    def _feed(self, piece: ReadableBuffer, /) -> None: ...
    def _finish(self) -> None: ...
    def _hold(self, hold: bool, /) -> None: ...
