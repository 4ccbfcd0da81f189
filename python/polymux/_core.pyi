"""The native core module. Private: use the functions of `polymux`."""

from collections.abc import Sequence
from typing import Any, final

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

def check_json(
    operation: str, model: str | None, body: ReadableBuffer, server: bool, longest_bytes: int
) -> tuple[str, str, list[str]]:
    """The same as `read_json` without making values of the body: (variant, model, warnings)."""

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
        >>> from polymux import _core
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

    def __buffer__(self, flags: int, /) -> memoryview: ...
